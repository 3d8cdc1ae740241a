package tidegatetest

import (
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate"
)

// Routed fails the test unless all reads whose decisions were observed went to a
// node of that role and were proven, and there was at least one.
func Routed(t testing.TB, seen *tidegate.Decisions, role tidegate.Role) {
	t.Helper()
	all := seen.All()
	if len(all) == 0 {
		t.Errorf("tidegatetest: no read was observed; read with the context that tidegate.Observe returned")
	}
	for _, d := range all {
		if d.Role != role || d.Unproven {
			t.Errorf("tidegatetest: want a proven read on a %v: %v", role, d)
		}
	}
}

// Covers fails the test unless the token makes its holder see at least what the
// session wrote: the test of a middleware, a job queue or an event that carries
// tokens. The session must have written something.
//
// It compares the positions of commits, and whether the outcome of a write is not
// known. What the session has seen on replicas it does not compare, because tokens
// can say that in several ways: read with the token to test it.
func Covers(t testing.TB, token tidegate.Token, session *tidegate.Session) {
	t.Helper()
	wrote := false
	for _, m := range session.Token().Marks() {
		if m.Position.IsZero() && !m.CatchUp {
			continue
		}
		wrote = true
		if why := lacks(token, m); why != "" {
			t.Errorf("tidegatetest: the token does not cover the session: cluster %s: %s", m.Cluster, why)
		}
	}
	if !wrote {
		t.Errorf("tidegatetest: the session has written nothing, so that every token covers it; is it the session of the context that was written with?")
	}
}

// lacks says what of a mark the token does not require.
func lacks(token tidegate.Token, m tidegate.Mark) string {
	var had []string
	for _, o := range token.Marks() {
		switch {
		case o.Cluster != m.Cluster:
		case m.Epoch.Known() && !o.Epoch.Same(m.Epoch):
			had = append(had, "a position of another history")
		case !o.Position.Covers(m.Position):
			had = append(had, "position "+o.Position.String())
		case m.CatchUp && !o.CatchUp:
			had = append(had, "position "+o.Position.String()+" and no catch-up")
		default:
			return ""
		}
	}
	if len(had) == 0 {
		had = append(had, "nothing")
	}
	need := "position " + m.Position.String()
	if m.CatchUp {
		need += " and to catch up"
	}
	return "it requires " + strings.Join(had, ", ") + " where the session requires " + need
}
