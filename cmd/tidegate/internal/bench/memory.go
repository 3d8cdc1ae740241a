package bench

import (
	"context"
	"math"
	"runtime"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/figure"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/pairs"
)

const maxInterval = time.Hour

// allocated is what an operation allocates.
type allocated struct{ objects, bytes float64 }

// allocations returns what an operation allocates on average, all goroutines
// together: pgx lets one of its own watch the context.
func allocations(n int, op pairs.Arm) (allocated, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		if err := op(); err != nil {
			return allocated{}, err
		}
	}
	runtime.ReadMemStats(&after)
	return allocated{
		objects: float64(after.Mallocs-before.Mallocs) / float64(n),
		bytes:   float64(after.TotalAlloc-before.TotalAlloc) / float64(n),
	}, nil
}

// tenth rounds away what the runtime itself allocates now and then.
func tenth(v float64) float64 { return math.Round(10*v)/10 + 0 } // + 0: never -0

// readAllocs counts what a routed read allocates beyond the direct one.
func (b *bench) readAllocs(ctx context.Context) ([]figure.Figure, error) {
	db, err := b.stage.open(ctx, 1, unasked)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if ctx, err = reader(ctx, db); err != nil {
		return nil, err
	}
	routed := func(ctx context.Context) error { return read(ctx, db, tidegate.Causal) }
	pool, err := poolOf(ctx, routed)
	if err != nil {
		return nil, err
	}
	n := normal(&b.cfg, 5000, 300)
	var more, moreBytes, own, ownBytes, control []float64
	for range b.cfg.runs() {
		// Direct, routed, direct once more.
		var got [3]allocated
		for i, op := range []pairs.Arm{
			func() error { return readDirect(ctx, pool) },
			func() error { return routed(ctx) },
			func() error { return readDirect(ctx, pool) },
		} {
			if _, err := allocations(warmUp, op); err != nil {
				return nil, err
			}
			if got[i], err = allocations(n, op); err != nil {
				return nil, err
			}
		}
		more = append(more, tenth(got[1].objects-got[0].objects))
		moreBytes = append(moreBytes, got[1].bytes-got[0].bytes)
		own, ownBytes = append(own, got[0].objects), append(ownBytes, got[0].bytes)
		control = append(control, tenth(got[2].objects-got[0].objects))
	}
	f := figure.Plain(ReadAllocs, figure.Count, figure.AtMost(0), more...).Beside(control, 0.1).Lacking(b.cfg.tooFew(EnoughPairs))
	return []figure.Figure{f.Noted("beyond the %.1f allocations and %.0f bytes of the direct read, together %.0f bytes more",
		pairs.Median(own), pairs.Median(ownBytes), pairs.Median(moreBytes))}, nil
}

// sessionSize measures the memory of sessions that have written and read, and
// the length of their tokens.
func (b *bench) sessionSize(ctx context.Context) ([]figure.Figure, error) {
	db, err := b.stage.open(ctx, 4, nil)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	keyring, err := tidegate.NewKeyring(tidegate.KeyringConfig{Keys: []tidegate.Key{{ID: "2025a", Secret: make([]byte, 32)}}})
	if err != nil {
		return nil, err
	}
	use := func(s *tidegate.Session) error {
		ctx := tidegate.WithSession(ctx, s)
		if err := write(ctx, db); err != nil {
			return err
		}
		return read(ctx, db, tidegate.Causal)
	}
	for range warmUp {
		if err := use(tidegate.NewSession()); err != nil {
			return nil, err
		}
	}
	sessions := make([]*tidegate.Session, normal(&b.cfg, 10_000, 500))
	before := heap()
	for i := range sessions {
		sessions[i] = tidegate.NewSession()
		if err := use(sessions[i]); err != nil {
			return nil, err
		}
	}
	each := float64(heap()-before) / float64(len(sessions))
	longest := 0
	for _, s := range sessions {
		signed := keyring.Sign(s.Token())
		longest = max(longest, len(signed))
	}
	runtime.KeepAlive(sessions)
	return []figure.Figure{
		figure.Plain(SessionBytes, figure.Bytes, nil, math.Round(each)).Noted("of memory, on average of %d sessions that have written and read", len(sessions)),
		figure.Plain(TokenBytes, figure.Bytes, nil, float64(longest)).Noted("the longest signed token of these sessions, as text; none can be longer than %d", tidegate.MaxSignedBytes),
	}, nil
}

// heap is the memory that is in use. Two collections: what the first one finds
// in pools and finalizers only the second one frees.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
