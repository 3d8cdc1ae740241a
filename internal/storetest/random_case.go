package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tidegatedb/tidegate"
)

// asTheReference does the same things at random to the store and to a MemoryStore, and
// looks whether they answer the same: births under other names.
func asTheReference(d *desk) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	memory, err := tidegate.NewMemoryStore(tidegate.MemoryConfig{TTL: 1000 * time.Hour})
	if err != nil {
		d.errorf("%v", err)
		return
	}
	// The reference loses an entry by going on under another key.
	lives := map[string]int{}
	reference := func(key string) string { return fmt.Sprint(key, " ", lives[key]) }
	births := [][2]string{{"", ""}, {"x", "x"}} // the store's, and the reference's
	names := []string{"never"}
	marker := func() string { return fmt.Sprint("m", r.IntN(4)) }
	var whole, marked, overflowed int
	for step := range 2400 {
		key := fmt.Sprint("k", r.IntN(2))
		var did string
		switch u := r.IntN(100); {
		case u < 15:
			did = "load"
		case u < 30:
			did = "load with a marker"
			m := marker()
			d.load(key, m)
			_, err = memory.Load(d.ctx, reference(key), m)
		case u < 31:
			did = "lose"
			d.lose(key)
			lives[key]++
		default:
			did = "save"
			b := births[max(0, len(births)-1-r.IntN(4))]
			s := tidegate.Saving{Add: tidegate.KeptToken{Name: name(step), Token: token(step)}}
			for range r.IntN(3) {
				// Less is forgotten than added, so that it overflows at times.
				s.Forget = append(s.Forget, names[max(0, len(names)-1-r.IntN(150))])
			}
			for range r.IntN(3) {
				s.Clear = append(s.Clear, marker())
			}
			names = append(names, s.Add.Name)
			s.Birth = b[0]
			if err := d.Store.Save(d.ctx, key, s); err != nil {
				d.errorf("%v", err)
			}
			s.Birth = b[1]
			err = memory.Save(d.ctx, reference(key), s)
		}
		got := d.load(key, "")
		want, loadErr := memory.Load(d.ctx, reference(key), "")
		if err != nil || loadErr != nil {
			d.errorf("the reference: %v, %v", err, loadErr)
		}
		pair := [2]string{got.Birth, want.Birth}
		if i := slices.IndexFunc(births, func(b [2]string) bool { return b[0] == pair[0] || b[1] == pair[1] }); i < 0 {
			births = append(births, pair)
			if did == "save" && len(want.Tokens) == 1 {
				overflowed++
			}
		} else if births[i] != pair {
			d.errorf("seed %d, step %d, %s: the births are %q, and were %q", seed, step, did, pair, births[i])
		}
		if got.Whole != want.Whole || !sameTokens(got.Tokens, want.Tokens) {
			d.errorf("seed %d, step %d, %s: kept is %v, the reference has %v", seed, step, did, got, want)
		}
		if want.Whole {
			whole++
		} else if len(want.Tokens) > 0 {
			marked++
		}
		if len(d.problems) > 5 {
			return
		}
	}
	if whole < 50 || marked < 50 || overflowed < 3 {
		d.errorf("too little happened: %d times whole, %d times not, %d overflows", whole, marked, overflowed)
	}
}

// sameTokens tells whether the same are there, in any order.
func sameTokens(a, b []tidegate.KeptToken) bool {
	byName := func(x, y tidegate.KeptToken) int { return strings.Compare(x.Name, y.Name) }
	a, b = slices.SortedFunc(slices.Values(a), byName), slices.SortedFunc(slices.Values(b), byName)
	return slices.EqualFunc(a, b, func(x, y tidegate.KeptToken) bool { return x.Name == y.Name && x.Token.Same(y.Token) })
}
