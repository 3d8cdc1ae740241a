package validate_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidegatedb/tidegate/test/robustness/record"
	"github.com/tidegatedb/tidegate/test/robustness/validate"
)

func wrote(session int, key, version int64, outcome record.Outcome) record.Op {
	return record.Op{Session: session, Kind: record.Write, Key: key, Version: version, Outcome: outcome}
}

func shown(session int, key, version int64) record.Op {
	return record.Op{Session: session, Kind: record.Read, Outcome: record.OK, Rows: map[int64]int64{key: version}}
}

func unproven(op record.Op) record.Op {
	op.Unproven = true
	return op
}

func told(op record.Op) record.Op {
	op.Told = true
	return unproven(op)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		ops  []record.Op
		want []string
	}{
		{"its own write", []record.Op{wrote(1, 1, 1, record.OK), shown(1, 1, 1)}, nil},
		{"not its own write", []record.Op{wrote(1, 1, 1, record.OK), shown(1, 1, 0)}, []string{"read-your-writes"}},
		{"somebody else's need not be seen", []record.Op{wrote(1, 1, 1, record.OK), shown(2, 1, 0)}, nil},
		{"seen before", []record.Op{wrote(1, 1, 1, record.OK), shown(2, 1, 1), shown(2, 1, 0)}, []string{"monotonic reads"}},
		{"seen before, by somebody else", []record.Op{wrote(1, 1, 1, record.OK), shown(2, 1, 1), shown(3, 1, 0)}, nil},
		{"an outcome that is not known", []record.Op{wrote(1, 1, 1, record.Unknown), shown(1, 1, 0)}, nil},
		{"it appears, and goes again", []record.Op{wrote(1, 1, 1, record.Unknown), shown(1, 1, 1), shown(1, 1, 0)}, []string{"monotonic reads"}},
		{"an answer that says it may be old", []record.Op{wrote(1, 1, 1, record.OK), unproven(shown(1, 1, 0))}, nil},
		{"which ends no duty", []record.Op{wrote(1, 1, 1, record.OK), unproven(shown(1, 1, 0)), shown(1, 1, 0)}, []string{"read-your-writes"}},
		{"who is told need not see it again", []record.Op{wrote(1, 1, 1, record.OK), told(shown(1, 1, 0)), shown(1, 1, 0)}, nil},
		{"but what it was shown then", []record.Op{wrote(1, 1, 2, record.OK), wrote(2, 1, 3, record.OK), told(shown(1, 1, 2)), shown(1, 1, 1)}, []string{"monotonic reads"}},
		{"a report to somebody else", []record.Op{wrote(1, 1, 1, record.OK), told(shown(2, 1, 0)), shown(1, 1, 0)}, []string{"read-your-writes"}},
		{"what nobody has written", []record.Op{shown(1, 1, 4)}, []string{"real rows"}},
		{"a strong read", []record.Op{wrote(1, 1, 1, record.OK), {Session: 1, Kind: record.Strong, Outcome: record.OK, Rows: map[int64]int64{1: 0}}}, []string{"read-your-writes"}},
		{"a read that failed", []record.Op{wrote(1, 1, 1, record.OK), {Session: 1, Kind: record.Read, Outcome: record.Failed, Rows: map[int64]int64{1: 0}}}, nil},
	} {
		var got []string
		for _, v := range validate.Check(c.ops) {
			got = append(got, v.Promise)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// In a history without fault every answer that is made older is noticed, and every report
// that is taken away from one that needed it.
func TestCheckNoticesEachMutation(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		ops, needed := honest(r)
		if bad := validate.Check(ops); len(bad) > 0 {
			t.Fatalf("seed %d: an honest history breaks %v", seed, bad)
		}
		for at, key := range needed {
			mutant := slices.Clone(ops)
			if mutant[at].Told {
				mutant[at].Told, mutant[at].Unproven = false, false
			} else {
				mutant[at].Rows = map[int64]int64{key: mutant[at].Rows[key] - 1}
			}
			if len(validate.Check(mutant)) == 0 {
				t.Fatalf("seed %d: operation %d is not missed: %+v", seed, at, ops[at])
			}
		}
	}
}

// honest makes a history of one register a key, and lists the reads that showed just what
// their session had to see, by the key.
func honest(r *rand.Rand) (ops []record.Op, needed map[int]int64) {
	const sessions, keys = 3, 2
	needed = map[int]int64{}
	next, state := map[int64]int64{}, map[int64]int64{}
	knows := [sessions]map[int64]int64{}
	for i := range knows {
		knows[i] = map[int64]int64{}
	}
	for range 60 {
		s, k := r.IntN(sessions), int64(r.IntN(keys))
		switch u := r.Float64(); {
		case u < .35:
			next[k]++
			outcome := record.OK
			if r.Float64() < .2 {
				outcome = record.Unknown
			}
			if outcome == record.OK || r.Float64() < .5 {
				state[k] = next[k]
			}
			if outcome == record.OK {
				knows[s][k] = next[k]
			}
			ops = append(ops, wrote(s, k, next[k], outcome))
		case u < .40 && state[k] > 0: // a failover loses the newest
			state[k]--
		default:
			op := shown(s, k, state[k])
			switch {
			case state[k] < knows[s][k]:
				op = told(op)
				clear(knows[s])
				needed[len(ops)] = k
			case state[k] == knows[s][k] && state[k] > 0:
				needed[len(ops)] = k
			}
			knows[s][k] = state[k]
			ops = append(ops, op)
		}
	}
	return ops, needed
}
