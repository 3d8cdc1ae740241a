package wire

import "bytes"

// The types of a server's messages that matter here.
const (
	msgReadyForQuery        = 'Z'
	msgCommandComplete      = 'C'
	msgErrorResponse        = 'E'
	msgDataRow              = 'D'
	msgNoticeResponse       = 'N'
	msgNotificationResponse = 'A'
	msgParameterStatus      = 'S'
	msgParseComplete        = '1'
	msgBindComplete         = '2'
)

// fate is what becomes of a message from the server.
type fate uint8

const (
	pass fate = iota // it goes to the client
	hold             // it goes to the client after the answer to the ask
	own              // it is the answer to an ask
)

// maxOwn bounds the memory for a message that is kept here. An error of ours
// is some hundred bytes.
const maxOwn = 64 << 10

// async reports whether the server sends a message when it likes, so that it
// never belongs to an ask.
func async(typ byte) bool {
	return typ == msgNoticeResponse || typ == msgNotificationResponse || typ == msgParameterStatus
}

// told are the messages that tell something on their way to the client.
var told = [256]bool{msgReadyForQuery: true, msgCommandComplete: true, msgErrorResponse: true}

// skim follows bytes that all go to the client.
func (c *Conn) skim(p []byte) {
	for len(p) > 0 {
		if c.in.between() {
			if p = p[run(p, &told):]; len(p) == 0 {
				return
			}
			c.fate, c.body = pass, c.body[:0]
		}
		if c.in.seen < headerLen {
			n, done, ok := c.in.header(p)
			p = p[n:]
			if !ok {
				c.mu.Lock()
				c.giveUp(nil, 0)
				c.publish()
				c.mu.Unlock()
				return
			}
			if !done {
				return
			}
		}
		n, done := c.in.body(p)
		c.keep(p[:n])
		p = p[n:]
		if done {
			if c.in.head[0] == msgCommandComplete {
				c.dropped(c.body)
			}
			c.in.next()
		}
	}
}

// dropped looks at a command tag for the commands that drop our statements.
func (c *Conn) dropped(tag []byte) {
	if len(tag) > 3 && tag[0] == 'D' && (tag[1] == 'E' || tag[1] == 'I') {
		tag = bytes.TrimSuffix(tag, []byte{0})
		if string(tag) == "DEALLOCATE ALL" || string(tag) == "DISCARD ALL" {
			c.prepared.Store(false)
		}
	}
}

// filter takes out of p what is not for the client, in place, and returns how
// much is left. mu must be held.
func (c *Conn) filter(p []byte) int {
	to := output{p: p, spill: &c.spill}
	for at := 0; at < len(p); {
		if c.broken {
			to.pass(at, len(p))
			break
		}
		if c.in.seen < headerLen {
			from := at
			if c.in.between() {
				if s := c.steps.front(); s == nil || s.kind == stepClient {
					if n := run(p[at:], &told); n > 0 {
						to.pass(at, at+n)
						at += n
						continue
					}
				}
				c.begin(p[at])
			}
			n, done, ok := c.in.header(p[at:])
			at += n
			if c.fate == pass {
				to.pass(from, at)
			}
			if !ok {
				c.giveUp(&to, at)
				continue
			}
			if !done {
				break
			}
		}
		n, done := c.in.body(p[at:])
		c.keep(p[at : at+n]) // before pass, which can move other bytes here
		if c.fate == pass {
			to.pass(at, at+n)
		}
		at += n
		if done {
			c.finish(&to, at)
			c.in.next()
		} else if len(c.body) >= maxOwn {
			c.giveUp(&to, at)
		}
	}
	return to.n
}

// begin decides on the message that starts with typ.
func (c *Conn) begin(typ byte) {
	c.fate, c.body = pass, c.body[:0]
	switch s := c.steps.front(); {
	case s == nil || async(typ):
	case s.own(typ):
		c.fate = own
	case typ == msgReadyForQuery && s.hold && s.n == 1:
		c.fate = hold
	}
}

// keep remembers what will be looked at of a message's body.
func (c *Conn) keep(b []byte) {
	if c.fate == pass {
		if !told[c.in.head[0]] {
			return
		}
		b = b[:min(len(b), maxTag-len(c.body))]
	}
	c.body = append(c.body, b...)
}

// finish acts on a complete message. at is where its bytes end in the output's
// buffer.
func (c *Conn) finish(to *output, at int) {
	s := c.steps.front()
	switch {
	case c.fate == own:
		c.finishOwn(to, at, s)
	case c.fate == hold && len(c.body) != 1:
		c.giveUp(to, at)
	case c.in.head[0] == msgCommandComplete:
		c.dropped(c.body)
		if s != nil && !s.dead {
			c.tagLen = copy(c.tag[:], c.body)
			switch string(bytes.TrimSuffix(c.body, []byte{0})) {
			case "CALL", "DO":
				c.ans.Called = true
			}
		}
		if s != nil && s.kind == stepJoined {
			c.committed(s)
		}
	case s == nil:
	case c.in.head[0] == msgErrorResponse:
		c.ans.Failed = c.ans.Failed || !s.dead
	case c.in.head[0] == msgReadyForQuery:
		if len(c.body) > 0 && !s.dead {
			c.ans.TxStatus = c.body[0]
		}
		if c.fate == hold {
			c.held = append(append(c.held[:0], c.in.head[:]...), c.body...)
		}
		if s.kind == stepJoined {
			c.answer(*s)
		}
		if s.n--; s.n == 0 {
			c.steps.pop()
		}
	}
}

// committed makes an ask of what is left of a COMMIT and an ask. The server would say
// that it is ready behind both; the client's COMMIT is acknowledged by its tag, and
// must stay so if the connection fails now.
func (c *Conn) committed(s *step) {
	s.kind = stepAfter
	c.held = append(c.held[:0], msgReadyForQuery, 0, 0, 0, 5, 'I')
	if !s.dead {
		c.ans.TxStatus = 'I'
	}
}

// finishOwn acts on a message of the answer to the ask s.
func (c *Conn) finishOwn(to *output, at int, s *step) {
	switch c.in.head[0] {
	case msgDataRow:
		switch {
		case s.dead:
		case s.kind == stepAfter:
			c.row = c.ans.after(c.body)
		default:
			c.row = c.ans.Before.before(c.body)
		}

	case msgErrorResponse:
		err, fatal := serverError(c.body)
		if fatal {
			// The server is going, and not because of the ask. The client
			// must hear it, behind the end of its command.
			if !s.dead {
				c.ans.Err = err
			}
			c.giveUp(to, at)
			return
		}
		if err.Is(ErrNotPrepared) {
			c.prepared.Store(false)
		}
		c.refusal = err

	case msgReadyForQuery:
		if len(c.held) == headerLen+1 && len(c.body) == 1 {
			// The newest status is the true one: an ask that is refused
			// inside a transaction block has failed it.
			c.held[headerLen] = c.body[0]
		}
		to.put(c.held, at)
		c.held = c.held[:0]
		c.answer(*s)
		c.steps.pop()
	}
}

// answer notes the outcome of the ask s.
func (c *Conn) answer(s step) {
	ok, err := c.row && c.refusal == nil, c.refusal
	if !ok && err == nil && s.kind != stepJoined { // a COMMIT that failed has no ask behind it
		err = errRow
	}
	c.row, c.refusal = false, nil
	switch {
	case s.dead:
	case s.kind == stepAfter || s.kind == stepJoined:
		c.pending--
		c.ans.OK, c.ans.Err = ok, err
	default:
		c.ans.Before.OK, c.ans.Before.Err = ok, err
		if !ok {
			c.ans.Before.AsyncCommit, c.ans.Before.Wrote = false, false
		}
	}
}

// giveUp stops following the stream. All that was kept from the client goes to
// it: the client will find out what is wrong. to is nil where nothing was.
func (c *Conn) giveUp(to *output, at int) {
	c.broken = true
	if c.steps.owed() {
		c.ans.TxStatus = 0
	}
	c.steps.clear()
	if to == nil {
		return
	}
	to.put(c.held, at)
	c.held = c.held[:0]
	if c.fate != pass {
		to.put(c.in.head[:c.in.seen], at)
		to.put(c.body, at)
	}
}
