package report

import (
	"fmt"
	"strings"
)

// Ours is the strategy whose promises the verdict is about.
const Ours = "tidegate"

// The exit statuses of the lab.
const (
	StatusKept    = 0 // ours has no violation
	StatusBroken  = 1 // ours has one
	StatusNothing = 2 // the run says nothing
)

// Verdict is the outcome of a run in one line, and the exit status.
type Verdict struct {
	Status int
	Line   string
}

// Judge gives the verdict on a run that needed wanted opportunities for each
// strategy, and that was cut short if interrupted.
//
// A violation counts even when nothing else of the run does.
func Judge(r *Result, wanted int, interrupted bool) Verdict {
	for _, f := range r.Strategies {
		if f.Name == Ours && f.StaleReads+f.BackwardsReads+f.UnrealReads > 0 {
			return Verdict{StatusBroken, fmt.Sprintf("%s BROKE ITS PROMISE: %s; first: %s. Next: run again with --seed %d and report it",
				f.Name, violations(&f), f.FirstViolation, r.Seed)}
		}
	}
	nothing := func(format string, args ...any) Verdict {
		return Verdict{StatusNothing, "no verdict: " + fmt.Sprintf(format, args...)}
	}
	if interrupted {
		return nothing("interrupted; run again and let it end")
	}
	for _, f := range r.Strategies {
		switch {
		case f.Reads == 0:
			return nothing("%s answered no read (%s); look at the server's logs with --keep-logs", f.Name, f.FirstError)
		case f.UnrealReads > 0:
			return nothing("%s was given rows that cannot be (%s); a server or the lab is broken, report it with --seed %d", f.Name, f.FirstViolation, r.Seed)
		case f.Opportunities < wanted:
			return nothing("only %s of %s's reads were in danger, %s are wanted; run again with a higher --rate or a longer --duration", thousands(f.Opportunities), f.Name, thousands(wanted))
		}
	}
	var parts []string
	for _, f := range r.Strategies {
		parts = append(parts, fmt.Sprintf("%s: %s in %s reads, %s of them in danger", f.Name, violations(&f), thousands(f.Reads), thousands(f.Opportunities)))
	}
	return Verdict{StatusKept, strings.Join(parts, "; ")}
}

func violations(f *Figures) string {
	if f.StaleReads+f.BackwardsReads+f.UnrealReads == 0 {
		return "no violation"
	}
	s := fmt.Sprintf("%s stale and %s backward", thousands(f.StaleReads), thousands(f.BackwardsReads))
	if f.UnrealReads > 0 {
		s += fmt.Sprintf(" and %s unreal", thousands(f.UnrealReads))
	}
	return s
}

// thousands writes a number with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
