package httpgate

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tidegatedb/tidegate"
)

// exchange is one request and its response. It is the request's context, too, so
// as to know whether anybody has asked for the session: what was not asked for
// was not used.
type exchange struct {
	m       *Middleware
	ctx     context.Context // with the session
	inner   http.ResponseWriter
	request *http.Request
	session *tidegate.Session
	key     string           // for the store, "" without one
	keeper  *tidegate.Keeper // of the store, if there is a key

	tokens []tidegate.Token // that were accepted
	sent   []sent           // cookies that were read
	count  int              // tokens that were read
	used   uint32           // bit set of the sources that brought any

	asked    atomic.Bool     // for the session, since the start or the first byte
	touched  bool            // it was asked for before the first byte
	started  bool            // the first byte is out, or about to be
	hijacked bool            // the connection belongs to somebody else
	answer   *tidegate.Token // what the response says
}

// sent is a cookie that the request brought.
type sent struct {
	source int
	name   string
}

// Deadline implements context.Context.
func (x *exchange) Deadline() (time.Time, bool) { return x.ctx.Deadline() }

// Done implements context.Context.
func (x *exchange) Done() <-chan struct{} { return x.ctx.Done() }

// Err implements context.Context.
func (x *exchange) Err() error { return x.ctx.Err() }

// Value implements context.Context.
func (x *exchange) Value(key any) any {
	switch {
	case key == any(x.m):
		return x
	case key == sessionKey || sessionKey == nil:
		x.asked.Store(true)
	}
	return x.ctx.Value(key)
}

// read verifies the request's tokens and reports whether any was refused.
func (x *exchange) read() (refused bool) {
	m := x.m
	limit := readFactor * m.cfg.MaxTokens
	take := func(source int, text string) bool {
		x.used |= 1 << source
		if x.count == limit {
			m.counters.refused.add(errTooMany)
			refused = true
			return false
		}
		x.count++
		t, err := m.verifier.verify(text)
		if err != nil {
			m.counters.refused.add(err)
			refused = true
			return true
		}
		x.tokens = append(x.tokens, t)
		return true
	}
	for i, s := range m.cfg.Sources {
		switch {
		case s.header != "":
			eachToken(x.request.Header[s.header], func(text string) bool { return take(i, text) })
		case s.cookie != nil:
			s.cookie.eachCookie(x.request.Header["Cookie"], func(name, text string) bool {
				if !take(i, text) {
					return false
				}
				x.sent = append(x.sent, sent{i, name})
				return true
			})
		case s.store != nil:
			if key, ok := s.store.key(x.request); ok && key != "" {
				x.key, x.keeper = key, s.store.keeper
			}
		default:
			if text, ok := s.claim(x.request); ok {
				eachToken([]string{text}, func(text string) bool { return take(i, text) })
			}
		}
	}
	return refused
}

// first is called before the first byte of the response, and at the end when
// there was none: what is to go out goes out now.
func (x *exchange) first() {
	if x.started {
		return
	}
	x.start()
	crowded := x.count > x.m.cfg.MaxTokens
	if !x.touched && !crowded {
		return
	}
	kept := x.save()
	token := x.session.Token()
	if kept {
		x.answer = &token
		x.handBack(token)
		return
	}
	// Who has asked for the session may have read on a replica, and a read that
	// stays where the session is leaves the token as it was. The response answers
	// all the same: another one may delete what this request brought.
	if !crowded && x.clientHas().Same(token) && !token.Momentary() {
		return
	}
	if x.visitor(token) {
		return
	}
	x.answer = &token
	x.emit(token, false)
}

// save keeps what the session requires in the store, if it has a key there, and
// reports whether the store has it. Whoever sent the request may be gone; what it has
// done is not.
func (x *exchange) save() bool {
	if x.keeper == nil {
		return false
	}
	if err := x.session.Save(context.WithoutCancel(x.ctx)); err != nil {
		x.m.counters.unkept.Add(1)
		return false
	}
	return true
}

// handBack takes what the request brought off the client's hands, now that the store
// has it: cookies are deleted. A header can only be answered by another one.
func (x *exchange) handBack(t tidegate.Token) {
	if x.used&x.m.writable != 0 {
		x.emit(t, true)
	}
}

// start notes whether the session was asked for before the first byte.
func (x *exchange) start() {
	x.started = true
	x.touched = x.asked.Swap(false)
}

// clientHas returns what the client requires of its own: what the response says,
// or else what the request brought.
func (x *exchange) clientHas() tidegate.Token {
	if x.answer != nil {
		return *x.answer
	}
	var all tidegate.Token
	for i, t := range x.tokens {
		if i == 0 {
			all = t
			continue
		}
		all = all.Merge(t)
	}
	return all
}

// visitor reports whether it is of somebody who has only looked around.
func (x *exchange) visitor(t tidegate.Token) bool {
	cfg := &x.m.cfg
	return x.count == 0 && x.keeper == nil && !cfg.VisitorReads && onlySeen(t) && !cfg.Known(x.request)
}

// end is called when the handler is done, or panics.
func (x *exchange) end() {
	switch {
	case x.started:
	case x.hijacked:
		x.start()
		x.asked.Store(x.touched)
	default:
		x.first()
		return
	}
	again := x.asked.Load()
	if !x.touched && !again || x.save() {
		return
	}
	token := x.session.Token()
	changed := !x.clientHas().Same(token) || again && token.Momentary()
	if changed && !x.visitor(token) {
		x.m.late(x.request, token)
	}
}
