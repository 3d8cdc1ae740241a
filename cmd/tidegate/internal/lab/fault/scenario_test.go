package fault_test

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
)

func TestScenarios(t *testing.T) {
	t.Parallel()
	var names []string
	for _, s := range fault.All() {
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(s.Name) || s.About == "" {
			t.Errorf("scenario %q: %q", s.Name, s.About)
		}
		if found, err := fault.Find(s.Name); err != nil || found.Name != s.Name {
			t.Errorf("%s is not found: %v", s.Name, err)
		}
		names = append(names, s.Name)
	}
	if !slices.Equal(names, fault.Names()) {
		t.Errorf("names are %v", fault.Names())
	}
	if _, err := fault.Find("earthquake"); err == nil {
		t.Error("there is a scenario earthquake")
	}
}

func TestWanted(t *testing.T) {
	t.Parallel()
	s := fault.Scenario{Opportunities: 1000}
	for d, want := range map[time.Duration]int{10 * time.Second: 1000, 20 * time.Second: 2000, 5 * time.Second: 500} {
		if got := s.Wanted(d); got != want {
			t.Errorf("%v: got %d, want %d", d, got, want)
		}
	}
}
