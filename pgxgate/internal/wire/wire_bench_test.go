package wire

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// BenchmarkAsk compares a command with and without an ask on one connection,
// bare, armed, armed, bare: two connections, or one arm after the other, differ
// by more than the ask costs.
func BenchmarkAsk(b *testing.B) {
	ctx := b.Context()
	cluster := pgcluster.ForTest(b, pgcluster.Config{})
	c := connect(b, cluster.Primary().DSN("postgres", "postgres"), nil)
	if err := c.exec("create table t (k int, v text)")(); err != nil {
		b.Fatal(err)
	}
	insert := func(ask Ask) (time.Duration, error) {
		start := time.Now()
		if ask != 0 {
			c.wire.Arm(ask)
		}
		_, err := c.Exec(ctx, "insert into t values ($1, $2)", 1, "v")
		if ask != 0 && !c.wire.Take().OK {
			b.Fatal("not captured")
		}
		return time.Since(start), err
	}
	tx := func(ask Ask) (time.Duration, error) {
		start := time.Now()
		tx, err := c.Begin(ctx)
		if err != nil {
			return 0, err
		}
		if _, err := tx.Exec(ctx, "insert into t values ($1, $2)", 1, "v"); err != nil {
			return 0, err
		}
		if ask != 0 {
			c.wire.Arm(ask)
		}
		err = tx.Commit(ctx)
		if ask != 0 && !c.wire.Take().OK {
			b.Fatal("not captured")
		}
		return time.Since(start), err
	}
	query := func(ask Ask) (time.Duration, error) {
		start := time.Now()
		if ask != 0 {
			c.wire.Arm(ask)
		}
		rows, _ := c.Query(ctx, "select i, repeat('x', 100) from generate_series(1, $1) i", 10_000)
		_, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (struct{}, error) { return struct{}{}, nil })
		if ask != 0 && !c.wire.Take().OK {
			b.Fatal("not captured")
		}
		return time.Since(start), err
	}
	for _, x := range []struct {
		name string
		ask  Ask
		run  func(Ask) (time.Duration, error)
	}{
		{"insert", After, insert},
		{"transaction/after", After, tx},
		{"transaction/around", AroundCommit, tx},
		{"1MBResult", After, query},
	} {
		b.Run(x.name, func(b *testing.B) {
			var bare, armed []time.Duration
			for b.Loop() {
				for _, ask := range []Ask{0, x.ask, x.ask, 0} {
					d, err := x.run(ask)
					if err != nil {
						b.Fatal(err)
					}
					if ask == 0 {
						bare = append(bare, d)
					} else {
						armed = append(armed, d)
					}
				}
			}
			p, q := median(bare), median(armed)
			b.ReportMetric(float64(p), "ns/bare")
			b.ReportMetric(float64(q), "ns/armed")
			b.ReportMetric(float64(q)/float64(p), "armed/bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// endless is a server that sends the same bytes for ever.
type endless struct {
	script
	b  []byte
	at int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.at == len(e.b) {
		e.at = 0
	}
	n := copy(p, e.b[e.at:])
	e.at += n
	return n, nil
}

// BenchmarkRows compares what a row of a result costs in pgx's decoder alone,
// with a Conn in between, and with an armed one. There is no network here, so
// this is the most that following the stream can weigh.
func BenchmarkRows(b *testing.B) {
	for _, width := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("%dBytes", width), func(b *testing.B) {
			row := raw('D', string(append([]byte{0, 1, 0, 0, byte(width >> 8), byte(width)}, make([]byte, width)...)))
			source := func() *endless { return &endless{b: bytes.Repeat(row, 10_000/len(row)+1)} }
			unarmed, armed := Wrap(source()), Wrap(source())
			armed.MarkPrepared()
			armed.Arm(After)
			armed.Write(query("select"))
			var arms [3]*pgproto3.Frontend
			for i, r := range []io.Reader{source(), unarmed, armed} {
				arms[i] = pgproto3.NewFrontend(r, nil)
			}
			const rows = 2000
			var took [3][]time.Duration
			for b.Loop() {
				for _, i := range []int{0, 1, 2, 2, 1, 0} {
					start := time.Now()
					for range rows {
						if _, err := arms[i].Receive(); err != nil {
							b.Fatal(err)
						}
					}
					took[i] = append(took[i], time.Since(start))
				}
			}
			bare := float64(median(took[0]))
			b.ReportMetric(bare/rows, "ns/row")
			b.ReportMetric(float64(median(took[1]))/bare, "unarmed/bare")
			b.ReportMetric(float64(median(took[2]))/bare, "armed/bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkArmed is the work for one armed command without a network.
func BenchmarkArmed(b *testing.B) {
	c, s := scripted()
	ins := execute(b, "s")
	answer := join(bindOK, tag("INSERT 0 1"), ready('I'), position(1, 2, false, 'I'))
	p := make([]byte, 8192)
	chunks := make([][]byte, 1)
	b.ReportAllocs()
	for b.Loop() {
		chunks[0] = answer
		s.chunks, s.wrote = chunks, s.wrote[:0]
		c.Arm(After)
		c.Write(ins)
		c.Read(p)
		if !c.Take().OK {
			b.Fatal("not captured")
		}
	}
}
