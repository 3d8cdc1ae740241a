package storetest

func loadsKeepAlive(d *desk) {
	b := d.load("k", "").Birth
	d.save("k", b, 1, nil)
	for range 4 {
		d.pass(d.ttl * 3 / 4)
		if d.expect("used within a TTL", "k", true, 1) != b {
			d.errorf("the entry is another")
		}
	}
}

func savesKeepAlive(d *desk) {
	b := d.load("k", "").Birth
	for n := range 4 {
		d.save("k", b, n, nil)
		d.pass(d.ttl * 3 / 4)
	}
	if d.expect("saved within a TTL", "k", true, 0, 1, 2, 3) != b {
		d.errorf("the entry is another")
	}
}

func entryEnds(d *desk) {
	b := d.load("k", "").Birth
	d.save("k", b, 1, nil)
	d.pass(d.ttl)
	if d.expect("after a TTL", "k", false) == b {
		d.errorf("it came back with its birth")
	}
	d.load("marked", "m")
	d.pass(d.ttl)
	b = d.load("marked", "").Birth
	d.save("marked", b, 2, nil)
	d.expect("its marker ends with it", "marked", true, 2)
}
