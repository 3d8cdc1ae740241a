package wire

import (
	"testing"
)

// An answer that its command did not wait for must neither reach the client
// nor be taken for the next command's.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	c, s := scripted()
	one := query("commit work")
	c.Arm(AroundCommit)
	mustWrite(t, c, one)
	s.says(state(true, true), join(tag("COMMIT"), ready('I')))
	s.end = errTimeout
	mustRead(t, c, join(tag("COMMIT"), ready('I')), 512)
	if a := c.Take(); a.OK || a.Err != nil || a.Tag != "COMMIT" || a.TxStatus != 'I' || !a.Before.Wrote {
		t.Fatalf("answer %+v", a)
	}

	s.end = errDry
	c.Arm(After)
	mustWrite(t, c, query("insert"))
	s.says(position(1, 1, true, 'I'), notify, tag("INSERT 0 1"), ready('I'), position(5, 6, false, 'I'))
	mustRead(t, c, join(notify, tag("INSERT 0 1"), ready('I')), 512)
	sameAnswer(t, c.Take(), Answer{OK: true, Flush: 5, Insert: 6, Sent: true, Tag: "INSERT", TxStatus: 'I'})
}

// A late position is not the next command's, even if that has none.
func TestLateAnswerForNothing(t *testing.T) {
	t.Parallel()
	c, s := scripted()
	c.Arm(After)
	mustWrite(t, c, query("insert"))
	done := join(tag("INSERT 0 1"), ready('I'))
	s.says(done)
	s.end = errTimeout
	mustRead(t, c, done, 512)
	c.Take()
	c.Arm(After)
	mustWrite(t, c, prepare(t, "s"))
	s.says(position(1, 1, false, 'I'), ready('I'))
	mustRead(t, c, ready('I'), 512)
	sameAnswer(t, c.Take(), Answer{TxStatus: 'I'})
}

// A position that comes with the end of a COMMIT nobody waited for.
func TestLateAnswerJoined(t *testing.T) {
	t.Parallel()
	c, s := scripted()
	c.Arm(After)
	mustWrite(t, c, query("commit"))
	c.Take()
	c.Arm(After)
	mustWrite(t, c, query("insert"))
	s.says(raw('1', ""), bindOK, tag("COMMIT"), position(9, 9, true, 'I'), tag("INSERT 0 1"), ready('I'), position(5, 6, false, 'I'))
	mustRead(t, c, join(tag("COMMIT"), ready('I'), tag("INSERT 0 1"), ready('I')), 512)
	sameAnswer(t, c.Take(), Answer{OK: true, Flush: 5, Insert: 6, Sent: true, Tag: "INSERT", TxStatus: 'I'})
}

// Late answers are also kept from a client that goes on without arming.
func TestLateAnswerUnarmed(t *testing.T) {
	t.Parallel()
	c, s := scripted()
	c.Arm(After)
	mustWrite(t, c, query("insert"))
	c.Take()
	done := join(tag("INSERT 0 1"), ready('I'))
	s.says(done, position(1, 1, false, 'I'), join(tag("SELECT 1"), ready('I')))
	mustWrite(t, c, query("select"))
	mustRead(t, c, join(done, tag("SELECT 1"), ready('I')), 512)
	if c.state.Load() != 0 {
		t.Fatalf("state %b", c.state.Load())
	}
}
