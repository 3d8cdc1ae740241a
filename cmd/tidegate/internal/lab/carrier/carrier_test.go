package carrier_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/carrier"
)

func TestCarriers(t *testing.T) {
	t.Parallel()
	if got := carrier.Names(); !slices.Equal(got, []string{"header", "cookie", "redis", "event"}) {
		t.Errorf("carriers are %v", got)
	}
	for _, c := range carrier.All() {
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(c.Name) || c.About == "" || c.Open == nil {
			t.Errorf("carrier %q: %q", c.Name, c.About)
		}
		if found, err := carrier.Find(c.Name); err != nil || found.Name != c.Name || found.Events != (c.Name == "event") {
			t.Errorf("%s: found %+v, %v", c.Name, found, err)
		}
	}
	if _, err := carrier.Find("pigeon"); err == nil {
		t.Error("there is a carrier pigeon")
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	before := carrier.Stats{Emitted: 1, Late: 2, CatchUps: 3, Fresh: 4, Refused: 5, Undelivered: 6}
	after := carrier.Stats{Emitted: 11, Late: 22, CatchUps: 33, Fresh: 44, Refused: 55, Undelivered: 66}
	if got, want := after.Minus(before), (carrier.Stats{Emitted: 10, Late: 20, CatchUps: 30, Fresh: 40, Refused: 50, Undelivered: 60}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
