package engine

import (
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/route"
)

// The facts an adapter supplies; see package freshness for their meaning.
type (
	// Observation is what one probe of one node said.
	Observation = freshness.Observation
	// Source is how one node is asked.
	Source = freshness.Source
	// Lineage is how a primary's history came about.
	Lineage = freshness.Lineage
	// Branch is a line before it.
	Branch = freshness.Branch
	// Prover is a Source that can prove what a primary shows.
	Prover = freshness.Prover
	// Snapshot describes what a primary shows.
	Snapshot = freshness.Snapshot
	// Transactions is a list of transactions; nil is the empty list.
	Transactions = freshness.Transactions
)

// MaxNodes is the number of nodes that one cluster may have.
const MaxNodes = route.MaxNodes

// Node is one server of the cluster. Its role is discovered, never configured.
type Node struct {
	// Name is what decisions and logs call the node; unique in the cluster.
	Name string
	// Source asks the node. It is the node's identity in SetNodes, so it must be
	// comparable: a pointer.
	Source Source
	// Zone is where the node is, or "".
	Zone string
	// Weight is the node's share of reads relative to the others. Zero means 1.
	Weight int
	// Tags are what classes require or prefer ([tidegate.Require], [tidegate.Prefer]): at
	// most 16, each of at most 64 bytes of UTF-8. They concern the node as a replica only:
	// whoever is the primary serves what goes to the primary.
	Tags []string
	// Dedicated keeps the node's reads as a replica for classes that require or prefer one
	// of its Tags. Without it any class may use the node.
	Dedicated bool
}

// Config configures a [Core].
type Config struct {
	// Cluster names the cluster in tokens: 1 to 32 bytes, the same on every
	// instance.
	Cluster string
	// Nodes lists the servers in any order.
	Nodes []Node
	// Zone is where this process is; reads prefer nodes of the same zone. "" means
	// no preference.
	Zone string
	// Wait is how long a causal or relaxed read may wait for a replica to
	// qualify, unless its class says otherwise. Zero means 20ms; negative means
	// not at all. Where a replica is expected to need longer a causal read may wait that
	// long, once after each write, rather than put its session on the primary: up to half a
	// second or 25 times as long, whichever is less, or five times as long if that is more.
	Wait time.Duration
	// PrimaryWait is how long a write, and a read that belongs on the primary, may wait for
	// one while none is known, or none takes connections: during a failover. Zero means 1s;
	// negative means not at all. The caller's deadline clips it. Nothing that was sent
	// is sent again.
	PrimaryWait time.Duration
	// Foreign says what becomes of causal and strong reads whose session must see something of
	// another database system, or that is ahead of the cluster's history: after a restore, or
	// with a token from elsewhere. The zero value is [tidegate.ForeignPrimary].
	Foreign tidegate.ForeignPolicy
	// ProofWait is how long a read on the primary may wait for the proof that the
	// primary shows what the session has seen. Zero means 1s. The caller's
	// deadline clips it.
	ProofWait time.Duration
	// ProbeInterval is the time between two probes of a node that nobody asked
	// for, spread by a tenth. Zero means 100ms.
	ProbeInterval time.Duration
	// ProbeTimeout bounds one probe, connecting included. Zero means 1s.
	ProbeTimeout time.Duration
	// DemandRate bounds the probes per second of one node that reads and writes
	// ask for. Zero means 250. Divide it by the number of instances: a node sees
	// their sum.
	DemandRate float64
	// DemandBurst is how many of them may follow each other at once. Zero means 8.
	DemandBurst int
	// LongestLag is how old a replica's state may be for a session that has neither
	// written nor read yet, or whose token has ended: what it saw then is there, if tokens
	// live longer than this ([tidegate.KeyringConfig]). Zero means one hour; negative
	// means any age.
	//
	// It is the outermost bound, too: a replica that is proven to be older, or whose age
	// could not be proven for so long while the primary answers, is left out, until it is
	// younger than half. Only relaxed classes with AnyStaleness use it all the same, and those
	// that say so ([tidegate.MinServing]). A class with a larger budget is refused.
	LongestLag time.Duration
	// MostLag is how far a replica may be behind, in the engine's unit of positions, before
	// it is left out in the same way: for all of those reads, also those whose own budget or
	// mark it would still keep. Zero means any distance.
	MostLag uint64
	// Fallbacks bounds the causal and relaxed reads that are on the primary at one time
	// for want of a replica. Others queue, for FallbackWait at most and half of what
	// their context leaves; then they fail with a [tidegate.OverloadedError], or are
	// answered as their class says. Strong reads, reads without a session and writes
	// are not bounded. Zero means no bound: an adapter knows its pools.
	//
	// This is the most. The bound follows how long this process's own work on the primary
	// takes: the writes that the adapter tells of ([Core.Sent]), and reads that are not there
	// in a replica's place. While reads fall back it shrinks when more than one of ten takes a
	// quarter longer than nine of ten did before, down to one read for a 32nd of the time,
	// and grows when they do not. Before, it is an eighth of the most, and at least one.
	Fallbacks int
	// FixedFallbacks keeps the bound at Fallbacks, whatever becomes of that work.
	FixedFallbacks bool
	// FallbackWait is how long a read may queue for the primary. Zero means 200ms.
	FallbackWait time.Duration
	// FallbackShare is the part of the reads which replicas are there for that may want the
	// primary in their place within the last FallbackWindow: beyond it hooks are told
	// (FallbacksHigh), and classes with [tidegate.ShedFirst] go without the primary until it
	// is less than half. At least 20 reads have to want it. Zero means half; 1 or
	// more, or less than zero, means never.
	FallbackShare float64
	// FallbackWindow is how long back that is counted, 100ms to 1h. Zero means 10s.
	FallbackWindow time.Duration
	// Rollout says which reads are routed to replicas. The zero Rollout routes all;
	// [Core.SetRollout] changes it.
	Rollout tidegate.Rollout
	// Suspects makes writes be told of ([tidegate.Hook].Suspected) whose session has read
	// from a replica before: a read on which a write is based belongs into the write's
	// transaction, or into a strong class. It looks at the stack of each such read and write,
	// which costs a microsecond or two: for tests and trials.
	Suspects bool
	// Hooks are told of decisions, probes and changes, one after another.
	Hooks []tidegate.Hook
	// Logger gets every [tidegate.Change] but NodeAdded at the start. Nil means
	// silence.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.Wait, 20*time.Millisecond)
	set(&c.ProofWait, time.Second)
	set(&c.PrimaryWait, time.Second)
	set(&c.LongestLag, time.Hour)
	set(&c.FallbackWait, 200*time.Millisecond)
	set(&c.FallbackWindow, 10*time.Second)
	if c.FallbackShare == 0 {
		c.FallbackShare = .5
	}
	set(&c.ProbeInterval, 100*time.Millisecond)
	set(&c.ProbeTimeout, time.Second)
	if c.DemandRate == 0 {
		c.DemandRate = 250
	}
	if c.DemandBurst == 0 {
		c.DemandBurst = 8
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Nodes = complete(c.Nodes)
	return c
}

// complete returns the nodes as they are kept.
func complete(nodes []Node) []Node {
	nodes = append([]Node(nil), nodes...)
	for i := range nodes {
		nodes[i].Tags = slices.Clone(nodes[i].Tags)
		if nodes[i].Weight == 0 {
			nodes[i].Weight = 1
		}
	}
	return nodes
}

// equal reports whether the node is given as the other one was.
func (n *Node) equal(o *Node) bool {
	return n.Name == o.Name && n.Source == o.Source && n.Zone == o.Zone && n.Weight == o.Weight && n.Dedicated == o.Dedicated && slices.Equal(n.Tags, o.Tags)
}

// policy is what the router has to know of the node.
func (n *Node) policy() route.Node {
	return route.Node{Name: n.Name, Zone: n.Zone, Weight: n.Weight, Tags: n.Tags, Dedicated: n.Dedicated, Of: n.Source}
}

func (c Config) validate() error {
	if n := len(c.Cluster); n == 0 || n > tidegate.MaxClusterName {
		return bad("Cluster", "is %q; use 1 to %d bytes, the same on every instance", c.Cluster, tidegate.MaxClusterName)
	}
	if err := validateNodes(c.Nodes); err != nil {
		return err
	}
	for _, d := range []struct {
		field string
		v     time.Duration
	}{{"ProofWait", c.ProofWait}, {"FallbackWait", c.FallbackWait}, {"ProbeInterval", c.ProbeInterval}, {"ProbeTimeout", c.ProbeTimeout}} {
		if d.v < time.Millisecond || d.v > time.Hour {
			return bad(d.field, "is %v; use 1ms to 1h", d.v)
		}
	}
	if c.PrimaryWait > time.Hour {
		return bad("PrimaryWait", "is %v; use at most 1h, or less than zero to fail at once", c.PrimaryWait)
	}
	if !c.Foreign.Valid() {
		return bad("Foreign", "is %v; use ForeignPrimary, ForeignError or ForeignIgnore", c.Foreign)
	}
	if c.Wait > time.Hour {
		return bad("Wait", "is %v; use at most 1h", c.Wait)
	}
	if 0 < c.LongestLag && c.LongestLag < 100*time.Millisecond || c.LongestLag > 365*24*time.Hour {
		return bad("LongestLag", "is %v; use 100ms to a year, below the lifetime of tokens, or less than zero for any age", c.LongestLag)
	}
	if c.Fallbacks < 0 {
		return bad("Fallbacks", "is %d; use a positive number of reads, or zero for no bound", c.Fallbacks)
	}
	if math.IsNaN(c.FallbackShare) {
		return bad("FallbackShare", "is not a number; use 0 to 1, or zero for half")
	}
	if c.FallbackWindow < 100*time.Millisecond || c.FallbackWindow > time.Hour {
		return bad("FallbackWindow", "is %v; use 100ms to 1h, or zero for 10s", c.FallbackWindow)
	}
	if !(c.DemandRate > 0) || c.DemandRate > 1e5 {
		return bad("DemandRate", "is %v probes per second; use more than 0 and at most 100000", c.DemandRate)
	}
	if c.DemandBurst < 1 || c.DemandBurst > 1000 {
		return bad("DemandBurst", "is %d; use 1 to 1000", c.DemandBurst)
	}
	return nil
}

// admits returns an error that wraps tidegate.ErrClass if a class allows more than the
// cluster ever does.
func (c *Config) admits(class tidegate.Class) error {
	if d, anyAge := class.Budget(); !anyAge && c.LongestLag > 0 && d > c.LongestLag {
		return fmt.Errorf("%w: class %q has the budget %v, and replicas that are older than LongestLag, %v, are left out; lower the budget, or raise LongestLag",
			tidegate.ErrClass, class.Name(), d, c.LongestLag)
	}
	return nil
}

func bad(field, format string, args ...any) error {
	return fmt.Errorf("%w: Config.%s %s", tidegate.ErrConfig, field, fmt.Sprintf(format, args...))
}

func validateNodes(nodes []Node) error {
	if n := len(nodes); n == 0 || n > MaxNodes {
		return bad("Nodes", "has %d nodes; give 1 to %d", n, MaxNodes)
	}
	names := map[string]bool{}
	for i, n := range nodes {
		field := fmt.Sprintf("Nodes[%d]", i)
		switch {
		case n.Name == "":
			return bad(field+".Name", "is empty; name the node")
		case names[n.Name]:
			return bad(field+".Name", "repeats %q; use unique names", n.Name)
		case n.Source == nil:
			return bad(field+".Source", "is nil; an adapter has to supply it")
		case !reflect.ValueOf(n.Source).Comparable():
			return bad(field+".Source", "is a %T, which cannot be compared; use a pointer", n.Source)
		case slices.ContainsFunc(nodes[:i], func(o Node) bool { return o.Source == n.Source }):
			return bad(field+".Source", "is that of another node, too; give each node a source of its own")
		case !utf8.ValidString(n.Name):
			return bad(field+".Name", "is %q; use valid UTF-8, it becomes a metric's label", n.Name)
		case n.Weight < 0 || n.Weight > 1000:
			return bad(field+".Weight", "is %d; use 1 to 1000", n.Weight)
		case n.Dedicated && len(n.Tags) == 0:
			return bad(field+".Dedicated", "is set without Tags, so no class could use the node; tag it, or leave Dedicated out")
		}
		if err := tidegate.CheckTags(n.Tags); err != nil {
			return bad(field+".Tags", "%v", err)
		}
		names[n.Name] = true
	}
	return nil
}
