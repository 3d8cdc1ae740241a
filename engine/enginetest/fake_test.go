package enginetest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// harness runs the suite on the cluster in memory.
type harness struct{ mistakes fake.Mistakes }

func (harness) Bubbles() {}

func (harness) Iterations() int { return 10_000 }

func (h harness) Start(_ *testing.T, replicas int) enginetest.Cluster {
	return &cluster{h: h, Cluster: fake.New(fake.Config{Replicas: replicas, Delay: 300 * time.Microsecond, Recovery: 10 * time.Millisecond})}
}

type cluster struct {
	*fake.Cluster
	h harness
}

func (c *cluster) Open(ctx context.Context, o enginetest.Options) (enginetest.Gate, error) {
	g, err := c.Cluster.Open(ctx, fake.Options{
		Core:     engine.Config{Wait: o.Wait, ProofWait: o.ProofWait},
		ConnLife: o.ConnLife,
		Delay:    func(*fake.Node, fake.Op) time.Duration { return 50 * time.Microsecond },
		Mistakes: c.h.mistakes,
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

func (c *cluster) replica(i int) *fake.Node { return c.Nodes()[1+i] }

func (c *cluster) Commit(_ *testing.T, key int64) int64 { return int64(c.Cluster.Commit(key)) }
func (c *cluster) Name(i int) string                    { return c.replica(i).Name() }
func (c *cluster) Version(_ *testing.T, i int, key int64) int64 {
	return c.replica(i).Version(key)
}
func (c *cluster) PauseReplica(_ *testing.T, i int)  { c.replica(i).Pause() }
func (c *cluster) ResumeReplica(_ *testing.T, i int) { c.replica(i).Resume() }
func (c *cluster) StopReplica(_ *testing.T, i int)   { c.replica(i).Stop() }
func (c *cluster) StartReplica(_ *testing.T, i int)  { c.replica(i).Start() }
func (c *cluster) CrashReplica(_ *testing.T, i int)  { c.replica(i).Crash(3) }
func (c *cluster) StopPrimary(*testing.T)            { c.Nodes()[0].Stop() }
func (c *cluster) StartPrimary(*testing.T)           { c.Nodes()[0].Start() }

func (c *cluster) WriteInDoubt(ctx context.Context, t *testing.T, g enginetest.Gate, key int64) func() {
	p, err := g.(*fake.Gate).WriteInDoubt(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		p.Flush()
		p.End()
	}
}

func TestFake(t *testing.T) { enginetest.Run(t, harness{}) }

// bare is a cluster that nothing can be done to.
type bare struct{ harness }

func (b bare) Start(t *testing.T, replicas int) enginetest.Cluster {
	return struct{ enginetest.Cluster }{b.harness.Start(t, replicas)}
}

func TestSuiteRunsWithoutAbilities(t *testing.T) { enginetest.Run(t, bare{}) }

const mistakeEnv = "TIDEGATE_TEST_MISTAKE"

var mistakes = map[string]struct {
	mistakes fake.Mistakes
	noticed  string
}{
	"capture-before-commit": {fake.Mistakes{CaptureBeforeCommit: true}, "ReadYourWrites"},
	"skips-admit":           {fake.Mistakes{SkipsAdmit: true}, "MonotonicReadsOverCrashes"},
	"forgets-position":      {fake.Mistakes{ForgetsPosition: true}, "Strong"},
	"forgets-unknown":       {fake.Mistakes{ForgetsUnknown: true}, "OutcomeUnknown"},
	"leaks":                 {fake.Mistakes{Leaks: true}, "FailedStart"},
}

func TestMistaken(t *testing.T) {
	m, ok := mistakes[os.Getenv(mistakeEnv)]
	if !ok {
		t.Skip("run by TestSuiteNoticesMistakes")
	}
	enginetest.Run(t, harness{m.mistakes})
}

// The suite fails an adapter that does something wrong: it is run in another
// process, as a failing test would fail this one.
func TestSuiteNoticesMistakes(t *testing.T) {
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestMistaken$/^"+m.noticed+"$", "-test.v")
			cmd.Env = append(os.Environ(), mistakeEnv+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestMistaken/"+m.noticed) {
				t.Errorf("%s did not fail: %v\n%s", m.noticed, err, out)
			}
		})
	}
}
