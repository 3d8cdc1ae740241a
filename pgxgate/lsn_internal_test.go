package pgxgate

import (
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

func TestParseLSN(t *testing.T) {
	t.Parallel()
	less := [][2]string{{"F/FFFFFFFF", "10/0"}, {"9/FFFFFFFF", "A/0"}, {"0/0", "0/1"}, {"a/0", "B/0"}}
	for _, p := range less {
		a, err1 := parseLSN(p[0])
		b, err2 := parseLSN(p[1])
		if err1 != nil || err2 != nil || a >= b {
			t.Errorf("%s should be below %s: %x %x %v %v", p[0], p[1], a, b, err1, err2)
		}
	}
	a, _ := parseLSN("2/3F42B70")
	b, _ := parseLSN("2/03f42b70")
	if a != b || a != 0x203F42B70 {
		t.Errorf("%x and %x", a, b)
	}
	for _, s := range []string{"", "1", "/", "1/", "/1", "G/0", "123456789/0", "0/123456789", "0/1/2", "-1/0", "+1/0", " 0/1", "0x1/0", "1_0/0"} {
		if v, err := parseLSN(s); err == nil {
			t.Errorf("%q was taken for %x", s, v)
		}
	}
}

func TestPageHeadersAreNoPosition(t *testing.T) {
	t.Parallel()
	y := layout{segment: 16 << 20, block: 8192}
	for _, x := range []struct{ lsn, want uint64 }{
		{0x6000028, 0x6000000}, // the first page of a segment has the long header
		{0x6000000, 0x6000000},
		{0x6000029, 0x6000029},
		{0x6002018, 0x6002000}, // others the short one
		{0x6002019, 0x6002019},
		{0x6002028, 0x6002028},
		{0x6001fff, 0x6001fff},
	} {
		if got := y.normal(x.lsn); got != x.want {
			t.Errorf("%x became %x, want %x", x.lsn, got, x.want)
		}
	}
}

func TestProbeAnswers(t *testing.T) {
	t.Parallel()
	y := layout{segment: 16 << 20, block: 8192}
	at := tidegate.At
	for _, x := range []struct {
		name string
		a    answer
		want engine.Observation
		bad  bool
	}{
		{name: "nothing received beyond what is replayed", a: answer{replica: true, first: 0x5000100, hasFirst: true, second: 0x5000100, hasSecond: true, line: 3},
			want: engine.Observation{Role: tidegate.RoleReplica, Applied: at(0x5000100), Bound: at(0x5000100), Epoch: tidegate.Epoch{Line: 3}}},
		{name: "more received", a: answer{replica: true, first: 0x5000100, hasFirst: true, second: 0x5000200, hasSecond: true},
			want: engine.Observation{Role: tidegate.RoleReplica, Applied: at(0x5000100), Bound: tidegate.Beyond(0x5000100)}},
		{name: "received unknown after a restart", a: answer{replica: true, first: 0x5000100, hasFirst: true},
			want: engine.Observation{Role: tidegate.RoleReplica, Applied: at(0x5000100), Bound: tidegate.Beyond(0x5000100), Loose: true}},
		{name: "received far below replay after a restart", a: answer{replica: true, first: 0x5000100, hasFirst: true, second: 0x4000000, hasSecond: true},
			want: engine.Observation{Role: tidegate.RoleReplica, Applied: at(0x5000100), Bound: tidegate.Beyond(0x5000100), Loose: true}},
		{name: "a primary", a: answer{first: 0x6000028, hasFirst: true, second: 0x7000100, hasSecond: true, line: 1},
			want: engine.Observation{Role: tidegate.RolePrimary, Applied: at(0x6000000), Bound: at(0x6000000), Ceiling: at(0x6000000), Epoch: tidegate.Epoch{Line: 1}}},
		{name: "no replay position", a: answer{replica: true, second: 1, hasSecond: true}, bad: true},
		{name: "a primary without an insert position", a: answer{first: 1, hasFirst: true}, bad: true},
	} {
		var o engine.Observation
		err := x.a.fill(&o, y)
		if (err != nil) != x.bad {
			t.Errorf("%s: error %v", x.name, err)
			continue
		}
		if !x.bad && (o.Role != x.want.Role || o.Applied != x.want.Applied || o.Bound != x.want.Bound || o.Loose != x.want.Loose || o.Ceiling != x.want.Ceiling || o.Epoch != x.want.Epoch) {
			t.Errorf("%s: %+v, want %+v", x.name, o, x.want)
		}
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	row := func(change map[int]string) [][]byte {
		r := []string{"t", "0/5000100", "0/5000100", "1", "1000", "2000", "7300000000000000000", "10.0.0.1", "5432", "16777216", "8192", "42", "3000"}
		for i, v := range change {
			r[i] = v
		}
		var b [][]byte
		for _, v := range r {
			b = append(b, []byte(v))
		}
		return b
	}
	read := func(change map[int]string) *connState {
		s := &connState{}
		if err := s.read(row(change)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	base := read(nil)
	if same := read(nil); same.born.Incarnation != base.born.Incarnation || same.born.Server != base.born.Server {
		t.Error("two connections to one server differ")
	}
	for name, x := range map[string]struct {
		change         map[int]string
		server, lifeIs bool
	}{
		"a restart":            {map[int]string{4: "1001"}, true, false},
		"a crash of a backend": {map[int]string{5: "2001"}, true, false}, // the start time stays, the statistics do not
		"another host":         {map[int]string{7: "10.0.0.2"}, false, false},
		"another port":         {map[int]string{8: "5433"}, false, false},
		"another system":       {map[int]string{6: "7300000000000000001"}, false, false},
		"another backend":      {map[int]string{11: "43"}, true, true},
	} {
		s := read(x.change)
		if (s.born.Server == base.born.Server) != x.server || (s.born.Incarnation == base.born.Incarnation) != x.lifeIs {
			t.Errorf("%s: server same %v, life same %v", name, s.born.Server == base.born.Server, s.born.Incarnation == base.born.Incarnation)
		}
	}
}
