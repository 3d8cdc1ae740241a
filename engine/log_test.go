package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// journal collects what is logged, as "level message node".
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

// lines returns what was logged since the last call.
func (j *journal) lines(t *testing.T) (lines []string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range bytes.Lines(j.buf.Bytes()) {
		var x struct{ Level, Msg, Node, Cluster string }
		if err := json.Unmarshal(line, &x); err != nil || x.Cluster != "main" {
			t.Fatalf("%s: %v", line, err)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s", x.Level, x.Msg, x.Node))
	}
	j.buf.Reset()
	return lines
}

func TestChangesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		core(t, engine.Config{ProbeInterval: 10 * time.Millisecond, Logger: slog.New(slog.NewJSONHandler(&j, nil))}, p, r)
		expect := func(what string, want ...string) {
			t.Helper()
			time.Sleep(2 * time.Second)
			got := j.lines(t)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s: logged %q, want %q", what, got, want)
			}
		}
		expect("start", "INFO node found a", "INFO node found b")
		p.at(200)
		r.at(200)
		expect("positions")
		r.set(func(s *stub) { s.err = errors.New("refused") })
		expect("failure", "WARN node does not answer probes b", "WARN reads leave the node out b")
		r.set(func(s *stub) { s.err = nil })
		expect("return", "INFO node answers probes again b", "INFO reads use the node again b")
		r.set(func(s *stub) { s.answer.Incarnation++ })
		expect("new life", "WARN node began a new life: what it showed before proves nothing b")
		r.set(func(s *stub) {
			s.answer.Role, s.answer.Epoch, s.answer.Ceiling = tidegate.RolePrimary, epoch(2), tidegate.At(200)
		})
		expect("promotion", "WARN role changed b", "WARN history changed ", "WARN node is not used a")
		p.set(func(s *stub) { s.answer.Epoch = epoch(2) })
		expect("two primaries", "ERROR more than one primary of the same line in sight: writes are refused; stop the wrong one ", "WARN node is not used a", "WARN node is not used b")
		p.set(func(s *stub) { s.err = errors.New("stopped") })
		expect("one stopped", "WARN node does not answer probes a", "INFO one primary again ",
			"INFO nothing speaks against the node any more a", "INFO nothing speaks against the node any more b")
	})
}
