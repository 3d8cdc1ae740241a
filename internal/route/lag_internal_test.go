package route

import (
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// Somebody without a mark may have forgotten one: replicas of any age would not do.
func TestLongestLag(t *testing.T) {
	t.Parallel()
	fresh := func() *ledger.Ledger { return ledger.New("main", 7, nil) }
	for name, c := range map[string]struct {
		l     func() *ledger.Ledger
		in    func(c *cluster)
		while func(c *cluster)
		want  outcome
	}{
		"young enough":                     {fresh, func(*cluster) { time.Sleep(59 * time.Second) }, nil, outcome{1, tidegate.ReasonCovered, false, 0}},
		"too old":                          {fresh, func(*cluster) { time.Sleep(time.Minute) }, nil, outcome{0, tidegate.ReasonBehind, false, 20 * ms}},
		"a look at both sides proves it":   {fresh, func(c *cluster) { c.answering = true; time.Sleep(2 * time.Minute) }, nil, outcome{1, tidegate.ReasonCovered, false, 0}},
		"a look proves that it is too old": {fresh, func(c *cluster) { c.apply(200, 0); c.answering = true; time.Sleep(2 * time.Minute) }, nil, outcome{0, tidegate.ReasonBehind, false, 20 * ms}},
		"it catches up meanwhile": {fresh, func(c *cluster) { c.apply(200, 0); time.Sleep(2 * time.Minute) }, func(c *cluster) {
			time.Sleep(3*ms - 4*time.Microsecond)
			c.look(0)
			c.apply(200, 1)
		}, outcome{1, tidegate.ReasonCovered, false, 3*ms - time.Microsecond}},
		"a mark is enough": {func() *ledger.Ledger { return session(90) }, func(*cluster) { time.Sleep(2 * time.Minute) }, nil, outcome{1, tidegate.ReasonCovered, false, 0}},
		"a session that reads there stays": {func() *ledger.Ledger {
			return ledger.New("main", 7, []tidegate.Mark{{Cluster: "main", Epoch: epoch, Seen: []tidegate.Incarnation{11}}})
		}, func(*cluster) { time.Sleep(2 * time.Minute) }, nil, outcome{1, tidegate.ReasonStayed, false, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 2, func(cl *cluster) {
				c.in(cl)
				if c.while != nil {
					cl.others.Go(func() { c.while(cl) })
				}
				tk := &Ticket{Ledger: c.l()}
				cl.begin(cl.t.Context(), tk, c.want)
				cl.router.Done(tk, mono.Now())
				cl.idle()
			})
		})
	}
}
