package report

import (
	"errors"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// wrote is an acknowledged write from start to end, in milliseconds.
func wrote(start, end int) record.Op {
	return record.Op{Kind: record.Write, Start: time.Duration(start) * time.Millisecond, End: time.Duration(end) * time.Millisecond}
}

func failed(op record.Op) record.Op {
	op.Err = errors.New("timed out")
	return op
}

func TestWriteStall(t *testing.T) {
	t.Parallel()
	type ops = []record.Op
	for name, c := range map[string]struct {
		sessions []ops
		want     int
	}{
		"nothing":                                {nil, 0},
		"one write":                              {[]ops{{wrote(10, 13)}}, 3},
		"nobody writes for long":                 {[]ops{{wrote(0, 2), wrote(900, 903)}}, 3},
		"two at a time, the slower waits less":   {[]ops{{wrote(0, 10)}, {wrote(1, 12)}}, 10},
		"an acknowledgement in between":          {[]ops{{wrote(0, 100)}, {wrote(50, 60)}}, 60},
		"several wait for the same":              {[]ops{{wrote(0, 1), wrote(5, 95)}, {wrote(7, 96)}}, 90},
		"one fails meanwhile, the next waits on": {[]ops{{wrote(0, 1), failed(wrote(2, 52)), wrote(52, 82)}}, 80},
		"all fail to the end":                    {[]ops{{wrote(0, 1), failed(wrote(4, 54))}, {failed(wrote(10, 60))}}, 56},
		"a failure beside successes":             {[]ops{{failed(wrote(0, 50))}, {wrote(0, 10), wrote(10, 20), wrote(20, 30), wrote(30, 40)}}, 10},
		"reads do not count":                     {[]ops{{{Kind: record.Read, End: time.Second}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := writeStall(c.sessions); got != time.Duration(c.want)*time.Millisecond {
				t.Errorf("got %v, want %d ms", got, c.want)
			}
		})
	}
}
