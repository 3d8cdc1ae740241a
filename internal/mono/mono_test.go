package mono_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate/internal/mono"
)

func TestNowGrows(t *testing.T) {
	t.Parallel()
	last := mono.Now()
	if last <= 0 {
		t.Fatalf("%d: zero means never, so the clock must be above it", last)
	}
	for range 1000 {
		now := mono.Now()
		if now < last {
			t.Fatalf("%d after %d", now, last)
		}
		last = now
	}
}

func TestNowFollowsTheBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		before := mono.Now()
		if before <= 0 {
			t.Fatalf("%d in a bubble: zero means never, so the clock must be above it", before)
		}
		time.Sleep(time.Hour)
		if after := mono.Now(); after-before != int64(time.Hour) {
			t.Errorf("%v passed, want exactly one hour", time.Duration(after-before))
		}
	})
}

func TestNowDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { mono.Now() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		mono.Now()
	}
}
