// Package jobs runs jobs of River, a queue in PostgreSQL, that carry tokens: they
// are enqueued in the transaction of the write that they are about, and worked on by
// another instance, which reads on replicas.
package jobs
