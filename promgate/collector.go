package promgate

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// Source is where the gauges come from, such as a pgxgate.DB.
type Source interface {
	// Status returns what is known of the cluster now.
	Status() engine.Status
}

// Collector counts what its hook is told and, when it is scraped, what the
// databases that it watches know. Register it with a prometheus.Registerer. It is
// safe for concurrent use.
type Collector struct {
	cfg   Config
	m     metrics
	s     scraped
	begun time.Time

	// clusters is what has been heard of so far. The list and what hangs on it is
	// replaced when it grows, so that a decision takes no lock.
	clusters atomic.Pointer[[]*cluster]

	mu      sync.Mutex // serialises growing and shrinking, and guards watched
	watched []*watch
}

type watch struct {
	cluster string
	source  Source
}

var _ prometheus.Collector = (*Collector)(nil)

// New returns a collector that has heard of no cluster yet.
func New(cfg Config) *Collector {
	c := &Collector{cfg: cfg.withDefaults(), m: newMetrics(), s: newScraped(), begun: time.Now()}
	c.clusters.Store(&[]*cluster{})
	return c
}

// Hook returns the hook for pgxgate.Config.Hooks or another adapter's.
func (c *Collector) Hook() tidegate.Hook {
	return tidegate.Hook{Decided: c.decided, Probed: c.probed, Changed: c.changed, Suspected: c.suspected}
}

// Watch makes the gauges of a database part of every scrape, until stop is called:
// do that when the database is closed. A database of the same cluster that was
// watched before is not watched any more.
func (c *Collector) Watch(s Source) (stop func()) {
	w := &watch{cluster: s.Status().Cluster, source: s}
	c.cluster(w.cluster)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(func(o *watch) bool { return o.cluster == w.cluster })
	c.watched = append(c.watched, w)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.drop(func(o *watch) bool { return o == w })
	}
}

// drop replaces the list by one without those watches; c.mu is held.
func (c *Collector) drop(which func(*watch) bool) {
	var kept []*watch
	for _, w := range c.watched {
		if !which(w) {
			kept = append(kept, w)
		}
	}
	c.watched = kept
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range c.m.all() {
		v.Describe(ch)
	}
	for _, d := range c.s.all() {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, v := range c.m.all() {
		v.Collect(ch)
	}
	c.collectClasses(ch)
	c.mu.Lock()
	watched := append([]*watch(nil), c.watched...)
	c.mu.Unlock()
	for _, w := range watched {
		c.s.collect(ch, w.source.Status())
	}
}
