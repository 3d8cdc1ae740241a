// Package pgcluster starts, stops and breaks real PostgreSQL clusters, one
// primary and some streaming standbys, in a temporary folder. It serves tests
// and the command line's lab; it needs the server programs on this machine, and of
// Go the standard library and the proxy of package netfault only.
//
//	c, err := pgcluster.Start(ctx, pgcluster.Config{Replicas: 2})
//	defer c.Stop()
//	pool, err := pgxpool.New(ctx, c.Primary().DSN("", ""))
//
// In a test, [ForTest] does the same, says which version runs and cleans up.
//
// # Promises
//
//   - When [Start] returns, every replica streams and has replayed what the
//     primary had written.
//   - Servers listen on 127.0.0.1 only, trust every local user, and never run as
//     root: started by root, they run as the user postgres, else nobody.
//   - [Cluster.Stop] leaves no process, no folder and no goroutine.
//   - A process that is killed before it can call Stop leaves its cluster behind;
//     the next [Start] or [Sweep] in the same parent folder removes it. A cluster
//     whose owner lives is never touched.
//   - [Server.CPU] never goes back, whatever is done to the server.
//
// What it does not promise: data survives nothing but what PostgreSQL itself
// survives, and with Config.Fsync off (the default) not a crash of the machine.
//
// Linux is the platform it is made for. On macOS and the BSDs everything works
// but CPU; elsewhere Start returns [ErrUnsupported].
package pgcluster
