package route

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// atHome reads once on a replica and then requires a position that no node is
// known to have.
func atHome(c *cluster) (l *ledger.Ledger, home int) {
	l = session(100)
	tk := &Ticket{Ledger: l}
	if err := c.router.Begin(c.t.Context(), tk); err != nil {
		c.t.Fatal(err)
	}
	c.router.Done(tk, mono.Now())
	c.tick()
	l.Reached(epoch, tidegate.At(200))
	return l, tk.Node
}

// begun starts a read and returns what waits for its end.
func begun(c *cluster, l *ledger.Ledger) (wait func() *Ticket) {
	tk, done := &Ticket{Ledger: l}, make(chan struct{})
	go func() {
		defer close(done)
		if c.router.Begin(c.t.Context(), tk) != nil {
			c.t.Error("refused")
		}
	}()
	synctest.Wait()
	return func() *Ticket { <-done; return tk }
}

func asked(c *cluster) (nodes []int) {
	for _, d := range c.made() {
		nodes = append(nodes, d.node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// TestHomeIsAskedFirst: the replica that the session has read from is asked
// twice, then everybody who can help.
func TestHomeIsAskedFirst(t *testing.T) {
	t.Parallel()
	inBubble(t, 4, func(c *cluster) {
		l, home := atHome(c)
		wait := begun(c, l)
		for i, want := range [][]int{{home}, {home}} {
			if got := asked(c); !slices.Equal(got, want) {
				t.Errorf("ask %d went to %v, want %v", i, got, want)
			}
			c.look(home) // it has not caught up
		}
		if got := asked(c); len(got) < 2 {
			t.Errorf("the third ask went to %v", got)
		}
		other := home%3 + 1
		c.apply(200, other)
		c.look(home) // bounds what was seen there
		if tk := wait(); tk.Node != other || tk.reason != tidegate.ReasonCovered {
			t.Errorf("%+v", tk)
		}
	})
}

// TestHomeThatHangs: a replica that does not answer holds its sessions only for a
// moment.
func TestHomeThatHangs(t *testing.T) {
	t.Parallel()
	inBubble(t, 4, func(c *cluster) {
		l, home := atHome(c)
		c.made()
		wait := begun(c, l)
		if got := asked(c); !slices.Equal(got, []int{home}) {
			t.Fatalf("asked %v", got)
		}
		time.Sleep(2*homePatience + time.Microsecond)
		synctest.Wait()
		if got := asked(c); len(got) < 2 {
			t.Errorf("after %v only %v were asked", 2*homePatience, got)
		}
		other := home%3 + 1
		c.apply(200, 0, other) // the primary bounds what the silent one has shown
		if tk := wait(); tk.Node != other || tk.Role != tidegate.RoleReplica {
			t.Errorf("%+v", tk)
		}
	})
}
