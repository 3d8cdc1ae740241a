package netfault

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// link is one client's connection and the one to the target that belongs to it.
type link struct {
	client *net.TCPConn

	life context.Context // ends when the link is reset
	end  context.CancelFunc

	mu     sync.Mutex
	server *net.TCPConn // nil: not connected yet
	halted bool
	gone   bool

	// moving is held by each direction while it hands something on.
	moving [2]sync.Mutex
}

// serve connects to the target and moves bytes both ways until both sides have
// said that they have no more, or one of them has broken off. Then the link is
// gone.
func (l *link) serve(p *Proxy) {
	defer l.reset()
	if !l.pass(p) {
		return
	}
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	var dialer net.Dialer
	conn, err := dialer.DialContext(l.life, "tcp", target)
	if err != nil {
		l.pass(p) // a client behind a stalled link does not hear of it
		return
	}
	if !l.connected(conn.(*net.TCPConn)) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.pump(p, &l.moving[0], l.server, l.client) })
	both.Go(func() { l.pump(p, &l.moving[1], l.client, l.server) })
	both.Wait()
	l.close()
}

// pass returns when the proxy is not stalled. True means that it flows and that
// the link has not ended.
func (l *link) pass(p *Proxy) bool {
	for {
		state, gate := p.now()
		if state != stalled {
			return state == flowing && l.life.Err() == nil
		}
		select {
		case <-gate:
		case <-l.life.Done():
			return false
		}
	}
}

// connected takes the connection to the target, unless the link has ended.
func (l *link) connected(server *net.TCPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		abort(server)
		return false
	}
	l.server = server
	if l.halted {
		l.deadline(time.Unix(1, 0))
	}
	return true
}

// pump moves one direction. What it has read and not handed on when the proxy
// stalls, it keeps.
func (l *link) pump(p *Proxy, moving *sync.Mutex, to, from *net.TCPConn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !l.hand(p, moving, to, buffer[:n]) {
			l.reset()
			return
		}
		if err == nil {
			continue
		}
		// That one side has gone is news, too, and passes in its turn.
		if l.do(p, moving, func() error {
			if errors.Is(err, io.EOF) {
				return to.CloseWrite()
			}
			return err
		}) != nil {
			l.reset()
		}
		return
	}
}

// hand hands bytes on and tells whether all of them went.
func (l *link) hand(p *Proxy, moving *sync.Mutex, to *net.TCPConn, rest []byte) bool {
	for len(rest) > 0 {
		err := l.do(p, moving, func() error {
			n, err := to.Write(rest)
			rest = rest[n:]
			return err
		})
		// A stall ends a write in the middle; the rest goes on behind the gate.
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return false
		}
	}
	return true
}

// do does something that the other side notices, and never during a stall.
func (l *link) do(p *Proxy, moving *sync.Mutex, what func() error) error {
	for {
		if !l.pass(p) {
			return net.ErrClosed
		}
		moving.Lock()
		// Looked at again under the lock, which halt waits for.
		if state, _ := p.now(); state != flowing {
			moving.Unlock()
			continue
		}
		err := what()
		moving.Unlock()
		return err
	}
}

// halt returns when neither direction hands anything on any more.
func (l *link) halt() {
	l.mu.Lock()
	l.halted = true
	l.deadline(time.Unix(1, 0)) // ends a write that waits for its reader
	l.mu.Unlock()
	for i := range l.moving {
		l.moving[i].Lock()
		l.moving[i].Unlock() //nolint:staticcheck // whoever held it has handed its bytes on, that is all
	}
}

// goOn takes halt back.
func (l *link) goOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.halted = false
	l.deadline(time.Time{})
}

// deadline limits writes, under mu.
func (l *link) deadline(at time.Time) {
	// They fail on closed connections only.
	_ = l.client.SetWriteDeadline(at)
	if l.server != nil {
		_ = l.server.SetWriteDeadline(at)
	}
}

// reset breaks both connections off. A link that is gone stays as it ended.
func (l *link) reset() { l.finish(abort) }

// close ends both connections in order: what was handed on last still arrives.
func (l *link) close() {
	l.finish(func(conn *net.TCPConn) { _ = conn.Close() }) // nothing more can be done about an error
}

func (l *link) finish(end func(*net.TCPConn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return
	}
	l.gone = true
	l.end()
	end(l.client)
	if l.server != nil {
		end(l.server)
	}
}

// abort closes a connection such that the other side sees a reset, not an end.
func abort(conn *net.TCPConn) {
	// Both fail on connections only that are gone already.
	_ = conn.SetLinger(0)
	_ = conn.Close()
}
