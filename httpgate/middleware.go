package httpgate

import (
	"context"
	"net/http"

	"github.com/tidegatedb/tidegate"
)

// Middleware gives every request the session that its tokens describe, and its
// response the token of what the session then requires. It is safe for concurrent
// use, and so is every handler that it wraps.
type Middleware struct {
	cfg      Config
	verifier verifier
	counters counters
	writable uint32 // bit set of the sources that a response can answer
}

// New returns a middleware, or an error that wraps tidegate.ErrConfig and names
// the field.
func New(cfg Config) (*Middleware, error) {
	if err := validateKeys("Config", cfg.Keyring, cfg.Clusters); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &Middleware{cfg: cfg, verifier: verifier{cfg.Keyring, cfg.Clusters}}
	for i, s := range cfg.Sources {
		if s.writable() {
			m.writable |= 1 << i
		}
	}
	return m, nil
}

// Wrap returns a handler that runs next with a session in the request's context.
// It fits wherever a func(http.Handler) http.Handler does. Wrapping twice with the
// same Middleware is the same as once.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(m) != nil {
			next.ServeHTTP(w, r)
			return
		}
		x := m.begin(w, r)
		// Not a recover: a panic passes on as it is, and whoever turns it into an
		// answer finds the token among the headers.
		defer x.end()
		next.ServeHTTP(x.view(partsOf(w)), r.WithContext(x))
	})
}

// begin reads the request's tokens and makes its session.
func (m *Middleware) begin(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{m: m, inner: w, request: r}
	refused := x.read()
	if x.keeper != nil {
		x.session = x.keeper.Open(x.key, x.tokens...)
	} else {
		x.session = tidegate.NewSession(x.tokens...)
	}
	switch {
	case refused:
		m.catchUp(x.session)
	case len(x.tokens) > 0 || x.keeper != nil:
	case m.cfg.Missing(r) == Fresh:
		m.counters.fresh.Add(1)
	default:
		m.catchUp(x.session)
	}
	x.ctx = tidegate.WithSession(r.Context(), x.session)
	return x
}

func (m *Middleware) catchUp(s *tidegate.Session) {
	m.counters.catchUps.Add(1)
	m.verifier.catchUp(s)
}

// late is where a change goes that the response cannot carry.
func (m *Middleware) late(r *http.Request, t tidegate.Token) {
	m.counters.late.Add(1)
	if m.cfg.Late != nil {
		m.cfg.Late(r, t)
	}
}

// sessionKey is what adapters ask a context for when they look for its session.
var sessionKey = func() any {
	spy := keySpy{Context: context.Background()}
	tidegate.SessionFrom(&spy)
	return spy.key
}()

// keySpy is an empty context that remembers what it was asked for.
type keySpy struct {
	context.Context
	key any
}

// Value implements context.Context.
func (s *keySpy) Value(key any) any {
	s.key = key
	return nil
}
