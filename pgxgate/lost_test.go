package pgxgate_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// TestAsynchronousCommitsLostInACrash: the primary acknowledges commits before they are flushed,
// crashes, and comes back on the same timeline without them; then its log grows past their
// positions. No session that must see them is answered as if nothing had happened, whether it
// wrote them, read them, or has only a token.
func TestAsynchronousCommitsLostInACrash(t *testing.T) {
	c := ownCluster(t, pgcluster.Config{Replicas: 1, Settings: map[string]string{
		"synchronous_commit": "off", "wal_writer_delay": "10s", "autovacuum": "off", "bgwriter_delay": "10s",
	}})
	db := open(t, c, func(cfg *pgxgate.Config) { cfg.AsyncCommits, cfg.PrimaryWait = pgxgate.AsyncPossible, 20*time.Second })
	lost := 0
	for round := range int64(5) {
		k := key(t)
		writer, reader := newSession(t), newSession(t)
		eventually(t, "a connection of the new life", func() bool {
			writer = newSession(t) // one that met a dead connection is in doubt
			_, err := db.Write().Exec(writer.ctx, update, k, 1+round)
			return err == nil
		})
		var v int64
		if err := db.Read(tidegate.Strong("s", "reads on the primary what is not flushed")).QueryRow(reader.ctx, get, k).Scan(&v); err != nil || v != 1+round {
			t.Fatal(v, err)
		}
		bearer := newSession(t, writer.s.Token())
		if err := c.Primary().Kill(); err != nil {
			t.Fatal(err)
		}
		if err := c.Primary().Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone := sql(t, c.Primary(), "select v from kv where k = "+itoa(k)) == "0"
		// Past their positions, and flushed.
		sql(t, c.Primary(), "set synchronous_commit = on; create table filler as select generate_series(1, 20000) x; drop table filler")
		caughtUp(t, c)
		eventually(t, "the crash to be known", func() bool { return db.Status().Nodes[0].Err == nil && usable(db, c.Replicas()[0].Name) })
		if !gone {
			continue
		}
		lost++
		for name, s := range map[string]*session{"the writer": writer, "a reader": reader, "the bearer of a token": bearer} {
			s.wants(t, db, k, 0, tidegate.VerdictUnknown)
			if _, d := s.read(t, db, k); d.Verdict != tidegate.VerdictNone {
				t.Errorf("%s is told again: %v", name, d)
			}
		}
	}
	t.Logf("in %d of 5 crashes the commit was lost", lost)
	if lost == 0 {
		t.Error("no commit was lost: nothing is shown")
	}
}

// TestForeignTokens: a token of another database system, and one that is ahead of the history,
// are told of, refused or dropped as the configuration says; nothing waits for what is not there.
func TestForeignTokens(t *testing.T) {
	c := cluster(t)
	k := key(t)
	own := open(t, c)
	s := newSession(t)
	s.write(t, own, k, 7)
	caughtUp(t, c)
	mark := s.s.Token().Marks()[0]
	foreign, ahead := mark.Clone(), mark.Clone()
	foreign.Epoch = tidegate.Epoch{System: mark.Epoch.System + 1, Line: 1}
	ahead.Position = tidegate.At(mark.Position.Number() + 1<<40)
	for _, x := range []struct {
		name    string
		mark    tidegate.Mark
		verdict tidegate.Verdict
	}{{"foreign", foreign, tidegate.VerdictForeign}, {"ahead", ahead, tidegate.VerdictAhead}} {
		for _, policy := range []tidegate.ForeignPolicy{tidegate.ForeignPrimary, tidegate.ForeignError, tidegate.ForeignIgnore} {
			db := open(t, c, func(cfg *pgxgate.Config) { cfg.Foreign = policy })
			bearer := newSession(t, tidegate.NewToken(x.mark))
			begun := time.Now()
			told := false
			// That a position is ahead only a look says that is younger than the token.
			for range 10 {
				var v int64
				err := db.Read(tidegate.Causal).QueryRow(bearer.ctx, get, k).Scan(&v)
				var e *tidegate.ForeignTokenError
				switch d, _ := bearer.log.Last(); {
				case errors.As(err, &e):
					told = true
					if policy != tidegate.ForeignError || e.Verdict != x.verdict || !errors.Is(err, tidegate.ErrForeign) {
						t.Errorf("%s, %v: %v", x.name, policy, err)
					}
				case err != nil || v != 7:
					t.Errorf("%s, %v: got %d, error %v", x.name, policy, v, err)
				case d.Reason == tidegate.ReasonHistoryChanged:
					told = true
					if policy != tidegate.ForeignPrimary || d.Verdict != x.verdict || d.Role != tidegate.RolePrimary || !d.Unproven {
						t.Errorf("%s, %v: %v", x.name, policy, d)
					}
				}
			}
			if told != (policy != tidegate.ForeignIgnore) {
				t.Errorf("%s, %v: told %v", x.name, policy, told)
			}
			if n := db.Stats().Verdicts[x.verdict]; n == 0 {
				t.Errorf("%s, %v: it is not counted", x.name, policy)
			}
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("%s, %v: ten reads took %v", x.name, policy, took)
			}
		}
	}
}
