package wire

import (
	"bytes"
	"errors"
	"testing"
)

func TestNotPrepared(t *testing.T) {
	t.Parallel()
	done := join(tag("INSERT 0 1"), ready('I'))
	notAsked := func(t *testing.T, c *Conn, s *script, ask Ask) {
		t.Helper()
		if c.Prepared() {
			t.Fatal("still prepared")
		}
		s.wrote = nil
		c.Arm(ask)
		mustWrite(t, c, query("insert"))
		if !bytes.Equal(s.wrote, query("insert")) {
			t.Fatalf("wrote %q", s.wrote)
		}
		s.says(done)
		mustRead(t, c, done, 512)
		sameAnswer(t, c.Take(), Answer{Sent: true, Tag: "INSERT", TxStatus: 'I', Err: ErrNotPrepared})
	}
	t.Run("never", func(t *testing.T) {
		s := &script{end: errDry}
		notAsked(t, Wrap(s), s, After)
	})
	for _, drop := range []string{"DEALLOCATE ALL", "DISCARD ALL"} {
		t.Run(drop, func(t *testing.T) {
			for n := range len(drop) + 12 {
				c, s := scripted()
				out := join(tag(drop), ready('T'))
				s.says(cutAt(n)(out)...)
				mustRead(t, c, out, 512)
				notAsked(t, c, s, AroundCommit)
			}
		})
		t.Run(drop+" armed", func(t *testing.T) {
			c, s := scripted()
			c.Arm(After)
			mustWrite(t, c, query("x"))
			s.says(tag(drop), ready('I'), refused("26000"), ready('I'))
			mustRead(t, c, join(tag(drop), ready('I')), 512)
			a := c.Take()
			var refusal *ServerError
			if a.OK || !errors.Is(a.Err, ErrNotPrepared) || !errors.As(a.Err, &refusal) || refusal.SQLState() != "26000" {
				t.Fatalf("%+v", a)
			}
			notAsked(t, c, s, After)
			c.MarkPrepared()
			c.Arm(After)
			mustWrite(t, c, query("insert"))
			s.says(done, position(1, 2, false, 'I'))
			mustRead(t, c, done, 512)
			if a := c.Take(); !a.OK {
				t.Fatalf("%+v", a)
			}
		})
	}
	t.Run("unseen", func(t *testing.T) {
		c, s := scripted()
		c.Arm(AroundCommit)
		mustWrite(t, c, query("commit"))
		s.says(refused("26000"), ready('E'), tag("ROLLBACK"), refused("26000"), ready('I'))
		mustRead(t, c, join(tag("ROLLBACK"), ready('I')), 512)
		if a := c.Take(); a.OK || !errors.Is(a.Err, ErrNotPrepared) || a.Before.OK || !errors.Is(a.Before.Err, ErrNotPrepared) {
			t.Fatalf("%+v", a)
		}
		notAsked(t, c, s, After)
	})
	t.Run("others", func(t *testing.T) {
		c, s := scripted()
		out := join(tag("DEALLOCATE"), tag("DISCARD PLANS"), tag("DELETE 3"), tag("DO"), raw('C', ""), ready('I'))
		s.says(out)
		mustRead(t, c, out, 512)
		if !c.Prepared() {
			t.Fatal("not prepared")
		}
	})
}
