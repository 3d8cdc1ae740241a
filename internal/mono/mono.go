// Package mono is the one clock that routing uses: monotonic nanoseconds of
// this process. Clocks of two machines are never compared, so there is no wall
// time here. Inside a testing/synctest bubble it follows the bubble's clock.
package mono

import "time"

// base is the start of this process, moved to before the year 2000: that is
// when the clock of a bubble begins, and time must not be negative there. It
// keeps its monotonic reading, so no wall clock is asked later.
var base = func() time.Time {
	now := time.Now()
	return now.Add(time.Date(1999, time.January, 1, 0, 0, 0, 0, time.UTC).Sub(now))
}()

// Now returns nanoseconds since an arbitrary point before this process's life.
// It is always positive, so that zero can mean "never".
func Now() int64 { return int64(time.Since(base)) }
