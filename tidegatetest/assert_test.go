package tidegatetest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

// reports checks that an assertion fails with these words, or with none passes.
func reports(t *testing.T, rec *tb, words ...string) {
	t.Helper()
	got := rec.failed()
	if len(words) == 0 && got != "" {
		t.Errorf("it failed: %s", got)
	}
	for _, w := range words {
		if !strings.Contains(got, w) {
			t.Errorf("it says %q, and nothing of %q", got, w)
		}
	}
}

func TestRouted(t *testing.T) {
	t.Parallel()
	rec := newTB()
	_, seen := tidegate.Observe(context.Background())
	tidegatetest.Routed(rec, seen, tidegate.RoleReplica)
	reports(t, rec, "no read was observed")
	seen.Add(tidegate.Decision{Cluster: "main", Node: "r1", Role: tidegate.RoleReplica, Reason: tidegate.ReasonCovered})
	tidegatetest.Routed(rec, seen, tidegate.RoleReplica)
	reports(t, rec)
	tidegatetest.Routed(rec, seen, tidegate.RolePrimary)
	reports(t, rec, "replica r1 (covered)")
	seen.Add(tidegate.Decision{Cluster: "main", Node: "r1", Role: tidegate.RoleReplica, Unproven: true})
	tidegatetest.Routed(rec, seen, tidegate.RoleReplica)
	reports(t, rec, "UNPROVEN")
}

func TestCovers(t *testing.T) {
	t.Parallel()
	here, there := tidegate.Epoch{System: 7, Line: 1}, tidegate.Epoch{System: 7, Line: 2}
	at := func(e tidegate.Epoch, n uint64) tidegate.Mark {
		return tidegate.Mark{Cluster: "main", Epoch: e, Position: tidegate.At(n)}
	}
	owing := at(here, 10)
	owing.CatchUp = true
	unborn := tidegate.Mark{Cluster: "main", CatchUp: true}
	onlySaw := tidegate.Mark{Cluster: "main", Epoch: here, Seen: []tidegate.Incarnation{9}}
	elsewhere := at(here, 10)
	elsewhere.Cluster = "side"
	for name, tt := range map[string]struct {
		session, token []tidegate.Mark
		want           []string
	}{
		"the same":                    {[]tidegate.Mark{at(here, 10)}, []tidegate.Mark{at(here, 10)}, nil},
		"more":                        {[]tidegate.Mark{at(here, 10)}, []tidegate.Mark{at(here, 11), elsewhere}, nil},
		"less":                        {[]tidegate.Mark{at(here, 10)}, []tidegate.Mark{at(here, 9)}, []string{"requires position 9", "requires position 10"}},
		"nothing":                     {[]tidegate.Mark{at(here, 10)}, nil, []string{"cluster main", "requires nothing"}},
		"another cluster":             {[]tidegate.Mark{at(here, 10)}, []tidegate.Mark{elsewhere}, []string{"requires nothing"}},
		"another history":             {[]tidegate.Mark{at(here, 10)}, []tidegate.Mark{at(there, 10)}, []string{"another history"}},
		"both histories":              {[]tidegate.Mark{at(here, 10)}, []tidegate.Mark{at(there, 1), at(here, 10)}, nil},
		"one of two clusters":         {[]tidegate.Mark{at(here, 10), elsewhere}, []tidegate.Mark{at(here, 10)}, []string{"cluster side"}},
		"an outcome that is not told": {[]tidegate.Mark{owing}, []tidegate.Mark{at(here, 10)}, []string{"no catch-up"}},
		"an outcome that is told":     {[]tidegate.Mark{owing}, []tidegate.Mark{owing}, nil},
		"an early catch-up":           {[]tidegate.Mark{unborn}, []tidegate.Mark{owing}, nil},
		"a session that only read":    {[]tidegate.Mark{onlySaw}, []tidegate.Mark{at(here, 10)}, []string{"has written nothing"}},
		"a new session":               {nil, []tidegate.Mark{at(here, 10)}, []string{"has written nothing"}},
	} {
		rec := newTB()
		tidegatetest.Covers(rec, tidegate.NewToken(tt.token...), tidegate.NewSession(tidegate.NewToken(tt.session...)))
		t.Log(name)
		reports(t, rec, tt.want...)
	}
}

func TestCoversWhatWasWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := tidegatetest.New(t, tidegatetest.Config{})
		ctx := session(t)
		s, rec := tidegate.SessionFrom(ctx), newTB()
		before := s.Token()
		put(ctx, t, c, "k", "v")
		tidegatetest.Covers(rec, s.Token(), s)
		reports(t, rec)
		tidegatetest.Covers(rec, before, s)
		reports(t, rec, "does not cover")
		// Another instance goes on from it, and covers what it was given.
		other := tidegate.NewSession(s.Token())
		shows(tidegate.WithSession(t.Context(), other), t, c, tidegate.Causal, "k", "v", "")
		put(tidegate.WithSession(t.Context(), other), t, c, "k", "w")
		tidegatetest.Covers(rec, other.Token(), s)
		reports(t, rec)
		tidegatetest.Covers(rec, s.Token(), other)
		reports(t, rec, "does not cover")
	})
}

func TestStaleUnlessRouted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec := newTB()
		rec.ctx = t.Context()
		c := tidegatetest.New(rec, tidegatetest.Config{})
		defer rec.done()
		put(t.Context(), t, c, "k", "v")
		c.StaleUnlessRouted("k")
		reports(t, rec, "nothing could be stale")
		c.Replica(0).Hold()
		put(t.Context(), t, c, "k", "w")
		c.StaleUnlessRouted("k")
		reports(t, rec)
		c.StaleUnlessRouted("nothing")
		reports(t, rec, "nothing could be stale")
		c.Replica(0).Stop() // what it would show, nobody can read
		c.StaleUnlessRouted("k")
		reports(t, rec, "nothing could be stale")
		c.Primary().Stop()
		c.StaleUnlessRouted("k")
		reports(t, rec, "no primary")
	})
}

func TestMisuseIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec := newTB()
		rec.ctx = t.Context()
		c := tidegatetest.New(rec, tidegatetest.Config{})
		defer rec.done()
		c.Primary().Hold()
		reports(t, rec, "p is the primary")
		c.Primary().Promote()
		reports(t, rec, "no running replica")
		c.Replica(0).Stop()
		c.Replica(0).Promote()
		reports(t, rec, "no running replica")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		rec.ctx = ctx
		c.Probe()
		reports(t, rec, "context canceled")
		ends := func(says string, f func()) {
			t.Helper()
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, says) {
					t.Errorf("the test ends with %q, want it to say %q", got, says)
				}
			}()
			f()
		}
		ends("Config.Replicas is -1", func() { tidegatetest.New(rec, tidegatetest.Config{Replicas: -1}) })
		ends("no Replica(2); this cluster has Replica(0) to Replica(1)", func() { c.Replica(2) })
		ends("no Replica(-1);", func() { c.Replica(-1).Hold() })
	})
}
