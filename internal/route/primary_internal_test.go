package route

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

var strong = tidegate.Strong("strong", "test")

// hasRead is a session that has seen a position on a replica.
func hasRead(upTo uint64) *ledger.Ledger {
	return ledger.New("main", 7, []tidegate.Mark{{Cluster: "main", Epoch: epoch, Position: tidegate.At(upTo), Shown: tidegate.At(upTo)}})
}

func TestPrimaryAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		class tidegate.Class
		l     *ledger.Ledger
		want  tidegate.Reason
		falls uint64
	}{
		{"strong without a session", strong, nil, tidegate.ReasonStrong, 0},
		{"strong for a new session", strong, ledger.New("main", 7, nil), tidegate.ReasonStrong, 0},
		{"strong after a write", strong, session(200), tidegate.ReasonStrong, 0},
		{"strong after a read that the primary is proven to show", strong, hasRead(90), tidegate.ReasonStrong, 0},
		{"causal without a session", tidegate.Causal, nil, tidegate.ReasonNoSession, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(cl *cluster) {
				cl.proven = tidegate.At(90)
				tk := &Ticket{Class: c.class, Ledger: c.l}
				cl.begin(cl.t.Context(), tk, outcome{0, c.want, false, 0})
				s := cl.router.Stats()
				if none := c.class == tidegate.Causal; (s.Sessionless.Load() == 1) != none || s.Fallbacks.Load() != 0 {
					t.Errorf("counted %d without a session, %d fallbacks", s.Sessionless.Load(), s.Fallbacks.Load())
				}
				cl.router.Done(tk, mono.Now())
				cl.idle()
			})
		})
	}
}

// A primary can be older than a replica that the session has read from.
func TestPrimaryMustHaveShownWhatTheSessionHasSeen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		class tidegate.Class
		l     func() *ledger.Ledger
		while func(c *cluster)
		want  outcome
	}{
		{"never proven", strong, func() *ledger.Ledger { return hasRead(90) }, nil, outcome{0, tidegate.ReasonStrong, true, time.Second}},
		{"proven soon", strong, func() *ledger.Ledger { return hasRead(90) }, func(c *cluster) {
			time.Sleep(3*ms - 2*time.Microsecond)
			c.mu.Lock()
			c.proven = tidegate.At(90)
			c.mu.Unlock()
			c.look(1)
		}, outcome{0, tidegate.ReasonStrong, false, 3*ms - time.Microsecond}},
		{"not proven enough", strong, func() *ledger.Ledger { return hasRead(90) }, func(c *cluster) {
			c.mu.Lock()
			c.proven = tidegate.At(89)
			c.mu.Unlock()
			c.look(1)
		}, outcome{0, tidegate.ReasonStrong, true, time.Second}},
		{"no replica has it either", tidegate.Causal, func() *ledger.Ledger { return hasRead(110) }, nil, outcome{0, tidegate.ReasonBehind, true, 1020 * ms}},
		{"a replica has it before that is proven", tidegate.Causal, func() *ledger.Ledger { return hasRead(110) }, func(c *cluster) {
			time.Sleep(50*ms - 2*time.Microsecond)
			c.apply(110, 2)
		}, outcome{2, tidegate.ReasonCovered, false, 50*ms - time.Microsecond}},
		{"what it has seen elsewhere is not bounded", strong, func() *ledger.Ledger {
			return ledger.New("main", 7, []tidegate.Mark{{Cluster: "main", Epoch: epoch, Seen: []tidegate.Incarnation{91}}})
		}, nil, outcome{0, tidegate.ReasonStrong, true, time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(cl *cluster) {
				if c.while != nil {
					cl.others.Go(func() { c.while(cl) })
				}
				tk := &Ticket{Class: c.class, Ledger: c.l()}
				cl.begin(cl.t.Context(), tk, c.want)
				if got := cl.router.Stats().Unproven.Load(); (got == 1) != c.want.unproven {
					t.Errorf("counted %d unproven", got)
				}
				if d := cl.router.Decision(tk); d.Unproven != c.want.unproven || d.Waited != c.want.waited || d.StalenessKnown == c.want.unproven {
					t.Errorf("%+v", d)
				}
				cl.mu.Lock()
				defer cl.mu.Unlock()
				shown := tk.Ledger.Marks()[0].Shown
				if asked := len(cl.shown) > 0; asked == shown.IsZero() || asked && cl.shown[0] != shown {
					t.Errorf("asks for the proof of %v, want %v", cl.shown, shown)
				}
			})
		})
	}
}

// Until that is proven, too, the replicas are asked.
func TestReplicaIsFoundWhileWaitingForTheProof(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		c.answering = true
		time.AfterFunc(50*ms, func() {
			c.say(func(says []freshness.Observation, _ []error) { says[2].Applied = tidegate.At(110) })
		})
		tk := &Ticket{Ledger: hasRead(110)}
		err := c.router.Begin(c.t.Context(), tk)
		if waited := time.Duration(tk.waited); err != nil || tk.Node != 2 || waited < 50*ms || waited > 56*ms {
			t.Errorf("%v: goes to %d after %v", err, tk.Node, waited)
		}
	})
}

func TestNobodyIsLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		class tidegate.Class
		in    func(c *cluster, tk *Ticket)
		want  tidegate.NotFreshError
	}{
		{"no replica has it and the primary failed", tidegate.Causal, func(c *cluster, tk *Ticket) { tk.exclude = 1 << 0 },
			tidegate.NotFreshError{Required: tidegate.At(200), Observed: tidegate.At(120), Waited: 20 * ms}},
		{"two claim to be the primary", strong, func(c *cluster, _ *Ticket) {
			c.say(func(says []freshness.Observation, _ []error) { says[1].Role = tidegate.RolePrimary })
			c.look(1)
		}, tidegate.NotFreshError{NoPrimary: true}},
		{"no primary, no session", tidegate.Causal, func(c *cluster, tk *Ticket) {
			tk.Ledger = nil
			c.say(func(says []freshness.Observation, _ []error) { says[1].Epoch = later })
			c.look(1)
		}, tidegate.NotFreshError{Observed: tidegate.At(120), NoPrimary: true}},
		{"the only node failed", tidegate.Relaxed("r", "test", tidegate.AnyStaleness()), func(c *cluster, tk *Ticket) { tk.exclude = 0b111 },
			tidegate.NotFreshError{Observed: tidegate.At(120)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(cl *cluster) {
				cl.apply(120, 2)
				tk := &Ticket{Class: c.class, Ledger: session(200)}
				c.in(cl, tk)
				err := cl.router.Begin(cl.t.Context(), tk)
				var got *tidegate.NotFreshError
				if !errors.As(err, &got) {
					t.Fatalf("%v, want a NotFreshError", err)
				}
				c.want.Cluster, c.want.Class = "main", c.class
				if *got != c.want || !errors.Is(err, tidegate.ErrNotFresh) || errors.Is(err, tidegate.ErrNoPrimary) != c.want.NoPrimary {
					t.Errorf("\n got %+v\nwant %+v", *got, c.want)
				}
				if d := cl.router.Decision(tk); d.Node != "" || d.Role != tidegate.RoleUnknown || cl.router.Stats().Refused.Load() != 1 {
					t.Errorf("%+v", d)
				}
				cl.router.Done(tk, mono.Now())
				cl.idle()
			})
		})
	}
}

func TestPendingOutcomeIsAskedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		l := session(80)
		l.Owe(10, []uint64{42})
		c.tick()
		c.answering = true
		c.asked = func(demand) { // before the probe that is to answer it
			c.mu.Lock()
			defer c.mu.Unlock()
			if len(c.settled) == 0 || !slices.Equal(c.settled[0], []uint64{42}) {
				t.Errorf("a look is asked for, and the fate of %v", c.settled)
			}
		}
		tk := &Ticket{Ledger: l}
		if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.Role != tidegate.RoleReplica || tk.waited != 0 {
			t.Errorf("%v: %+v", err, tk)
		}
		if tk.required != tidegate.At(100) {
			t.Errorf("required %v, want all that is committed", tk.required)
		}
	})
}

// promote makes node 1 the primary of a later history and looks at all nodes.
func (c *cluster) promote() {
	c.say(func(says []freshness.Observation, fails []error) {
		fails[0] = errDown
		for i := range says[1:] {
			says[i+1].Epoch = later
		}
		says[1].Role, says[1].Ceiling = tidegate.RolePrimary, says[1].Applied
	})
	c.look(0, 1, 2)
}

func TestHistoryChanged(t *testing.T) {
	t.Parallel()
	for _, class := range []tidegate.Class{tidegate.Causal, strong} {
		t.Run(class.Name(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(c *cluster) {
				c.proven = tidegate.At(101)
				l := session(80)
				c.tick()
				c.promote()
				told := outcome{1, tidegate.ReasonHistoryChanged, true, 0}
				tk := &Ticket{Class: class, Ledger: l}
				c.begin(c.t.Context(), tk, told)
				c.router.Retry(tk, tidegate.RetryConnection, false)
				c.begin(c.t.Context(), tk, told)
				// It is not answered: the next one has to tell.
				c.router.Failed(tk, tidegate.RetryConnection, false)
				tk = &Ticket{Class: class, Ledger: l}
				c.begin(c.t.Context(), tk, told)
				l.Reached(tk.Epoch, tidegate.At(100))
				c.router.Done(tk, mono.Now())
				c.router.Told(tk)
				l.Reached(tk.Epoch, tidegate.At(101))
				c.router.Told(tk) // twice is once
				if m := l.Marks(); len(m) != 1 || m[0].Position != tidegate.At(101) || !m[0].CatchUp || m[0].Epoch != later {
					t.Errorf("the session goes on with %+v", m)
				}
				c.apply(101, 1, 2)
				next := &Ticket{Class: class, Ledger: l}
				if class == strong {
					c.begin(c.t.Context(), next, outcome{1, tidegate.ReasonStrong, false, 0})
				} else {
					c.begin(c.t.Context(), next, outcome{2, tidegate.ReasonCovered, false, 0})
				}
				c.router.Done(next, mono.Now())
				s := c.router.Stats()
				if s.Changed.Load() != 2 || s.Unproven.Load() != 3 || (s.Fallbacks.Load() == 3) != (class != strong) {
					t.Errorf("counted %d changed, %d unproven, %d fallbacks", s.Changed.Load(), s.Unproven.Load(), s.Fallbacks.Load())
				}
				c.idle()
			})
		})
	}
}

// An instance that learns late of a promotion must not tell the session that its
// newer mark is lost.
func TestLateLearnerLooksFirst(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		l := ledger.New("main", 7, []tidegate.Mark{{Cluster: "main", Epoch: later, Position: tidegate.At(100)}})
		c.tick()
		var once sync.Once
		c.asked = func(d demand) {
			if d.node == 0 { // what the look would find
				once.Do(func() { c.others.Go(c.promote) })
			}
		}
		tk := &Ticket{Ledger: l}
		if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.unproven || tk.Epoch != later {
			t.Errorf("%v: %+v", err, tk)
		}
	})
}
