package httpgate

import (
	"net/http"

	"github.com/tidegatedb/tidegate"
)

// emit puts a token into the response's headers: where the request brought one,
// or everywhere when it brought none that can be replaced there. If the store has it
// cookies are only deleted.
func (x *exchange) emit(t tidegate.Token, kept bool) {
	text := x.m.cfg.Keyring.Sign(t)
	x.m.counters.emitted.Add(1)
	sources := x.m.cfg.Sources
	answered := false
	for i, s := range sources {
		if s.writable() && x.used>>i&1 != 0 {
			x.emitTo(i, s, text, kept)
			answered = true
		}
	}
	if !answered {
		for i, s := range sources {
			if s.writable() {
				x.emitTo(i, s, text, false)
			}
		}
	}
	forbidCaching(x.inner.Header())
}

func (x *exchange) emitTo(i int, s Source, text string, kept bool) {
	h := x.inner.Header()
	if s.header != "" {
		// Beside what a handler has passed on from a service behind it: the client
		// keeps both.
		h.Add(s.header, headerValue(text))
		return
	}
	if !kept {
		h.Add("Set-Cookie", s.cookie.cookie(s.cookie.Prefix+newID(), text).String())
	}
	for _, old := range x.sent {
		if old.source == i {
			h.Add("Set-Cookie", s.cookie.deletion(old.name).String())
		}
	}
}

// deletion returns what makes a client forget a cookie.
func (c *CookieConfig) deletion(name string) *http.Cookie {
	cookie := c.cookie(name, "")
	cookie.MaxAge = -1
	return cookie
}
