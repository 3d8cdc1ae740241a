package engine_test

import (
	"slices"

	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// knowledge is what somebody was shown and told: what the next causal read has to
// show.
type knowledge struct {
	known fake.View // all of it
	acked fake.View // of that, the own writes that were acknowledged
	// doubts are own writes whose outcome nobody knows yet.
	doubts []*fake.Process
	// orphans are own writes whose outcome nobody is left to ask for: once they have
	// landed they have to be seen.
	orphans []*fake.Process
}

func (k *knowledge) clone() knowledge {
	return knowledge{k.known.Clone(), k.acked.Clone(), slices.Clone(k.doubts), slices.Clone(k.orphans)}
}

func (k *knowledge) join(o *knowledge) {
	k.known.Join(o.known)
	k.acked.Join(o.acked)
	for _, p := range o.doubts {
		k.doubt(p)
	}
	for _, p := range o.orphans {
		if !slices.Contains(k.orphans, p) {
			k.orphans = append(k.orphans, p)
		}
	}
}

// hear joins what somebody else says; nothing of it is an own write.
func (k *knowledge) hear(o *knowledge) {
	k.known.Join(o.known)
	for _, p := range o.doubts {
		k.doubt(p)
	}
}

// wrote notes an own write that was acknowledged.
func (k *knowledge) wrote(serial int) {
	k.known.Add(serial)
	k.acked.Add(serial)
}

// doubt notes an own write whose outcome is open.
func (k *knowledge) doubt(p *fake.Process) {
	if !slices.Contains(k.doubts, p) {
		k.doubts = append(k.doubts, p)
	}
}

// resolve turns doubts that are over into knowledge: what has landed by now must
// be seen by every read that begins now.
func (k *knowledge) resolve() {
	over := func(p *fake.Process) bool {
		ended, serial := p.Ended()
		if ended && serial != 0 {
			k.known.Add(serial)
		}
		return ended
	}
	k.doubts, k.orphans = slices.DeleteFunc(k.doubts, over), slices.DeleteFunc(k.orphans, over)
}

// forget is for a session that was told that what it knew may be lost.
func (k *knowledge) forget() { *k = knowledge{} }
