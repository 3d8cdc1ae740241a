package promgate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidegatedb/tidegate"
)

// cluster holds the children of the vectors for one cluster, made once each: the
// vectors themselves take a lock and hash all labels.
type cluster struct {
	name string
	// classes and nodes are replaced when they change.
	classes atomic.Pointer[map[string]*class]
	nodes   atomic.Pointer[map[string]prometheus.Counter] // reads
	other   *class

	fallbacks, unproven byReason
	shadow              [roles]byReason
	waits               [roles]prometheus.Counter
	waitSeconds         [roles]prometheus.Observer
	queueSeconds        [roles]prometheus.Observer
	retries             [tidegate.RetryCauses]prometheus.Counter

	sessionless, refused, shed, stale prometheus.Counter
	historyChanged                    [tidegate.Verdicts]prometheus.Counter

	// gone are the nodes that were removed last, guarded by the collector's mu: a
	// read or a probe that was under way then must not bring their series back.
	gone []string
	// callSites are those of suspects that have series of their own, guarded by it, too.
	callSites map[string]bool
}

// class counts the reads of one class by role and reason, and how old the answers were.
type class struct {
	cluster, name string // as labels
	rest          bool   // what MaxClasses leaves out
	reads         [roles]byReason
	staleness     atomic.Pointer[staleness] // nil before the first relaxed read
}

// roles is the number of roles that a decision can name.
const roles = 3

// roleNames are by tidegate.Role. A decision that names none was refused.
var roleNames = [roles]string{tidegate.RoleUnknown: "none", tidegate.RolePrimary: "primary", tidegate.RoleReplica: "replica"}

// roleOf returns the role as an index.
func roleOf(r tidegate.Role) tidegate.Role {
	if r >= roles {
		return tidegate.RoleUnknown
	}
	return r
}

// causeOf returns the cause as an index. One that is none, or that nobody knows here,
// counts as the connection's, as it does in engine.Stats.
func causeOf(c tidegate.RetryCause) tidegate.RetryCause {
	if c == tidegate.RetryNone || int(c) >= tidegate.RetryCauses {
		return tidegate.RetryConnection
	}
	return c
}

// told are the verdicts that sessions are told.
var told = []tidegate.Verdict{tidegate.VerdictLost, tidegate.VerdictUnknown, tidegate.VerdictForeign, tidegate.VerdictAhead}

// verdictOf returns the verdict as an index. One that none is told counts as unknown.
func verdictOf(v tidegate.Verdict) tidegate.Verdict {
	if slices.Contains(told, v) {
		return v
	}
	return tidegate.VerdictUnknown
}

// maxReasons is more reasons than there are; others are not cached.
const maxReasons = 32

// byReason is a counter for each reason, made when it is first needed: most
// reasons never happen.
type byReason struct {
	of func(reason string) prometheus.Counter
	at [maxReasons]atomic.Pointer[prometheus.Counter]
}

func (b *byReason) inc(r tidegate.Reason) {
	if int(r) >= maxReasons {
		b.of(r.String()).Inc()
		return
	}
	p := b.at[r].Load()
	if p == nil {
		c := b.of(r.String())
		p = &c
		b.at[r].Store(p)
	}
	(*p).Inc()
}

// maxGone bounds the list of removed nodes: what is under way when a node is
// removed is over long before so many others are.
const maxGone = 64

// valid makes a name one that Prometheus takes, another one for every name: each
// byte that is no UTF-8 becomes U+FFFD and its value in hexadecimal, and U+FFFD
// itself, in the names that have it, U+FFFD and 00.
func valid(name string) string {
	if utf8.ValidString(name) && !strings.ContainsRune(name, utf8.RuneError) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, n := utf8.DecodeRuneInString(name)
		switch {
		case r != utf8.RuneError:
			b.WriteRune(r)
		case n == 1:
			fmt.Fprintf(&b, "\uFFFD%02x", name[0])
		default:
			b.WriteString("\uFFFD00")
		}
		name = name[n:]
	}
	return b.String()
}

// cluster returns the children of a cluster.
func (c *Collector) cluster(name string) *cluster {
	for _, k := range *c.clusters.Load() {
		if k.name == name {
			return k
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	list := *c.clusters.Load()
	if i := slices.IndexFunc(list, func(k *cluster) bool { return k.name == name }); i >= 0 {
		return list[i]
	}
	k := c.newCluster(name)
	list = append(slices.Clip(list), k)
	c.clusters.Store(&list)
	return k
}

// fallbackReasons are why a read that a replica may answer goes to the primary.
var fallbackReasons = []tidegate.Reason{
	tidegate.ReasonBehind, tidegate.ReasonPredicted, tidegate.ReasonNoReplica, tidegate.ReasonReplicaFailed, tidegate.ReasonHistoryChanged,
}

// newCluster makes what has few labels at once: a counter that begins with its
// first event hides it from rate().
func (c *Collector) newCluster(name string) *cluster {
	of := valid(name)
	k := &cluster{
		name: name, callSites: map[string]bool{}, sessionless: c.m.sessionless.WithLabelValues(of), refused: c.m.refused.WithLabelValues(of),
		shed: c.m.shed.WithLabelValues(of), stale: c.m.stale.WithLabelValues(of),
	}
	for _, v := range told {
		k.historyChanged[v] = c.m.historyChanged.WithLabelValues(of, v.String())
	}
	k.classes.Store(&map[string]*class{})
	k.nodes.Store(&map[string]prometheus.Counter{})
	k.other = c.newClass(of, other)
	k.other.rest = true
	k.fallbacks.of = func(reason string) prometheus.Counter { return c.m.fallbacks.WithLabelValues(of, reason) }
	k.unproven.of = func(reason string) prometheus.Counter { return c.m.unproven.WithLabelValues(of, reason) }
	for _, r := range fallbackReasons {
		k.fallbacks.of(r.String())
		k.unproven.of(r.String())
	}
	for i := 1; i < tidegate.RetryCauses; i++ { // a retry has a cause
		k.retries[i] = c.m.retries.WithLabelValues(of, tidegate.RetryCause(i).String())
	}
	for r, role := range roleNames {
		k.waits[r], k.waitSeconds[r] = c.m.waits.WithLabelValues(of, role), c.m.waitSeconds.WithLabelValues(of, role)
		k.queueSeconds[r] = c.m.queueSeconds.WithLabelValues(of, role)
		k.shadow[r].of = func(reason string) prometheus.Counter { return c.m.shadow.WithLabelValues(of, role, reason) }
	}
	return k
}

func (c *Collector) newClass(cluster, name string) *class {
	k := &class{cluster: cluster, name: name}
	for r, role := range roleNames {
		k.reads[r].of = func(reason string) prometheus.Counter { return c.m.reads.WithLabelValues(cluster, name, role, reason) }
	}
	return k
}

// class returns the children of a class.
func (c *Collector) class(k *cluster, name string) *class {
	m := *k.classes.Load()
	if x := m[name]; x != nil {
		return x
	}
	if len(m) >= c.cfg.MaxClasses {
		return k.other
	}
	return c.meetClass(k, name)
}

// meetClass makes the children of a class that is new.
func (c *Collector) meetClass(k *cluster, name string) *class {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := *k.classes.Load()
	switch {
	case m[name] != nil:
		return m[name]
	case len(m) >= c.cfg.MaxClasses:
		return k.other
	}
	m = maps.Clone(m)
	if m[name] = k.other; name != other {
		m[name] = c.newClass(valid(k.name), valid(name))
	}
	k.classes.Store(&m)
	return m[name]
}

// nodeReads returns the counter of a node's reads, nil when the node is gone.
func (c *Collector) nodeReads(k *cluster, name string) prometheus.Counter {
	if x := (*k.nodes.Load())[name]; x != nil {
		return x
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := *k.nodes.Load()
	if m[name] != nil || slices.Contains(k.gone, name) {
		return m[name]
	}
	m = maps.Clone(m)
	m[name] = c.m.nodeReads.WithLabelValues(valid(k.name), valid(name))
	k.nodes.Store(&m)
	return m[name]
}

// removed forgets a node.
func (c *Collector) removed(k *cluster, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := maps.Clone(*k.nodes.Load())
	delete(m, name)
	k.nodes.Store(&m)
	k.gone = append(k.gone, name)
	if len(k.gone) > maxGone {
		k.gone = slices.Delete(k.gone, 0, 1)
	}
	c.m.forget(valid(k.name), valid(name))
}

// added notes that a node is there again.
func (c *Collector) added(k *cluster, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.gone = slices.DeleteFunc(k.gone, func(n string) bool { return n == name })
}
