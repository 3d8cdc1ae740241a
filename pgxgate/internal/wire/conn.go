package wire

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// Conn is a client's connection to a PostgreSQL server that can ask for a
// position along with a command. Wrap makes one.
//
// It is as safe for concurrent use as the connection that it wraps: one
// goroutine can read while another writes and others set deadlines or close.
// [Conn.Arm] and [Conn.Take] belong to whoever owns the connection between two
// commands.
//
// While it is not armed, a Write costs one atomic load more than without it,
// and a Read also looks at message headers: an armed command must know where
// the next message begins, and a client can have stopped in the middle of one.
type Conn struct {
	net.Conn
	// Owner is for whoever owns the connection.
	Owner any

	// state holds the flags that Read and Write look at without mu.
	state atomic.Uint32

	// prepared says that the statements exist on the connection.
	prepared atomic.Bool

	// rd and wr order readers and writers among themselves, as the socket
	// does. They are held during network calls; mu never is. Closing and
	// setting deadlines take none of them.
	rd, wr sync.Mutex

	// Guarded by rd.
	in    frame  // the server's stream
	fate  fate   // what becomes of the server's current message
	body  []byte // the part of its body that matters here
	spill []byte // ready for the client, but had no room
	ended error  // what the network said after bytes that went first

	// Guarded by wr.
	scratch []byte // a client's write with the asks around it

	// mu guards the rest, which readers and writers share.
	mu      sync.Mutex
	ask     Ask
	armed   bool
	broken  bool  // the stream is not followed any more
	out     frame // the client's stream since Arm
	synced  bool  // the client is not inside a sequence that needs a Sync
	mute    bool  // the client's stream is not the protocol
	dirty   bool  // something was sent to run, and no position asked behind it
	steps   steps
	pending int    // positions asked for and not answered
	held    []byte // a command's ReadyForQuery
	row     bool   // the current ask has given a good row
	refusal error  // or why not
	ans     Answer // all but Tag
	tag     [maxTag]byte
	tagLen  int
}

// maxTag is the longest command tag that a server makes.
const maxTag = 64

// The flags in Conn.state.
const (
	flagArmed   = 1 << iota // writes are to be looked at
	flagPending             // the server owes answers that are not for the client
	flagBroken
)

// Wrap returns a Conn around nc, which must be at the beginning of a message
// in both directions, as it is when pgconn calls AfterNetConnect.
func Wrap(nc net.Conn) *Conn { return &Conn{Conn: nc} }

// NetConn returns the connection that c wraps.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// MarkPrepared tells c that both statements are on the connection. Until then,
// and after a command that dropped them, nothing is asked.
func (c *Conn) MarkPrepared() { c.prepared.Store(true) }

// Prepared reports whether the statements are on the connection, as far as the
// server's answers tell.
func (c *Conn) Prepared() bool { return c.prepared.Load() }

// Arm makes c ask for positions until [Conn.Take]. The connection must be
// idle: the client has read the end of its last command.
func (c *Conn) Arm(a Ask) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reset()
	c.ask, c.armed = a, true
	c.publish()
}

// Take disarms c and returns what it learnt since [Conn.Arm]. It does not wait:
// when the client has seen the end of its command, everything is there.
func (c *Conn) Take() Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.ans
	if !a.OK || c.pending > 0 || c.dirty {
		a.OK, a.Flush, a.Insert, a.AsyncCommit = false, 0, 0, false
	}
	if c.steps.owed() {
		a.TxStatus = 0
	}
	if a.Err == nil && !a.OK && c.broken {
		a.Err = ErrStream
	}
	a.Tag = commandName(c.tag[:c.tagLen])
	c.reset()
	c.publish()
	return a
}

// reset forgets the armed command. What the server still owes for it is
// swallowed when it comes.
func (c *Conn) reset() {
	c.armed = false
	c.steps.abandon()
	c.pending, c.dirty, c.mute, c.synced = 0, false, false, true
	c.out = frame{}
	c.ans, c.tagLen = Answer{}, 0
}

// publish updates the flags. mu must be held.
func (c *Conn) publish() {
	var f uint32
	if c.armed {
		f |= flagArmed
	}
	if c.steps.front() != nil {
		f |= flagPending
	}
	if c.broken {
		f |= flagBroken
	}
	if c.state.Load() != f {
		c.state.Store(f)
	}
}

// Write writes b, with asks around it while c is armed. The count is of b.
func (c *Conn) Write(b []byte) (int, error) {
	if c.state.Load()&flagArmed == 0 {
		return c.Conn.Write(b)
	}
	return c.writeArmed(b)
}

// Read reads what the server sent to the client.
func (c *Conn) Read(p []byte) (int, error) {
	c.rd.Lock()
	defer c.rd.Unlock()
	for {
		if len(c.spill) > 0 {
			n := copy(p, c.spill)
			c.spill = c.spill[:copy(c.spill, c.spill[n:])]
			return n, nil
		}
		if c.ended != nil {
			return 0, c.ended
		}
		n, err := c.Conn.Read(p)
		// The flags are read after the bytes are there: this Read can have
		// begun before the command was armed.
		switch state := c.state.Load(); {
		case state&flagBroken != 0:
			return n, err
		case state == 0:
			c.skim(p[:n])
			return n, err
		}
		c.mu.Lock()
		m := c.filter(p[:n])
		if err != nil {
			c.release(err)
		}
		c.publish()
		c.mu.Unlock()
		switch {
		case m > 0 || len(c.spill) > 0:
			// The error is for the next Read. A timeout is not kept: it
			// belongs to the deadline in force now, and the next Read asks
			// the network again.
			if err != nil && !timeout(err) {
				c.ended = err
			}
			if m > 0 {
				return m, nil
			}
		case err != nil || n == 0:
			return 0, err
		}
	}
}

// release gives the client what is its own but was held back, because the
// position will not come, or the client does not want to wait any longer. Its
// command is acknowledged, so it must not look as if it were not.
func (c *Conn) release(err error) {
	switch {
	case len(c.held) > 0:
		c.spill = append(c.spill, c.held...)
		c.held = c.held[:0]
	case !timeout(err) && c.fate == hold && !c.in.between():
		// Cut in the middle: what there is of it is still the client's.
		c.spill = append(append(c.spill, c.in.head[:c.in.seen]...), c.body...)
	}
}

func timeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}
