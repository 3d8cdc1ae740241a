package tidegate

import (
	"fmt"
	"time"
)

// Class says what a read needs. It is named and declared once, so that the
// choice can be reviewed where it is made and found in metrics by its name.
//
// The zero Class is [Causal]. A Class is immutable, comparable and safe for
// concurrent use.
type Class struct{ c *class }

// Causal is the default class: the read sees the session's own writes and never
// an older state than the session has seen before.
var Causal = Class{}

// Need is the kind of a [Class].
type Need uint8

// The kinds of a class, weakest requirement last.
const (
	// NeedCausal is read-your-writes and monotonic reads.
	NeedCausal Need = iota
	// NeedStrong is the primary: a decision is based on the answer.
	NeedStrong
	// NeedRelaxed is any state within a staleness budget.
	NeedRelaxed
)

// String returns "causal", "strong" or "relaxed".
func (n Need) String() string {
	switch n {
	case NeedStrong:
		return "strong"
	case NeedRelaxed:
		return "relaxed"
	default:
		return "causal"
	}
}

type class struct {
	need             Need
	name, why, owner string
	wait             time.Duration
	waitSet          bool
	budget           time.Duration
	anyStaleness     bool
	breach           Breach
	breaches         int // options that say what to do on one
	shedFirst        bool
	placed           bool // place says anything
	place            placement
	err              error // of the declaration
}

var causalClass = class{name: "causal", why: "sees the session's writes and what it saw before"}

func (c Class) get() *class {
	if c.c == nil {
		return &causalClass
	}
	return c.c
}

// A StrongOption is an option that makes sense for a strong class.
type StrongOption interface{ applyStrong(*class) }

// A CausalOption is an option that makes sense for a causal class.
type CausalOption interface{ applyCausal(*class) }

// A RelaxedOption is an option that makes sense for a relaxed class.
type RelaxedOption interface{ applyRelaxed(*class) }

// OwnerOption is returned by [Owner]; every class takes it.
type OwnerOption string

func (o OwnerOption) applyStrong(c *class)  { c.owner = string(o) }
func (o OwnerOption) applyCausal(c *class)  { c.owner = string(o) }
func (o OwnerOption) applyRelaxed(c *class) { c.owner = string(o) }

// Owner names who answers for a class, for reviews and reports.
func Owner(name string) OwnerOption { return OwnerOption(name) }

// WaitOption is returned by [Wait]. A strong class does not take it: its reads
// do not wait for a replica.
type WaitOption time.Duration

func (o WaitOption) applyCausal(c *class)  { c.setWait(time.Duration(o)) }
func (o WaitOption) applyRelaxed(c *class) { c.setWait(time.Duration(o)) }

func (c *class) setWait(d time.Duration) { c.wait, c.waitSet = d, true }

// Wait sets how long a read of the class may wait for a replica to qualify
// before it goes to the primary. Zero means not at all. Without it the cluster's
// default holds. Where a replica is expected to need longer a causal read may wait that long:
// up to half a second or 25 times as long, whichever is less, or five times as long if that is more.
func Wait(d time.Duration) WaitOption { return WaitOption(d) }

// Budget is how old the answer to a relaxed read may be.
type Budget struct {
	d   time.Duration
	any bool
}

// Within allows an answer that was current at most d ago. The age is proven
// without comparing clocks: it is counted from the moment at which this process
// asked the primary for a position that the replica now covers.
func Within(d time.Duration) Budget { return Budget{d: d} }

// AnyStaleness allows an answer of any age. It has to be spelled out.
func AnyStaleness() Budget { return Budget{any: true} }

// Breach is what a relaxed read does whose budget no replica can be proven to keep
// within the wait.
type Breach uint8

const (
	// BreachPrimary reads from the primary, within the cluster's fallback limit; beyond
	// it the read fails with an [OverloadedError].
	BreachPrimary Breach = iota
	// BreachStaleWhenShed reads from the primary, and beyond the limit from a replica;
	// the decision says that the answer is stale.
	BreachStaleWhenShed
	// BreachStale reads from a replica, however old its answer; the decision says that it
	// is stale.
	BreachStale
	// BreachFail fails with a [NotFreshError].
	BreachFail
)

// String returns "primary", "stale-when-shed", "stale" or "fail".
func (b Breach) String() string {
	switch b {
	case BreachStaleWhenShed:
		return "stale-when-shed"
	case BreachStale:
		return "stale"
	case BreachFail:
		return "fail"
	default:
		return "primary"
	}
}

// BreachOption is returned by [ServeStale], [StaleWhenShed] and [FailWhenStale].
type BreachOption Breach

func (o BreachOption) applyRelaxed(c *class) { c.breach, c.breaches = Breach(o), c.breaches+1 }

// ServeStale lets a relaxed read be answered by a replica that is older than the
// budget, or of unknown age, rather than by the primary. [Decision].Stale marks it.
func ServeStale() BreachOption { return BreachOption(BreachStale) }

// StaleWhenShed lets a relaxed read be answered by such a replica when as many reads as
// may have fallen back to the primary. [Decision].Stale marks it.
func StaleWhenShed() BreachOption { return BreachOption(BreachStaleWhenShed) }

// FailWhenStale lets a relaxed read fail rather than use the primary, also where there is no
// replica for its class at all.
func FailWhenStale() BreachOption { return BreachOption(BreachFail) }

// ShedFirstOption is returned by [ShedFirst]. A strong class does not take it: its reads
// are not on the primary in a replica's place.
type ShedFirstOption struct{}

func (ShedFirstOption) applyCausal(c *class)  { c.shedFirst = true }
func (ShedFirstOption) applyRelaxed(c *class) { c.shedFirst = true }

// ShedFirst makes reads of the class go without the primary while too large a share of the
// cluster's reads wants it for want of a replica (FallbackShare in the database's
// configuration). They fail with an [OverloadedError] then, or are answered by a replica as
// [StaleWhenShed] says.
func ShedFirst() ShedFirstOption { return ShedFirstOption{} }

// Strong declares a class for reads whose answer decides something: presence or
// absence, a permission, money, anything that a write will be based on. They are
// answered by the primary.
func Strong(name, why string, opts ...StrongOption) Class {
	c := &class{need: NeedStrong, name: name, why: why}
	for _, o := range opts {
		o.applyStrong(c)
	}
	return declare(c)
}

// NewCausal declares a causal class of its own, to give it a name, an owner or
// its own wait.
func NewCausal(name, why string, opts ...CausalOption) Class {
	c := &class{need: NeedCausal, name: name, why: why}
	for _, o := range opts {
		o.applyCausal(c)
	}
	return declare(c)
}

// Relaxed declares a class for reads that may be as old as their budget says.
// A replica that cannot prove to be within it is not used.
func Relaxed(name, why string, budget Budget, opts ...RelaxedOption) Class {
	c := &class{need: NeedRelaxed, name: name, why: why, budget: budget.d, anyStaleness: budget.any}
	for _, o := range opts {
		o.applyRelaxed(c)
	}
	return declare(c)
}

// Need returns what the class asks for.
func (c Class) Need() Need { return c.get().need }

// Name returns the class's name; "causal" for the zero Class.
func (c Class) Name() string { return c.get().name }

// Why returns the reason the class was declared with.
func (c Class) Why() string { return c.get().why }

// Owner returns who answers for the class, or "".
func (c Class) Owner() string { return c.get().owner }

// Wait returns the class's own wait, or fallback when it has none.
func (c Class) Wait(fallback time.Duration) time.Duration {
	if k := c.get(); k.waitSet {
		return k.wait
	}
	return fallback
}

// Budget returns how old the answer of a relaxed read may be, and whether any
// age will do. It is zero for other classes.
func (c Class) Budget() (d time.Duration, anyAge bool) {
	k := c.get()
	return k.budget, k.anyStaleness
}

// OnBreach returns what a relaxed read does when its budget cannot be kept.
func (c Class) OnBreach() Breach { return c.get().breach }

// ShedFirst reports whether the class was declared with [ShedFirst].
func (c Class) ShedFirst() bool { return c.get().shedFirst }

// Err returns an error that wraps [ErrClass] when the declaration cannot be
// used, and nil otherwise. Reads of such a class fail with it.
func (c Class) Err() error { return c.get().err }

// check returns what is wrong with the declaration.
func (c *class) check() error {
	switch {
	case c.name == "":
		return fmt.Errorf("%w: a %s class without a name; give it one", ErrClass, c.need)
	case c.why == "":
		return fmt.Errorf("%w: class %q says no reason; say why it needs what it needs", ErrClass, c.name)
	case c.wait < 0:
		return fmt.Errorf("%w: class %q has the negative wait %v; use zero for no wait", ErrClass, c.name, c.wait)
	case c.need == NeedRelaxed && !c.anyStaleness && c.budget <= 0:
		return fmt.Errorf("%w: class %q has the budget %v; use a positive duration or AnyStaleness()", ErrClass, c.name, c.budget)
	case c.breaches > 1:
		return fmt.Errorf("%w: class %q says more than once what to do when its budget cannot be kept; leave one of ServeStale, StaleWhenShed and FailWhenStale", ErrClass, c.name)
	case c.shedFirst && (c.breach == BreachStale || c.breach == BreachFail):
		return fmt.Errorf("%w: class %q does without the primary when its budget cannot be kept (%v), so that ShedFirst changes nothing; leave out one of them", ErrClass, c.name, c.breach)
	case c.breaches > 0 && c.anyStaleness:
		return fmt.Errorf("%w: class %q allows any staleness, so it has no budget to be broken; leave out %v", ErrClass, c.name, c.breach)
	}
	return c.checkPlace()
}

// String returns the class's name and need.
func (c Class) String() string {
	k := c.get()
	if k.name == k.need.String() {
		return k.name
	}
	return k.name + " (" + k.need.String() + ")"
}
