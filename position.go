package tidegate

import "strconv"

// Position is a point in a cluster's replication history: for PostgreSQL a log
// sequence number. Positions are compared only within one [Epoch].
//
// A position may be strict: it then stands for an unknown point beyond the
// number it carries. Strictness is a flag and never "number + 1", because the
// next number can be one that the history never stops at.
//
// The zero Position requires nothing and is covered by every position.
type Position struct {
	n      uint64
	strict bool
}

// At returns the position n itself.
func At(n uint64) Position { return Position{n: n} }

// Beyond returns an unknown position strictly after n.
func Beyond(n uint64) Position { return Position{n: n, strict: true} }

// Number returns the number the position carries, without its strictness.
func (p Position) Number() uint64 { return p.n }

// Strict reports whether p stands for a point beyond its number.
func (p Position) Strict() bool { return p.strict }

// IsZero reports whether p requires nothing.
func (p Position) IsZero() bool { return p.n == 0 && !p.strict }

// Covers reports whether a node that has applied everything up to p has what
// need asks for. A strict need is covered only by a greater number: p itself
// might lie before the unknown point.
func (p Position) Covers(need Position) bool {
	return p.n > need.n || p.n == need.n && !need.strict
}

// Join returns the smallest need that asks for both: what covers it covers both,
// and the other way round.
func (p Position) Join(q Position) Position {
	if q.n > p.n || q.n == p.n && q.strict {
		return q
	}
	return p
}

// Meet returns the smaller of two upper bounds of one point.
func (p Position) Meet(q Position) Position {
	if p.Join(q) == p {
		return q
	}
	return p
}

// String returns the number, with a leading ">" when the position is strict.
func (p Position) String() string {
	s := strconv.FormatUint(p.n, 10)
	if p.strict {
		return ">" + s
	}
	return s
}

// Epoch says which history a position belongs to. Positions of different epochs
// are not comparable: the same number can stand for different data.
//
// The zero Epoch is unknown and equals no known one.
type Epoch struct {
	// System identifies the database system; for PostgreSQL its system
	// identifier.
	System uint64
	// Line is the branch of that system's history; for PostgreSQL the
	// timeline. Zero means that it could not be learnt.
	Line uint64
	// Fork is the number of the position at which Line left the line before it. Two
	// servers that are promoted apart can give their lines one number. Zero means that it
	// is not known, or that nothing was before.
	Fork uint64
	// Origin names the server whose promotion began Line, in the life in which it was
	// promoted: two can be promoted at one position. Zero means that it is not known.
	Origin uint64
}

// Known reports whether System and Line are known.
func (e Epoch) Known() bool { return e.System != 0 && e.Line != 0 }

// Same reports whether nothing that is known of e and o tells them apart. Unlike ==
// it lets a Fork or an Origin that only one of them knows pass; unlike == it is not
// transitive. An unknown epoch is the same as none.
func (e Epoch) Same(o Epoch) bool {
	return e.Known() && e.System == o.System && e.Line == o.Line &&
		(e.Fork == o.Fork || e.Fork == 0 || o.Fork == 0) && (e.Origin == o.Origin || e.Origin == 0 || o.Origin == 0)
}

// String returns the line and what tells it from others of its number, for logs.
func (e Epoch) String() string {
	if !e.Known() {
		return "unknown"
	}
	s := "line " + strconv.FormatUint(e.Line, 10)
	if e.Fork != 0 {
		s += " from " + strconv.FormatUint(e.Fork, 10)
	}
	return s
}

// Incarnation identifies one uninterrupted life of one server: what a server
// shows can go back only from one incarnation to the next. Zero is unknown.
type Incarnation uint64

// Role is what a node said it is when it was last asked. The zero Role is
// unknown.
type Role uint8

// The roles of a node.
const (
	RoleUnknown Role = iota
	RolePrimary
	RoleReplica
)

// String returns "unknown", "primary" or "replica".
func (r Role) String() string {
	switch r {
	case RolePrimary:
		return "primary"
	case RoleReplica:
		return "replica"
	default:
		return "unknown"
	}
}
