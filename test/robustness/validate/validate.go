// Package validate checks a history against what is promised.
package validate

import (
	"fmt"

	"github.com/tidegatedb/tidegate/test/robustness/record"
)

// Violation is an answer that broke a promise.
type Violation struct {
	// Promise is "read-your-writes", "monotonic reads" or "real rows".
	Promise string
	// At is the operation's place in the history.
	At      int
	Op      record.Op
	Key     int64
	Wanted  int64 // at least, but for real rows: at most
	Got     int64
	Because int // the place of the operation by which the session knew
}

// String says what is wrong in one line.
func (v Violation) String() string {
	return fmt.Sprintf("%s: operation %d of session %d on instance %d shows version %d of row %d, wanted %d (operation %d): %s",
		v.Promise, v.At, v.Op.Session, v.Op.Instance, v.Got, v.Key, v.Wanted, v.Because, v.Op.Decision)
}

// known is a version that a session must see, and by which operation it came to know it.
type known struct {
	version int64
	own     bool
	by      int
}

// Check returns what broke a promise. The operations of each session must be in their order.
//
// A session must see what it was told has committed and what it was shown, unless the answer
// says that it could not be proven. An answer that says that the session's history is over
// ends all that it had to see; from there on it must see what that answer showed. A write
// whose outcome is not known may appear, at any time or never.
func Check(ops []record.Op) (bad []Violation) {
	begun := map[int64]int64{} // the newest version that anybody began to write
	for _, op := range ops {
		if op.Kind == record.Write {
			begun[op.Key] = max(begun[op.Key], op.Version)
		}
	}
	sessions := map[int]map[int64]known{}
	for at, op := range ops {
		knows := sessions[op.Session]
		if knows == nil {
			knows = map[int64]known{}
			sessions[op.Session] = knows
		}
		switch {
		case op.Outcome != record.OK:
		case op.Kind == record.Write:
			if op.Version > knows[op.Key].version {
				knows[op.Key] = known{op.Version, true, at}
			}
		default:
			if op.Told {
				clear(knows)
			}
			bad = append(bad, answered(at, op, knows, begun)...)
		}
	}
	return bad
}

// answered checks an answer and adds what it shows to what the session knows.
func answered(at int, op record.Op, knows map[int64]known, begun map[int64]int64) (bad []Violation) {
	for key, got := range op.Rows {
		if most := begun[key]; got > most {
			bad = append(bad, Violation{"real rows", at, op, key, most, got, at})
			continue
		}
		switch k := knows[key]; {
		case got >= k.version:
			knows[key] = known{got, k.own && got == k.version, at}
		case op.Unproven:
		case k.own:
			bad = append(bad, Violation{"read-your-writes", at, op, key, k.version, got, k.by})
		default:
			bad = append(bad, Violation{"monotonic reads", at, op, key, k.version, got, k.by})
		}
	}
	return bad
}
