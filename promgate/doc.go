// Package promgate exports what Tidegate decides and knows as Prometheus metrics.
//
// The hook has to be there before the database is opened, and the database before
// its gauges can be read, so there are two steps:
//
//	metrics := promgate.New(promgate.Config{})
//	prometheus.MustRegister(metrics)
//	db, err := pgxgate.Open(ctx, pgxgate.Config{..., Hooks: []tidegate.Hook{metrics.Hook()}})
//	...
//	defer metrics.Watch(db)()
//
// One Collector serves any number of clusters: all metrics have the label cluster.
// A decision costs a few atomic additions and allocates nothing.
//
// # Metrics
//
// Of each decision on a read. A read whose node failed before the first row has
// one for each attempt.
//
//	tidegate_reads_total{cluster, class, role, reason}    where reads went and why; role "none" was refused
//	tidegate_node_reads_total{cluster, node}              the same by node
//	tidegate_replica_fallback_total{cluster, reason}      causal and relaxed reads that the primary had to answer
//	tidegate_read_waits_total{cluster, role}              reads that waited for proof, by where they went then
//	tidegate_read_wait_seconds{cluster, role}             how long (histogram)
//	tidegate_reads_unproven_total{cluster, reason}        answered without proof
//	tidegate_reads_sessionless_total{cluster}             causal reads without a session: a forgotten middleware
//	tidegate_writes_sessionless_total{cluster}            writes without one (of the watched database)
//	tidegate_reads_refused_total{cluster}                 failed, because nothing could be proven
//	tidegate_reads_shed_total{cluster}                    failed, because the primary had no room for them, or their class goes without it while many want it
//	tidegate_reads_stale_total{cluster}                   answered beyond their budget, as their class allows
//	tidegate_read_queue_seconds{cluster,role}             how long reads queued for room on the primary
//	tidegate_reads_history_changed_total{cluster, verdict} whose session was told that what it must see is "lost", "unknown", "foreign" or "ahead"
//	tidegate_read_retries_total{cluster, cause}           decided again after an attempt had failed before its first row
//	tidegate_shadow_reads_total{cluster, role, reason}    where reads would have gone under RolloutShadow
//
// The causes of a retry are those of tidegate.RetryCause: "connection", "shutdown" and
// "pool" speak of a node or its pool; "recovery-conflict" of statements that are too long
// for the replica's max_standby_streaming_delay; "not-replayed" of a migration that reads
// were deployed before the replicas had it (see the SetFloor of a database); "unsupported"
// of reads that belong to the primary; "stale-plan", "role" and "unproven" of connections
// that changes have outlived. A decision after two attempts that got no connection counts
// once, by the second; engine.Stats counts both.
//
// Of each decision on a relaxed read that went to a replica:
//
//	tidegate_read_staleness_seconds{cluster, class}       how old the answer could be at most, as proven (histogram)
//	tidegate_read_staleness_max_seconds{cluster, class}   the largest of them in the last one to two minutes (gauge)
//	tidegate_read_staleness_unknown_total{cluster, class} of which nothing was proven: they are in neither
//	tidegate_class_budget_seconds{cluster, class}         the budget, of classes that have one (gauge)
//
// The age is the decision's Staleness: what was proven when the statement was about to be
// sent, without comparing clocks. It includes the wait for a connection, and a budget is kept
// when the read begins: so it can be above the budget by that wait. Reads whose class lets
// them go beyond their budget are in it if their age is known, and in
// tidegate_reads_stale_total either way. The largest is of the minute that is running and of
// the one before, whoever scrapes: scrape once a minute at least. It is absent when there
// were no reads. Of classes with one name the smallest budget counts; "other" has none.
//
// Of each write whose session had read from a replica before, if the database looks for
// those (its Config.Suspects):
//
//	tidegate_suspect_writes_total{cluster, call_site}     by where the application writes: "function (file:line)"
//
// Config.MaxCallSites bounds the call sites, as MaxClasses does the classes.
//
// Of each probe. Probes follow each other faster while reads wait for a replica,
// so these histograms weigh the moments in which it matters.
//
//	tidegate_probes_total{cluster, node, result}          result "answered" or "failed"
//	tidegate_probe_duration_seconds{cluster, node}        of those that were answered (histogram)
//	tidegate_replica_lag_bytes{cluster, node}             behind the primary's last known position (histogram)
//	tidegate_replica_staleness_seconds{cluster, node}     proven: how old its state can be at most (histogram)
//
// Of each change, and of the watched database at the time of the scrape:
//
//	tidegate_changes_total{cluster, kind}                 role changes, restarts, failovers, nodes added, removed, left out, slow; see tidegate.ChangeKind
//	tidegate_node_up{cluster, node}                       1 when the newest probe was answered
//	tidegate_node_usable{cluster, node}                   1 when this replica answers and is of the cluster's history
//	tidegate_node_fenced{cluster, node, reason}           1 for why this node is not used although it answers; see tidegate.Fence
//	tidegate_node_role{cluster, node, role}               1 for the role that the node has
//	tidegate_node_probe_age_seconds{cluster, node}        since the newest answered probe was sent; absent before
//	tidegate_node_apply_delay_seconds{cluster, node}      estimated; waits are planned by it
//	tidegate_node_reads_in_flight{cluster, node}
//	tidegate_node_demand_probes_total{cluster, node}      probes that reads and writes asked for
//	tidegate_node_ejected{cluster, node, reason}          1 for the reason that reads leave it out, "lag" or "failing"
//	tidegate_node_slow{cluster, node}                     1 while reads go around it because it answers late
//	tidegate_fallback_limit{cluster}                      reads that may be on the primary for want of a replica; absent without a limit
//	tidegate_fallbacks_in_flight{cluster}                 those that are
//	tidegate_fallbacks_queued{cluster}                    those that wait for room
//	tidegate_fallback_share_ratio{cluster}                the part of the reads that wanted to be, lately
//	tidegate_primary_known{cluster}                       1 when writes have somewhere to go
//	tidegate_primaries_conflict{cluster}                  1 when more than one node says that it is the primary
//	tidegate_rollout_share_ratio{cluster}                 the part of the sessions whose reads are routed
//	tidegate_rollout_shadow{cluster}                      1 while decisions are made and not followed
//
// The histograms have classic buckets, and native ones for servers that scrape
// those. The lag is in the engine's unit: bytes of log for PostgreSQL. The series
// of a node go when the node goes. In a name that is not valid UTF-8 each byte that
// is wrong shows as U+FFFD and its value, so that no two names have one series.
//
// # What to look at
//
// The replica hit ratio says whether read routing earns its keep: of the reads
// that a replica may answer, the part that one did.
//
//	  sum by (cluster) (rate(tidegate_reads_total{role="replica"}[5m]))
//	/ sum by (cluster) (rate(tidegate_reads_total{reason!~"strong|rollout|shadow"}[5m]))
//
// The part of its budget that a relaxed class uses says whether the budget is kept with
// room to spare, or is about to send reads to the primary. Its tail, that is: the 99th
// percentile, and the maximum.
//
//	  histogram_quantile(0.99, sum by (cluster, class, le) (rate(tidegate_read_staleness_seconds_bucket[5m])))
//	/ min by (cluster, class) (tidegate_class_budget_seconds)
//
//	  max by (cluster, class) (tidegate_read_staleness_max_seconds)
//	/ min by (cluster, class) (tidegate_class_budget_seconds)
//
// Both leave out the reads of which nothing was proven, and those that no replica
// answered because the budget was broken: see them beside it.
//
//	sum by (cluster, class) (rate(tidegate_read_staleness_unknown_total[5m]))
//
//	sum by (cluster, class, reason) (rate(tidegate_reads_total{role!="replica", reason!~"strong|rollout|shadow"}[5m]))
//
// # Five alerts
//
// The hit ratio has fallen; what is a normal value depends on how much is written.
//
//	  sum by (cluster) (rate(tidegate_reads_total{role="replica"}[10m]))
//	/ sum by (cluster) (rate(tidegate_reads_total{reason!~"strong|rollout|shadow"}[10m])) < 0.8
//
// Reads fall back to the primary, which was not sized for them.
//
//	  sum by (cluster) (rate(tidegate_replica_fallback_total[5m]))
//	/ sum by (cluster) (rate(tidegate_reads_total[5m])) > 0.1
//
// The lag of a replica. Its average is near zero even when the 99th percentile is
// what users meet. On a server with native histograms drop "_bucket" and "le".
//
//	histogram_quantile(0.99, sum by (cluster, node, le) (rate(tidegate_replica_lag_bytes_bucket[5m]))) > 64e6
//
// A node is not heard of: its replica is not used, or a failover goes unnoticed.
//
//	max by (cluster, node) (tidegate_node_probe_age_seconds) > 5 or max by (cluster, node) (tidegate_node_up) == 0
//
// Answers are given without proof. After a failover this is expected for each
// session once (reason "history-changed"); otherwise the primary could not be
// proven in time.
//
//	sum by (cluster, reason) (increase(tidegate_reads_unproven_total[5m])) > 0
package promgate
