package strategy

import (
	"strconv"
	"testing"
	"time"
)

func TestPinned(t *testing.T) {
	t.Parallel()
	now := time.Now()
	wrote := func(ago time.Duration) string { return strconv.FormatInt(now.Add(-ago).UnixMicro(), 10) }
	for name, c := range map[string]struct {
		token string
		want  bool
	}{
		"never wrote":             {"", false},
		"just wrote":              {wrote(0), true},
		"wrote 4.9 s ago":         {wrote(4900 * time.Millisecond), true},
		"wrote 5 s ago":           {wrote(5001 * time.Millisecond), false},
		"by a clock that is fast": {wrote(-time.Second), true},
		"not a time":              {"yesterday", true},
	} {
		if got := pinned(c.token, now); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
