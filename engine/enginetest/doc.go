// Package enginetest is the suite that every adapter of the engine must pass:
// [Run] drives an adapter through its [Harness] on a cluster that the harness can
// hurt. The cluster in memory of package fake passes it too.
//
// A count of zero wrong reads means nothing by itself, so each subtest also
// counts the reads that could have gone wrong and fails when there were none.
package enginetest
