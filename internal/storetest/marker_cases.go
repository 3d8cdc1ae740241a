package storetest

func marker(d *desk) {
	b := d.load("k", "").Birth
	d.save("k", b, 1, nil)
	d.check("the load that sets a marker", d.load("k", "m"), true, 1)
	d.expect("while it is there", "k", false, 1)
	d.save("k", b, 2, []int{1})
	d.expect("after a save that does not clear it", "k", false, 2)
	d.save("k", b, 3, []int{2}, "m")
	d.expect("after the one that does", "k", true, 3)
	d.save("k", b, 4, []int{3}, "m", "never set")
	d.expect("after one that clears what is not there", "k", true, 4)

	// A marker can be what an entry begins with.
	d.check("the load that creates and marks", d.load("new", "m"), false)
	b = d.load("new", "").Birth
	d.save("new", b, 5, nil)
	d.expect("saved with a marker left", "new", false, 5)
	d.save("new", "", 6, nil, "m")
	d.expect("when it is cleared", "new", true, 5, 6)
}

func markersOfOthers(d *desk) {
	b := d.load("k", "").Birth
	d.save("k", b, 1, nil)
	d.load("k", "m1")
	d.check("the load that sets the second", d.load("k", "m2"), false, 1)
	d.load("k", "m3")
	d.load("k", "m3") // a client that repeats itself
	d.save("k", b, 2, nil, "m2")
	d.expect("with two of three left", "k", false, 1, 2)
	d.save("k", b, 3, nil, "m1", "m3")
	d.expect("with none left", "k", true, 1, 2, 3)

	// The save of a write that was marked in an entry that is lost.
	d.load("k", "m4")
	d.lose("k")
	d.load("k", "m5")
	d.save("k", b, 4, nil, "m4")
	d.save("k", d.load("k", "").Birth, 5, nil)
	d.expect("with the marker of the entry that is there", "k", false, 4, 5)
	d.save("k", "", 6, nil, "m5")
	d.expect("without", "k", true, 4, 5, 6)
}

// A marker that nobody clears ends, however much the entry is used.
func markerEnds(d *desk) {
	b := d.load("k", "").Birth
	d.save("k", b, 1, nil)
	d.load("k", "m1")
	d.pass(d.ttl / 2)
	d.load("k", "m2")
	d.pass(d.ttl / 4)
	d.expect("before the first ends", "k", false, 1)
	d.pass(d.ttl / 2)
	d.expect("before the second ends", "k", false, 1)
	d.save("k", b, 2, nil, "m2")
	if d.expect("the first has ended and the second is cleared", "k", true, 1, 2) != b {
		d.errorf("the entry is another")
	}
	d.load("k", "m3")
	d.pass(d.ttl / 2)
	d.load("k", "")
	d.pass(d.ttl/2 + 1)
	d.expect("when another has ended", "k", true, 1, 2)
}
