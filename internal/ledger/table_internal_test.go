package ledger

import (
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
)

var (
	first  = tidegate.Epoch{System: 1, Line: 1}
	second = tidegate.Epoch{System: 1, Line: 2}
)

const none = freshness.NoNode

// Incarnations of the nodes 1 and 2, and two that no node has.
const (
	idA, idB          tidegate.Incarnation = 11, 12
	idGone, idForeign tidegate.Incarnation = 91, 92
	idPrimary         tidegate.Incarnation = 10
)

func at(n uint64) tidegate.Position     { return tidegate.At(n) }
func beyond(n uint64) tidegate.Position { return tidegate.Beyond(n) }

// seenNode is a node of a table: what the newest look at it said.
type seenNode struct {
	id      tidegate.Incarnation
	primary bool
	epoch   tidegate.Epoch
	applied tidegate.Position
	bound   tidegate.Position
	ceiling tidegate.Position
	head    tidegate.Position
	sent    int64
	down    bool
	loose   bool
	// asked and running are about server processes.
	asked, running []uint64
}

// primaryNode has flushed and shown everything up to a position.
func primaryNode(upTo uint64, sent int64) seenNode {
	return seenNode{id: idPrimary, primary: true, epoch: first, applied: at(upTo), bound: at(upTo), ceiling: at(upTo), head: at(upTo), sent: sent}
}

// replicaNode has applied everything up to a position and nothing beyond.
func replicaNode(id tidegate.Incarnation, upTo uint64, sent int64) seenNode {
	return seenNode{id: id, epoch: first, applied: at(upTo), bound: at(upTo), sent: sent}
}

// table is what a watcher would make of the nodes. The epoch is the reachable
// primary's, or the first.
func table(nodes ...seenNode) *freshness.Table {
	t := &freshness.Table{Primary: none, Epoch: first, Nodes: make([]freshness.Node, len(nodes))}
	for i, s := range nodes {
		if s.primary {
			t.Primary, t.Epoch = i, s.epoch
		}
		o := &freshness.Observation{
			Sent: s.sent, Incarnation: s.id, Role: tidegate.RoleReplica, Epoch: s.epoch,
			Applied: s.applied, Bound: s.bound, Loose: s.loose, Ceiling: s.ceiling, Head: s.head, Asked: s.asked, Running: s.running,
		}
		if s.primary {
			o.Role = tidegate.RolePrimary
		}
		t.Nodes[i] = freshness.Node{Applied: s.applied, Incarnation: s.id, Sent: s.sent, Epoch: s.epoch, Obs: o}
		if s.down {
			t.Nodes[i].Err = tidegate.ErrClosed
		}
	}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		n.Usable = n.Err == nil && n.Obs.Role == tidegate.RoleReplica && n.Epoch == t.Epoch
	}
	return t
}

// usual is a healthy cluster at 100, asked at the time.
func usual(sent int64) *freshness.Table {
	return table(primaryNode(100, sent), replicaNode(idA, 100, sent), replicaNode(idB, 100, sent))
}

// marked is a session that has written up to a position of the first history.
func marked(upTo uint64) *Ledger {
	l := New("main", 1, nil)
	l.Reached(first, at(upTo))
	return l
}

// read makes the session read at a node, until the time.
func read(l *Ledger, t *freshness.Table, node int, end int64) {
	dispatch(l, t, node)
	l.Done(t.Nodes[node].Incarnation, end)
}

func dispatch(l *Ledger, t *freshness.Table, node int) {
	l.Lock()
	defer l.Unlock()
	l.Dispatch(t, node, t.Nodes[node].Incarnation)
}

// settle settles under the lock and returns the asks too.
func settle(l *Ledger, t *freshness.Table) (Status, Asks) {
	l.Lock()
	defer l.Unlock()
	var asks Asks
	s := l.Settle(t, &asks)
	return s, asks
}

// ids lists what the session has seen and not bounded.
func ids(l *Ledger) []tidegate.Incarnation {
	var all []tidegate.Incarnation
	for _, e := range l.seen {
		all = append(all, e.id)
	}
	return all
}

// needs checks what the session requires.
func needs(t *testing.T, l *Ledger, mark, shown tidegate.Position) {
	t.Helper()
	if l.mark != mark || l.shown != shown {
		t.Errorf("the mark is %v and shown %v, want %v and %v", l.mark, l.shown, mark, shown)
	}
}

// wants checks the status and the nodes that are asked, as a bit set.
func wants(t *testing.T, l *Ledger, table *freshness.Table, status Status, nodes uint64) {
	t.Helper()
	got, asks := settle(l, table)
	if got != status || asks.Nodes != nodes {
		t.Errorf("status %d, asks %03b; want %d, %03b", got, asks.Nodes, status, nodes)
	}
}
