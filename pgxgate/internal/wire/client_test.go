package wire

import (
	"bytes"
	"errors"
	"testing"
)

func TestSent(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	two := join(prepare(t, "s"), query("insert"))
	runAt := len(prepare(t, "s"))
	long := join(prepare(t, "s"), query(string(make([]byte, maxJoin))))
	for _, x := range []struct {
		name string
		ask  Ask
		b    []byte
		max  int // what the network takes before it breaks
		n    int
		sent bool
	}{
		{"nothing", After, two, 0, 0, false},
		{"only what runs nothing", After, two, runAt, runAt, false},
		{"one byte", After, two, runAt + 1, runAt + 1, true},
		{"all but the ask", After, two, len(two), len(two), true},
		{"part of the ask", After, two, len(two) + 3, len(two), true},
		{"only the ask in front", AroundCommit, query("commit"), len(beforeMsg), 0, false},
		{"part of the ask in front", AroundCommit, query("commit"), 3, 0, false},
		{"a byte behind the ask in front", AroundCommit, query("commit"), len(beforeMsg) + 1, 1, true},
		{"long, nothing", After, long, 0, 0, false},
		{"long, head", After, long, 1000, 1000, true},
		{"long, in the tail", After, long, len(long) - 10, len(long) - 10, true},
		{"long, in the ask", After, long, len(long) + 10, len(long), true},
		{"long, ask in front", AroundCommit, query(string(make([]byte, maxJoin))), 10, 0, false},
		{"prepare", After, prepare(t, "s"), 3, 3, false},
	} {
		c, s := scripted()
		s.writeErr, s.writeMax = broken, x.max
		c.Arm(x.ask)
		n, err := c.Write(x.b)
		a := c.Take()
		if n != x.n || err != broken || a.Sent != x.sent || a.OK {
			t.Errorf("%s: Write returns %d, %v, and Sent is %v; want %d and %v", x.name, n, err, a.Sent, x.n, x.sent)
		}
	}
	t.Run("not taken back", func(t *testing.T) {
		c, s := scripted()
		c.Arm(After)
		mustWrite(t, c, query("insert"))
		s.writeErr = broken
		c.Write(query("insert"))
		if a := c.Take(); !a.Sent || a.OK {
			t.Errorf("%+v", a)
		}
	})
	t.Run("nothing written", func(t *testing.T) {
		c, _ := scripted()
		c.Arm(After)
		c.Write(nil)
		sameAnswer(t, c.Take(), Answer{})
		sameAnswer(t, c.Take(), Answer{})
	})
}

// The ask rides in the client's write, and its answer in the client's read.
func TestNetworkCalls(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, maxJoin - 6, maxJoin, 1 << 20} {
		for _, ask := range []Ask{After, AroundCommit} {
			c, s := scripted()
			c.Arm(ask)
			b := query(string(bytes.Repeat([]byte("S\x00\x00\x00\x04"), size/5)))
			mustWrite(t, c, b)
			want, calls := join(b, afterMsg), 1
			if ask == AroundCommit {
				want = join(beforeMsg, want)
			}
			if len(b) > maxJoin {
				calls = int(ask) + 1
			}
			if !bytes.Equal(s.wrote, want) || s.writes != calls {
				t.Fatalf("%d bytes: %d writes, want %d; equal: %v", len(b), s.writes, calls, bytes.Equal(s.wrote, want))
			}
			answer := join(tag("INSERT 0 1"), ready('I'), position(1, 2, false, 'I'))
			if ask == AroundCommit {
				answer = join(state(false, true), answer)
			}
			s.says(answer)
			mustRead(t, c, join(tag("INSERT 0 1"), ready('I')), 8192)
			if s.reads != 1 {
				t.Fatalf("%d reads", s.reads)
			}
			if a := c.Take(); !a.OK {
				t.Fatalf("%+v", a)
			}
			if cap(c.scratch) > 2*maxJoin {
				t.Fatalf("keeps %d bytes", cap(c.scratch))
			}
		}
	}
}
