package tidegate_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tidegatedb/tidegate"
)

func TestRolloutShare(t *testing.T) {
	t.Parallel()
	const smallest = 1. / (1 << 32)
	for _, c := range []struct {
		part  float64
		want  float64
		whole tidegate.Rollout // where the share is none
	}{
		{part: math.NaN(), whole: tidegate.RolloutOff},
		{part: math.Inf(-1), whole: tidegate.RolloutOff},
		{part: -1, whole: tidegate.RolloutOff},
		{part: math.Copysign(0, -1), whole: tidegate.RolloutOff},
		{part: 0, whole: tidegate.RolloutOff},
		{part: math.SmallestNonzeroFloat64, whole: tidegate.RolloutOff},
		{part: smallest * .4, whole: tidegate.RolloutOff},
		{part: smallest, want: smallest},
		{part: .25, want: .25},
		{part: .5, want: .5},
		{part: 1 - smallest, want: 1 - smallest},
		{part: 1 - smallest*.4, want: 1, whole: tidegate.RolloutOn},
		{part: math.Nextafter(1, 0), want: 1, whole: tidegate.RolloutOn},
		{part: 1, want: 1, whole: tidegate.RolloutOn},
		{part: 7, want: 1, whole: tidegate.RolloutOn},
		{part: math.Inf(1), want: 1, whole: tidegate.RolloutOn},
	} {
		r := tidegate.RolloutShare(c.part)
		whole := r == tidegate.RolloutOn || r == tidegate.RolloutOff
		if r.Share() != c.want || r.Shadow() || whole != (c.want == 0 || c.want == 1) || whole && r != c.whole {
			t.Errorf("RolloutShare(%v) is %v with the share %v, want %v", c.part, r, r.Share(), c.want)
		}
	}
	if tidegate.RolloutOn != (tidegate.Rollout{}) || tidegate.RolloutShadow.Share() != 0 || !tidegate.RolloutShadow.Shadow() {
		t.Error("on is not the zero Rollout, or shadow routes something")
	}
}

func TestRolloutRoutes(t *testing.T) {
	t.Parallel()
	for _, nonce := range []uint64{0, 1, 1 << 32, math.MaxUint64} {
		if !tidegate.RolloutOn.Routes(nonce) || tidegate.RolloutOff.Routes(nonce) || tidegate.RolloutShadow.Routes(nonce) {
			t.Errorf("nonce %#x: on does not route it, or off or shadow do", nonce)
		}
	}
}

// A share routes its part of the sessions, whatever their nonces have in common,
// and a larger share all of theirs.
func TestRolloutSharesAreNested(t *testing.T) {
	t.Parallel()
	const sessions = 100_000
	r := rand.New(rand.NewPCG(1, 2))
	shares := []float64{.001, .05, .2, .5, .95}
	for name, nonce := range map[string]func(i int) uint64{
		"random":      func(int) uint64 { return r.Uint64() | 1 }, // as NewSession makes them
		"in order":    func(i int) uint64 { return uint64(i) },
		"high bits":   func(i int) uint64 { return uint64(i) << 40 },
		"only low":    func(i int) uint64 { return uint64(i)<<1 | 1 },
		"the highest": func(i int) uint64 { return math.MaxUint64 - uint64(i) },
	} {
		counts := make([]int, len(shares))
		for i := range sessions {
			n, before := nonce(i), false
			for j, share := range shares {
				in := tidegate.RolloutShare(share).Routes(n)
				if before && !in {
					t.Fatalf("%s: %#x is in %v and not in %v", name, n, shares[j-1], share)
				}
				if before = in; in {
					counts[j]++
				}
			}
		}
		for j, p := range shares {
			// Beyond five standard deviations of chance is no accident.
			if want := p * sessions; math.Abs(float64(counts[j])-want) > 5*math.Sqrt(want*(1-p)) {
				t.Errorf("%s: the share %v has %d of %d sessions", name, p, counts[j], sessions)
			}
		}
	}
}

// nothing is a ledger of no interest.
type nothing struct{}

func (nothing) Marks() []tidegate.Mark { return nil }
func (nothing) Merge([]tidegate.Mark)  {}
func (nothing) CatchUp()               {}

// nonce returns a session's nonce as adapters get it.
func nonce(s *tidegate.Session) (n uint64) {
	s.Ledger("any", func(nonce uint64, _ []tidegate.Mark) tidegate.Ledger {
		n = nonce
		return nothing{}
	})
	return n
}

// A session is in a share or not for as long as it lives, on every instance that
// its token reaches.
func TestRolloutGoesWithTheToken(t *testing.T) {
	t.Parallel()
	for range 100 {
		s := tidegate.NewSession()
		first := nonce(s)
		for hop := range 5 {
			token, err := tidegate.ParseBinary(encode(t, s.Token()))
			if err != nil {
				t.Fatal(err)
			}
			s = tidegate.NewSession(token)
			if hop == 2 {
				s.Merge(tidegate.NewSession().Token()) // an event of another session's
			}
			if n := nonce(s); n != first || n == 0 {
				t.Fatalf("after %d hops the nonce is %#x, was %#x", hop+1, n, first)
			}
		}
	}
}

func TestParseRollout(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]tidegate.Rollout{
		"on": tidegate.RolloutOn, "off": tidegate.RolloutOff, "shadow": tidegate.RolloutShadow,
		"0": tidegate.RolloutOff, "0%": tidegate.RolloutOff, "-0": tidegate.RolloutOff, "1e-30": tidegate.RolloutOff,
		"1": tidegate.RolloutOn, "1.0": tidegate.RolloutOn, "100%": tidegate.RolloutOn,
		"0.05": tidegate.RolloutShare(.05), ".05": tidegate.RolloutShare(.05), "5%": tidegate.RolloutShare(.05), "1%": tidegate.RolloutShare(.01),
		"0.5%": tidegate.RolloutShare(.005), "99.9%": tidegate.RolloutShare(.999),
	} {
		if got, err := tidegate.ParseRollout(text); err != nil || got != want {
			t.Errorf("%q is %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "On", " on", "yes", "5", "1.01", "101%", "-0.1", "-1%", "NaN", "nan%", "Inf", "5%%", "0.05 ", "0,05"} {
		if got, err := tidegate.ParseRollout(text); !errors.Is(err, tidegate.ErrConfig) || got != (tidegate.Rollout{}) {
			t.Errorf("%q is %v, %v, want an error that wraps ErrConfig", text, got, err)
		}
	}
}

func TestRolloutString(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]tidegate.Rollout{
		"on": {}, "off": tidegate.RolloutShare(0), "shadow": tidegate.RolloutShadow,
		"0.05": tidegate.RolloutShare(.05), "0.3": tidegate.RolloutShare(.3), "0.999": tidegate.RolloutShare(.999), "0.0001": tidegate.RolloutShare(1e-4),
	} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Whatever is accepted means something that can be written down again.
func FuzzParseRollout(f *testing.F) {
	for _, s := range []string{"on", "off", "shadow", "0.05", "5%", "1e-9", "0x1p-31", "0.99999999999", "2.3283064365386963e-10", "100%", "NaN"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := tidegate.ParseRollout(s)
		if err != nil {
			return
		}
		if share := r.Share(); !(share >= 0 && share <= 1) {
			t.Errorf("%q has the share %v", s, share)
		}
		if again, err := tidegate.ParseRollout(r.String()); err != nil || again != r {
			t.Errorf("%q is %v, which is read as %v, %v", s, r, again, err)
		}
	})
}
