package wire

import "encoding/binary"

// headerLen is a message's type byte and its length.
const headerLen = 5

// frame follows the messages of one direction of a connection, whatever
// pieces they come in. It looks at headers and steps over bodies.
type frame struct {
	head [headerLen]byte
	seen int // bytes of head that are there; 0 is between messages
	left int // bytes of the body that are still to come
}

// between reports that the last message is complete and the next not begun.
func (f *frame) between() bool { return f.seen == 0 }

// header takes the bytes of b that belong to the header and reports how many,
// whether the header is complete, and whether it can be one at all.
func (f *frame) header(b []byte) (n int, done, ok bool) {
	n = copy(f.head[f.seen:], b)
	f.seen += n
	if f.seen < headerLen {
		return n, false, true
	}
	// The length counts itself. Above the sign bit no peer accepts it.
	size := int32(binary.BigEndian.Uint32(f.head[1:]))
	if size < 4 {
		return n, true, false
	}
	f.left = int(size) - 4
	return n, true, true
}

// body takes the bytes of b that belong to the body and reports how many and
// whether that completes the message.
func (f *frame) body(b []byte) (n int, done bool) {
	n = min(len(b), f.left)
	f.left -= n
	return n, f.left == 0
}

// next goes on to the next message.
func (f *frame) next() { f.seen = 0 }

// run returns the length of the whole messages at the beginning of b, up to
// the first that stop holds for. This is the loop that large results go
// through, so it does nothing else.
func run(b []byte, stop *[256]bool) int {
	at := 0
	for len(b)-at >= headerLen {
		h := b[at : at+headerLen]
		size := int(binary.BigEndian.Uint32(h[1:]))
		if stop[h[0]] || size < 4 || size >= len(b)-at {
			break
		}
		at += size + 1
	}
	return at
}
