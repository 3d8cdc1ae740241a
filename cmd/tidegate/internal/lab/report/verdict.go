package report

import (
	"fmt"
	"strings"
)

// Ours is the strategy whose promises the verdict is about.
const Ours = "tidegate"

// The exit statuses of the lab.
const (
	StatusKept    = 0 // ours has neither a violation nor an error that it must not have
	StatusBroken  = 1 // ours has one
	StatusNothing = 2 // the run says nothing
)

// Carried is ours with sessions in memory that catch up when they are lost. It
// keeps the same promises.
const Carried = "tidegate-memory"

// Throttled is ours beside a bulk job that waits for replicas. It keeps the same promises.
const Throttled = "tidegate-throttled"

// Verdict is the outcome of a run in one line, and the exit status.
type Verdict struct {
	Status int
	Line   string
}

// Terms are what a scenario asks of a run.
type Terms struct {
	// Opportunities is how many each strategy must have had.
	Opportunities int
	// Danger asks for one at least, of any strategy that does not hold writes back:
	// a load that brings none cannot show what keeping a promise is worth.
	Danger bool
	// Errors says that reads may fail after a row was delivered.
	Errors bool
	// Hangs says that reads may fail at their deadline which nobody could know to be in
	// vain: see [Recovery].
	Hangs bool
	// Sheds says that reads may be refused, if that comes in time and with a typed error.
	Sheds bool
	// Conflicts says that without recovery conflicts the run shows nothing.
	Conflicts bool
	// Forgets says that a client that has lost its tokens is taken for somebody new.
	// Its session then misses what it knew, and to show that is what the run is for.
	Forgets bool
	// Interrupted says that the run was cut short.
	Interrupted bool
}

// Judge gives the verdict on a run. A violation counts even when nothing else of
// the run does, and so does an error that the scenario is no reason for.
func Judge(r *Result, terms Terms) Verdict {
	for _, f := range r.Strategies {
		if f.Name != Ours && f.Name != Carried && f.Name != Throttled {
			continue
		}
		if f.broken() > 0 && !(terms.Forgets && f.excused()) {
			return Verdict{StatusBroken, fmt.Sprintf("%s BROKE ITS PROMISE: %s; first: %s. Next: run again with --seed %d and report it",
				f.Name, violations(&f), f.FirstViolation, r.Seed)}
		}
		if what := f.inexcusable(terms); what != "" {
			return Verdict{StatusBroken, fmt.Sprintf("%s FAILED WITHOUT NEED: %s; first: %s. Next: run again with --seed %d and report it",
				f.Name, what, f.FirstError, r.Seed)}
		}
	}
	nothing := func(format string, args ...any) Verdict {
		return Verdict{StatusNothing, "no verdict: " + fmt.Sprintf(format, args...)}
	}
	if terms.Interrupted {
		return nothing("interrupted; run again and let it end")
	}
	for _, f := range r.Strategies {
		switch {
		case f.Reads == 0 && f.FirstError == "":
			return nothing("%s made no read; run again with a higher --rate or a longer --duration", f.Name)
		case f.Reads == 0:
			return nothing("%s answered no read (%s); look at the server's logs with --keep-logs", f.Name, f.FirstError)
		case f.UnrealReads > 0:
			return nothing("%s was given rows that cannot be (%s); a server or the lab is broken, report it with --seed %d", f.Name, f.FirstViolation, r.Seed)
		case f.Writes == 0 && f.Opportunities == 0 && f.WriteErrors == 0 && terms.Danger:
			return nothing("%s wrote nothing, so that no read could be stale; run again with --writes above 0, or more of them by a higher --rate or a longer --duration", f.Name)
		case terms.Conflicts && f.RecoveryConflicts == 0:
			return nothing("no query of %s's was canceled by a replica, so that nothing is shown; run again with a higher --rate or a longer --duration", f.Name)
		case f.Opportunities < terms.Opportunities && !f.Held:
			return nothing("only %s of %s's reads were in danger, %s are wanted; run again with a higher --rate or a longer --duration", thousands(f.Opportunities), f.Name, thousands(terms.Opportunities))
		}
	}
	if terms.Danger && !endangered(r) {
		return nothing("no read was in danger, so that none could be stale; run again with a higher --rate, more --writes or a longer --duration, or another --scenario")
	}
	if terms.Forgets {
		if why := shown(r); why != "" {
			return nothing("%s", why)
		}
	}
	var parts []string
	for _, f := range r.Strategies {
		parts = append(parts, fmt.Sprintf("%s: %s in %s reads, %s of them in danger", f.Name, violations(&f), thousands(f.Reads), thousands(f.Opportunities)))
	}
	line := strings.Join(parts, "; ")
	if terms.Forgets {
		line += fmt.Sprintf("; %s's are expected with --missing fresh: clients that had lost their tokens were taken for new ones", Ours)
	}
	return Verdict{StatusKept, line}
}

// shown tells why a run does not show what becomes of sessions whose clients are
// taken for new ones; empty means that it does.
func shown(r *Result) string {
	for _, f := range r.Strategies {
		if f.Name != Ours {
			continue
		}
		if f.broken() > 0 {
			return ""
		}
		dropped := 0
		if f.Carried != nil {
			dropped = f.Carried.Dropped
		}
		return fmt.Sprintf("nothing shown: with --missing fresh violations are expected, and there was none in %s reads, tokens were lost before %s requests; "+
			"run again with --scenario lost-token, a higher --rate or a longer --duration", thousands(f.Reads), thousands(dropped))
	}
	return fmt.Sprintf("nothing shown: --missing fresh is about %s, which did not run; add it to --strategies", Ours)
}

// broken is the number of answers that broke a promise, in one way or another.
func (f *Figures) broken() int {
	n := f.StaleReads + f.BackwardsReads + f.UnrealReads + f.BudgetBreaches + f.BoundBreaches
	if f.Carried != nil {
		n += f.Carried.StaleRereads
	}
	return n
}

// excused reports whether sessions whose clients had lost their tokens are all
// that the broken promises are of.
func (f *Figures) excused() bool {
	return f.UnrealReads+f.BudgetBreaches+f.BoundBreaches == 0 && f.Carried != nil && f.Carried.Unexcused == 0
}

// endangered reports whether a strategy's reads were in danger, or all strategies
// hold writes back so that none can be.
func endangered(r *Result) bool {
	held := true
	for _, f := range r.Strategies {
		if f.Opportunities > 0 {
			return true
		}
		held = held && f.Held
	}
	return held
}

// inexcusable tells of the errors that ours must not have: no scenario breaks
// the primary, and a read can go elsewhere until its first row is delivered.
// From then on only a scenario that breaks connections is an excuse. Empty means
// that there is none.
func (f *Figures) inexcusable(terms Terms) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", thousands(n), what))
		}
	}
	unanswered := f.ReadErrorsBeforeRow
	if terms.Hangs {
		unanswered -= f.ReadsCutOff
	}
	add(unanswered, "reads failed before their first row")
	if !terms.Errors {
		add(f.ReadErrorsAfterRow, "reads failed after their first row")
	}
	add(f.WriteErrors, "writes failed")
	if terms.Sheds {
		add(f.ShedLate, "reads were refused after their deadline")
		add(f.ShedUntyped, "reads were refused without a typed error")
	} else {
		add(f.Shed, "reads were refused")
	}
	return strings.Join(parts, ", ")
}

func violations(f *Figures) string {
	if f.broken() == 0 {
		return "no violation"
	}
	s := fmt.Sprintf("%s stale and %s backward", thousands(f.StaleReads), thousands(f.BackwardsReads))
	if f.Carried != nil && f.Carried.StaleRereads > 0 {
		s += fmt.Sprintf(" and %s behind their event", thousands(f.Carried.StaleRereads))
	}
	if f.BudgetBreaches > 0 {
		s += fmt.Sprintf(" and %s older than their budget", thousands(f.BudgetBreaches))
	}
	if f.BoundBreaches > 0 {
		s += fmt.Sprintf(" and %s older than they were said to be", thousands(f.BoundBreaches))
	}
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
