package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// Fault is something that can be done to a site. It leaves the site as healthy as it found
// it, though perhaps with another primary.
type Fault struct {
	Name string
	// Weight is how often it is drawn, relative to the others.
	Weight int
	do     func(ctx context.Context, s *Site) error
}

// All lists the faults.
func All() []Fault {
	return []Fault{
		{"pause-replay", 6, pauseReplay},
		{"kill-backend", 4, killBackend},
		{"kill-standby", 2, killStandby},
		{"kill-primary", 2, killPrimary},
		{"restart-primary", 1, restartPrimary},
		{"cut-replication", 4, cutReplication},
		{"cut-clients", 3, cutClients},
		{"stall-clients", 2, stallClients},
		{"bulk-write", 2, bulkWrite},
		{"drop-tables", 2, dropTables},
		{"recovery-conflict", 2, recoveryConflict},
		{"failover", 4, failover},
		{"failover-lossy", 4, failoverLossy},
		{"split-brain", 3, splitBrain},
	}
}

// Schedule returns the faults of a seed, in their order.
func (s *Site) Schedule(n int, only ...string) (list []Fault) {
	var from []Fault
	for _, f := range All() {
		if len(only) == 0 || slices.Contains(only, f.Name) {
			for range f.Weight {
				from = append(from, f)
			}
		}
	}
	for range n {
		list = append(list, from[s.r.IntN(len(from))])
	}
	return list
}

// Do does a fault and waits until the site is healthy again.
func (s *Site) Do(ctx context.Context, f Fault) error {
	if err := errors.Join(f.do(ctx, s), s.settled(ctx)); err != nil {
		return fmt.Errorf("fault %s: %w", f.Name, err)
	}
	return nil
}

func pauseReplay(ctx context.Context, s *Site) error {
	r := s.replica()
	if err := run(ctx, r, "select pg_wal_replay_pause()"); err != nil {
		return err
	}
	err := pause(ctx, s.upTo(50*time.Millisecond, 800*time.Millisecond))
	for {
		// It is a query, which a conflict with recovery can cancel.
		resumed := run(context.WithoutCancel(ctx), r, "select pg_wal_replay_resume()")
		if resumed == nil || ctx.Err() != nil || !strings.Contains(resumed.Error(), "conflict with recovery") {
			return errors.Join(err, resumed)
		}
	}
}

// killBackend makes what a replica shows go back.
func killBackend(ctx context.Context, s *Site) error {
	r := s.replica()
	pid, err := backend(ctx, r)
	if err != nil {
		return err
	}
	return errors.Join(r.KillBackend(pid), r.WaitReady(ctx))
}

func killStandby(ctx context.Context, s *Site) error {
	r := s.replica()
	return errors.Join(r.Kill(), pause(ctx, s.upTo(0, 500*time.Millisecond)), r.Start(ctx))
}

func killPrimary(ctx context.Context, s *Site) error {
	return errors.Join(s.Primary.Kill(), pause(ctx, s.upTo(0, 500*time.Millisecond)), s.Primary.Start(ctx))
}

func restartPrimary(ctx context.Context, s *Site) error { return s.Primary.Restart(ctx) }

func cutReplication(ctx context.Context, s *Site) error {
	l := s.replica().Link()
	l.Cut()
	defer l.Mend()
	return pause(ctx, s.upTo(100*time.Millisecond, time.Second))
}

func cutClients(ctx context.Context, s *Site) error {
	servers := s.Cluster.Servers()
	l := s.clients[servers[s.r.IntN(len(servers))].Port]
	l.Cut()
	defer l.Mend()
	return pause(ctx, s.upTo(50*time.Millisecond, 500*time.Millisecond))
}

// stallClients makes a server hang, as it seems.
func stallClients(ctx context.Context, s *Site) error {
	l := s.clients[s.replica().Port]
	l.Stall()
	defer l.Mend()
	return pause(ctx, s.upTo(50*time.Millisecond, time.Second))
}

func bulkWrite(ctx context.Context, s *Site) error {
	return run(ctx, s.Primary, "drop table if exists bulk; create table bulk as select x, repeat('x', 100) from generate_series(1, 30000) x")
}

// dropTables makes one commit take long to replay: it is visible before it is replayed.
func dropTables(ctx context.Context, s *Site) error {
	err := run(ctx, s.Primary, "do $$ begin for i in 1..100 loop execute format('create table if not exists many_%s (k int primary key)', i); end loop; end $$")
	return errors.Join(err, run(ctx, s.Primary, "do $$ begin for i in 1..100 loop execute format('drop table if exists many_%s', i); end loop; end $$"))
}

// recoveryConflict makes replicas cancel what reads the table, and those that read it.
func recoveryConflict(ctx context.Context, s *Site) error {
	for range 5 {
		if err := errors.Join(run(ctx, s.Primary, "vacuum kv"), pause(ctx, 20*time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}

// lead promotes a standby. One that has just recovered can end the connection that asks.
func lead(ctx context.Context, s *pgcluster.Server) (err error) {
	for range 5 {
		if err = s.Promote(ctx); err == nil {
			return nil
		}
		if in, asked := s.SQL(ctx, "", "select pg_is_in_recovery()"); asked == nil && in == "f" {
			return nil // it was heard all the same
		}
		if paused := pause(ctx, 500*time.Millisecond); paused != nil {
			return paused
		}
	}
	return err
}

// promote makes a replica the primary and all others its standbys. An old primary that
// still runs is stopped first.
func (s *Site) promote(ctx context.Context, to *pgcluster.Server, rival time.Duration) error {
	old := s.Primary
	if err := errors.Join(lead(ctx, to), pause(ctx, rival), old.Stop(pgcluster.Immediate)); err != nil {
		return err
	}
	s.Primary, s.Replicas = to, s.others(to)
	for _, o := range s.Replicas {
		// Some follow as they are; one that has what the new primary lacks can not.
		if o != old && s.r.IntN(2) == 0 {
			if err := o.Follow(to); err != nil {
				return err
			}
			if ok, err := follows(ctx, o, to); ok || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		again := o.Rebuild
		if s.r.IntN(2) == 0 {
			if err := o.Stop(pgcluster.Fast); err != nil {
				return err
			}
			again = o.Rewind
		}
		if err := again(ctx, to); err != nil {
			return err
		}
	}
	return nil
}

// failover loses nothing that was acknowledged: the primary is stopped in order, and sends
// all it has first.
func failover(ctx context.Context, s *Site) error {
	return errors.Join(s.Primary.Stop(pgcluster.Fast), s.promote(ctx, s.replica(), 0))
}

// failoverLossy promotes a replica that lacks what was acknowledged lately.
func failoverLossy(ctx context.Context, s *Site) error {
	to := s.replica()
	to.Link().Cut()
	err := errors.Join(pause(ctx, s.upTo(50*time.Millisecond, 400*time.Millisecond)), s.Primary.Kill(), s.promote(ctx, to, 0))
	for _, o := range s.Cluster.Servers() {
		if l := o.Link(); l != nil {
			l.Mend()
		}
	}
	return err
}

// splitBrain promotes a replica while the old primary goes on.
func splitBrain(ctx context.Context, s *Site) error {
	return s.promote(ctx, s.replica(), s.upTo(100*time.Millisecond, 800*time.Millisecond))
}
