package tidegate_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate"
)

func TestCheckTags(t *testing.T) {
	t.Parallel()
	many := func(n int) (list []string) {
		for i := range n {
			list = append(list, strconv.Itoa(i))
		}
		return list
	}
	for _, c := range []struct {
		list []string
		says string // "" is nothing
	}{
		{nil, ""},
		{[]string{}, ""},
		{[]string{"reporting", "Zürich", " "}, ""},
		{many(16), ""},
		{many(17), "17 tags; use at most 16"},
		{[]string{strings.Repeat("a", 64)}, ""},
		{[]string{strings.Repeat("a", 65)}, "of 65 bytes; use at most 64"},
		{[]string{"a", ""}, "an empty tag"},
		{[]string{"a\xff"}, `"a\xff"; use valid UTF-8`},
		{[]string{"a", "b", "a"}, `the tag "a" twice`},
	} {
		switch err := tidegate.CheckTags(c.list); {
		case c.says == "" && err != nil:
			t.Errorf("%q: %v", c.list, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%q: %v, want %q", c.list, err, c.says)
		}
	}
}

func TestPlacedClass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class             tidegate.Class
		required, prefers []string
		serving           int
		placed            bool
	}{
		"the zero class": {class: tidegate.Causal},
		"strong":         {class: tidegate.Strong("s", "w")},
		"without tags":   {class: tidegate.NewCausal("c", "w", tidegate.Wait(1))},
		"required":       {tidegate.NewCausal("c", "w", tidegate.Require("a", "b")), []string{"a", "b"}, nil, 0, true},
		"required twice": {tidegate.NewCausal("c", "w", tidegate.Require("a"), tidegate.Require("b")), []string{"a", "b"}, nil, 0, true},
		"preferred":      {tidegate.Relaxed("c", "w", tidegate.AnyStaleness(), tidegate.Prefer("a")), nil, []string{"a"}, 0, true},
		"both":           {tidegate.Relaxed("c", "w", tidegate.Within(1), tidegate.Prefer("b"), tidegate.Require("a")), []string{"a"}, []string{"b"}, 0, true},
		"serving":        {tidegate.NewCausal("c", "w", tidegate.MinServing(9), tidegate.MinServing(2)), nil, nil, 2, true},
	} {
		required, preferred := c.class.Tags()
		if !slices.Equal(required, c.required) || !slices.Equal(preferred, c.prefers) || c.class.MinServing() != c.serving || c.class.Placed() != c.placed || c.class.Err() != nil {
			t.Errorf("%s: requires %q, prefers %q, serving %d, placed %v, error %v", name, required, preferred, c.class.MinServing(), c.class.Placed(), c.class.Err())
		}
	}
}

// A class does not change, whatever becomes of what it was declared with.
func TestTagsAreCopied(t *testing.T) {
	t.Parallel()
	list := []string{"a"}
	c := tidegate.NewCausal("c", "w", tidegate.Require(list...), tidegate.Prefer("b"))
	list[0] = "x"
	required, preferred := c.Tags()
	required[0], preferred[0] = "y", "z"
	if required, preferred = c.Tags(); required[0] != "a" || preferred[0] != "b" {
		t.Errorf("requires %q, prefers %q", required, preferred)
	}
}
