package httpgate

import (
	"slices"

	"github.com/tidegatedb/tidegate"
)

// verifier accepts tokens of a key ring and of clusters.
type verifier struct {
	keyring  *tidegate.Keyring
	clusters []string
}

// verify returns the token, or why it is refused. A token that names a cluster of
// ours and others is taken whole: the others go through to whoever knows them.
func (v verifier) verify(text string) (tidegate.Token, error) {
	t, err := v.keyring.Verify(text)
	if err != nil {
		return tidegate.Token{}, err
	}
	if t.IsZero() || t.CatchesUp() {
		return t, nil
	}
	ours := func(m tidegate.Mark) bool { return slices.Contains(v.clusters, m.Cluster) }
	if !slices.ContainsFunc(t.Marks(), ours) {
		return tidegate.Token{}, errForeign
	}
	return t, nil
}

// catchUp makes the session see all that is committed by now, everywhere.
func (v verifier) catchUp(s *tidegate.Session) {
	for _, c := range v.clusters {
		s.CatchUp(c)
	}
}
