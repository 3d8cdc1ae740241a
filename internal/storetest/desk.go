package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidegatedb/tidegate"
)

// desk is what a case works with. Problems are noted, and the case goes on.
type desk struct {
	Subject
	ctx      context.Context
	ttl      time.Duration
	problems []string
}

func (d *desk) errorf(format string, args ...any) {
	d.problems = append(d.problems, fmt.Sprintf(format, args...))
}

// token returns a token that is unlike those of other numbers.
func token(n int) tidegate.Token {
	return tidegate.NewToken(tidegate.Mark{
		Cluster: "main", Epoch: tidegate.Epoch{System: 7, Line: 1}, Position: tidegate.At(uint64(n) + 1),
	})
}

// name is what the token of a number is kept under.
func name(n int) string { return fmt.Sprint("name ", n) }

func (d *desk) load(key, marker string) tidegate.Kept {
	kept, err := d.Store.Load(d.ctx, key, marker)
	if err != nil {
		d.errorf("load %q with marker %q: %v", key, marker, err)
	}
	return kept
}

// save adds the token of a number.
func (d *desk) save(key, birth string, n int, forget []int, clear ...string) {
	s := tidegate.Saving{Birth: birth, Add: tidegate.KeptToken{Name: name(n), Token: token(n)}, Clear: clear}
	for _, f := range forget {
		s.Forget = append(s.Forget, name(f))
	}
	if err := d.Store.Save(d.ctx, key, s); err != nil {
		d.errorf("save %d under %q: %v", n, key, err)
	}
}

func (d *desk) pass(t time.Duration) {
	if err := d.Pass(d.ctx, t); err != nil {
		d.errorf("let %v pass: %v", t, err)
	}
}

func (d *desk) lose(key string) {
	if err := d.Lose(d.ctx, key); err != nil {
		d.errorf("lose %q: %v", key, err)
	}
}

// expect looks at what is kept: whether it is whole, and the tokens' numbers, in any
// order. It returns the birth.
func (d *desk) expect(when, key string, whole bool, numbers ...int) string {
	return d.check(when, d.load(key, ""), whole, numbers...)
}

func (d *desk) check(when string, kept tidegate.Kept, whole bool, numbers ...int) string {
	if kept.Birth == "" {
		d.errorf("%s: no birth", when)
	}
	if kept.Whole != whole {
		d.errorf("%s: whole is %v", when, kept.Whole)
	}
	var got, want []string
	for _, t := range kept.Tokens {
		got = append(got, t.Name)
		n := 0
		if _, err := fmt.Sscanf(t.Name, "name %d", &n); err != nil || !t.Token.Same(token(n)) {
			d.errorf("%s: under %q is another token: %v", when, t.Name, t.Token)
		}
	}
	for _, n := range numbers {
		want = append(want, name(n))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		d.errorf("%s: kept are %q, want %q", when, got, want)
	}
	return kept.Birth
}
