package engine

import (
	"fmt"
	"time"

	"github.com/tidegatedb/tidegate"
)

// ThrottleConfig configures a [Throttle]. Its zero value holds the job while the worst
// replica is not proven to be at most 500ms old, and then until it is at most 250ms old.
type ThrottleConfig struct {
	// MaxStaleness is the upper mark: how old a replica's state may be at most, by the
	// proof that [NodeStatus.Staleness] is. No clocks are compared, and an idle cluster
	// stays young. Zero means 500ms, or no such mark where MaxLag is set.
	//
	// Sessions begin to wait as soon as replicas are behind, and go to the primary where
	// that would take longer than half a second (see [Config.Wait]). The round
	// trips of two looks count in, and up to [Config.ProbeInterval], because a replica's
	// age is that of a look at the primary: leave several of them between the mark and
	// zero.
	MaxStaleness time.Duration
	// ResumeStaleness is the lower mark: once the job is held, it is let go at or below
	// this. Zero means half of MaxStaleness.
	ResumeStaleness time.Duration
	// MaxLag is the upper mark for how far a replica may be behind the primary's last
	// known position, in the engine's unit: bytes of the log on PostgreSQL. Where
	// MaxStaleness is set, too, a replica has to keep both. Zero means no such mark.
	//
	// An age says how late a replica is, a lag how much it has yet to do. A job that
	// writes much faster than replicas replay can go on for MaxStaleness before it
	// shows, and then leaves them busy for as many times longer. This mark holds it at
	// once, and costs a look for nearly each batch: a lag is not known for longer than
	// the least time between two, 16ms with the default [Config.DemandRate].
	MaxLag uint64
	// ResumeLag is its lower mark. Zero means half of MaxLag.
	ResumeLag uint64
	// Percentile is the share of the replicas that have to keep the marks, in percent and
	// rounded up: 100 waits for the worst, 50 for the better one of two and the median of
	// three. Zero means 100.
	Percentile int
	// AbsentAfter is how long a replica counts that does not answer probes. Zero means
	// 30s. A replica that is busy replaying must not look like one that is gone, and one
	// that is gone must not hold the job for ever.
	AbsentAfter time.Duration
	// MaxWait bounds one wait. Zero means no bound but the context.
	MaxWait time.Duration
}

func (c ThrottleConfig) withDefaults() ThrottleConfig {
	if c.MaxStaleness == 0 && c.MaxLag == 0 {
		c.MaxStaleness = 500 * time.Millisecond
	}
	if c.ResumeStaleness == 0 {
		c.ResumeStaleness = c.MaxStaleness / 2
	}
	if c.ResumeLag == 0 && c.MaxLag > 0 {
		c.ResumeLag = max(1, c.MaxLag/2)
	}
	if c.Percentile == 0 {
		c.Percentile = 100
	}
	if c.AbsentAfter == 0 {
		c.AbsentAfter = 30 * time.Second
	}
	return c
}

func (c ThrottleConfig) validate() error {
	const shortest, longest = 10 * time.Millisecond, 24 * time.Hour
	switch {
	case c.MaxStaleness != 0 && (c.MaxStaleness < shortest || c.MaxStaleness > longest):
		return badThrottle("MaxStaleness", "is %v; use %v to %v, or zero for the default", c.MaxStaleness, shortest, longest)
	case c.ResumeStaleness < 0 || c.ResumeStaleness > c.MaxStaleness:
		return badThrottle("ResumeStaleness", "is %v and MaxStaleness is %v; use at most that, or zero for half of it", c.ResumeStaleness, c.MaxStaleness)
	case c.ResumeStaleness != 0 && c.ResumeStaleness < shortest/2:
		return badThrottle("ResumeStaleness", "is %v; use %v or more, no look is answered in no time", c.ResumeStaleness, shortest/2)
	case c.ResumeLag > c.MaxLag:
		return badThrottle("ResumeLag", "is %d and MaxLag is %d; use at most that, or zero for half of it", c.ResumeLag, c.MaxLag)
	case c.Percentile < 1 || c.Percentile > 100:
		return badThrottle("Percentile", "is %d; use 1 to 100, or zero for the worst replica", c.Percentile)
	case c.AbsentAfter < time.Millisecond || c.AbsentAfter > longest:
		return badThrottle("AbsentAfter", "is %v; use 1ms to %v, or zero for 30s", c.AbsentAfter, longest)
	case c.MaxWait < 0:
		return badThrottle("MaxWait", "is %v; use a positive time, or zero for no bound but the context", c.MaxWait)
	}
	return nil
}

func badThrottle(field, format string, args ...any) error {
	return fmt.Errorf("%w: ThrottleConfig.%s %s", tidegate.ErrConfig, field, fmt.Sprintf(format, args...))
}

// pace returns the nanoseconds between two asks for looks: the least, because reads that
// wait need the budget more, and those within one wait. A replica that keeps up is
// proven to be as young as the look at the primary before its own, so that looks have
// to come more often than the lower mark is long.
func (c *ThrottleConfig) pace(demandRate float64) (gap, pace int64) {
	gap = max(int64(10*time.Millisecond), int64(4/demandRate*1e9))
	within := 50 * time.Millisecond
	if c.MaxStaleness > 0 {
		within = min(within, c.ResumeStaleness/4)
	}
	return gap, max(gap, int64(within))
}
