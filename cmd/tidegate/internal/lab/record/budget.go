package record

import (
	"fmt"
	"time"
)

// Breach is what a read does whose budget no replica keeps.
type Breach string

// What a read can do.
const (
	OnPrimary     Breach = "primary"
	StaleWhenShed Breach = "stale-when-shed"
	ServeStale    Breach = "stale"
	Fail          Breach = "fail"
)

// Budget is how old the answer of a relaxed read may be. Budgets are comparable.
type Budget struct {
	Within   time.Duration
	OnBreach Breach
}

// Name names the budget, for reports.
func (b Budget) Name() string { return fmt.Sprintf("%v-%s", b.Within, b.OnBreach) }

// Budgets lists the budgets of these durations with all that can be done on a breach.
func Budgets(within ...time.Duration) (list []Budget) {
	for _, d := range within {
		for _, b := range []Breach{OnPrimary, StaleWhenShed, ServeStale, Fail} {
			list = append(list, Budget{d, b})
		}
	}
	return list
}
