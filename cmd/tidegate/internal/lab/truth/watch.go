package truth

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// Interval is the time between two looks at one replica.
const Interval = 5 * time.Millisecond

// Watch looks at every replica until it is stopped.
type Watch struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	looks  [][]Look
}

// Start begins to look at the replicas with these connection strings. Query
// must return key and version of every row, start is the moment that the looks
// count from.
func Start(ctx context.Context, start time.Time, replicas []string, query string, keys int) *Watch {
	ctx, cancel := context.WithCancel(ctx)
	w := &Watch{cancel: cancel, looks: make([][]Look, len(replicas))}
	for i, dsn := range replicas {
		w.done.Go(func() {
			e := eye{start: start, dsn: dsn, query: query, keys: keys}
			e.watch(ctx)
			w.looks[i] = e.looks
		})
	}
	return w
}

// Stop ends the watch and returns the looks at each replica, in order.
func (w *Watch) Stop() [][]Look {
	w.cancel()
	w.done.Wait()
	return w.looks
}

// eye looks at one replica. A look that fails is left out, and the connection
// made anew: a replica that is down or starting is not live.
type eye struct {
	start time.Time
	dsn   string
	query string
	keys  int
	looks []Look
	conn  *pgx.Conn
}

func (e *eye) watch(ctx context.Context) {
	defer e.hangUp()
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		if err := e.look(ctx); err != nil {
			e.hangUp()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (e *eye) look(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if e.conn == nil {
		if e.conn, err = pgx.Connect(ctx, e.dsn); err != nil {
			return err
		}
	}
	look := Look{Began: time.Since(e.start), Versions: make([]int64, e.keys)}
	for key := range look.Versions {
		look.Versions[key] = record.Absent
	}
	rows, err := e.conn.Query(ctx, e.query)
	if err != nil {
		return err
	}
	var key, version int64
	_, err = pgx.ForEachRow(rows, []any{&key, &version}, func() error {
		if key >= 0 && key < int64(e.keys) {
			look.Versions[key] = version
		}
		return nil
	})
	look.Ended = time.Since(e.start)
	if err == nil {
		e.looks = append(e.looks, look)
	}
	return err
}

func (e *eye) hangUp() {
	if e.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = e.conn.Close(ctx)
		e.conn = nil
	}
}
