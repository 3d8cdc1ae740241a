package pgxgate_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/netfault"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// throughProxy returns the server's connection string by way of a proxy's port.
func throughProxy(s *pgcluster.Server, port int) string {
	return strings.Replace(s.DSN("app", "postgres"), "port="+strconv.Itoa(s.Port), "port="+strconv.Itoa(port), 1)
}

func target(s *pgcluster.Server) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// TestNamesThatChangeServers: two names lead to the primary and to a replica, and then the
// other way round. What a node is its connections say, not its name: no write is refused or
// lost, and none goes where it does not belong.
func TestNamesThatChangeServers(t *testing.T) {
	c := cluster(t)
	var proxies [2]*netfault.Proxy
	servers := [2]*pgcluster.Server{c.Primary(), c.Replicas()[0]}
	for i, s := range servers {
		proxies[i] = must[*netfault.Proxy](t)(netfault.Listen(target(s)))
		t.Cleanup(proxies[i].Close)
	}
	db := open(t, c, func(cfg *pgxgate.Config) {
		cfg.Nodes = []pgxgate.Node{{Name: "x", DSN: throughProxy(servers[0], proxies[0].Port())}, {Name: "y", DSN: throughProxy(servers[1], proxies[1].Port())}}
		cfg.PrimaryWait = 20 * time.Second
	})
	k := key(t)
	s := newSession(t)
	for round := range int64(4) {
		v := 10 * round
		eventually(t, "a write", func() bool { // one on a connection that has just been cut is in doubt
			_, err := db.Write().Exec(s.ctx, update, k, v)
			if err != nil && (errors.Is(err, tidegate.ErrNoPrimary) || strings.Contains(err.Error(), "25006")) {
				t.Fatal("refused: ", err)
			}
			return err == nil
		})
		for range 10 {
			s.wants(t, db, k, v, tidegate.VerdictNone)
		}
		if want, got := []string{"x", "y"}[round%2], db.Status().Primary; got != want {
			t.Errorf("round %d: the primary is %q, want %q", round, got, want)
		}
		for i := range proxies { // resets what is open
			if err := proxies[i].Retarget(target(servers[(int(round)+1+i)%2])); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// turns is an endpoint that leads to another server with each connection.
func turns(t *testing.T, servers ...*pgcluster.Server) (port int) {
	t.Helper()
	l := must[net.Listener](t)(net.Listen("tcp4", "127.0.0.1:0"))
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	all.Go(func() {
		for i := 0; ; i++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp4", target(servers[i%len(servers)]))
			if err != nil {
				_ = conn.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{conn, to}, {to, conn}} {
				all.Go(func() {
					_, _ = io.Copy(way[1], way[0])
					_ = way[0].Close()
					_ = way[1].Close()
				})
			}
		}
	})
	return l.Addr().(*net.TCPAddr).Port
}

// TestReaderEndpoint: one name leads to two replicas in turn, one of which does not replay.
// Each connection is proven by itself, so that no read is stale; somebody who just reads there
// is shown old rows all the time.
func TestReaderEndpoint(t *testing.T) {
	c := cluster(t)
	port := turns(t, c.Replicas()...)
	dsn := throughProxy(c.Replicas()[0], port)
	db := open(t, c, func(cfg *pgxgate.Config) {
		cfg.Nodes = []pgxgate.Node{{Name: "primary", DSN: c.Primary().DSN("app", "postgres")}, {Name: "readers", DSN: dsn + " pool_max_conns=4"}}
	})
	naive := must[*pgxpool.Pool](t)(pgxpool.New(t.Context(), dsn+" pool_max_conns=4"))
	t.Cleanup(naive.Close)
	pause(t, c.Replicas()[1])
	k := key(t)
	stale, replica := 0, 0
	for i := range int64(100) {
		s := newSession(t)
		s.write(t, db, k, i+1)
		if d := s.wants(t, db, k, i+1, tidegate.VerdictNone); d.Role == tidegate.RoleReplica {
			replica++
		}
		// Parallel connections, as a pool under load has them.
		var many sync.WaitGroup
		var old atomic.Int64
		for range 4 {
			many.Go(func() {
				var v int64
				if err := naive.QueryRow(t.Context(), "select v from kv, pg_sleep(0.002) where k = $1", k).Scan(&v); err != nil {
					t.Error(err)
				}
				if v != i+1 {
					old.Add(1)
				}
			})
		}
		many.Wait()
		if old.Load() > 0 {
			stale++
		}
	}
	t.Logf("100 reads after a write: none stale, %d on a replica; of the naive ones 4 at a time, %d times one was stale", replica, stale)
	if stale < 20 {
		t.Errorf("a naive reader was shown old rows %d times: nothing was in danger", stale)
	}
}

// pooler is a proxy that gives its clients another number to cancel by than the server's
// process has, as poolers do.
func pooler(t *testing.T, s *pgcluster.Server) (port int) {
	t.Helper()
	l := must[net.Listener](t)(net.Listen("tcp4", "127.0.0.1:0"))
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp4", target(s))
			if err != nil {
				_ = conn.Close()
				continue
			}
			all.Go(func() {
				_, _ = io.Copy(to, conn)
				_ = to.Close()
			})
			all.Go(func() {
				renumber(conn, to)
				_ = conn.Close()
				_ = to.Close()
			})
		}
	})
	return l.Addr().(*net.TCPAddr).Port
}

// renumber hands on what a server says, with another BackendKeyData.
func renumber(to io.Writer, from io.Reader) {
	head := make([]byte, 5)
	for {
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		if head[0] == 'K' {
			binary.BigEndian.PutUint32(body, 7777777)
		}
		if _, err := to.Write(append(head, body...)); err != nil {
			return
		}
	}
}

// TestPoolerIsRefused: behind a pooler the next statement can reach another server process, so
// that nothing can be proven; that is said, with what to do.
func TestPoolerIsRefused(t *testing.T) {
	c := cluster(t)
	db := open(t, c, func(cfg *pgxgate.Config) {
		for i, s := range c.Servers() {
			cfg.Nodes[i].DSN = throughProxy(s, pooler(t, s))
		}
		cfg.PrimaryWait = -1
	})
	ctx := tidegate.WithSession(context.WithoutCancel(t.Context()), tidegate.NewSession())
	_, err := db.Write().Exec(ctx, update, key(t), 1)
	if !errors.Is(err, tidegate.ErrNoPrimary) || !strings.Contains(err.Error(), "leads through a pooler") || !strings.Contains(err.Error(), "lead to the server itself") {
		t.Errorf("a write through a pooler: %v", err)
	}
	for _, n := range db.Status().Nodes {
		if n.Err == nil {
			t.Errorf("%s is taken for a server", n.Node)
		}
	}
}
