package fake_test

import (
	"testing"

	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

func TestView(t *testing.T) {
	var v, w fake.View
	for _, s := range []int{1, 63, 64, 200} {
		v.Add(s)
	}
	if !v.Has(64) || v.Has(65) || v.Has(1000) || v.Count() != 4 {
		t.Errorf("%b", v)
	}
	w.Add(64)
	if m := v.Missing(w); m != 0 {
		t.Errorf("%d is said to be missing", m)
	}
	if m := w.Missing(v); m != 1 {
		t.Errorf("the first that is missing is %d, want 1", m)
	}
	c := w.Clone()
	c.Join(v)
	if c.Missing(v) != 0 || c.Missing(w) != 0 || w.Count() != 1 {
		t.Errorf("joined %b, cloned from %b", c, w)
	}
}
