package report

import (
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// story is one session's operations on one instance after the other: w writes, x
// writes and fails, r reads from a replica, p from the primary, f reads and
// fails; R and P are reads that waited. So are E, which an event caused, L, before
// which tokens were lost, and B, which overlaps another request; b does too, and did
// not wait. o is a read from a replica that may be old, O one that waited. A digit is the instance from then on.
func story(text string) (ops []record.Op) {
	instance := 0
	for _, c := range text {
		if c >= '0' && c <= '9' {
			instance = int(c - '0')
			continue
		}
		op := record.Op{Instance: instance, Start: time.Duration(len(ops))}
		switch c {
		case 'w', 'x':
			op.Kind = record.Write
		case 'r', 'R', 'b':
			op.Answer.Replica = true
		case 'E':
			op.Answer.Replica, op.Told = true, &record.Row{}
		case 'L':
			op.Answer.Replica, op.Dropped = true, 1
		case 'o', 'O':
			op.Answer.Replica, op.Budget = true, &record.Budget{}
		case 'B':
			op.Answer.Replica = true
		}
		op.Overlaps = c == 'b' || c == 'B'
		op.Answer.Waited = strings.ContainsRune("RPELBO", c)
		if c == 'x' || c == 'f' {
			op = failed(op)
		}
		ops = append(ops, op)
	}
	return ops
}

func TestUnpromptedWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sessions []string
		restarts []time.Duration // by operation
		want     int
	}{
		"no wait":                                   {[]string{"rrwrr"}, nil, 0},
		"after its own write":                       {[]string{"rwRr"}, nil, 0},
		"after a write that failed":                 {[]string{"rxRr"}, nil, 0},
		"after a read on the primary":               {[]string{"rpRr"}, nil, 0},
		"after a wait that ended on the primary":    {[]string{"rwPR"}, nil, 0},
		"after a read that failed anywhere":         {[]string{"rfR"}, nil, 0},
		"for nothing":                               {[]string{"rRr"}, nil, 1},
		"at the first read of all":                  {[]string{"R"}, nil, 1},
		"for an event":                              {[]string{"rEr"}, nil, 0},
		"on another instance after an event":        {[]string{"rE1R"}, nil, 0},
		"for a lost token":                          {[]string{"rLr"}, nil, 0},
		"beside another request":                    {[]string{"rBr"}, nil, 0},
		"for a write that another read overlapped":  {[]string{"rwbR"}, nil, 0},
		"of reads that may be old":                  {[]string{"rOO"}, nil, 0},
		"after one that may be old":                 {[]string{"roRr"}, nil, 0},
		"long after one that may be old":            {[]string{"roRR"}, nil, 1},
		"long after an event":                       {[]string{"rErR"}, nil, 1},
		"twice":                                     {[]string{"rRrR"}, nil, 2},
		"the second after a write is unprompted":    {[]string{"rwRR"}, nil, 1},
		"on another instance that has yet to learn": {[]string{"0rw0R1R"}, nil, 0},
		"on that instance once more":                {[]string{"0rw0R1RR"}, nil, 1},
		"on an instance without a reason":           {[]string{"0r1R"}, nil, 1},
		"the most of one session":                   {[]string{"rR", "rRR", "rr"}, nil, 2},
		"one after each restart":                    {[]string{"rrRrRr"}, []time.Duration{1, 3}, 1},
		"two after one restart":                     {[]string{"rrRRRr"}, []time.Duration{1, 4}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var histories [][]record.Op
			for _, s := range c.sessions {
				histories = append(histories, story(s))
			}
			if got := unpromptedWaits(histories, c.restarts); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
