package wire

import "bytes"

// The types of a client's messages that matter here.
const (
	msgSync         = 'S'
	msgQuery        = 'Q'
	msgFunctionCall = 'F'
	msgExecute      = 'E'
	msgCopyDone     = 'c'
	msgCopyFail     = 'f'
)

const (
	// maxJoin is how much is copied to put asks into the client's own write.
	// A longer write is not one packet anyway; only its end is joined.
	maxJoin = 16 << 10

	// joinTail is how much of the end of a longer write that is.
	joinTail = 4 << 10
)

// ends reports whether a message makes the server answer ReadyForQuery.
func ends(typ byte) bool { return typ == msgSync || typ == msgQuery || typ == msgFunctionCall }

// runs reports whether a message can change the database.
func runs(typ byte) bool { return typ == msgExecute || typ == msgQuery || typ == msgFunctionCall }

func (c *Conn) writeArmed(b []byte) (int, error) {
	c.wr.Lock()
	defer c.wr.Unlock()

	c.mu.Lock()
	p := c.plan(b)
	sent := c.ans.Sent
	// While the call below is under way, the truth is "may have been sent".
	c.ans.Sent = sent || p.runAt >= 0
	c.publish()
	c.mu.Unlock()

	n, err := c.send(p.pre, p.body, p.post)
	if n = min(n, len(b)); err == nil {
		n = len(b) // whatever went in its place
	}
	if err != nil && n <= p.runAt {
		c.mu.Lock()
		c.ans.Sent = sent
		c.mu.Unlock()
	}
	return n, err
}

// plan is what goes to the server for a write of the client: body stands for the
// client's bytes. runAt is where in these the first message begins that runs
// something, or -1.
type plan struct {
	pre, body, post []byte
	runAt           int
}

// plan follows the client's bytes b and decides what goes to the server. What the
// server will owe is noted before a byte is sent, since a reader can have the
// answer before the write returns.
func (c *Conn) plan(b []byte) plan {
	p := plan{body: b, runAt: -1}
	if len(b) == 0 {
		return p
	}
	clean := c.clean()
	last, answers, runAt := c.follow(b)
	p.runAt = runAt
	if runAt >= 0 {
		c.dirty = true
	}
	ask := (c.dirty || !c.clean()) && c.mayAsk()
	// In the middle of a sequence the Sync of an ask would end the server's
	// skipping of messages after an error, so it goes in front of a sequence
	// or nowhere. A sequence that is not there whole can still run something.
	if ask && clean && c.ask == AroundCommit && (runAt >= 0 || !c.clean()) {
		p.pre = beforeMsg
		c.steps.ask(stepBefore)
		c.ans.Before = Before{}
	}
	behind := ask && c.dirty && c.answered(last)
	if joined := behind && clean && bytes.Equal(b, commitMsg); joined {
		p.body = commitJoinedMsg
		c.steps.add(step{kind: stepJoined, n: 1})
	} else {
		c.steps.client(answers)
		if behind {
			p.post = afterMsg
			c.steps.ask(stepAfter)
		}
	}
	if behind {
		c.pending++
		c.dirty = false
		c.ans.OK, c.ans.Err = false, nil
	}
	return p
}

// clean reports that the client is between two sequences of messages.
func (c *Conn) clean() bool { return c.out.between() && c.synced }

// follow goes through the client's bytes b. last is the type of the message
// that b ends with, or 0 if it ends in the middle of one; answers is how many
// messages were completed that make the server answer ReadyForQuery.
func (c *Conn) follow(b []byte) (last byte, answers, runAt int) {
	runAt = -1
	for at := 0; at < len(b) && !c.mute; {
		last = 0
		if c.out.seen < headerLen {
			if c.out.between() {
				c.synced = false
				if runAt < 0 && runs(b[at]) {
					runAt = at
				}
			}
			n, done, ok := c.out.header(b[at:])
			at += n
			c.mute = !ok
			if !done || !ok {
				continue
			}
		}
		n, done := c.out.body(b[at:])
		at += n
		if done {
			last = c.out.head[0]
			if ends(last) {
				answers++
				c.synced = true
			}
			c.out.next()
		}
	}
	return last, answers, runAt
}

// answered reports whether the server answers the client's last message, of
// type last, whatever comes next, so that an ask can stand behind it.
func (c *Conn) answered(last byte) bool {
	if c.ask != AfterCopy {
		return ends(last)
	}
	// When the ReadyForQuery of the COPY has already gone to the client, the
	// server has refused the COPY: it wrote nothing, and an ask could not be
	// kept from the client any more.
	return (last == msgCopyDone || last == msgCopyFail) && c.steps.tail() != nil
}

// mayAsk reports whether an ask would be understood, and notes why not.
func (c *Conn) mayAsk() bool {
	switch {
	case c.mute || c.broken:
		c.ans.Err = ErrStream
	case !c.prepared.Load():
		c.ans.Err = ErrNotPrepared
	default:
		return true
	}
	return false
}

// send writes b with pre and post around it, in one call to the network unless
// b is long, and returns how much of b was written.
func (c *Conn) send(pre, b, post []byte) (int, error) {
	if len(pre)+len(post) == 0 {
		return c.Conn.Write(b)
	}
	sent := 0
	if len(b) > maxJoin {
		if len(pre) > 0 {
			if _, err := c.Conn.Write(pre); err != nil {
				return 0, err
			}
			pre = nil
		}
		n, err := c.Conn.Write(b[:len(b)-joinTail])
		if err != nil {
			return n, err
		}
		sent = n
		b = b[n:]
	}
	s := append(append(append(c.scratch[:0], pre...), b...), post...)
	c.scratch = s
	n, err := c.Conn.Write(s)
	return sent + max(0, min(n-len(pre), len(b))), err
}
