package tidegate

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// tokenVersion is the first byte of a token's binary form. A reader refuses
// versions it does not know.
const tokenVersion = 1

// MaxTokenBytes bounds a token's binary form.
const MaxTokenBytes = 1536

// Token is a session's history on the wire: its marks for one or more clusters.
// It is opaque to applications, immutable and safe for concurrent use. The zero
// Token requires nothing.
//
// A token holds positions and no data: one that falls into other hands lets them
// ask for freshness, never see anything. It is signed by a [Keyring] where it
// meets a client.
type Token struct {
	nonce uint64
	// rest tells that whoever presents the token must catch up with every cluster
	// that it has no mark of.
	rest  bool
	marks []Mark
}

// NewToken returns a token of the given marks. It is for adapters and carriers;
// an application takes [Session.Token].
func NewToken(marks ...Mark) Token { return Token{marks: mergeMarks(nil, marks)} }

// CatchUpToken returns a token that requires all that was committed by the time it
// is merged into a session, in every cluster: nobody knows what its bearer has seen.
func CatchUpToken() Token { return Token{rest: true} }

// IsZero reports whether the token requires nothing.
func (t Token) IsZero() bool { return len(t.marks) == 0 && !t.rest }

// Marks returns a copy of the token's marks. The same cluster can appear once
// for each epoch.
func (t Token) Marks() []Mark { return mergeMarks(nil, t.marks) }

// CatchesUp reports whether the token requires everything of each cluster that it
// has no mark of.
func (t Token) CatchesUp() bool { return t.rest }

// Merge returns a token that requires what either requires.
func (t Token) Merge(u Token) Token {
	m := Token{nonce: t.nonce, rest: t.rest || u.rest, marks: mergeMarks(mergeMarks(nil, t.marks), u.marks)}
	if m.nonce == 0 {
		m.nonce = u.nonce
	}
	for _, c := range m.clusters() {
		if t.inRest(c) || u.inRest(c) {
			m.marks = mergeMarks(m.marks, []Mark{{Cluster: c, CatchUp: true}})
		}
	}
	return m
}

// inRest reports whether the token requires everything of a cluster.
func (t Token) inRest(cluster string) bool { return t.rest && !clusterSeen(t.marks, cluster) }

// clusters lists the clusters that the token has marks of, each once.
func (t Token) clusters() (names []string) {
	for i, m := range t.marks {
		if !clusterSeen(t.marks[:i], m.Cluster) {
			names = append(names, m.Cluster)
		}
	}
	return names
}

// Flags of an encoded mark.
const (
	flagStrict = 1 << iota
	flagShownStrict
	flagShown
	flagCatchUp
	flagPrimary
	flagPatient
	flagVolatile
	flagBranch
)

// restFollows is set in the number of marks of a token with a rest.
const restFollows = 0x80

// AppendBinary appends the token's unsigned binary form: version, nonce, number
// of marks, then each mark; at most [MaxTokenBytes]. What does not fit is written as
// less that requires no less, see [Token.Within]. The error is always nil.
func (t Token) AppendBinary(b []byte) ([]byte, error) {
	return t.Within(MaxTokenBytes).append(b), nil
}

// append appends the binary form of a token that fits.
func (t Token) append(b []byte) []byte {
	b = append(b, tokenVersion)
	b = binary.BigEndian.AppendUint64(b, t.nonce)
	n := byte(len(t.marks))
	if t.rest {
		n |= restFollows
	}
	b = append(b, n)
	for _, m := range t.marks {
		b = m.bounded().append(b)
	}
	return b
}

// bounded turns lists that outgrew a token into a catch-up: what they would
// have required is part of "all that is committed up to now". A pending outcome
// is not, so a list of them that is too long can never be settled.
func (m Mark) bounded() Mark {
	if len(m.Seen) > MaxSeen {
		m.Seen, m.CatchUp = nil, true
	}
	if len(m.Pending) > MaxPending {
		m.Pending, m.CatchUp, m.Primary = nil, true, noPrimary
	}
	return m
}

func (m Mark) append(b []byte) []byte {
	var flags byte
	set := func(on bool, f byte) {
		if on {
			flags |= f
		}
	}
	set(m.Position.strict, flagStrict)
	set(!m.Shown.IsZero(), flagShown)
	set(m.Shown.strict, flagShownStrict)
	set(m.CatchUp, flagCatchUp)
	set(m.Primary != 0, flagPrimary)
	set(m.Patient, flagPatient)
	set(m.Volatile != 0, flagVolatile)
	set(m.Epoch.Fork != 0 || m.Epoch.Origin != 0, flagBranch)
	b = append(b, byte(len(m.Cluster)))
	b = append(b, m.Cluster...)
	b = append(b, flags)
	b = binary.BigEndian.AppendUint64(b, m.Epoch.System)
	b = binary.AppendUvarint(b, m.Epoch.Line)
	if flags&flagBranch != 0 {
		b = binary.AppendUvarint(b, m.Epoch.Fork)
		b = binary.BigEndian.AppendUint64(b, m.Epoch.Origin)
	}
	b = binary.AppendUvarint(b, m.Position.n)
	if flags&flagShown != 0 {
		b = binary.AppendUvarint(b, m.Shown.n)
	}
	if flags&flagPrimary != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(m.Primary))
	}
	if flags&flagVolatile != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(m.Volatile))
	}
	b = append(b, byte(len(m.Seen)<<4|len(m.Pending)))
	for _, id := range m.Seen {
		b = binary.BigEndian.AppendUint64(b, uint64(id))
	}
	for _, p := range m.Pending {
		b = binary.BigEndian.AppendUint64(b, p)
	}
	return b
}

// ParseBinary reads what [Token.AppendBinary] wrote. It accepts exactly one
// encoding of each token, and fails with [ErrTokenMalformed] or
// [ErrTokenTooLarge]; nothing is advanced then.
func ParseBinary(b []byte) (Token, error) {
	if len(b) > MaxTokenBytes {
		return Token{}, fmt.Errorf("%w: %d bytes, at most %d", ErrTokenTooLarge, len(b), MaxTokenBytes)
	}
	r := reader{b: b}
	if v := r.byte(); !r.bad && v != tokenVersion {
		return Token{}, fmt.Errorf("%w: version %d, this release reads version %d", ErrTokenMalformed, v, tokenVersion)
	}
	t := Token{nonce: r.uint64()}
	head := r.byte()
	t.rest = head&restFollows != 0
	n := int(head &^ restFollows)
	if n > MaxMarks {
		return Token{}, fmt.Errorf("%w: %d marks, at most %d", ErrTokenMalformed, n, MaxMarks)
	}
	for range n {
		m := r.mark()
		if r.bad {
			break
		}
		for _, o := range t.marks {
			r.bad = r.bad || o.Cluster == m.Cluster && o.Epoch == m.Epoch
		}
		t.marks = append(t.marks, m)
	}
	if r.bad || len(r.b) != 0 {
		return Token{}, ErrTokenMalformed
	}
	return t, nil
}

// reader takes a token apart; after the first thing that does not fit it is bad
// and returns zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || len(r.b) < n {
		r.bad = true
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) byte() byte {
	if p := r.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if p := r.take(8); p != nil {
		return binary.BigEndian.Uint64(p)
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	// The last byte of a minimal encoding is not zero, unless it is the only one.
	if n <= 0 || n > 1 && r.b[n-1] == 0 {
		r.bad = true
		return 0
	}
	r.take(n)
	return v
}

func (r *reader) mark() (m Mark) {
	name := r.take(int(r.byte()))
	flags := r.byte()
	r.bad = r.bad || len(name) == 0 || len(name) > MaxClusterName
	m.Cluster = string(name)
	m.Epoch.System = r.uint64()
	m.Epoch.Line = r.uvarint()
	if flags&flagBranch != 0 {
		m.Epoch.Fork, m.Epoch.Origin = r.uvarint(), r.uint64()
		r.bad = r.bad || m.Epoch.Fork == 0 && m.Epoch.Origin == 0
	}
	m.Position = Position{r.uvarint(), flags&flagStrict != 0}
	if flags&flagShown != 0 {
		m.Shown = Position{r.uvarint(), flags&flagShownStrict != 0}
		r.bad = r.bad || m.Shown.IsZero()
	} else {
		r.bad = r.bad || flags&flagShownStrict != 0
	}
	m.CatchUp = flags&flagCatchUp != 0
	m.Patient = flags&flagPatient != 0
	if flags&flagPrimary != 0 {
		m.Primary = Incarnation(r.uint64())
		r.bad = r.bad || m.Primary == 0 || !m.CatchUp
	}
	if flags&flagVolatile != 0 {
		m.Volatile = Incarnation(r.uint64())
		r.bad = r.bad || m.Volatile == 0
	}
	lens := r.byte()
	seen, pending := int(lens>>4), int(lens&15)
	if seen > MaxSeen || pending > MaxPending {
		r.bad = true
		return
	}
	for range seen {
		id := Incarnation(r.uint64())
		r.bad = r.bad || slices.Contains(m.Seen, id)
		m.Seen = append(m.Seen, id)
	}
	for range pending {
		p := r.uint64()
		r.bad = r.bad || slices.Contains(m.Pending, p)
		m.Pending = append(m.Pending, p)
	}
	return
}
