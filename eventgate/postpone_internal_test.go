package eventgate

import (
	"fmt"
	"testing"

	"github.com/tidegatedb/tidegate"
)

// What is remembered is bounded, the oldest goes first, and what has begun is gone.
func TestMemory(t *testing.T) {
	t.Parallel()
	var m memory
	at := func(n int) tidegate.Token {
		return tidegate.NewToken(tidegate.Mark{Cluster: "main", Position: tidegate.At(uint64(n))})
	}
	knows := func(id string) bool {
		_, ok := m.recall(id)
		return ok
	}
	m.keep("", at(1))
	if knows("") || len(m.tokens) != 0 {
		t.Error("a job without a name is remembered")
	}
	for i := range memorySize + 10 {
		m.keep(fmt.Sprint(i), at(i))
		m.keep(fmt.Sprint(i), at(i+1)) // the same job once more
	}
	if len(m.tokens) != memorySize || len(m.order) != memorySize {
		t.Errorf("%d tokens, %d names", len(m.tokens), len(m.order))
	}
	if knows("9") || !knows("10") {
		t.Error("it is not the oldest that are forgotten")
	}
	if got, _ := m.recall("20"); got.Marks()[0].Position != tidegate.At(21) {
		t.Errorf("%+v", got.Marks())
	}
	m.forget("20")
	m.forget("no such")
	m.forget("")
	m.keep("new", at(1))
	if knows("20") || !knows("10") || !knows("new") || len(m.tokens) != memorySize || len(m.order) != memorySize {
		t.Errorf("%d tokens, %d names", len(m.tokens), len(m.order))
	}
}
