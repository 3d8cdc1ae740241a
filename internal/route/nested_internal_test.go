package route

import (
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
)

// A read that begins while another one of its session is open has to see what that
// one has shown by then, also when it first stays where that one reads, and then
// has to leave because its connection belongs to a newer life of the node.
func TestNestedReadThatCannotStay(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		l := session(40)
		outer := &Ticket{Ledger: l}
		c.begin(t.Context(), outer, outcome{node: 1, reason: tidegate.ReasonCovered})
		time.Sleep(time.Millisecond) // rows of a state at 100 are delivered
		nested := &Ticket{Ledger: l}
		c.begin(t.Context(), nested, outcome{node: 1, reason: tidegate.ReasonStayed})
		c.say(func(says []freshness.Observation, _ []error) {
			says[1].Incarnation, says[1].Applied, says[1].Bound = 99, tidegate.At(50), tidegate.At(50)
		})
		c.look(1)
		if c.router.Reconsider(t.Context(), nested, func(o *freshness.Observation) bool { return o.Incarnation == 99 }) {
			t.Errorf("it reads at %v, and the session has been shown 100", nested.Proof.Applied)
		}
		c.router.Done(outer, 1)
	})
}

// A session whose own reads crowd its replica waits for what it takes to leave it:
// with reads in flight all the time it never is ready to. One that others crowd out
// stays, rather than wait because of them.
func TestWhoCrowdsItsReplicaLeavesIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		own    int
		leaves bool
	}{{1, false}, {littleLoaded, false}, {littleLoaded + 1, true}} {
		inBubble(t, 3, func(cl *cluster) {
			cl.answering = true
			cl.asked = func(demand) { cl.tick() } // the look comes later than the question
			l := session(40)
			l.Merge([]tidegate.Mark{{Cluster: "main", Epoch: epoch, Seen: []tidegate.Incarnation{cl.router.facts.Table().Nodes[1].Incarnation}}})
			for range c.own {
				cl.begin(cl.t.Context(), &Ticket{Ledger: l}, outcome{node: 1, reason: tidegate.ReasonStayed})
			}
			cl.router.slots[1].flying.Add(20)
			cl.tick()
			tk := &Ticket{Ledger: l}
			if err := cl.router.Begin(cl.t.Context(), tk); err != nil {
				cl.t.Fatal(err)
			}
			if left := tk.Node == 2; left != c.leaves || left != (tk.waited > 0) {
				cl.t.Errorf("with %d reads in flight the next one goes to node %d after %v", c.own, tk.Node, time.Duration(tk.waited))
			}
		})
	}
}
