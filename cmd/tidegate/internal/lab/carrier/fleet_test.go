package carrier_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/carrier"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/check"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
)

// A session sees what it wrote, on every instance, and what it has seen.
func TestFleetCarriesSessions(t *testing.T) {
	t.Parallel()
	each(t, func(ctx context.Context, t *testing.T, c carrier.Carrier) {
		tr := newTrial(ctx, t, c, fresh)
		a, b := tr.fleet.Client(1), tr.fleet.Client(2)
		if v, op := tr.read(a, 1); v != 0 || !op.Answer.Replica {
			t.Errorf("before any write: version %d, %+v", v, op.Answer)
		}
		tr.write(a, 1, 5)
		by := map[int]int{}
		for range 4 {
			v, op := tr.read(a, 1)
			if v != 5 || op.Answer.Replica || op.Answer.Reason == "" {
				t.Errorf("its own write: version %d, %+v", v, op.Answer)
			}
			by[op.Instance]++
		}
		if by[0] != 2 || by[1] != 2 {
			t.Errorf("the instances answered %v", by)
		}
		// Whoever is new to a store catches up.
		if v, op := tr.read(b, 1); (v != 0 || !op.Answer.Replica) != c.CatchesUp {
			t.Errorf("another session: version %d, %+v", v, op.Answer)
		}
		strongly := record.Op{Asked: []int64{1}, Strong: true}
		if b.Read(ctx, &strongly); tr.version(&strongly) != 5 || strongly.Answer.Reason != "strong" {
			t.Errorf("a strong read: %+v", strongly.Answer)
		}
		if v, _ := tr.read(b, 1); v != 5 {
			t.Errorf("what it had seen: version %d", v)
		}
		s := tr.fleet.Stats()
		if c.CatchesUp {
			s.Emitted, s.Fresh, s.CatchUps = s.Emitted+1, s.CatchUps, s.Fresh
		}
		if s.Emitted == 0 || c.CatchesUp && s.Emitted > 1 || s.Fresh != 2 || s.CatchUps != 0 || s.Refused != 0 || s.Late != 0 {
			t.Errorf("%+v", tr.fleet.Stats())
		}
	})
}

// What becomes of a client that has lost its tokens is the policy's.
func TestFleetForgets(t *testing.T) {
	t.Parallel()
	each(t, func(ctx context.Context, t *testing.T, c carrier.Carrier) {
		for _, c2 := range []struct {
			change         []func(*carrier.FleetConfig)
			version        int64
			fresh, catchUp uint64
		}{
			{nil, 5, 0, 2},
			{[]func(*carrier.FleetConfig){fresh}, 0, 2, 0},
		} {
			if c.CatchesUp && c2.change != nil {
				continue
			}
			tr := newTrial(ctx, t, c, c2.change...)
			client := tr.fleet.Client(1)
			if n := client.Forget(ctx); n != 0 {
				t.Errorf("a new client lost %d tokens", n)
			}
			tr.write(client, 1, 5)
			if n := client.Forget(ctx); n != 1 {
				t.Errorf("lost %d tokens", n)
			}
			if v, _ := tr.read(client, 1); v != c2.version {
				t.Errorf("missing %v: version %d", tr.fleet.Stats(), v)
			}
			if s := tr.fleet.Stats(); s.Fresh != c2.fresh || s.CatchUps != c2.catchUp {
				t.Errorf("%+v", s)
			}
		}
	})
}

// sums are what several runs of a load came to.
type sums struct{ reads, overlaps, dropped, rereads, broken, missed, failed int }

func (s *sums) add(log *record.Log) {
	for _, ops := range log.Sessions() {
		for _, op := range ops {
			for n, yes := range map[*int]bool{
				&s.reads: op.Kind == record.Read, &s.overlaps: op.Overlaps, &s.dropped: op.Dropped > 0, &s.rereads: op.Told != nil,
				&s.broken: len(op.Violations) > 0, &s.missed: op.Broke(record.ReadsAfterEvents), &s.failed: op.Err != nil,
			} {
				if yes {
					*n++
				}
			}
		}
	}
}

// Whole sessions, with requests side by side, lost tokens and events, on replicas
// that never have anything: nothing is missed, unless those who lost their tokens
// are taken for new ones.
func TestFleetCarriesLoad(t *testing.T) {
	t.Parallel()
	each(t, func(ctx context.Context, t *testing.T, c carrier.Carrier) {
		load := traffic.Load{Sessions: 4, Instances: 2, Rate: 400, Writes: 0.2, Parallel: 0.5, Drops: 0.05, Duration: time.Second / 2}
		size := func(cfg *carrier.FleetConfig) { cfg.Sessions = load.Sessions }
		for forgets, change := range map[bool][]func(*carrier.FleetConfig){false: {size}, true: {size, fresh}} {
			if forgets && c.CatchesUp {
				continue
			}
			var s sums
			// As many runs as a busy machine needs.
			for load.Seed = 1; load.Seed <= 30; load.Seed++ {
				log := record.NewLog(load.Sessions)
				traffic.Drive(ctx, load, time.Now(), newTrial(ctx, t, c, change...).fleet, check.New(load.Keys()), log)
				s.add(log)
				if s.reads > 100 && s.overlaps > 20 && s.dropped > 5 && (s.rereads > 5 || !c.Events) && (s.broken > 0 || !forgets) {
					break
				}
			}
			if s.failed > 0 || s.missed > 0 || load.Seed > 30 || !forgets && s.broken > 0 || !c.Events && s.rereads > 0 {
				t.Errorf("taken for new: %v, %d runs: %+v", forgets, load.Seed, s)
			}
		}
	})
}

// An event makes another session see the write that it tells of, and only where
// events carry tokens.
func TestFleetTellsOthers(t *testing.T) {
	t.Parallel()
	c, err := carrier.Find("event")
	if err != nil {
		t.Fatal(err)
	}
	for _, carried := range []bool{true, false} {
		tr := newTrial(t.Context(), t, c, fresh, func(cfg *carrier.FleetConfig) { cfg.Carried, cfg.Sessions = carried, 2 })
		writer, other := tr.fleet.Client(0), tr.fleet.Client(1).(traffic.Listener)
		warm := tr.fleet.Client(-1)
		if _, listens := warm.(traffic.Listener); listens {
			t.Error("a session that only warms up is told of events")
		}
		// What anybody writes without a session is the context's to miss.
		if carried {
			tr.write(writer, 0, 5)
		} else if err := tr.db.Put(t.Context(), "0", "5"); err != nil {
			t.Fatal(err)
		} else {
			op := record.Op{Key: 0, Version: 5}
			writer.Write(t.Context(), &op)
		}
		e := tr.event(other)
		if e.Row != (record.Row{Key: 0, Version: 5}) || strings.Contains(string(e.Message), "consistencytoken") != carried {
			t.Errorf("told of %v by %s", e.Row, e.Message)
		}
		if !carried {
			continue // without a session the library reads the primary
		}
		if v, _ := tr.read(other.(traffic.Client), 0); v != 0 {
			t.Errorf("without the event: version %d", v)
		}
		op := record.Op{Asked: []int64{0}}
		if other.Reread(t.Context(), &op, e); tr.version(&op) != 5 {
			t.Errorf("with the event: version %d", tr.version(&op))
		}
		if v, _ := tr.read(other.(traffic.Client), 0); v != 5 {
			t.Errorf("after it: version %d", v)
		}
		e.Message = []byte(strings.Replace(string(e.Message), "tg1.", "tg9.", 1))
		if other.Reread(t.Context(), &op, e); tr.version(&op) != 5 || tr.fleet.Stats().Refused != 1 || tr.fleet.Stats().CatchUps != 1 {
			t.Errorf("a forged event: version %d, %+v", tr.version(&op), tr.fleet.Stats())
		}
		e.Message = make([]byte, 1<<17)
		if other.Reread(t.Context(), &op, e); op.Err == nil {
			t.Error("an event of 128 KiB was read")
		}
	}
}

// Where nothing is carried there is no session, and no token.
func TestFleetWithoutSessions(t *testing.T) {
	t.Parallel()
	tr := newTrial(t.Context(), t, carrier.All()[0], func(c *carrier.FleetConfig) { c.Carried = false })
	client := tr.fleet.Client(1)
	tr.write(client, 1, 5)
	tr.read(client, 1)
	if n, s := client.Forget(t.Context()), tr.fleet.Stats(); n != 0 || s != (carrier.Stats{}) {
		t.Errorf("%d tokens, %+v", n, s)
	}
}

// Errors arrive as they are, beside what is known of the answer, and tokens with
// them.
func TestFleetPassesErrors(t *testing.T) {
	t.Parallel()
	tr := newTrial(t.Context(), t, carrier.All()[0])
	client := tr.fleet.Client(1)
	op := record.Op{Asked: []int64{1, broken}}
	client.Read(t.Context(), &op)
	if op.Err == nil || op.Err.Error() != errBroken.Error() || !op.Answer.Begun || len(op.Answer.Rows) != 1 {
		t.Errorf("got %+v, %v", op.Answer, op.Err)
	}
	if n := client.Forget(t.Context()); n != 1 {
		t.Errorf("after a failed read the client holds %d tokens", n)
	}
	op = record.Op{Key: broken}
	if client.Write(t.Context(), &op); op.Err == nil || op.Err.Error() != errBroken.Error() {
		t.Errorf("got %v", op.Err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if client.Write(ctx, &op); !errors.Is(op.Err, context.Canceled) {
		t.Errorf("got %v", op.Err)
	}
}

// How old an answer may be goes with the request.
func TestFleetPassesBudgets(t *testing.T) {
	t.Parallel()
	tr := newTrial(t.Context(), t, carrier.All()[0])
	client := tr.fleet.Client(1)
	for _, budget := range record.Budgets(1500*time.Microsecond, time.Minute) {
		op := record.Op{Asked: []int64{1}, Budget: &budget}
		client.Read(t.Context(), &op)
		tr.version(&op)
		if got := tr.apps[op.Instance].budget; got != budget {
			t.Errorf("asked with %+v, got %+v", budget, got)
		}
	}
	for _, app := range tr.apps {
		app.budget = record.Budget{}
	}
	if _, op := tr.read(client, 1); tr.apps[op.Instance].budget != (record.Budget{}) {
		t.Error("a read that must not be old has a budget")
	}
}

// A deployment: instances come and go, sessions stay.
func TestFleetReplaces(t *testing.T) {
	t.Parallel()
	each(t, func(ctx context.Context, t *testing.T, c carrier.Carrier) {
		tr := newTrial(ctx, t, c)
		client := tr.fleet.Client(1)
		tr.write(client, 1, 5)
		tr.read(client, 1)
		before := tr.fleet.Stats()
		next := &app{db: tr.db}
		if err := tr.fleet.Replace(ctx, 0, next); err != nil {
			t.Fatal(err)
		}
		if !tr.apps[0].closed || tr.apps[1].closed {
			t.Error("the wrong instance is closed")
		}
		served := tr.apps[0].served
		for range 4 {
			if v, _ := tr.read(client, 1); v != 5 {
				t.Errorf("version %d", v)
			}
		}
		if next.served != 2 || tr.apps[0].served != served {
			t.Errorf("the new instance served %d, the old one %d more", next.served, tr.apps[0].served-served)
		}
		if s := tr.fleet.Stats(); s.CatchUps != before.CatchUps || s.Emitted < before.Emitted {
			t.Errorf("counted %+v, then %+v", before, s)
		}
		tr.fleet.Close()
		if !next.closed || !tr.apps[1].closed {
			t.Error("an instance stays open")
		}
	})
}

// What cannot start leaves nothing behind.
func TestFleetThatCannotStart(t *testing.T) {
	t.Parallel()
	broken := errors.New("no connection")
	for name, c := range map[string]carrier.Carrier{
		"the carrier": {Open: func(context.Context, carrier.Config) (carrier.Way, error) { return nil, broken }},
		"the gate":    {Events: true, Open: func(context.Context, carrier.Config) (carrier.Way, error) { return &way{gateErr: broken}, nil }},
	} {
		keys, err := strategy.Keyring()
		if err != nil {
			t.Fatal(err)
		}
		one := &app{}
		cfg := carrier.FleetConfig{Config: carrier.Config{Keyring: keys, Cluster: "lab"}, Carrier: c, Carried: true, Sessions: 2}
		if _, err := carrier.Open(t.Context(), cfg, one); !errors.Is(err, broken) || !one.closed {
			t.Errorf("%s: %v; closed: %v", name, err, one.closed)
		}
	}
}

// A client that cannot be made fails its operations, and a gate that cannot be
// made leaves the instance that there was.
func TestFleetOfABrokenCarrier(t *testing.T) {
	t.Parallel()
	broken := errors.New("no connection")
	w := &way{clientErr: broken}
	tr := newTrial(t.Context(), t, carrier.Carrier{Open: func(context.Context, carrier.Config) (carrier.Way, error) { return w, nil }})
	client := tr.fleet.Client(1)
	var read, write record.Op
	client.Read(t.Context(), &read)
	client.Write(t.Context(), &write)
	if !errors.Is(read.Err, broken) || !errors.Is(write.Err, broken) || client.Forget(t.Context()) != 0 {
		t.Errorf("got %v and %v", read.Err, write.Err)
	}
	w.gateErr = broken
	next := &app{}
	if err := tr.fleet.Replace(t.Context(), 0, next); !errors.Is(err, broken) || !next.closed || tr.apps[0].closed {
		t.Errorf("got %v; the new one is closed: %v, the old one: %v", err, next.closed, tr.apps[0].closed)
	}
	tr.fleet.Close()
	if !w.closed {
		t.Error("the way stays open")
	}
}

// way is a carrier that fails.
type way struct {
	gateErr, clientErr error
	closed             bool
}

func (w *way) Gate(context.Context) (carrier.Gate, error) { return none{}, w.gateErr }

func (w *way) Client(context.Context, string, string, http.RoundTripper) (carrier.Client, error) {
	return nil, w.clientErr
}

func (w *way) Close() { w.closed = true }

type none struct{}

func (none) Wrap(next http.Handler) http.Handler { return next }
func (none) Stats() carrier.Stats                { return carrier.Stats{} }
