package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// A run lets one goroutine run at a time, and rules are broken for a whole
// process. So the simulation uses the other cores by processes of this test
// binary, each of which runs every n-th seed.

// shardResult is what begins the line in which a shard reports its counts.
const shardResult = "shard result: "

// simulateShards runs the seeds in as many processes as there are cores.
func simulateShards(t *testing.T) (n counts) {
	shards := min(runtime.GOMAXPROCS(0), 8)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range shards {
		wg.Go(func() {
			c, err := startShard(ctx, t, t.Name(), fmt.Sprintf("%d/%d", i, shards))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				n.add(c)
			case ctx.Err() == nil: // the first one's story is enough
				t.Errorf("shard %d/%d: %v", i, shards, err)
				cancel()
			}
		})
	}
	wg.Wait()
	return n
}

// report is how a shard tells its counts.
func (c *counts) report(t *testing.T) {
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s%s\n", shardResult, b)
}

// startShard runs a test's shard in a process of its own. The error has all that
// the process said.
func startShard(ctx context.Context, t *testing.T, test, shard string) (n counts, err error) {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", "^"+test+"$", "-test.v")
	if deadline, ok := t.Deadline(); ok {
		cmd.Args = append(cmd.Args, "-test.timeout", time.Until(deadline).String())
	}
	cmd.Env = append(os.Environ(), "TIDEGATE_SIM_SHARD="+shard)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return n, fmt.Errorf("%w\n%s", err, out)
	}
	_, line, ok := bytes.Cut(out, []byte(shardResult))
	if !ok {
		return n, fmt.Errorf("no result in its output\n%s", out)
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	return n, json.Unmarshal(line, &n)
}

func TestFailingShardFailsTheRun(t *testing.T) {
	if _, err := startShard(t.Context(), t, "TestSimulation", "2/2"); err == nil || !strings.Contains(err.Error(), "use 0/2 and 1/2") {
		t.Errorf("error %v, want what the shard says", err)
	}
	if _, err := startShard(t.Context(), t, "TestEveryRuleIsBroken", "0/2"); err == nil || !strings.Contains(err.Error(), "no result") {
		t.Errorf("error %v, want one for a shard without a result", err)
	}
}
