package storetest

import (
	"fmt"
	"sync"

	"github.com/tidegatedb/tidegate"
)

func savesAddUp(d *desk) {
	b := d.load("k", "").Birth
	d.save("k", b, 1, nil)
	d.save("k", b, 2, nil)
	d.expect("after two saves that know nothing of each other", "k", true, 1, 2)
	d.save("k", b, 2, nil) // a client that got no answer repeats itself
	d.expect("after one that was repeated", "k", true, 1, 2)
}

func forgetsWhatIsNamed(d *desk) {
	b := d.load("k", "").Birth
	d.save("k", b, 1, nil)
	d.save("k", b, 2, nil)
	d.save("k", b, 3, nil)
	d.save("k", b, 4, []int{1, 3, 99})
	d.expect("after two of three were replaced", "k", true, 2, 4)
	d.save("k", b, 5, []int{5, 2})
	d.expect("after a save that names its own", "k", true, 4, 5)
}

// Each save of a chain replaces the one before; whatever the order in which they
// arrive, none that nobody has replaced is missing.
func savesInAnyOrder(d *desk) {
	chain := [][]int{nil, {1}, {2}, {1, 2, 3}} // what the saves of 1, 2, 3 and 4 forget
	orders(len(chain), func(order []int) {
		key := fmt.Sprint(order)
		b := d.load(key, "").Birth
		left := map[int]bool{}
		for _, i := range order {
			d.save(key, b, i+1, chain[i])
			for _, n := range chain[i] {
				delete(left, n)
			}
			left[i+1] = true
		}
		var want []int
		for n := range left {
			want = append(want, n)
		}
		d.expect("saved in the order "+key, key, true, want...)
	})
}

// orders calls f with each order of the numbers below n.
func orders(n int, f func([]int)) {
	var next func(done []int)
	next = func(done []int) {
		if len(done) == n {
			f(done)
			return
		}
	number:
		for i := range n {
			for _, j := range done {
				if i == j {
					continue number
				}
			}
			next(append(done[:len(done):len(done)], i))
		}
	}
	next(nil)
}

func savesAtOnce(d *desk) {
	b := d.load("k", "").Birth
	errs := make([]error, tidegate.MaxKept)
	var all []int
	var wg sync.WaitGroup
	for n := range tidegate.MaxKept {
		all = append(all, n)
		wg.Go(func() {
			_, err := d.Store.Load(d.ctx, "k", "")
			if err == nil {
				err = d.Store.Save(d.ctx, "k", tidegate.Saving{Birth: b, Add: tidegate.KeptToken{Name: name(n), Token: token(n)}})
			}
			errs[n] = err
		})
	}
	wg.Wait()
	for n, err := range errs {
		if err != nil {
			d.errorf("save %d: %v", n, err)
		}
	}
	d.expect("after saves at once", "k", true, all...)
}

func tokensComeBack(d *desk) {
	full := tidegate.NewToken(
		tidegate.Mark{
			Cluster: "main\x00\r\n", Epoch: tidegate.Epoch{System: 1<<64 - 1, Line: 300}, Position: tidegate.Beyond(1 << 63), Shown: tidegate.At(5),
			Seen: []tidegate.Incarnation{1, 2}, CatchUp: true, Primary: 9, Pending: []uint64{3}, Patient: true,
		},
		tidegate.Mark{Cluster: "other", CatchUp: true},
	).Merge(tidegate.CatchUpToken())
	for key, token := range map[string]tidegate.Token{"full": full, "empty": {}, "any": tidegate.CatchUpToken()} {
		s := tidegate.Saving{Add: tidegate.KeptToken{Name: "x", Token: token}}
		if err := d.Store.Save(d.ctx, key, s); err != nil {
			d.errorf("save: %v", err)
		}
		kept := d.load(key, "").Tokens
		if len(kept) != 1 || !kept[0].Token.Same(token) {
			d.errorf("%s: kept is %v, want %v", key, kept, token)
		}
	}
}

func overflow(d *desk) {
	b := d.load("k", "").Birth
	d.load("k", "m")
	for n := range tidegate.MaxKept {
		d.save("k", b, n, nil)
	}
	if kept := d.load("k", ""); len(kept.Tokens) != tidegate.MaxKept || kept.Birth != b {
		d.errorf("%d tokens are kept of %d, or the entry is another", len(kept.Tokens), tidegate.MaxKept)
	}
	d.save("k", b, 1000, nil)
	after := d.expect("after one more", "k", false, 1000)
	if after == b {
		d.errorf("the entry that kept the new token only has the old birth")
	}
	d.save("k", b, 1001, nil)
	d.expect("after a save of the old birth", "k", false, 1000, 1001)
	d.save("k", after, 1002, nil)
	d.expect("after a save of the new birth, with a marker from before", "k", false, 1000, 1001, 1002)
	d.save("k", "", 1003, nil, "m")
	d.expect("after the marker was cleared", "k", true, 1000, 1001, 1002, 1003)
}

func roomAtTheLimit(d *desk) {
	b := d.load("k", "").Birth
	var all []int
	for n := range tidegate.MaxKept {
		d.save("k", b, n, nil)
		all = append(all, n)
	}
	d.save("k", b, 1, nil)
	d.expect("after one that was repeated", "k", true, all...)
	d.save("k", b, 500, []int{0})
	after := d.expect("after one was replaced", "k", true, append(all[1:], 500)...)
	if after != b {
		d.errorf("there was room, and the entry is another")
	}
	d.save("k", b, 501, []int{998, 999})
	d.expect("after one that replaces what is not there", "k", false, 501)
}

func keysDoNotMix(d *desk) {
	keys := []string{"k", "K", "k:k", ":", "", "{k}", "k}", "history", "\x00"}
	for i, key := range keys {
		d.save(key, d.load(key, "").Birth, i, nil)
	}
	d.load("k", "m")
	births := map[string]bool{}
	for i, key := range keys {
		births[d.expect("key "+key, key, i != 0, i)] = true
	}
	if len(births) != len(keys) {
		d.errorf("%d keys have %d births", len(keys), len(births))
	}
	d.lose("K")
	d.save("k", "", 20, []int{0, 1, 2, 3}, "m")
	d.expect("after its save", "k", true, 20)
	d.expect("after another's save", "k:k", true, 2)
	d.expect("what was lost", "K", false)
}
