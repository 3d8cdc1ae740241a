package traffic_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
)

// Reads have the deadline of the load, and writes their own.
func TestReadDeadline(t *testing.T) {
	t.Parallel()
	l := traffic.Load{Sessions: 4, Instances: 1, Rate: 20, Writes: 0.2, Duration: 3 * time.Second, Seed: 1, ReadDeadline: 50 * time.Millisecond}
	a := newApp()
	a.readTime, a.writeTime = 100*time.Millisecond, 100*time.Millisecond
	log, _, _ := drive(t, l, a, nil)
	reads, writes := 0, 0
	for _, ops := range log.Sessions() {
		for _, op := range ops {
			if op.Kind == record.Write {
				writes++
				if op.Err != nil || op.Deadline <= a.writeTime {
					t.Errorf("a write: %+v", op)
				}
				continue
			}
			reads++
			if !errors.Is(op.Err, context.DeadlineExceeded) || op.Deadline != l.ReadDeadline || op.Latency() != l.ReadDeadline {
				t.Errorf("a read: %+v", op)
			}
		}
	}
	if reads == 0 || writes == 0 {
		t.Errorf("%d reads, %d writes", reads, writes)
	}
}

// choosy is an application that knows reads that may be old.
type choosy struct {
	*app
	asked []record.Budget
}

func (c *choosy) ReadRelaxed(ctx context.Context, s *strategy.Session, keys []int64, b record.Budget) (record.Answer, error) {
	answer, err := c.Read(ctx, s, keys)
	answer.MarkedStale = true
	c.asked = append(c.asked, b)
	return answer, err
}

// A budget reaches an instance that knows what to do with it, and no other.
func TestFleetPassesBudgets(t *testing.T) {
	t.Parallel()
	c := &choosy{app: newApp()}
	fleet := traffic.NewFleet(c, c.app)
	client := fleet.Client(0)
	budget := record.Budget{Within: time.Second, OnBreach: record.ServeStale}
	for _, r := range []struct {
		op    record.Op
		asked int
	}{
		{record.Op{}, 0},
		{record.Op{Strong: true}, 0},
		{record.Op{Budget: &budget}, 1},
		{record.Op{Budget: &budget, Instance: 1}, 1},
	} {
		op := r.op
		op.Asked = []int64{0}
		client.Read(t.Context(), &op)
		if op.Err != nil || len(op.Answer.Rows) != 1 || len(c.asked) != r.asked {
			t.Errorf("%+v: asked %v", op, c.asked)
		}
	}
	if c.asked[0] != budget {
		t.Errorf("asked for %+v", c.asked[0])
	}
}
