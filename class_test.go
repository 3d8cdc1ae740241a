package tidegate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
)

func TestClassZeroIsCausal(t *testing.T) {
	t.Parallel()
	var zero tidegate.Class
	if zero != tidegate.Causal {
		t.Error("the zero Class is not Causal")
	}
	if zero.Need() != tidegate.NeedCausal || zero.Name() != "causal" || zero.Why() == "" || zero.Owner() != "" {
		t.Errorf("the zero Class is %v, name %q, why %q, owner %q", zero.Need(), zero.Name(), zero.Why(), zero.Owner())
	}
	if err := zero.Err(); err != nil {
		t.Errorf("the zero Class is refused: %v", err)
	}
	if got := zero.Wait(7 * time.Millisecond); got != 7*time.Millisecond {
		t.Errorf("the zero Class waits %v, want the fallback", got)
	}
	if d, anyAge := zero.Budget(); d != 0 || anyAge {
		t.Errorf("the zero Class has the budget %v, any age %v", d, anyAge)
	}
}

func TestClassParts(t *testing.T) {
	t.Parallel()
	const fallback = 20 * time.Millisecond
	for _, c := range []struct {
		class  tidegate.Class
		need   tidegate.Need
		owner  string
		wait   time.Duration
		budget time.Duration
		anyAge bool
		text   string
	}{
		{class: tidegate.Strong("claim", "w"), need: tidegate.NeedStrong, wait: fallback, text: "claim (strong)"},
		{class: tidegate.Strong("claim", "w", tidegate.Owner("ops")), need: tidegate.NeedStrong, owner: "ops", wait: fallback, text: "claim (strong)"},
		{class: tidegate.Strong("strong", "w"), need: tidegate.NeedStrong, wait: fallback, text: "strong"},
		{class: tidegate.NewCausal("cart", "w"), wait: fallback, text: "cart (causal)"},
		{class: tidegate.NewCausal("cart", "w", tidegate.Wait(time.Second), tidegate.Owner("shop")), owner: "shop", wait: time.Second, text: "cart (causal)"},
		{class: tidegate.NewCausal("cart", "w", tidegate.Wait(0)), wait: 0, text: "cart (causal)"},
		{class: tidegate.NewCausal("cart", "w", tidegate.Wait(-1), tidegate.Wait(1)), wait: 1, text: "cart (causal)"}, // the last one counts
		{class: tidegate.Relaxed("board", "w", tidegate.Within(time.Minute)), need: tidegate.NeedRelaxed, wait: fallback, budget: time.Minute, text: "board (relaxed)"},
		{class: tidegate.Relaxed("board", "w", tidegate.AnyStaleness(), tidegate.Wait(0), tidegate.Owner("bi")), need: tidegate.NeedRelaxed, owner: "bi", anyAge: true, text: "board (relaxed)"},
		{class: tidegate.Relaxed("causal", "w", tidegate.AnyStaleness()), need: tidegate.NeedRelaxed, wait: fallback, anyAge: true, text: "causal (relaxed)"},
	} {
		budget, anyAge := c.class.Budget()
		if c.class.Need() != c.need || c.class.Owner() != c.owner || c.class.Wait(fallback) != c.wait ||
			budget != c.budget || anyAge != c.anyAge || c.class.String() != c.text || c.class.Why() != "w" {
			t.Errorf("%v: need %v, owner %q, wait %v, budget %v %v, why %q, want %+v",
				c.class, c.class.Need(), c.class.Owner(), c.class.Wait(fallback), budget, anyAge, c.class.Why(), c)
		}
		if err := c.class.Err(); err != nil {
			t.Errorf("%v is refused: %v", c.class, err)
		}
	}
}

func TestClassErr(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		class tidegate.Class
		says  []string
	}{
		{tidegate.Strong("", "w"), []string{"strong", "name"}},
		{tidegate.NewCausal("", "w"), []string{"causal", "name"}},
		{tidegate.Relaxed("", "w", tidegate.AnyStaleness()), []string{"relaxed", "name"}},
		{tidegate.Strong("claim", ""), []string{`"claim"`, "reason"}},
		{tidegate.NewCausal("cart", "w", tidegate.Wait(-time.Second)), []string{`"cart"`, "wait -1s"}},
		{tidegate.NewCausal("cart", "w", tidegate.Wait(1), tidegate.Wait(-time.Second)), []string{`"cart"`, "wait -1s"}},
		{tidegate.Relaxed("board", "w", tidegate.Within(time.Second), tidegate.Wait(-time.Second)), []string{`"board"`, "wait -1s"}},
		{tidegate.Relaxed("board", "w", tidegate.Within(0)), []string{`"board"`, "budget 0s"}},
		{tidegate.Relaxed("board", "w", tidegate.Within(-time.Second)), []string{`"board"`, "budget -1s"}},
		{tidegate.Relaxed("board", "w", tidegate.Budget{}), []string{`"board"`, "budget 0s"}},
		{tidegate.Relaxed("board", "w", tidegate.AnyStaleness(), tidegate.ServeStale()), []string{`"board"`, "any staleness", "leave out stale"}},
		{tidegate.Relaxed("board", "w", tidegate.Within(1), tidegate.FailWhenStale(), tidegate.ServeStale()), []string{`"board"`, "more than once"}},
		{tidegate.NewCausal("cart", "w", tidegate.Require()), []string{`"cart"`, "Require without a tag"}},
		{tidegate.NewCausal("cart", "w", tidegate.Prefer()), []string{`"cart"`, "Prefer without a tag"}},
		{tidegate.NewCausal("cart", "w", tidegate.Require("a", "")), []string{`"cart"`, "Require has an empty tag"}},
		{tidegate.NewCausal("cart", "w", tidegate.Prefer("a"), tidegate.Prefer("a")), []string{`"cart"`, `Prefer has the tag "a" twice`}},
		{tidegate.NewCausal("cart", "w", tidegate.Prefer("b", "a"), tidegate.Require("a")), []string{`"cart"`, `requires the tag "a" and prefers it`, "leave one"}},
		{tidegate.NewCausal("cart", "w", tidegate.MinServing(-1)), []string{`"cart"`, "MinServing(-1)", "use 0 to 64"}},
		{tidegate.NewCausal("cart", "w", tidegate.MinServing(65)), []string{`"cart"`, "MinServing(65)"}},
		{tidegate.Relaxed("board", "w", tidegate.AnyStaleness(), tidegate.MinServing(1)), []string{`"board"`, "any staleness", "leave out MinServing"}},
	} {
		err := c.class.Err()
		if !errors.Is(err, tidegate.ErrClass) {
			t.Errorf("%v: error %v, want one that wraps ErrClass", c.class, err)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("error %q does not say %q", err, s)
			}
		}
	}
}

func TestOnBreach(t *testing.T) {
	t.Parallel()
	for want, c := range map[tidegate.Breach]tidegate.Class{
		tidegate.BreachPrimary:       tidegate.Relaxed("board", "w", tidegate.Within(1)),
		tidegate.BreachStaleWhenShed: tidegate.Relaxed("board", "w", tidegate.Within(1), tidegate.StaleWhenShed()),
		tidegate.BreachStale:         tidegate.Relaxed("board", "w", tidegate.Within(1), tidegate.ServeStale()),
		tidegate.BreachFail:          tidegate.Relaxed("board", "w", tidegate.Within(1), tidegate.FailWhenStale()),
	} {
		if got := c.OnBreach(); got != want || c.Err() != nil {
			t.Errorf("%v, want %v, %v", got, want, c.Err())
		}
	}
	if got := tidegate.Causal.OnBreach(); got != tidegate.BreachPrimary {
		t.Errorf("causal: %v", got)
	}
	for b, want := range []string{"primary", "stale-when-shed", "stale", "fail"} {
		if got := tidegate.Breach(b).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestClassIsComparable(t *testing.T) {
	t.Parallel()
	board := tidegate.Relaxed("board", "w", tidegate.AnyStaleness())
	counts := map[tidegate.Class]int{}
	for _, c := range []tidegate.Class{board, tidegate.Causal, board, {}} {
		counts[c]++
	}
	if counts[board] != 2 || counts[tidegate.Causal] != 2 || len(counts) != 2 {
		t.Errorf("counted %v", counts)
	}
}

func TestNeedString(t *testing.T) {
	t.Parallel()
	for need, want := range map[tidegate.Need]string{
		0: "causal", tidegate.NeedStrong: "strong", tidegate.NeedRelaxed: "relaxed",
	} {
		if got := need.String(); got != want {
			t.Errorf("need %d is %q, want %q", need, got, want)
		}
	}
}
