package tidegate_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidegatedb/tidegate"
)

// declaredAs returns the declared classes whose names begin with prefix.
func declaredAs(prefix string) (all []tidegate.Class) {
	for _, c := range tidegate.Classes() {
		if strings.HasPrefix(c.Name(), prefix) {
			all = append(all, c)
		}
	}
	return all
}

func TestClasses(t *testing.T) {
	t.Parallel()
	b := tidegate.Strong("listed-b", "w", tidegate.Owner("ops"))
	a := tidegate.Relaxed("listed-a", "w", tidegate.AnyStaleness())
	again := tidegate.NewCausal("listed-b", "declared twice")
	c := tidegate.NewCausal("listed-c", "") // useless, and all the more to be seen
	if got, want := declaredAs("listed-"), []tidegate.Class{a, b, again, c}; !slices.Equal(got, want) {
		t.Errorf("listed are %v, want %v", got, want)
	}
	if got := declaredAs("causal"); !slices.Contains(got, tidegate.Causal) {
		t.Errorf("listed are %v, want Causal too", got)
	}
	if !slices.IsSortedFunc(tidegate.Classes(), func(x, y tidegate.Class) int { return strings.Compare(x.Name(), y.Name()) }) {
		t.Error("the list is in no order")
	}
	runtime.KeepAlive([]tidegate.Class{a, b, again, c})
}

// A class that nothing refers to any more leaves the list, and those that are
// still used stay.
func TestClassesForgetGarbage(t *testing.T) {
	t.Parallel()
	kept := tidegate.NewCausal("garbage-kept", "w")
	for range 1000 {
		tidegate.NewCausal("garbage-lost", "declared for each request, against advice")
	}
	runtime.GC()
	if got, want := declaredAs("garbage-"), []tidegate.Class{kept}; !slices.Equal(got, want) {
		t.Errorf("%d are listed, want the one that is still used", len(got))
	}
	for range 1000 { // searches the list
		tidegate.NewCausal("garbage-lost", "w")
	}
	if got := declaredAs("garbage-kept"); !slices.Equal(got, []tidegate.Class{kept}) {
		t.Errorf("listed are %v", got)
	}
	runtime.KeepAlive(kept)
}

func TestClassesConcurrently(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	kept := make([][]tidegate.Class, 4)
	for i := range kept {
		wg.Go(func() {
			for j := range 200 {
				kept[i] = append(kept[i], tidegate.Strong(fmt.Sprintf("parallel-%d-%d", i, j), "w"))
				if j%20 == 0 {
					tidegate.Classes()
				}
			}
		})
	}
	wg.Wait()
	if got := declaredAs("parallel-"); len(got) != 800 {
		t.Errorf("%d of 800 are listed", len(got))
	}
	runtime.KeepAlive(kept)
}
