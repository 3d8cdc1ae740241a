package carrier

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

func publish(ctx context.Context, t *testing.T, q *Queue, row record.Row) {
	t.Helper()
	text, err := encode(1, row)
	if err == nil {
		err = q.Publish(ctx, text)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Every event comes to one session, which is not the writer, and the same seed
// chooses the same ones.
func TestQueueTellsOthers(t *testing.T) {
	t.Parallel()
	const sessions, versions = 4, 60
	told := [2][sessions]int{}
	for round := range told {
		q := NewQueue(sessions, 9)
		for v := range int64(versions) {
			publish(t.Context(), t, q, record.Row{Key: v % sessions, Version: v})
		}
		publish(t.Context(), t, q, record.Row{Key: sessions, Version: 1}) // of nobody
		if err := q.Publish(t.Context(), []byte(`{"specversion":"1.0","type":"other"}`)); err != nil {
			t.Fatal(err)
		}
		if err := q.Publish(t.Context(), []byte(`nonsense`)); err != nil {
			t.Fatal(err)
		}
		q.Close()
		for s := range sessions {
			for range len(q.Events(s)) {
				e := <-q.Events(s)
				if row, err := decode(e.Message); err != nil || row != e.Row || e.Row.Key == int64(s) {
					t.Errorf("session %d was told of %v by %s", s, e.Row, e.Message)
				}
				told[round][s]++
			}
		}
		if n := q.Undelivered(); n != 2 {
			t.Errorf("%d events were lost, want the two that cannot be read", n)
		}
	}
	if told[0] != told[1] {
		t.Errorf("told %v, and again %v", told[0], told[1])
	}
	sum := 0
	for s, n := range told[0] {
		sum += n
		if n == 0 {
			t.Errorf("session %d was told nothing", s)
		}
	}
	if sum != versions {
		t.Errorf("%d of %d events arrived", sum, versions)
	}
}

// Who does not read loses events, which are counted, and holds up nobody.
func TestQueueHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	q := NewQueue(2, 0)
	for v := range int64(backlog + 5) {
		publish(t.Context(), t, q, record.Row{Key: 0, Version: v})
	}
	publish(t.Context(), t, q, record.Row{Key: 1, Version: 1})
	if e := <-q.Events(0); e.Row.Version != 1 {
		t.Errorf("got %v", e.Row)
	}
	q.Close()
	if n := q.Undelivered(); n != 5 {
		t.Errorf("%d events were lost", n)
	}
	full := &Queue{in: make(chan []byte)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := full.Publish(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a queue that takes nothing: %v", err)
	}
}

// The event is one that others could read.
func TestEncode(t *testing.T) {
	t.Parallel()
	text, err := encode(1, record.Row{Key: 3, Version: 7})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"specversion": "1.0", "id": "3-7", "source": "/lab/instance/1", "type": "lab.row.written", "datacontenttype": "application/json",
	} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
	if row, err := decode(text); err != nil || row != (record.Row{Key: 3, Version: 7}) {
		t.Errorf("got %v, %v", row, err)
	}
}
