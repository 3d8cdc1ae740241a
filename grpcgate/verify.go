package grpcgate

import (
	"slices"
	"strings"

	"github.com/tidegatedb/tidegate"
)

// verifier reads and writes tokens of a key ring and of clusters.
type verifier struct {
	keyring  *tidegate.Keyring
	clusters []string
	most     int // tokens that are read
}

// read returns the tokens of metadata values, counts those that are refused, and
// reports whether there were any. Proxies may have joined values with commas.
func (v *verifier) read(values []string, refused *refusals) (tokens []tidegate.Token, bad bool) {
	n := 0
	for _, value := range values {
		for text := range strings.SplitSeq(value, ",") {
			if n++; n > v.most {
				refused.add(errTooMany)
				return tokens, true
			}
			t, err := v.verify(strings.Trim(text, " \t"))
			if err != nil {
				refused.add(err)
				bad = true
				continue
			}
			tokens = append(tokens, t)
		}
	}
	return tokens, bad
}

// verify returns the token, or why it is refused. A token that names a cluster of
// ours and others is taken whole: the others go through to whoever knows them.
func (v *verifier) verify(text string) (tidegate.Token, error) {
	t, err := v.keyring.Verify(text)
	if err != nil {
		return tidegate.Token{}, err
	}
	marks := t.Marks()
	ours := func(m tidegate.Mark) bool { return slices.Contains(v.clusters, m.Cluster) }
	if len(marks) > 0 && !t.CatchesUp() && !slices.ContainsFunc(marks, ours) {
		return tidegate.Token{}, errForeign
	}
	return t, nil
}

// catchUp makes the session see all that is committed by now, everywhere.
func (v *verifier) catchUp(s *tidegate.Session) {
	for _, c := range v.clusters {
		s.CatchUp(c)
	}
}

// sign returns the text of a token. If there were none, the empty text would be
// refused by the other side, which catches up then.
func (v *verifier) sign(t tidegate.Token) string {
	text, _ := v.keyring.Sign(t)
	return text
}

// same reports whether two tokens require the same positions, in whatever order. What
// is momentary it leaves out.
func same(a, b tidegate.Token) bool {
	left, right := a.Marks(), b.Marks()
	if len(left) != len(right) {
		return false
	}
	for _, m := range left {
		if !slices.ContainsFunc(right, func(n tidegate.Mark) bool {
			return m.Cluster == n.Cluster && m.Epoch == n.Epoch && m.Position == n.Position && m.Shown == n.Shown && m.Patient == n.Patient
		}) {
			return false
		}
	}
	return true
}

// momentary reports whether what a token requires depends on when it arrives: an
// incarnation that was read from, or a duty to catch up. Two such tokens can say
// the same and mean different moments.
func momentary(t tidegate.Token) bool {
	return t.CatchesUp() || slices.ContainsFunc(t.Marks(), func(m tidegate.Mark) bool {
		return len(m.Seen) > 0 || m.CatchUp || len(m.Pending) > 0
	})
}
