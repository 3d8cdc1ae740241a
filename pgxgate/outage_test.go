package pgxgate_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// inFlight is a tracer that knows how many statements are under way at one time.
type inFlight struct{ now, most atomic.Int64 }

func (f *inFlight) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	n := f.now.Add(1)
	for {
		most := f.most.Load()
		if n <= most || f.most.CompareAndSwap(most, n) {
			return ctx
		}
	}
}

func (f *inFlight) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) { f.now.Add(-1) }

// TestBothReplicasGone kills both replicas under 500 reads a second. The primary gets no more
// of them at one time than there is room for, the others are told so at once, no read fails
// otherwise, each replica goes out once and comes back once, and both are used again soon.
func TestBothReplicasGone(t *testing.T) {
	const (
		pace        = 2 * time.Millisecond
		slots       = 4
		healthy     = 500 * time.Millisecond
		gone        = 1800 * time.Millisecond
		longestBack = 3 * time.Second // a slow probe, the time to be well in, and a busy machine
	)
	c := ownCluster(t, pgcluster.Config{Replicas: 2})
	restored := goroutines(t)
	var onPrimary inFlight
	var mu sync.Mutex
	ejected, returned := map[string]int{}, map[string]int{}
	db := open(t, c, func(cfg *pgxgate.Config) {
		p := must[*pgxpool.Config](t)(pgxpool.ParseConfig(cfg.Nodes[0].DSN))
		p.ConnConfig.Tracer = &onPrimary
		cfg.Nodes[0].Pool, cfg.Nodes[0].DSN = p, ""
		for i := range cfg.Nodes[1:] {
			cfg.Nodes[1+i].DSN += " pool_max_conns=30"
		}
		cfg.PrimaryReads, cfg.FallbackReads, cfg.FallbackWait = 2*slots, slots, 20*time.Millisecond
		cfg.Hooks = []tidegate.Hook{{Changed: func(x tidegate.Change) {
			mu.Lock()
			defer mu.Unlock()
			switch x.Kind {
			case tidegate.NodeEjected:
				ejected[x.Node]++
			case tidegate.NodeReturned:
				returned[x.Node]++
			}
		}}}
	})
	replicas := c.Replicas()

	// phase is what the servers are in: well, one of them gone, or both back.
	var phase atomic.Int32
	var reads [3]atomic.Int64
	var shed, fell atomic.Int64
	var at [2]atomic.Int64 // on each replica in phase 2
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			all.Go(func() {
				p := phase.Load()
				ctx, seen := inSession(t)
				ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
				_, err := db.Read(tidegate.Causal).Exec(ctx, "select pg_sleep(0.02)")
				d, _ := seen.Last()
				reads[p].Add(1)
				switch {
				case errors.Is(err, tidegate.ErrOverloaded):
					shed.Add(1)
				case err != nil:
					t.Errorf("a read: %v (%v)", err, d)
				case d.Role == tidegate.RolePrimary:
					fell.Add(1)
				case p == 2:
					for i, r := range replicas {
						if d.Node == r.Name {
							at[i].Add(1)
						}
					}
				}
			})
		}
	})
	time.Sleep(healthy)
	phase.Store(1)
	if err := errors.Join(replicas[0].Kill(), replicas[1].Kill()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(gone)
	for _, n := range db.Status().Nodes[1:] {
		if n.Ejection != tidegate.EjectionFailing {
			t.Errorf("%s is out for %v", n.Node, n.Ejection)
		}
	}
	most := onPrimary.most.Load()
	for _, r := range replicas {
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	phase.Store(2)
	started := time.Now()
	eventually(t, "both replicas to be used again", func() bool { return at[0].Load() > 0 && at[1].Load() > 0 })
	back := time.Since(started)
	time.Sleep(500 * time.Millisecond) // their share grows meanwhile
	stop()
	all.Wait()
	t.Logf("%d, %d and %d reads while all was well, both were gone, both were back; %d on the primary, at most %d at one time, %d told that there is no room; back after %v; %d and %d since then",
		reads[0].Load(), reads[1].Load(), reads[2].Load(), fell.Load(), most, shed.Load(), back, at[0].Load(), at[1].Load())
	if most > slots || most == 0 || onPrimary.most.Load() > slots {
		t.Errorf("%d reads were on the primary at one time, want at most %d", onPrimary.most.Load(), slots)
	}
	if reads[1].Load() < 300 || shed.Load() < 50 {
		t.Error("too little happened to prove anything")
	}
	if back > longestBack {
		t.Errorf("they were used again after %v, want %v", back, longestBack)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, r := range replicas {
		if ejected[r.Name] != 1 || returned[r.Name] != 1 {
			t.Errorf("%s went out %d times and came back %d times, want once", r.Name, ejected[r.Name], returned[r.Name])
		}
	}
	for _, n := range db.Status().Nodes {
		if n.Flying != 0 {
			t.Errorf("%d reads are in flight on %s", n.Flying, n.Node)
		}
	}
	db.Close()
	restored()
}

// refusing dials the connection for probes, and no other one.
type refusing struct{ dialed, refused atomic.Int64 }

func (r *refusing) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if r.dialed.Add(1) > 1 {
		r.refused.Add(1)
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

// TestRefusedConnectionsFailOver: a node that answers probes and takes no more connections
// costs reads one attempt each, and no read fails for it.
func TestRefusedConnectionsFailOver(t *testing.T) {
	c := cluster(t)
	var r refusing
	db := open(t, c, func(cfg *pgxgate.Config) {
		p := must[*pgxpool.Config](t)(pgxpool.ParseConfig(cfg.Nodes[1].DSN))
		p.ConnConfig.DialFunc = r.dial
		cfg.Nodes[1].Pool, cfg.Nodes[1].DSN = p, ""
	})
	for range 40 {
		ctx, seen := inSession(t)
		if _, err := db.Read(tidegate.Causal).Exec(ctx, "select"); err != nil {
			t.Fatal(err)
		}
		d, _ := seen.Last()
		if d.Node != c.Replicas()[1].Name || d.Retries > 1 || d.Retries == 1 && d.RetryCause != tidegate.RetryConnection {
			t.Errorf("%v, want the other replica", d)
		}
	}
	if n := db.Stats().Retries; r.refused.Load() == 0 || n[tidegate.RetryConnection] != n.Total() {
		t.Errorf("%d connections were refused, began again: %v", r.refused.Load(), n)
	}
	for _, n := range db.Status().Nodes {
		if n.Flying != 0 || n.Ejection != tidegate.EjectionNone {
			t.Errorf("%+v", n)
		}
	}
}

// TestStartsWithASilentNode: one node takes connections and says nothing. Open waits for one
// look at it, nobody for more, and it does not keep anybody from closing.
func TestStartsWithASilentNode(t *testing.T) {
	const probing = 300 * time.Millisecond // ProbeTimeout
	c := cluster(t)
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	defer func() { _ = l.Close() }() // nobody accepts
	restored := goroutines(t)
	began := time.Now()
	var mu sync.Mutex
	var told []tidegate.ChangeKind
	db := open(t, c, func(cfg *pgxgate.Config) {
		cfg.ProbeTimeout = probing
		port := l.Addr().(*net.TCPAddr).Port
		cfg.Nodes = append([]pgxgate.Node{{Name: "silent", DSN: "host=127.0.0.1 port=" + itoa(int64(port)) + " user=app dbname=postgres sslmode=disable"}}, cfg.Nodes...)
		cfg.Hooks = []tidegate.Hook{{Changed: func(x tidegate.Change) {
			mu.Lock()
			defer mu.Unlock()
			if x.Node == "silent" {
				told = append(told, x.Kind)
			}
		}}}
	})
	if took := time.Since(began); took < probing || took > 10*probing {
		t.Errorf("Open took %v, want one probe's time", took)
	}
	k := key(t)
	for i := range int64(20) {
		ctx, seen := inSession(t)
		must[any](t)(db.Write().Exec(ctx, update, k, i))
		var v int64
		if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != i {
			t.Fatal(v, err)
		}
		if d, _ := seen.Last(); d.Waited > 100*time.Millisecond || d.Retries > 0 {
			t.Errorf("%v", d)
		}
	}
	began = time.Now()
	db.Close()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Close took %v", took)
	}
	restored()
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 1 || told[0] != tidegate.NodeFailing {
		t.Errorf("what was told of it: %v", told)
	}
}
