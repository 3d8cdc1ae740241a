// Package record is the history of a run: what each session asked for and was told.
package record

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Kind says what an operation was.
type Kind string

// The kinds.
const (
	Read   Kind = "read"   // causal
	Strong Kind = "strong" // a read on the primary
	Write  Kind = "write"
)

// Outcome says how an operation ended.
type Outcome string

// The outcomes.
const (
	OK      Outcome = "ok"
	Failed  Outcome = "failed"  // a read that was refused, or a write that was never sent
	Unknown Outcome = "unknown" // a write that may have happened
)

// Op is one operation of a session. Those of one session follow each other.
type Op struct {
	Session  int           `json:"session"`
	Instance int           `json:"instance"`
	Kind     Kind          `json:"kind"`
	Began    time.Duration `json:"began"` // since the run began
	Ended    time.Duration `json:"ended"`
	Outcome  Outcome       `json:"outcome"`
	Error    string        `json:"error,omitempty"`
	// Key and Version are what a write wrote; the versions of a key strictly rise.
	Key     int64 `json:"key,omitempty"`
	Version int64 `json:"version,omitempty"`
	// Rows are what a read was answered: versions by key.
	Rows map[int64]int64 `json:"rows,omitempty"`
	// Decision is the explanation of a read that was answered. Replica, Unproven and Told say
	// of it what is checked: Told that the session was told that its history is over.
	Decision string `json:"decision,omitempty"`
	Replica  bool   `json:"replica,omitempty"`
	Unproven bool   `json:"unproven,omitempty"`
	Told     bool   `json:"told,omitempty"`
}

// Fault is something that was done to the cluster.
type Fault struct {
	Name  string        `json:"fault"`
	Began time.Duration `json:"began"`
	Ended time.Duration `json:"ended"`
}

// History is what happened in a run. It is safe for concurrent use.
type History struct {
	mu     sync.Mutex
	ops    []Op
	faults []Fault
}

// Add adds an operation that has ended.
func (h *History) Add(op Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, op)
}

// AddFault adds a fault that is over.
func (h *History) AddFault(f Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = append(h.faults, f)
}

// Ops returns the operations in the order in which they ended, Faults the faults.
func (h *History) Ops() []Op {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Op(nil), h.ops...)
}

// Faults returns the faults in their order.
func (h *History) Faults() []Fault {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Fault(nil), h.faults...)
}

// Save writes the history, one JSON object a line: the faults, then the operations.
func (h *History) Save(w io.Writer) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	for _, f := range h.Faults() {
		if err := e.Encode(f); err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
	for _, op := range h.Ops() {
		if err := e.Encode(op); err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
	return b.Flush()
}
