package promgate

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what the hook counts into.
type metrics struct {
	reads, nodeReads, fallbacks, waits, unproven, sessionless, refused, historyChanged, retries, shadow, shed, stale, probes, changes *prometheus.CounterVec

	stalenessUnknown, suspects *prometheus.CounterVec

	waitSeconds, queueSeconds, readStaleness, probeSeconds, lagBytes, stalenessSeconds *prometheus.HistogramVec
}

func newMetrics() metrics {
	return metrics{
		reads:          counter("reads_total", "Decisions on reads: where they went and why.", "cluster", "class", "role", "reason"),
		nodeReads:      counter("node_reads_total", "Decisions on reads by node.", "cluster", "node"),
		fallbacks:      counter("replica_fallback_total", "Causal and relaxed reads that went to the primary because no replica could answer.", "cluster", "reason"),
		waits:          counter("read_waits_total", "Reads that waited for proof, by where they went then.", "cluster", "role"),
		unproven:       counter("reads_unproven_total", "Reads that were answered without proof.", "cluster", "reason"),
		sessionless:    counter("reads_sessionless_total", "Causal reads without a session, which the primary answers.", "cluster"),
		refused:        counter("reads_refused_total", "Reads that failed because no node could be proven to have what they need.", "cluster"),
		shed:           counter("reads_shed_total", "Reads that failed because no replica qualified and the primary had no room for them.", "cluster"),
		stale:          counter("reads_stale_total", "Relaxed reads that were answered beyond their budget, as their class allows.", "cluster"),
		historyChanged: counter("reads_history_changed_total", "Reads whose session was told that what it must see is not in the history any more, or that nobody can say.", "cluster", "verdict"),
		retries:        counter("read_retries_total", "Decisions that were made again after an attempt of the read had failed, by why it had.", "cluster", "cause"),
		shadow:         counter("shadow_reads_total", "Where reads would have gone without a wait while the rollout is shadow.", "cluster", "role", "reason"),
		probes:         counter("probes_total", "Probes by their result.", "cluster", "node", "result"),
		changes:        counter("changes_total", "Changes of roles, lives, reachability, histories, nodes and the rollout.", "cluster", "kind"),

		stalenessUnknown: counter("read_staleness_unknown_total", "Relaxed reads that a replica answered and of which nothing was proven.", "cluster", "class"),
		suspects:         counter("suspect_writes_total", "Writes whose session had read from a replica before, by where the application writes.", "cluster", "call_site"),

		// The default wait is 20 ms and that for a proof of the primary 1 s.
		waitSeconds: histogram("read_wait_seconds", "How long reads waited for proof, by where they went then.",
			[]float64{.0002, .0005, .001, .002, .005, .01, .02, .05, .1, .25, .5, 1, 2.5}, "cluster", "role"),
		// By default a read queues for 200 ms at most.
		queueSeconds: histogram("read_queue_seconds", "How long reads queued for room on the primary, by where they went then.",
			[]float64{.0005, .001, .002, .005, .01, .02, .05, .1, .15, .2, .3, .5, 1}, "cluster", "role"),
		// At rest it is about a probe interval, 100 ms; no budget is above LongestLag, by
		// default an hour.
		readStaleness: histogram("read_staleness_seconds", "How old the answers to relaxed reads on replicas could be at most.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .15, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}, "cluster", "class"),
		probeSeconds: histogram("probe_duration_seconds", "How long answered probes took.",
			[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}, "cluster", "node"),
		// From nothing over a segment of PostgreSQL's log (16 MiB) to hopeless.
		lagBytes: histogram("replica_lag_bytes", "How far usable replicas were behind what the primary was last known to have, in the engine's unit.",
			append([]float64{0}, prometheus.ExponentialBuckets(1<<10, 4, 13)...), "cluster", "node"),
		// A probe interval is 100 ms: less than that is not provable at rest.
		stalenessSeconds: histogram("replica_staleness_seconds", "How old the state of usable replicas could be at most.",
			[]float64{.01, .025, .05, .1, .15, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}, "cluster", "node"),
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.reads, m.nodeReads, m.fallbacks, m.waits, m.unproven, m.sessionless, m.refused, m.historyChanged, m.retries, m.shadow, m.shed, m.stale, m.probes, m.changes,
		m.stalenessUnknown, m.suspects,
		m.waitSeconds, m.queueSeconds, m.readStaleness, m.probeSeconds, m.lagBytes, m.stalenessSeconds,
	}
}

// forget deletes the series of a node.
func (m *metrics) forget(cluster, node string) {
	of := prometheus.Labels{"cluster": cluster, "node": node}
	m.nodeReads.DeletePartialMatch(of)
	m.probes.DeletePartialMatch(of)
	m.probeSeconds.DeletePartialMatch(of)
	m.lagBytes.DeletePartialMatch(of)
	m.stalenessSeconds.DeletePartialMatch(of)
}

const namespace = "tidegate"

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}, labels)
}
