package storetest

func newEntry(d *desk) {
	b := d.expect("at first", "k", false)
	if again := d.expect("again", "k", false); again != b {
		d.errorf("an entry that was loaded twice has the births %q and %q", b, again)
	}
	if d.ttl <= 0 {
		d.errorf("TTL is %v", d.ttl)
	}
}

func saveMakesWhole(d *desk) {
	b := d.load("k", "").Birth
	d.save("k", b, 1, nil)
	if after := d.expect("after a save of its birth", "k", true, 1); after != b {
		d.errorf("a save has changed the birth")
	}
	d.save("k", "", 2, nil)
	d.expect("and one without a birth", "k", true, 1, 2)
}

func foreignBirth(d *desk) {
	d.save("k", "", 1, nil)
	b := d.expect("after a save that nothing was loaded for", "k", false, 1)
	d.save("k", "another", 2, nil)
	d.expect("after one of another birth", "k", false, 1, 2)
	d.save("k", d.load("other", "").Birth, 3, nil)
	d.expect("after one of another entry's birth", "k", false, 1, 2, 3)
	d.save("k", b, 4, nil)
	d.expect("after one of its birth", "k", true, 1, 2, 3, 4)
}

func lostBetweenLoadAndSave(d *desk) {
	first := d.load("k", "").Birth
	d.save("k", first, 1, nil)
	loaded := d.load("k", "").Birth
	d.lose("k")
	d.save("k", loaded, 2, []int{1})
	second := d.expect("after the entry was lost", "k", false, 2)
	if second == first {
		d.errorf("a lost entry came back with its birth")
	}
	d.save("k", loaded, 3, nil)
	d.expect("after another save by who had the lost one", "k", false, 2, 3)
	d.save("k", second, 4, []int{2, 3})
	d.expect("after a save by who found it so", "k", true, 4)
	d.lose("k")
	if third := d.expect("lost and loaded", "k", false); third == second {
		d.errorf("a lost entry came back with its birth")
	}
}
