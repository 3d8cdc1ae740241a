package check_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/check"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// A history is what happened in a run, in the order of one clock: writes are in
// it when they were sent and again when they were acknowledged.
type history struct {
	keys  int
	steps []step
}

type step struct {
	session int
	what    what
	version int64        // of a write
	rows    []record.Row // of a read
	asked   []int64
	since   int // of a read: the step before which it began; 0 for its own
}

// began is the step before which the read that ends with step i began.
func (h history) began(i int) int {
	if since := h.steps[i].since; since > 0 {
		return since
	}
	return i
}

type what uint8

const (
	send what = iota
	ack
	read
)

// judge runs a history through the checker: the violations of each step.
func (h history) judge() [][]record.Violation {
	checker := check.New(h.keys)
	var sessions []*check.Session
	for id := range h.keys {
		sessions = append(sessions, checker.Session(id, int64(id)))
	}
	found := make([][]record.Violation, len(h.steps))
	required := make([]check.Required, len(h.steps))
	for i, st := range h.steps {
		for end := i; end < len(h.steps); end++ {
			if e := h.steps[end]; e.what == read && h.began(end) == i {
				required[end] = sessions[e.session].Begin(e.asked)
			}
		}
		switch s := sessions[st.session]; st.what {
		case send:
			s.Writing(st.version)
		case ack:
			s.Wrote(st.version)
		case read:
			if st.since == 0 {
				found[i] = s.Read(st.asked, st.rows)
			} else {
				found[i] = s.End(required[i], st.rows)
			}
		}
	}
	return found
}

// oracle judges the same by the definitions alone, looking back through the
// whole history for every row: slow, and nothing like the checker.
func (h history) oracle() [][]record.Promise {
	found := make([][]record.Promise, len(h.steps))
	for i, st := range h.steps {
		if st.what != read {
			continue
		}
		broken := map[record.Promise]bool{}
		for n, row := range st.rows {
			if !slices.Contains(st.asked, row.Key) || slices.ContainsFunc(st.rows[:n], func(r record.Row) bool { return r.Key == row.Key }) {
				broken[record.RealRows] = true
			}
		}
		for _, key := range st.asked {
			got := version(st.rows, key)
			begun, acked, seen := h.begunAt(i, key), int64(0), int64(0)
			began := h.steps[:h.began(i)]
			for _, past := range began {
				if past.what == ack && past.session == st.session && int64(past.session) == key {
					acked = max(acked, past.version)
				}
			}
			for j, past := range began {
				if past.what == read && past.session == st.session && slices.Contains(past.asked, key) {
					if v := version(past.rows, key); v <= h.begunAt(j, key) {
						seen = max(seen, v)
					}
				}
			}
			switch {
			case got > begun:
				broken[record.RealRows] = true
			case int64(st.session) == key && got < acked: // an absent row is below 0
				broken[record.ReadYourWrites] = true
			case got < seen:
				broken[record.MonotonicReads] = true
			}
		}
		for p := range broken {
			found[i] = append(found[i], p)
		}
		slices.Sort(found[i])
	}
	return found
}

func (h history) begunAt(i int, key int64) (newest int64) {
	for _, past := range h.steps[:i] {
		if past.what == send && int64(past.session) == key {
			newest = max(newest, past.version)
		}
	}
	return newest
}

func version(rows []record.Row, key int64) int64 {
	for _, r := range rows {
		if r.Key == key {
			return r.Version
		}
	}
	return record.Absent
}

// honest makes a random history that breaks no promise: sessions read from
// copies that lag, but only from one that has what they know. Some writes end
// in an error; some of those happen all the same, at once or later.
func honest(r *rand.Rand, keys, length int) history {
	h := history{keys: keys}
	primary := make([]int64, keys)
	replicas := [2][]int64{make([]int64, keys), make([]int64, keys)}
	known := make([][]int64, keys)
	next := make([]int64, keys)  // version of each session's next write
	limbo := make([]int64, keys) // version of an unknown write that may yet happen
	for s := range known {
		known[s] = make([]int64, keys)
	}
	for len(h.steps) < length {
		s := r.IntN(keys)
		for _, replica := range replicas {
			if r.IntN(4) == 0 {
				copy(replica, primary)
			}
		}
		if limbo[s] > primary[s] && r.IntN(3) == 0 {
			primary[s] = limbo[s]
		}
		if r.IntN(3) == 0 {
			next[s]++
			h.steps = append(h.steps, step{session: s, what: send, version: next[s]})
			if r.IntN(5) > 0 {
				primary[s] = next[s]
				known[s][s] = next[s]
				h.steps = append(h.steps, step{session: s, what: ack, version: next[s]})
			} else if r.IntN(2) == 0 {
				limbo[s] = next[s]
			}
			continue
		}
		source := primary
		for _, replica := range replicas {
			if covers(replica, known[s]) && r.IntN(2) == 0 {
				source = replica
			}
		}
		st := step{session: s, what: read}
		for _, k := range r.Perm(keys)[:min(4, keys)] {
			st.asked = append(st.asked, int64(k))
			st.rows = append(st.rows, record.Row{Key: int64(k), Version: source[k]})
			known[s][k] = max(known[s][k], source[k])
		}
		r.Shuffle(len(st.rows), func(i, j int) { st.rows[i], st.rows[j] = st.rows[j], st.rows[i] })
		h.steps = append(h.steps, st)
	}
	return h
}

func covers(have, need []int64) bool {
	for k := range need {
		if have[k] < need[k] {
			return false
		}
	}
	return true
}

func (h history) clone() history {
	c := history{keys: h.keys, steps: slices.Clone(h.steps)}
	for i := range c.steps {
		c.steps[i].rows = slices.Clone(c.steps[i].rows)
	}
	return c
}

// known is what a session may not be shown less of, before step i, and whether
// that is because of its own acknowledged write.
func (h history) known(i int, key int64) (version int64, own bool) {
	s := h.steps[i].session
	acked, seen := int64(0), int64(0)
	for _, past := range h.steps[:i] {
		if past.session != s {
			continue
		}
		if past.what == ack && int64(s) == key {
			acked = max(acked, past.version)
		}
		for _, r := range past.rows {
			if r.Key == key {
				seen = max(seen, r.Version)
			}
		}
	}
	return max(acked, seen), acked >= seen && int64(s) == key
}

// A mutation makes one step of an honest history dishonest. It says what the
// checker must report there, or that this step cannot be changed in this way.
type mutation struct {
	name string
	make func(r *rand.Rand, h *history, i int) (want record.Promise, ok bool)
}

var mutations = []mutation{
	{"show less than is known", func(r *rand.Rand, h *history, i int) (record.Promise, bool) {
		rows := h.steps[i].rows
		row := &rows[r.IntN(len(rows))]
		known, own := h.known(i, row.Key)
		if known == 0 {
			return 0, false
		}
		row.Version = r.Int64N(known)
		return promise(own || row.Version < h.acked(i, row.Key)), true
	}},
	{"show the version before the known one", func(r *rand.Rand, h *history, i int) (record.Promise, bool) {
		rows := h.steps[i].rows
		row := &rows[r.IntN(len(rows))]
		known, _ := h.known(i, row.Key)
		if known == 0 {
			return 0, false
		}
		row.Version = known - 1
		return promise(row.Version < h.acked(i, row.Key)), true
	}},
	{"leave a row out", func(r *rand.Rand, h *history, i int) (record.Promise, bool) {
		rows := h.steps[i].rows
		n := r.IntN(len(rows))
		own := rows[n].Key == int64(h.steps[i].session)
		h.steps[i].rows = slices.Delete(rows, n, n+1)
		return promise(own), true
	}},
	{"show a row twice", func(r *rand.Rand, h *history, i int) (record.Promise, bool) {
		rows := h.steps[i].rows
		h.steps[i].rows = append(rows, rows[r.IntN(len(rows))])
		return record.RealRows, true
	}},
	{"show a row of another key", func(r *rand.Rand, h *history, i int) (record.Promise, bool) {
		h.steps[i].rows = append(h.steps[i].rows, record.Row{Key: int64(h.keys) + r.Int64N(9), Version: 0})
		return record.RealRows, true
	}},
	{"show the future", func(r *rand.Rand, h *history, i int) (record.Promise, bool) {
		rows := h.steps[i].rows
		row := &rows[r.IntN(len(rows))]
		row.Version = h.begunAt(i, row.Key) + 1 + r.Int64N(3)
		return record.RealRows, true
	}},
}

func promise(own bool) record.Promise {
	if own {
		return record.ReadYourWrites
	}
	return record.MonotonicReads
}

func (h history) acked(i int, key int64) (newest int64) {
	for _, past := range h.steps[:i] {
		if past.what == ack && past.session == h.steps[i].session && int64(past.session) == key {
			newest = max(newest, past.version)
		}
	}
	return newest
}

const seeds = 400

func TestHonestHistoriesAreClean(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds) {
		h := honest(rand.New(rand.NewPCG(seed, 0)), 6, 300)
		for i, found := range h.judge() {
			if len(found) > 0 {
				t.Fatalf("seed %d, step %d: %v", seed, i, found)
			}
		}
	}
}

func TestSingleMutationsAreCaught(t *testing.T) {
	t.Parallel()
	for n, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			tried := 0
			for seed := range uint64(seeds) {
				r := rand.New(rand.NewPCG(seed, uint64(n)+1))
				h := honest(r, 6, 150)
				i := r.IntN(len(h.steps))
				if h.steps[i].what != read {
					continue
				}
				mutant := h.clone()
				want, ok := m.make(r, &mutant, i)
				if !ok {
					continue
				}
				tried++
				found := mutant.judge()
				if len(found[i]) != 1 || found[i][0].Promise != want {
					t.Fatalf("seed %d, step %d: want one violation of %v, got %v\nwas    %v\nbecame %v",
						seed, i, want, found[i], h.steps[i], mutant.steps[i])
				}
				for j := range found[:i] {
					if len(found[j]) > 0 {
						t.Fatalf("seed %d: step %d was touched, step %d is blamed: %v", seed, i, j, found[j])
					}
				}
			}
			if tried < seeds/4 {
				t.Errorf("only %d of %d histories could be changed", tried, seeds)
			}
		})
	}
}

// Whole histories, valid and not, against the definitions: after several changes
// at random places, and with two answers exchanged.
func TestCheckerAgreesWithTheDefinitions(t *testing.T) {
	t.Parallel()
	broken := 0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 99))
		h := honest(r, 5, 80)
		for range r.IntN(6) {
			i, j := r.IntN(len(h.steps)), r.IntN(len(h.steps))
			a, b := &h.steps[i], &h.steps[j]
			if a.what != read || b.what != read {
				continue
			}
			if r.IntN(2) == 0 {
				a.rows, b.rows = b.rows, a.rows
				a.asked, b.asked = b.asked, a.asked
			} else {
				mutations[r.IntN(len(mutations))].make(r, &h, i)
			}
		}
		want := h.oracle()
		for i, found := range h.judge() {
			got := promises(found)
			if !slices.Equal(got, want[i]) {
				t.Fatalf("seed %d, step %d (%v): the checker says %v, the definitions %v", seed, i, h.steps[i], found, want[i])
			}
			if len(got) > 0 {
				broken++
			}
		}
	}
	if broken < seeds/2 {
		t.Errorf("only %d answers in %d histories were bad", broken, seeds)
	}
}

func promises(found []record.Violation) []record.Promise {
	var list []record.Promise
	for _, v := range found {
		if !slices.Contains(list, v.Promise) {
			list = append(list, v.Promise)
		}
	}
	slices.Sort(list)
	return list
}

func (s step) String() string {
	return fmt.Sprintf("session %d, kind %d, version %d, asked %v, rows %v", s.session, s.what, s.version, s.asked, s.rows)
}
