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

// What goes wrong comes from the one, load and servers from the other.
func TestUnder(t *testing.T) {
	t.Parallel()
	plain, budget, lost, idle := find(t, fault.Steady), find(t, "budget"), find(t, "lost-token"), find(t, "idle")
	got := plain.Under(budget)
	if got.Name != fault.Steady || got.About != plain.About || got.Inject != nil || got.Opportunities != 0 {
		t.Errorf("something goes wrong: %+v", got)
	}
	if got.Primary != budget.Primary || got.Relaxed != budget.Relaxed || len(got.Budgets) != len(budget.Budgets) ||
		got.ReadDeadline != budget.ReadDeadline || !got.Sheds || got.Sessions != budget.Sessions || got.Rate != budget.Rate {
		t.Errorf("another load: %+v", got)
	}
	if got := plain.Under(lost); got.Drops != 0 {
		t.Errorf("clients lose their tokens: %+v", got)
	}
	if got := plain.Under(idle); got.Settings["autovacuum"] != "off" || got.WritesEnd != 0 {
		t.Errorf("other servers, or an end of the writes: %+v", got)
	}
	if got := find(t, "churn").Under(budget); got.ConnLifetime == 0 {
		t.Errorf("connections live for ever: %+v", got)
	}
	for name, want := range map[string]bool{
		fault.Steady: true, "lag-spike": true, "churn": true, "kill-replica": true,
		"idle": false, "ddl": false, "crash-backend": false, "lost-token": false, "stampede": false, "slow-replica": false,
	} {
		if got := find(t, name).Portable(); got != want {
			t.Errorf("%s is portable: %v", name, got)
		}
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
