// Package robustness tries to break what Tidegate promises, on a real cluster: sessions hop
// between instances with nothing but their tokens while servers are killed, cut off, promoted,
// rewound and made anew. Each answer is checked against what its session had been told before.
// The same seed gives the same faults in the same order; how they meet the traffic is the
// machine's to say. See README.md.
package robustness
