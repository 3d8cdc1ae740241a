package admin_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/admin"
)

// signed writes for a session while r1 stands still, and returns its token.
func (w *world) signed() (*tidegate.Session, string) {
	w.t.Helper()
	s := tidegate.NewSession()
	w.cluster.Nodes()[1].Pause()
	if _, err := w.gate.Write(tidegate.WithSession(w.t.Context(), s), 1); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // until all have been looked at
	synctest.Wait()
	text := w.keyring.Sign(s.Token())
	return s, text
}

func TestExplain(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, nil, func(t *testing.T, w *world) {
		_, token := w.signed()
		x := w.get("/explain?cluster=main&class=causal&token="+token, 200)
		has(t, x, map[string]any{"cluster": "main", "class": "causal", "need": "causal", "session": true, "required": "10"})
		has(t, item(t, x["nodes"], "node", "r1"), map[string]any{"role": "replica", "eligible": false, "why": "has applied 0, less than required", "applied": "0"})
		has(t, item(t, x["nodes"], "node", "r2"), map[string]any{"eligible": true, "applied": "10"})
		has(t, item(t, x["nodes"], "node", "p"), map[string]any{"role": "primary", "eligible": false})

		x = w.get("/explain?class=causal", 200)
		has(t, x, map[string]any{"session": false, "required": nil})
		has(t, item(t, x["nodes"], "node", "p"), map[string]any{"eligible": true})

		x = w.get("/explain?class="+dashboard.Name(), 200)
		has(t, x, map[string]any{"need": "relaxed"})
		has(t, item(t, x["nodes"], "node", "r1"), map[string]any{"eligible": true})
		x = w.get("/explain?class="+claim.Name(), 200)
		has(t, item(t, x["nodes"], "node", "r2"), map[string]any{"eligible": false, "why": "a strong read goes to the primary"})
	})
}

func TestExplainChangesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, nil, func(t *testing.T, w *world) {
		s, token := w.signed()
		before, stats := s.Token(), w.gate.Core().Stats()
		// Somebody's middleware may have put a session there: it is not asked about.
		r := httptest.NewRequestWithContext(tidegate.WithSession(t.Context(), s), http.MethodGet, "/explain?class=causal", nil)
		rec := httptest.NewRecorder()
		w.h.ServeHTTP(rec, r)
		has(t, decode(t, rec, 200), map[string]any{"session": false, "required": nil})
		for range 50 {
			w.get("/explain?class=causal&token="+token, 200)
			w.get("/table", 200)
		}
		synctest.Wait()
		if got := w.gate.Core().Stats(); got != stats {
			t.Errorf("looking counted something: %+v, before %+v", got, stats)
		}
		a, _ := before.AppendBinary(nil)
		b, _ := s.Token().AppendBinary(nil)
		if string(a) != string(b) {
			t.Errorf("the session advanced: %v, before %v", s.Token().Marks(), before.Marks())
		}
	})
}

func TestTokensAreVerifiedAndNotRepeated(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, nil, func(t *testing.T, w *world) {
		_, token := w.signed()
		altered := token[:len(token)-4] + "AAAA"
		for _, bad := range []string{altered, "tg1.nonsense", "Bearer x"} {
			r := serve(w.h, http.MethodGet, "/explain?class=causal&token="+strings.ReplaceAll(bad, " ", "+"), "")
			refused(t, decode(t, r, 400), 400, "token")
			if strings.Contains(r.Body.String(), bad) {
				t.Errorf("a token is repeated: %s", r.Body)
			}
		}
		if r := serve(w.h, http.MethodGet, "/explain?class=causal&token="+token, ""); strings.Contains(r.Body.String(), token[4:20]) {
			t.Errorf("a token is repeated: %s", r.Body)
		}
	})
	inBubble(t, func(c *admin.Config) { c.Keyring = nil }, nil, func(t *testing.T, w *world) {
		_, token := w.signed()
		refused(t, w.get("/explain?class=causal&token="+token, 403), 403, "token")
	})
}
