package tidegate

import (
	"slices"
	"strings"
	"sync"
	"weak"
)

// declared lists the classes that this process has declared, in the order of
// their declaration. It holds them weakly: a class that nothing refers to any
// more, declared in a test or, against advice, for each request, leaves it.
var declared struct {
	mu   sync.Mutex
	list []weak.Pointer[class]
	// tidy is the length at which the list is searched for what has gone.
	tidy int
}

func declare(c *class) Class {
	c.err = c.check()
	d := &declared
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.list) >= max(d.tidy, 64) {
		d.list = slices.DeleteFunc(d.list, func(p weak.Pointer[class]) bool { return p.Value() == nil })
		d.tidy = 2 * len(d.list)
	}
	d.list = append(d.list, weak.Make(c))
	return Class{c}
}

// Classes returns the classes that this process has declared and still holds, by
// name, with [Causal]: what a review of who reads what has to look at. It is for
// displays, and safe for concurrent use.
func Classes() []Class {
	declared.mu.Lock()
	all := []Class{Causal}
	for _, p := range declared.list {
		if c := p.Value(); c != nil {
			all = append(all, Class{c})
		}
	}
	declared.mu.Unlock()
	slices.SortStableFunc(all, func(a, b Class) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}
