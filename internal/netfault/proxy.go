package netfault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// state is what a proxy does with connections.
type state int

const (
	flowing state = iota
	cut
	stalled
	closed
)

// Proxy hands TCP connections on to one target. It is safe for concurrent use.
type Proxy struct {
	listener *net.TCPListener
	running  sync.WaitGroup // the accepting goroutine and one for each link

	control sync.Mutex // one change of state at a time

	mu     sync.Mutex
	state  state
	target string
	// gate is closed while connections flow. What waits at it looks at the state
	// again when it is let go.
	gate  chan struct{}
	links map[*link]struct{}
}

// Listen starts a proxy on a free port of 127.0.0.1 that hands connections on to
// the target, a host:port. The target need not be there yet: a client that comes
// before it is reset.
func Listen(target string) (*Proxy, error) {
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("netfault: %w", err)
	}
	p := &Proxy{listener: l, target: target, gate: opened(), links: map[*link]struct{}{}}
	p.running.Go(p.accept)
	return p, nil
}

func checkTarget(target string) error {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return fmt.Errorf("netfault: the target must be host:port: %w", err)
	}
	return nil
}

// opened is a gate that stops nobody.
func opened() chan struct{} {
	gate := make(chan struct{})
	close(gate)
	return gate
}

// Addr is where the proxy listens, 127.0.0.1 and a port, as host:port. It stays
// the same until Close.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Port is the port of Addr.
func (p *Proxy) Port() int { return p.listener.Addr().(*net.TCPAddr).Port }

// Cut resets all connections, on both sides, and from now on new ones as soon as
// they come, until Mend. The target may see an end instead of a reset of one that
// the proxy has only just begun to make.
func (p *Proxy) Cut() {
	p.change(cut)
	p.reset()
}

// Stall keeps all connections open and moves nothing: no bytes, and no news that
// one side has gone. New connections are accepted, and the target does not hear
// of them before Mend. What was under way arrives after Mend, whole and in order.
func (p *Proxy) Stall() {
	p.change(stalled)
}

// Mend ends Cut and Stall. Connections that were cut stay gone.
func (p *Proxy) Mend() {
	p.change(flowing)
}

// Retarget hands new connections on to another target and resets those that are
// open. A cut or a stall goes on.
func (p *Proxy) Retarget(target string) error {
	if err := checkTarget(target); err != nil {
		return err
	}
	p.mu.Lock()
	p.target = target
	p.mu.Unlock()
	p.reset()
	return nil
}

// Close resets all connections, frees the port, and returns when no goroutine is
// left. The proxy is of no use afterwards; a second Close does nothing.
func (p *Proxy) Close() {
	p.change(closed)
	_ = p.listener.Close() // it can only be closed already
	p.reset()
	p.running.Wait()
}

// change makes the proxy flow, stall, refuse or end. When it returns, no byte
// passes on the ground of what the state was before.
func (p *Proxy) change(to state) {
	p.control.Lock()
	defer p.control.Unlock()
	p.mu.Lock()
	if p.state == closed || p.state == to {
		p.mu.Unlock()
		return
	}
	wasOpen := p.state != stalled
	p.state = to
	switch {
	case to == stalled:
		p.gate = make(chan struct{})
	case !wasOpen:
		close(p.gate)
	}
	links := p.all()
	p.mu.Unlock()
	for _, l := range links {
		if to == stalled {
			l.halt()
		} else {
			l.goOn()
		}
	}
}

// reset ends all links that there are.
func (p *Proxy) reset() {
	p.mu.Lock()
	links := p.all()
	p.mu.Unlock()
	for _, l := range links {
		l.reset()
	}
}

// all lists the links, under mu.
func (p *Proxy) all() []*link {
	list := make([]*link, 0, len(p.links))
	for l := range p.links {
		list = append(list, l)
	}
	return list
}

// now is the state, and the gate to wait at if it is stalled.
func (p *Proxy) now() (state, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, p.gate
}

// accept takes connections until the listener is closed.
func (p *Proxy) accept() {
	for {
		conn, err := p.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of file descriptors, say: clients wait in the kernel's queue.
			time.Sleep(time.Millisecond)
			continue
		}
		l := p.admit(conn)
		if l == nil {
			abort(conn)
			continue
		}
		p.running.Go(func() {
			defer p.forget(l)
			l.serve(p)
		})
	}
}

// admit makes a link of a connection, or nil when there are to be none.
func (p *Proxy) admit(conn *net.TCPConn) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == cut || p.state == closed {
		return nil
	}
	l := &link{client: conn}
	l.life, l.end = context.WithCancel(context.Background())
	p.links[l] = struct{}{}
	return l
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
