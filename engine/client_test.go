package engine_test

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/tidegatedb/tidegate"
)

// keeping is how a client keeps its tokens between requests.
type keeping uint8

const (
	// merging: all in one.
	merging keeping = iota
	// naming: a set of write-once names, such as cookies; a response adds one and
	// deletes those that its request carried.
	naming
	// replacing: one header; what the last response said replaces it, whatever its
	// request carried. The promise then holds along each chain of tokens.
	replacing
	// storing: nothing but a key, and what the instances could not keep under it. The
	// tokens that they could are there without content: who knows what.
	storing
)

// kept is a token that a client keeps, and what its holder knows that presents it.
// It never changes.
type kept struct {
	token tidegate.Token
	knows knowledge
	from  *request // whose response it comes from
	older *kept    // that it was merged with
}

// client is one session. Between its requests there are only its tokens.
type client struct {
	w     *world
	id    int
	keeps keeping

	// Guarded by w.mu.
	tokens []*kept
	key    string // for the store
	flying int
}

func newClient(w *world, id int) *client {
	c := &client{w: w, id: id, keeps: keeping(w.dice.n(3))}
	if w.plan.kept && w.dice.chance(.75) {
		c.keeps = storing
	}
	c.forget()
	return c
}

// forget begins a new session.
func (c *client) forget() {
	// A token of nobody's history, with a nonce of our choice.
	b := binary.BigEndian.AppendUint64([]byte{1}, uint64(c.w.dice.n(1<<62))|1)
	first, err := tidegate.ParseBinary(append(b, 0))
	if err != nil {
		panic(err)
	}
	c.tokens = []*kept{{token: first}}
	c.key = strconv.Itoa(c.w.dice.n(1 << 62))
}

// onTheWire returns the token as it arrives.
func onTheWire(t tidegate.Token) tidegate.Token {
	b, err := t.AppendBinary(nil)
	if err == nil {
		t, err = tidegate.ParseBinary(b)
	}
	if err != nil {
		panic(err)
	}
	return t
}

// receive takes in a response; w.mu is held.
func (c *client) receive(r *request, k *kept) {
	switch {
	case c.keeps == naming, c.keeps == storing:
		c.tokens = slices.DeleteFunc(c.tokens, func(o *kept) bool { return slices.Contains(r.carried, o) })
		c.tokens = append(c.tokens, k)
	case c.keeps == replacing, r.tolds > 0:
		// A merged token never forgets a history that is no more: who is told of its
		// loss drops it, not to be told with every read.
		c.tokens = []*kept{k}
	default:
		old := c.tokens[0]
		m := &kept{token: old.token.Merge(k.token), knows: old.knows.clone(), from: k.from, older: old}
		m.knows.join(&k.knows)
		c.tokens = []*kept{m}
	}
}

// start begins a request, unless the client has enough of them under way.
func (c *client) start(do func(*request)) {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.flying >= w.par {
		return
	}
	c.flying++
	r := newRequest(c)
	w.wg.Go(func() {
		do(r)
		r.respond()
		w.mu.Lock()
		c.flying--
		w.mu.Unlock()
	})
}

// renew ends an idle client's session; somebody else begins one.
func (w *world) renew() {
	c := w.someone()
	w.mu.Lock()
	idle := c.flying == 0
	if idle {
		c.forget()
	}
	w.mu.Unlock()
	if idle && w.dice.chance(.5) {
		// With a write that gets lost the session knows of no history yet.
		c.start((*request).lose)
	}
}
