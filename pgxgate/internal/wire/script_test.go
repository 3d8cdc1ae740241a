package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// msgs encodes messages of either side.
func msgs(t testing.TB, list ...interface {
	Encode([]byte) ([]byte, error)
}) []byte {
	t.Helper()
	var b []byte
	for _, m := range list {
		var err error
		if b, err = m.Encode(b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// What a server says, raw: these tests are about bytes.

func raw(typ byte, body string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{typ}, uint32(len(body)+4))
	return append(b, body...)
}

func tag(s string) []byte        { return raw('C', s+"\x00") }
func ready(status byte) []byte   { return raw('Z', string(status)) }
func refused(code string) []byte { return raw('E', "SERROR\x00VERROR\x00C"+code+"\x00Mno\x00\x00") }
func fatal() []byte              { return raw('E', "SFATAL\x00VFATAL\x00C57P01\x00Mgoing\x00\x00") }

var (
	notice  = raw('N', "SNOTICE\x00VNOTICE\x00C00000\x00Mhello\x00\x00")
	notify  = raw('A', "\x00\x00\x00\x05chan\x00Z\x00")
	param   = raw('S', "TimeZone\x00UTC\x00")
	bindOK  = raw('2', "")
	someRow = raw('D', "\x00\x01\x00\x00\x00\x06Z\x00\x00\x00\x05I")
)

// position is the answer to the ask behind a command, given in status.
func position(flush, insert uint64, async bool, status byte) []byte {
	b := []byte{0, 3, 0, 0, 0, 8}
	b = binary.BigEndian.AppendUint64(b, flush)
	b = append(b, 0, 0, 0, 8)
	b = binary.BigEndian.AppendUint64(b, insert)
	b = append(b, 0, 0, 0, 1, bit(async))
	return join(bindOK, raw('D', string(b)), tag("SELECT 1"), ready(status))
}

// state is the answer to the ask in front of a command.
func state(async, wrote bool) []byte {
	b := []byte{0, 2, 0, 0, 0, 1, bit(async), 0, 0, 0, 1, bit(wrote)}
	return join(bindOK, raw('D', string(b)), tag("SELECT 1"), ready('T'))
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// What a client says.

func query(sql string) []byte { return raw('Q', sql+"\x00") }

func prepare(t testing.TB, name string) []byte {
	return msgs(t, &pgproto3.Parse{Name: name, Query: "insert into t values ($1)"},
		&pgproto3.Describe{ObjectType: 'S', Name: name}, &pgproto3.Sync{})
}

func execute(t testing.TB, name string) []byte {
	return msgs(t, &pgproto3.Bind{PreparedStatement: name, Parameters: [][]byte{[]byte("S\x00\x00\x00\x04")}},
		&pgproto3.Execute{}, &pgproto3.Sync{})
}

// script is a network connection whose server side the test writes down.
type script struct {
	mu       sync.Mutex
	chunks   [][]byte // what Read returns, one at a time
	end      error    // what Read returns then
	wrote    []byte
	reads    int
	writes   int
	writeErr error // with writeMax, how Write fails
	writeMax int
}

func (s *script) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if len(s.chunks) == 0 {
		return 0, s.end
	}
	n := copy(p, s.chunks[0])
	if s.chunks[0] = s.chunks[0][n:]; len(s.chunks[0]) == 0 {
		s.chunks = s.chunks[1:]
	}
	return n, nil
}

func (s *script) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.writeErr != nil {
		n := min(len(p), s.writeMax)
		s.writeMax -= n
		s.wrote = append(s.wrote, p[:n]...)
		if n < len(p) {
			return n, s.writeErr
		}
		return n, nil
	}
	s.wrote = append(s.wrote, p...)
	return len(p), nil
}

// says queues bytes from the server, each part arriving on its own.
func (s *script) says(parts ...[]byte) {
	for _, b := range parts {
		if len(b) > 0 {
			s.chunks = append(s.chunks, bytes.Clone(b))
		}
	}
}

func (s *script) Close() error                     { return nil }
func (s *script) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// errDry is what a Read gets that a real connection would let block.
var errDry = io.ErrNoProgress

var errTimeout = os.ErrDeadlineExceeded

func scripted() (*Conn, *script) {
	s := &script{end: errDry}
	c := Wrap(s)
	c.MarkPrepared()
	return c, s
}

// mustRead reads exactly want.
func mustRead(t testing.TB, c *Conn, want []byte, size int) {
	t.Helper()
	var got []byte
	for len(got) < len(want) {
		p := make([]byte, size)
		n, err := c.Read(p)
		got = append(got, p[:n]...)
		if err != nil {
			t.Fatalf("after %q: %v; want %q", got, err, want)
		}
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("the client reads\n%q, want\n%q", got, want)
	}
}

// readAll reads to the end of the stream.
func readAll(t testing.TB, c *Conn, size int) ([]byte, error) {
	t.Helper()
	var got []byte
	p := make([]byte, size)
	for {
		n, err := c.Read(p)
		got = append(got, p[:n]...)
		if err != nil {
			return got, err
		}
	}
}
