package strategy

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Every strategy's pools are what the lab's flags and the scenario say.
func TestTune(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg      Config
		least    int32
		lifetime time.Duration // zero: the pool's own
	}{
		{Config{PoolSize: 16}, 4, 0},
		{Config{PoolSize: 2}, 2, 0},
		{Config{PoolSize: 16, ConnLifetime: time.Second}, 4, time.Second},
	} {
		pool, err := pgxpool.ParseConfig("host=127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		want := pool.MaxConnLifetime
		if c.lifetime > 0 {
			want = c.lifetime
		}
		c.cfg.tune(pool)
		if pool.MaxConns != c.cfg.PoolSize || pool.MinConns != c.least || pool.MaxConnLifetime != want {
			t.Errorf("%+v: %d to %d connections, which live %v", c.cfg, pool.MinConns, pool.MaxConns, pool.MaxConnLifetime)
		}
	}
}
