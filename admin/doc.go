// Package admin shows as JSON what the router knows and why it decides as it does:
// the freshness table, an explanation for a class and a token, the declared
// classes, and which reads are routed.
//
//	h := admin.Handler(admin.Config{Sources: []admin.Source{db}, Keyring: keyring})
//	mux.Handle("/debug/tidegate/", http.StripPrefix("/debug/tidegate", h))
//
// The pages, below wherever the handler is mounted:
//
//	/                                          what is there
//	/table                                     each cluster's nodes: role, tags, position, lag, staleness, age of the probe
//	/explain?cluster=main&class=causal         for each node, why such a read may or may not go there now
//	/explain?class=causal&token=tg1...         the same for the session that the token is of
//	/classes                                   the classes that this process has declared, and for relaxed ones how old answers could be
//	/rollout                                   which reads are routed
//	PUT /rollout?cluster=main&rollout=shadow   changes that, where Config.ChangeRollout allows it
//
// The parameter cluster can be left out where there is only one. Looking changes
// nothing: no node is asked, no read is dispatched, no session advances.
//
// # Who may see it
//
// Mount it where operators are, not where users are: it names nodes, and a node's
// error can contain its address, user and database. It contains no passwords, keys
// or tokens: a token that is explained is not repeated. It holds no data of the
// database either, only positions in its log. A token that is sent in a URL can
// end up in access logs.
//
// # The fields
//
// Names are in snake case and end in their unit. What is not known is null, never
// zero. Positions, histories and incarnations are strings: they do not fit into
// the numbers of every JSON reader. Lag is in the engine's unit: bytes of log for
// PostgreSQL. The bounds of a relaxed class are how old replicas' answers could be at most,
// since the start; p50 and p99 are never too low and at most a sixteenth too high. Fields
// can be added in any release.
//
// Errors have the status that they should and say what to do:
//
//	{"error": {"status": 404, "message": "...", "field": "class", "next": "..."}}
package admin
