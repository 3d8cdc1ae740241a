package tidegatetest

import (
	"context"
	"sync"

	"github.com/tidegatedb/tidegate"
)

// looks notes which nodes the router has looked at.
type looks struct {
	mu      sync.Mutex
	count   map[string]int
	failing map[string]bool
	changed chan struct{} // closed when there is news
}

func newLooks() looks {
	return looks{count: map[string]int{}, failing: map[string]bool{}, changed: make(chan struct{})}
}

func (l *looks) probed(p tidegate.Probe) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count[p.Node]++
	l.failing[p.Node] = p.Err != nil
	close(l.changed)
	l.changed = make(chan struct{})
}

// await asks for looks until the router knows every node as it is now.
func (l *looks) await(ctx context.Context, nodes []*Node, ask func(node int)) error {
	l.mu.Lock()
	from := make([]int, len(nodes))
	for i, n := range nodes {
		// One that is on its way now can have been sent before; the one after it not.
		from[i] = l.count[n.Name()] + 2
	}
	l.mu.Unlock()
	for {
		l.mu.Lock()
		changed, open := l.changed, false
		var of []int
		for i, n := range nodes {
			if l.count[n.Name()] < from[i] && !(l.failing[n.Name()] && !n.n.Up()) {
				open = true
				of = append(of, i)
			}
		}
		l.mu.Unlock()
		if !open {
			return nil
		}
		for _, i := range of {
			ask(i)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
