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
