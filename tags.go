package tidegate

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

const (
	// maxTags is how many tags a node can carry, and a class can require or prefer.
	maxTags = 16
	// maxTag is the length of a tag in bytes.
	maxTag = 64
	// maxServing is as many nodes as a cluster can have.
	maxServing = 64
)

// placement is what a class says about the nodes that its reads go to.
type placement struct {
	require, prefer     []string
	required, preferred bool // said, if only by no tag
	minServing          int
}

// TagsOption is returned by [Require] and [Prefer]. A strong class does not take it:
// the primary answers it, whatever tags that has.
type TagsOption struct {
	tags    []string
	require bool
}

func (o TagsOption) applyCausal(c *class)  { c.setTags(o) }
func (o TagsOption) applyRelaxed(c *class) { c.setTags(o) }

func (c *class) setTags(o TagsOption) {
	c.placed = true
	if o.require {
		c.place.require, c.place.required = append(c.place.require, o.tags...), true
	} else {
		c.place.prefer, c.place.preferred = append(c.place.prefer, o.tags...), true
	}
}

// Require lets only replicas answer a class that carry all of the tags. Where none of
// those qualifies, the read waits for one and goes on as ever: to the primary, or as its
// class says ([ServeStale], [FailWhenStale]). More than one Require asks for all.
//
// It does not keep other classes away from these replicas. A node does that itself, when
// it is dedicated: see the adapter's Node.
func Require(tags ...string) TagsOption {
	return TagsOption{tags: slices.Clone(tags), require: true}
}

// Prefer lets replicas answer a class first that carry all of the tags, and another one
// when none of them qualifies at that moment: nothing is awaited for it.
func Prefer(tags ...string) TagsOption { return TagsOption{tags: slices.Clone(tags)} }

// MinServingOption is returned by [MinServing].
type MinServingOption int

func (o MinServingOption) applyCausal(c *class)  { c.setMinServing(int(o)) }
func (o MinServingOption) applyRelaxed(c *class) { c.setMinServing(int(o)) }

func (c *class) setMinServing(n int) { c.place.minServing, c.placed = n, true }

// MinServing keeps replicas in use for a class that are out for their lag, further behind
// than LongestLag or MostLag allow: those that are least behind, as many as it takes to
// have n to read from. Zero, without it, is none. What a read asks for stays what it is: a
// causal one its session's mark, a relaxed one its budget. One that is out because it did
// not answer stays out.
func MinServing(n int) MinServingOption { return MinServingOption(n) }

// Tags returns the tags that the class requires and those that it prefers. They are the
// caller's own.
func (c Class) Tags() (required, preferred []string) {
	p := &c.get().place
	return slices.Clone(p.require), slices.Clone(p.prefer)
}

// MinServing returns how many replicas the class keeps in use.
func (c Class) MinServing() int { return c.get().place.minServing }

// Placed reports whether the class says anything about the nodes that its reads go to: by
// [Require], [Prefer] or [MinServing].
func (c Class) Placed() bool { return c.get().placed }

// checkPlace returns what is wrong with what the class says about nodes.
func (c *class) checkPlace() error {
	p := &c.place
	for _, s := range []struct {
		option string
		said   bool
		list   []string
	}{{"Require", p.required, p.require}, {"Prefer", p.preferred, p.prefer}} {
		if s.said && len(s.list) == 0 {
			return fmt.Errorf("%w: class %q says %s without a tag; name one, or leave it out", ErrClass, c.name, s.option)
		}
		if err := CheckTags(s.list); err != nil {
			return fmt.Errorf("%w: class %q: its %s %w", ErrClass, c.name, s.option, err)
		}
	}
	for _, tag := range p.prefer {
		if slices.Contains(p.require, tag) {
			return fmt.Errorf("%w: class %q requires the tag %q and prefers it, too; leave one of them out", ErrClass, c.name, tag)
		}
	}
	switch {
	case p.minServing < 0 || p.minServing > maxServing:
		return fmt.Errorf("%w: class %q has MinServing(%d); use 0 to %d", ErrClass, c.name, p.minServing, maxServing)
	case p.minServing > 0 && c.anyStaleness:
		return fmt.Errorf("%w: class %q allows any staleness, so no replica is out for its lag; leave out MinServing", ErrClass, c.name)
	}
	return nil
}

// CheckTags returns what is wrong with the tags of a node or a class and what to do about it,
// as the rest of a sentence about what has them. An adapter asks. No tags are fine.
func CheckTags(list []string) error {
	if len(list) > maxTags {
		return fmt.Errorf("has %d tags; use at most %d", len(list), maxTags)
	}
	for i, tag := range list {
		switch {
		case tag == "":
			return errors.New("has an empty tag; name it, or leave it out")
		case len(tag) > maxTag:
			return fmt.Errorf("has the tag %.16q... of %d bytes; use at most %d", tag, len(tag), maxTag)
		case !utf8.ValidString(tag):
			return fmt.Errorf("has the tag %q; use valid UTF-8", tag)
		case slices.Contains(list[:i], tag):
			return fmt.Errorf("has the tag %q twice; leave one out", tag)
		}
	}
	return nil
}
