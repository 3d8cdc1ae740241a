package wire

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"
)

// server returns a Conn and the other end of its connection.
func server(t *testing.T) (*Conn, net.Conn) {
	t.Helper()
	client, srv := net.Pipe()
	t.Cleanup(func() { client.Close(); srv.Close() })
	c := Wrap(client)
	c.MarkPrepared()
	return c, srv
}

// expect reads want on the server's side.
func expect(t *testing.T, srv net.Conn, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(srv, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the server reads %q, %v; want %q", got, err, want)
	}
}

func TestEndWaitsForThePosition(t *testing.T) {
	t.Parallel()
	c, srv := server(t)
	c.Arm(After)
	ask := query("insert returning")
	rowRead := make(chan struct{})
	go func() {
		expect(t, srv, join(ask, afterMsg))
		srv.Write(someRow)
		<-rowRead // rows are not kept until the end
		srv.Write(join(tag("INSERT 0 1"), ready('I')))
		// A pipe hands bytes over: when this returns, the end has been read.
		pos := position(7, 8, false, 'I')
		srv.Write(pos[:9])
		if got := c.pendingAsks(); got != 1 {
			t.Errorf("%d positions are owed, want 1", got)
		}
		srv.Write(pos[9:])
	}()
	if _, err := c.Write(ask); err != nil {
		t.Fatal(err)
	}
	mustRead(t, c, someRow, 512)
	close(rowRead)
	mustRead(t, c, join(tag("INSERT 0 1"), ready('I')), 512)
	if a := c.Take(); !a.OK || a.Flush != 7 || a.Insert != 8 {
		t.Fatalf("when the client sees the end, the answer is %+v", a)
	}
}

func (c *Conn) pendingAsks() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending
}

// A client can stop reading in the middle of a message, as when a wait for a
// notification is cancelled, and then send an armed command.
func TestArmedInTheMiddleOfAMessage(t *testing.T) {
	t.Parallel()
	long := raw('A', "\x00\x00\x00\x05chan\x00"+string(bytes.Repeat([]byte("Z"), 9000))+"\x00")
	for _, cut := range []int{1, 3, 5, 6, 100, 8999} {
		c, s := scripted()
		s.says(param, long[:cut])
		mustRead(t, c, join(param, long[:cut]), 8192)
		c.Arm(After)
		mustWrite(t, c, query("insert"))
		done := join(tag("INSERT 0 1"), ready('I'))
		s.says(join(long[cut:], done, position(3, 4, false, 'I')))
		mustRead(t, c, join(long[cut:], done), 8192)
		if a := c.Take(); !a.OK || a.Flush != 3 {
			t.Fatalf("cut at %d: %+v", cut, a)
		}
	}
}

func TestAllocations(t *testing.T) {
	c, s := scripted()
	ins, done := query("insert"), join(tag("INSERT 0 1"), ready('I'))
	answer := join(state(false, true), done, position(1, 2, false, 'I'))
	p := make([]byte, 8192)
	chunks := make([][]byte, 1)
	n := testing.AllocsPerRun(100, func() {
		chunks[0] = answer
		s.chunks, s.wrote = chunks, s.wrote[:0]
		c.Arm(AroundCommit)
		c.Write(ins)
		n, _ := c.Read(p)
		if a := c.Take(); !a.OK || a.Tag != "INSERT" || n != len(done) {
			t.Fatalf("%+v, %d", a, n)
		}
	})
	if n > 0 {
		t.Errorf("%v allocations for an armed command", n)
	}
}

// A message that never ends is not collected.
func TestHugeAnswer(t *testing.T) {
	t.Parallel()
	c, s := scripted()
	c.Arm(After)
	mustWrite(t, c, query("insert"))
	huge := raw('E', string(make([]byte, 1<<20)))
	done := join(tag("INSERT 0 1"), ready('I'))
	s.says(cutEvery(4000)(join(done, huge, notify))...)
	mustRead(t, c, join(done, huge, notify), 8192)
	if a := c.Take(); a.OK || a.Err != ErrStream || a.Tag != "INSERT" {
		t.Fatalf("%+v", a)
	}
	if cap(c.body) > 4*maxOwn {
		t.Fatalf("collected %d bytes", cap(c.body))
	}
	// It is not followed any more, and not asked.
	s.wrote = nil
	c.Arm(After)
	mustWrite(t, c, query("insert"))
	if !bytes.Equal(s.wrote, query("insert")) {
		t.Fatalf("wrote %q", s.wrote)
	}
	sameAnswer(t, c.Take(), Answer{Sent: true, Err: ErrStream})
}

func TestNonsenseUnarmed(t *testing.T) {
	t.Parallel()
	c, s := scripted()
	junk := []byte("D\x00\x00\x00\x01junk Z\x00\x00\x00\x05I")
	s.says(junk)
	mustRead(t, c, junk, 6)
	c.Arm(After)
	mustWrite(t, c, query("insert"))
	if a := c.Take(); a.Err != ErrStream {
		t.Fatalf("%+v", a)
	}
}

func TestNonsenseFromTheClient(t *testing.T) {
	t.Parallel()
	c, s := scripted()
	c.Arm(After)
	junk := []byte("P\x00\x00\x00\x03S\x00\x00\x00\x04Q\x00\x00\x00\x04")
	mustWrite(t, c, junk)
	mustWrite(t, c, query("insert"))
	if !bytes.Equal(s.wrote, join(junk, query("insert"))) {
		t.Fatalf("wrote %q", s.wrote)
	}
}

// A slow write makes pgx read in the background, and a context's end sets
// deadlines from yet another goroutine.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	c, srv := server(t)
	const rounds = 300
	ins, done := query("insert"), join(tag("INSERT 0 1"), ready('I'))
	var wg sync.WaitGroup
	wg.Go(func() { // the server
		for range rounds {
			expect(t, srv, join(ins, afterMsg))
			for _, b := range cutEvery(13)(join(notice, done, position(9, 9, false, 'I'))) {
				srv.Write(b)
			}
		}
	})
	turn, read := make(chan struct{}), make(chan struct{})
	wg.Go(func() { // the background reader
		want := join(notice, done)
		p := make([]byte, 64)
		for range turn {
			for n := 0; n < len(want); {
				m, err := c.Read(p)
				if err != nil {
					t.Error(err)
					return
				}
				n += m
			}
			read <- struct{}{}
		}
	})
	for i := range rounds {
		c.Arm(After)
		turn <- struct{}{}
		c.SetDeadline(time.Now().Add(time.Hour))
		mustWrite(t, c, ins)
		<-read
		if a := c.Take(); !a.OK || a.Flush != 9 {
			t.Fatalf("round %d: %+v", i, a)
		}
	}
	close(turn)
	wg.Wait()
}

func TestCloseWhileArmed(t *testing.T) {
	t.Parallel()
	c, srv := server(t)
	c.Arm(After)
	go func() {
		expect(t, srv, join(query("insert"), afterMsg))
		srv.Write(ready('I')[:3])
		c.Close()
	}()
	mustWrite(t, c, query("insert"))
	if got, err := readAll(t, c, 64); err == nil {
		t.Fatalf("%q, %v", got, err)
	}
	if a := c.Take(); a.OK || !a.Sent {
		t.Fatalf("%+v", a)
	}
	if c.NetConn() != c.Conn {
		t.Fatal("NetConn is another connection")
	}
}

func TestOverTLS(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)},
		&x509.Certificate{SerialNumber: big.NewInt(1)}, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	srv := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}})
	c := Wrap(tls.Client(near, &tls.Config{InsecureSkipVerify: true}))
	c.MarkPrepared()
	big := query(string(make([]byte, 100_000))) // several records
	done := join(raw('D', string(make([]byte, 100_000))), tag("INSERT 0 1"), ready('I'))
	go func() {
		for range 3 {
			expect(t, srv, join(big, afterMsg))
			srv.Write(join(done, position(1, 2, false, 'I')))
		}
	}()
	for range 3 {
		c.Arm(After)
		mustWrite(t, c, big)
		mustRead(t, c, done, 8192)
		if a := c.Take(); !a.OK || a.Insert != 2 {
			t.Fatalf("%+v", a)
		}
	}
}

func mustWrite(t testing.TB, c *Conn, b []byte) {
	t.Helper()
	if n, err := c.Write(b); n != len(b) || err != nil {
		t.Fatalf("Write: %d, %v", n, err)
	}
}

func TestCommandName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"INSERT 0 1\x00": "INSERT", "UPDATE 12\x00": "UPDATE", "SELECT 0": "SELECT", "CREATE TABLE AS 3\x00": "CREATE TABLE AS",
		"DO\x00": "DO", "": "", "\x00": "", "7": "7", "CREATE INDEX\x00": "CREATE INDEX", "MERGE 1": "MERGE",
		"DELETE 1": "DELETE", "COPY 1": "COPY", "BEGIN": "BEGIN", "COMMIT": "COMMIT", "ROLLBACK": "ROLLBACK", "CALL": "CALL", "SET": "SET",
	} {
		if got := commandName([]byte(in)); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
