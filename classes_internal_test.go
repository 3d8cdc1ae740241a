package tidegate

import (
	"runtime"
	"testing"
)

// The list does not grow with what is declared and thrown away.
func TestDeclaredStaysSmall(t *testing.T) {
	longest := 0
	for range 20 {
		for range 1000 {
			NewCausal("thrown-away", "w")
		}
		runtime.GC()
		declared.mu.Lock()
		longest = max(longest, len(declared.list))
		declared.mu.Unlock()
	}
	if longest > 10_000 {
		t.Errorf("%d entries for classes that are no more", longest)
	}
}
