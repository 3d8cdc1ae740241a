// Package fault breaks a cluster, one thing after another, and mends it again.
package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate/internal/netfault"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// Site is a cluster to break. It is used by one goroutine at a time.
type Site struct {
	Cluster *pgcluster.Cluster
	// Primary is the server that writes go to, Replicas those that follow it.
	Primary  *pgcluster.Server
	Replicas []*pgcluster.Server
	// clients are the ways to the servers that the traffic takes, by port.
	clients map[int]*netfault.Proxy
	r       *rand.Rand
}

// NewSite starts a primary and two standbys, with a link that can be cut for each, and one
// for what comes from clients. The caller must Close it, and stop the cluster.
func NewSite(c *pgcluster.Cluster, seed uint64) (*Site, error) {
	s := &Site{Cluster: c, Primary: c.Primary(), Replicas: c.Replicas(), clients: map[int]*netfault.Proxy{}, r: rand.New(rand.NewPCG(seed, 2))}
	for _, server := range c.Servers() {
		p, err := netfault.Listen(net.JoinHostPort("127.0.0.1", strconv.Itoa(server.Port)))
		if err != nil {
			s.Close()
			return nil, err
		}
		s.clients[server.Port] = p
	}
	return s, nil
}

// Close ends the clients' links.
func (s *Site) Close() {
	for _, p := range s.clients {
		p.Close()
	}
}

// DSN is how clients reach a server.
func (s *Site) DSN(server *pgcluster.Server, user string) string {
	own, link := "port="+strconv.Itoa(server.Port), "port="+strconv.Itoa(s.clients[server.Port].Port())
	return strings.Replace(server.DSN(user, "postgres"), own, link, 1)
}

// upTo draws a duration.
func (s *Site) upTo(least, most time.Duration) time.Duration {
	return least + time.Duration(s.r.Int64N(int64(most-least)))
}

func (s *Site) replica() *pgcluster.Server { return s.Replicas[s.r.IntN(len(s.Replicas))] }

// others are all servers but one, as standbys of it.
func (s *Site) others(primary *pgcluster.Server) (list []*pgcluster.Server) {
	for _, o := range s.Cluster.Servers() {
		if o != primary {
			list = append(list, o)
		}
	}
	return list
}

// pause waits, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run runs a statement on a server, past the clients' links.
func run(ctx context.Context, server *pgcluster.Server, sql string) error {
	_, err := server.SQL(ctx, "", sql)
	return err
}

// backend returns a process of a server that serves somebody.
func backend(ctx context.Context, server *pgcluster.Server) (int, error) {
	c, err := pgx.Connect(ctx, server.DSN("", ""))
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	return int(c.PgConn().PID()), nil
}

// follows reports whether a standby comes to follow a primary within two seconds: one that
// has what the primary lacks never does.
func follows(ctx context.Context, standby, primary *pgcluster.Server) (bool, error) {
	at, err := primary.SQL(ctx, "", "select pg_current_wal_flush_lsn()")
	if err != nil {
		return false, err
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		n, err := primary.SQL(ctx, "", "select count(*) from pg_stat_replication where application_name = '"+standby.Name+"' and replay_lsn >= '"+at+"'")
		if err != nil || n == "1" {
			return n == "1", err
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return false, err
		}
	}
	return false, nil
}

// settled waits until every standby follows the primary and has what it has now.
func (s *Site) settled(ctx context.Context) error {
	if err := s.Primary.WaitCaughtUp(ctx, len(s.Replicas)); err != nil {
		return fmt.Errorf("after the fault: %w", err)
	}
	return nil
}
