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
			text, _, _ = strings.Cut(text, ";") // what httpgate sends has an ID behind it
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
