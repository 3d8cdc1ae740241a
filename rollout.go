package tidegate

import (
	"fmt"
	"math"
	"strconv"
)

// Rollout says which reads are routed to replicas, so that routing can be
// introduced step by step and taken back while the process runs. Reads that are
// not routed go to the primary; tokens are kept and emitted all the same, so
// that every change of it is safe at any moment.
//
// The zero Rollout routes all reads. A Rollout is comparable.
type Rollout struct {
	mode rolloutMode
	// out is the part of the sessions that is not routed, in units of 1/2^32, so
	// that the zero value routes all.
	out uint32
}

type rolloutMode uint8

const (
	rolloutShare rolloutMode = iota
	rolloutShadow
	rolloutOff
)

var (
	// RolloutOn routes all reads.
	RolloutOn = Rollout{}
	// RolloutOff sends all reads to the primary.
	RolloutOff = Rollout{mode: rolloutOff}
	// RolloutShadow sends all reads to the primary and says in each [Decision]
	// where the read would have gone without a wait. That is a lower bound of what
	// replicas would serve: a session whose reads have all been on the primary must
	// not see less than those showed, which asks more of a replica than its reads
	// on replicas would.
	RolloutShadow = Rollout{mode: rolloutShadow}
)

// RolloutShare routes the reads of a part of the sessions, from 0 to 1. A session
// belongs to it or not for as long as it lives, on every instance, because its
// nonce decides; a larger share contains every smaller one. Reads without a
// session are drawn by chance, each by itself, and so are those of a zero
// [Session], which has no nonce: make sessions by [NewSession], of the token when
// there is one. Values outside of 0 to 1 count as the nearer of the two, and NaN
// as 0.
func RolloutShare(part float64) Rollout {
	switch {
	case !(part > 0):
		return RolloutOff
	case part >= 1:
		return RolloutOn
	}
	in := uint64(math.Round(part * (1 << 32)))
	switch in {
	case 0:
		return RolloutOff
	case 1 << 32:
		return RolloutOn
	}
	return Rollout{out: uint32(1<<32 - in)}
}

// Share returns the part of the sessions that is routed.
func (r Rollout) Share() float64 {
	if r.mode != rolloutShare {
		return 0
	}
	return 1 - float64(r.out)/(1<<32)
}

// Shadow reports whether decisions say where reads would have gone.
func (r Rollout) Shadow() bool { return r.mode == rolloutShadow }

// Routes reports whether the reads of a session with that nonce are routed. It is
// for adapters. Zero is no nonce: they draw one for each read then.
func (r Rollout) Routes(nonce uint64) bool {
	// The nonce's high bits decide elsewhere: take others, well mixed.
	h := nonce * 0x9e3779b97f4a7c15
	return r.mode == rolloutShare && uint32(h>>32) >= r.out
}

// String returns "on", "off", "shadow" or the share, as [ParseRollout] takes it.
func (r Rollout) String() string {
	switch {
	case r.mode == rolloutShadow:
		return "shadow"
	case r.mode == rolloutOff:
		return "off"
	case r.out == 0:
		return "on"
	}
	share := r.Share()
	for digits := 1; ; digits++ {
		// The shortest number that means the same share: 0.05, as it was written.
		s := strconv.FormatFloat(share, 'g', digits, 64)
		if f, _ := strconv.ParseFloat(s, 64); RolloutShare(f) == r {
			return s
		}
	}
}

// ParseRollout reads "on", "off", "shadow", or a share such as "0.05" or "5%", as
// a configuration file has it. Errors wrap [ErrConfig].
func ParseRollout(s string) (Rollout, error) {
	switch s {
	case "on":
		return RolloutOn, nil
	case "off":
		return RolloutOff, nil
	case "shadow":
		return RolloutShadow, nil
	}
	number, unit := s, 1.0
	if n := len(s); n > 0 && s[n-1] == '%' {
		number, unit = s[:n-1], 100
	}
	share, err := strconv.ParseFloat(number, 64)
	if err != nil || !(share >= 0 && share <= unit) {
		return Rollout{}, fmt.Errorf("%w: the rollout %q; use on, off, shadow, or a share of the sessions such as 0.05 or 5%%", ErrConfig, s)
	}
	return RolloutShare(share / unit), nil
}
