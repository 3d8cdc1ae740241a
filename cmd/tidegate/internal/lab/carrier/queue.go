package carrier

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
)

// backlog is how many events one session may have before it, so that one that
// hangs holds up nobody else.
const backlog = 64

// Queue takes events from the instances and brings each to one session: another
// one than the writer, chosen by the seed. It is safe for concurrent use.
type Queue struct {
	seed        uint64
	in          chan []byte
	out         []chan traffic.Event // by session
	undelivered atomic.Uint64
	delivery    sync.WaitGroup
}

// NewQueue returns a queue for so many sessions, at least two, numbered from 0,
// each of which writes the row of its number.
func NewQueue(sessions int, seed uint64) *Queue {
	q := &Queue{seed: seed, in: make(chan []byte, backlog), out: make([]chan traffic.Event, sessions)}
	for i := range q.out {
		q.out[i] = make(chan traffic.Event, backlog)
	}
	q.delivery.Go(q.deliver)
	return q
}

// Publish gives the queue an event. It returns when the queue has it, or with the
// context's error.
func (q *Queue) Publish(ctx context.Context, message []byte) error {
	select {
	case q.in <- message:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Events returns where the events for a session come.
func (q *Queue) Events(session int) <-chan traffic.Event { return q.out[session] }

// Undelivered is the number of events that were lost.
func (q *Queue) Undelivered() uint64 { return q.undelivered.Load() }

// Close ends the delivery. Nobody publishes any more.
func (q *Queue) Close() {
	close(q.in)
	q.delivery.Wait()
}

func (q *Queue) deliver() {
	for text := range q.in {
		row, err := decode(text)
		if err != nil {
			q.undelivered.Add(1)
			continue
		}
		if row.Key >= int64(len(q.out)) {
			continue // of a session that only warms up
		}
		select {
		case q.out[q.receiver(row)] <- traffic.Event{Row: row, Message: text}:
		default:
			q.undelivered.Add(1)
		}
	}
}

// receiver chooses who is told of a write: anybody but the writer.
func (q *Queue) receiver(row record.Row) int {
	r := rand.New(rand.NewPCG(q.seed^uint64(row.Key)<<32, uint64(row.Version)))
	n := r.IntN(len(q.out) - 1)
	if n >= int(row.Key) {
		n++
	}
	return n
}
