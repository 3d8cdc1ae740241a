package netfault_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/internal/netfault"
)

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// moment is how long a test looks on to see that nothing comes.
const moment = 50 * time.Millisecond

// target is a listener whose connections the test takes one by one.
type target struct {
	t *testing.T
	*net.TCPListener
}

func listen(t *testing.T) target {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return target{t, l}
}

// next is the next connection that comes.
func (l target) next() *net.TCPConn {
	l.t.Helper()
	_ = l.SetDeadline(time.Now().Add(patience))
	conn, err := l.AcceptTCP()
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func proxy(t *testing.T, to net.Listener) *netfault.Proxy {
	t.Helper()
	p, err := netfault.Listen(to.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func dial(t *testing.T, p *netfault.Proxy) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// connect makes a connection through the proxy that both sides know to be whole.
func connect(t *testing.T, p *netfault.Proxy, l target) (client, server *net.TCPConn) {
	t.Helper()
	client = dial(t, p)
	server = l.next()
	send(t, client, "a")
	receive(t, server, "a")
	return client, server
}

func send(t *testing.T, to net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, from net.Conn, want string) {
	t.Helper()
	_ = from.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Fatalf("received %q, %v, want %q", got, err, want)
	}
}

// quiet fails the test when anything comes, an end or an error included.
func quiet(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(moment))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || !isTimeout(err) {
		t.Errorf("read %d bytes, %v, where nothing must move", n, err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// mustBeReset reads until a connection ends and fails the test when that was no reset.
func mustBeReset(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, conn); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v, want a reset", err)
	}
}

// dialReset makes a connection that must be reset, be it before dialling returns.
func dialReset(t *testing.T, p *netfault.Proxy) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err == nil {
		mustBeReset(t, conn)
		_ = conn.Close()
	} else if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a new connection: %v", err)
	}
}

func TestListenNamesABadTarget(t *testing.T) {
	t.Parallel()
	if _, err := netfault.Listen("nowhere"); err == nil || !strings.Contains(err.Error(), "host:port") {
		t.Errorf("error is %v", err)
	}
	p := proxy(t, listen(t))
	if err := p.Retarget("nowhere"); err == nil || !strings.Contains(err.Error(), "host:port") {
		t.Errorf("error is %v", err)
	}
}

// What is sent last arrives, although its sender closes at once.
func TestHandsOnBothWays(t *testing.T) {
	t.Parallel()
	l := listen(t)
	p := proxy(t, l)
	const rounds = 50
	text := bytes.Repeat([]byte("tide "), 100_000)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range rounds {
			conn, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			_, err = io.Copy(conn, conn)
			if err := errors.Join(err, conn.Close()); err != nil {
				t.Error(err)
			}
		}
	})
	for range rounds {
		client := dial(t, p)
		wg.Go(func() {
			_, err := client.Write(text)
			if err := errors.Join(err, client.CloseWrite()); err != nil {
				t.Error(err)
			}
		})
		if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("%d bytes came back of %d, %v", len(got), len(text), err)
		}
	}
	wg.Wait()
}

func TestCut(t *testing.T) {
	t.Parallel()
	l := listen(t)
	p := proxy(t, l)
	client, server := connect(t, p, l)
	for range 2 { // twice is no error
		p.Cut()
	}
	mustBeReset(t, client)
	mustBeReset(t, server)
	for range 3 {
		dialReset(t, p)
	}
	p.Mend()
	connect(t, p, l) // the first that comes since: those that were cut did not
}

func TestStall(t *testing.T) {
	t.Parallel()
	l := listen(t)
	p := proxy(t, l)
	client, server := connect(t, p, l)
	for range 2 {
		send(t, client, "a")
		receive(t, server, "a")
		p.Stall()
		p.Stall() // twice is no error
		send(t, client, "b")
		send(t, server, "c")
		quiet(t, server)
		quiet(t, client)
		p.Mend()
		receive(t, server, "b")
		receive(t, client, "c")
	}
	p.Stall()
	late := dial(t, p)
	send(t, late, "late")
	quiet(t, late)
	_ = l.SetDeadline(time.Now().Add(moment))
	if _, err := l.Accept(); !isTimeout(err) {
		t.Errorf("a new connection went through: %v", err)
	}
	p.Mend()
	receive(t, l.next(), "late")
}

// Nobody hears through a stalled link that the other side has gone.
func TestStallHidesTheEnd(t *testing.T) {
	t.Parallel()
	l := listen(t)
	p := proxy(t, l)
	for name, end := range map[string]func(*net.TCPConn) error{
		"closed": (*net.TCPConn).Close,
		"reset":  func(conn *net.TCPConn) error { return errors.Join(conn.SetLinger(0), conn.Close()) },
	} {
		client, server := connect(t, p, l)
		p.Stall()
		if err := end(server); err != nil {
			t.Fatal(err)
		}
		quiet(t, client)
		p.Mend()
		if name == "reset" {
			mustBeReset(t, client)
			continue
		}
		_ = client.SetReadDeadline(time.Now().Add(patience))
		if n, err := client.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("read %d bytes, %v, want the end", n, err)
		}
	}
}

// A stall in the middle of a stream loses nothing, doubles nothing, and holds
// also those bytes back whose hand-over waits for a reader.
func TestStallInTheMiddle(t *testing.T) {
	t.Parallel()
	l := listen(t)
	p := proxy(t, l)
	client, server := connect(t, p, l)
	const size = 16 << 20
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, size)
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := client.Write(text); err != nil {
			t.Error(err)
		}
	})
	var got []byte
	buffer := make([]byte, 256<<10)
	for range 5 {
		p.Stall()
		// The kernel has what was handed on before. After that, nothing comes.
		for {
			_ = server.SetReadDeadline(time.Now().Add(moment))
			n, err := server.Read(buffer)
			got = append(got, buffer[:n]...)
			if isTimeout(err) {
				break
			}
			if len(got) == size || err != nil {
				t.Fatalf("%d bytes, %v: the stall held nothing back", len(got), err)
			}
		}
		p.Mend()
		_ = server.SetReadDeadline(time.Now().Add(patience))
		n, err := server.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, buffer[:n]...)
	}
	rest := make([]byte, size-len(got))
	_ = server.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(server, rest); err != nil {
		t.Fatal(err)
	}
	if got = append(got, rest...); !bytes.Equal(got, text) {
		t.Error("other bytes arrive than were sent")
	}
	wg.Wait()
}

// What a stall holds back is lost when the link is cut, not let through.
func TestCutAfterStall(t *testing.T) {
	t.Parallel()
	l := listen(t)
	p := proxy(t, l)
	client, server := connect(t, p, l)
	p.Stall()
	send(t, client, "never")
	p.Cut()
	_ = server.SetReadDeadline(time.Now().Add(patience))
	if n, err := server.Read(make([]byte, 1)); n > 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %d bytes, %v, want a reset", n, err)
	}
	mustBeReset(t, client)
}

func TestRetarget(t *testing.T) {
	t.Parallel()
	first, second := listen(t), listen(t)
	p := proxy(t, first)
	client, server := connect(t, p, first)
	p.Stall()
	if err := p.Retarget(second.Addr().String()); err != nil {
		t.Fatal(err)
	}
	mustBeReset(t, client)
	mustBeReset(t, server)
	client = dial(t, p)
	send(t, client, "a")
	quiet(t, client) // the stall goes on
	p.Mend()
	receive(t, second.next(), "a")
}

func TestTargetIsNotThere(t *testing.T) {
	t.Parallel()
	l := listen(t)
	p := proxy(t, l)
	_ = l.Close()
	dialReset(t, p)
}

func TestClose(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*netfault.Proxy){
		"flowing": func(*netfault.Proxy) {}, "cut": (*netfault.Proxy).Cut, "stalled": (*netfault.Proxy).Stall,
	} {
		l := listen(t)
		p := proxy(t, l)
		client, server := connect(t, p, l)
		fault(p)
		for range 2 {
			p.Close()
		}
		mustBeReset(t, client)
		mustBeReset(t, server)
		if conn, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: a connection after Close: %v, %v", name, conn, err)
		}
		p.Mend() // does nothing
	}
}

// Faults from everywhere at once, under connections that come and go: whatever
// happens to them, all ends at Close.
func TestFaultsSideBySide(t *testing.T) {
	t.Parallel()
	l := listen(t)
	p := proxy(t, l)
	var wg, echoes sync.WaitGroup
	echoes.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			echoes.Go(func() {
				_, _ = io.Copy(conn, conn) // ends as the faults will have it
				_ = conn.Close()
			})
		}
	})
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				conn, err := net.Dial("tcp", p.Addr())
				if err != nil {
					continue
				}
				_ = conn.SetDeadline(time.Now().Add(moment))
				text := bytes.Repeat([]byte("x"), 1000)
				_, err = conn.Write(text)
				if err == nil {
					_, err = io.ReadFull(conn, text)
				}
				if err == nil && bytes.Count(text, []byte("x")) != len(text) {
					t.Error("other bytes came back")
				}
				_ = conn.Close()
			}
		})
	}
	var faults sync.WaitGroup
	for range 3 {
		faults.Go(func() {
			for i := range 200 {
				switch i % 5 {
				case 0:
					p.Cut()
				case 2:
					p.Stall()
				case 4:
					if err := p.Retarget(l.Addr().String()); err != nil {
						t.Error(err)
					}
				default:
					p.Mend()
				}
			}
		})
	}
	faults.Wait()
	p.Mend()
	client := dial(t, p)
	send(t, client, "after all")
	receive(t, client, "after all")
	close(stop)
	p.Close()
	wg.Wait()
	_ = l.Close()
	echoes.Wait()
}
