// Package netfault is a TCP proxy for tests that breaks the network between two
// programs which both run: it cuts connections, or lets them stay open while
// nothing moves, as a partition does.
//
//	p, err := netfault.Listen("127.0.0.1:5432")
//	defer p.Close()
//	// ... connect to p.Addr() ...
//	p.Stall() // nobody hears of the other any more
//	p.Mend()
//
// When a method returns, what it says has happened: after [Proxy.Stall] not one
// byte more is handed on, after [Proxy.Cut] no connection is left.
package netfault
