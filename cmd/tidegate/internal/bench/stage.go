package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

const (
	clusterName = "bench"
	role        = "bench_app"
	replicas    = 2
)

// The statements of all arms. The cheapest ones: any other one makes the part
// that routing has in it smaller.
const (
	readSQL  = "select v from bench_kv where k = $1"
	writeSQL = "insert into bench_log values ($1, $2)"
)

const setupSQL = `
create table bench_kv (k bigint primary key, v bigint not null);
insert into bench_kv select k, 0 from generate_series(0, 999) k;
create table bench_log (k bigint, v bigint);
create role ` + role + ` login;
grant select, update on bench_kv to ` + role + `;
grant insert, truncate on bench_log to ` + role + `;
vacuum analyze bench_kv;`

// ErrNoServer means that PostgreSQL's server programs were not found. Its
// message says how to get them.
var ErrNoServer = pgcluster.ErrNotFound

// stage is a cluster that is ready for measurements.
type stage struct{ *pgcluster.Cluster }

func raise(ctx context.Context, pgBin string) (*stage, error) {
	install, err := pgcluster.Find(pgBin)
	if err != nil {
		return nil, err
	}
	c, err := pgcluster.Start(ctx, pgcluster.Config{
		Install: install, Replicas: replicas,
		// Nothing may begin by itself in the middle of a run.
		Settings: map[string]string{"autovacuum": "off", "shared_buffers": "64MB", "checkpoint_timeout": "1h", "max_wal_size": "8GB"},
	})
	if err != nil {
		return nil, err
	}
	s := &stage{c}
	_, err = s.Primary().SQL(ctx, "", setupSQL)
	if err == nil {
		err = s.Primary().WaitCaughtUp(ctx, replicas)
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// open returns a routed database over the cluster whose pools have up to conns
// connections each.
func (s *stage) open(ctx context.Context, conns int32, change func(*pgxgate.Config)) (*pgxgate.DB, error) {
	cfg := pgxgate.Config{Cluster: clusterName, PrimaryReads: conns}
	for _, server := range s.Servers() {
		pool, err := pgxpool.ParseConfig(server.DSN(role, ""))
		if err != nil {
			return nil, err
		}
		pool.MaxConns = conns
		pool.ConnConfig.Tracer = poolFinder{}
		// The pool keeps the tracer. Its connections need none.
		pool.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			c.Tracer = nil
			return nil
		}
		cfg.Nodes = append(cfg.Nodes, pgxgate.Node{Name: server.Name, Pool: pool})
	}
	if change != nil {
		change(&cfg)
	}
	return pgxgate.Open(ctx, cfg)
}

// reader returns a context with a session that has written and reads on a
// replica, where it stays.
func reader(ctx context.Context, db *pgxgate.DB) (context.Context, error) {
	ctx = tidegate.WithSession(ctx, tidegate.NewSession())
	if err := write(ctx, db); err != nil {
		return nil, err
	}
	limit := time.Now().Add(settleTime)
	for {
		seen, decisions := tidegate.Observe(ctx)
		if err := read(seen, db, tidegate.Causal); err != nil {
			return nil, err
		}
		d, _ := decisions.Last()
		if d.Reason == tidegate.ReasonStayed && d.Waited == 0 {
			return ctx, nil
		}
		if time.Now().After(limit) {
			return nil, fmt.Errorf("the session's reads did not settle on a replica within %v; the last one: %v", settleTime, d)
		}
	}
}

const key = 7

func read(ctx context.Context, db *pgxgate.DB, class tidegate.Class) error {
	var v int64
	return db.Read(class).QueryRow(ctx, readSQL, key).Scan(&v)
}

func readDirect(ctx context.Context, pool *pgxpool.Pool) error {
	var v int64
	return pool.QueryRow(ctx, readSQL, key).Scan(&v)
}

func write(ctx context.Context, db *pgxgate.DB) error {
	_, err := db.Write().Exec(ctx, writeSQL, key, key)
	return err
}

func writeDirect(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, writeSQL, key, key)
	return err
}

// truncate empties the table that writes go to.
func (s *stage) truncate(ctx context.Context) error {
	_, err := s.Primary().SQL(ctx, "", "truncate bench_log; checkpoint")
	if err != nil {
		return err
	}
	return s.Primary().WaitCaughtUp(ctx, replicas)
}
