package record

import "time"

// Fault is a time in which replicas were in trouble. Times count from the start of the
// run.
type Fault struct {
	// Nodes are the replicas, as answers name them.
	Nodes []string
	// Begin is when it began, End when the replicas could answer as before; 0 means not
	// yet.
	Begin, End time.Duration
}

// Fault notes that nodes are in trouble from a time on, which is not before that of the
// last fault, and returns what notes the end. Both may be called at any time.
func (l *Log) Fault(begin time.Duration, nodes ...string) (over func(time.Duration)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.faults)
	l.faults = append(l.faults, Fault{Nodes: nodes, Begin: begin})
	return func(end time.Duration) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.faults[n].End = end
	}
}

// Faults returns the faults, in order.
func (l *Log) Faults() []Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Fault(nil), l.faults...)
}
