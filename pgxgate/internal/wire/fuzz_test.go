package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// owed builds the steps that plan describes: a byte for each client write, with
// an ask in front, and either up to three answers to the client and an ask behind,
// or one that is joined.
func owed(plan []byte) (q steps) {
	for _, p := range plan {
		if p&1 != 0 {
			q.ask(stepBefore)
		}
		if p&16 != 0 {
			q.add(step{kind: stepJoined, n: 1})
			continue
		}
		n := int(p >> 1 & 3)
		q.client(n)
		if p&8 != 0 && n > 0 {
			q.ask(stepAfter)
		}
	}
	return q
}

// toClient says again, for a whole stream and without caring for memory, what
// the client must see of it.
func toClient(b []byte, q steps) (out []byte) {
	var held []byte
	for len(b) > 0 {
		s := q.front()
		isOwn := s != nil && s.kind != stepClient && !async(b[0])
		if s != nil && s.kind == stepJoined {
			isOwn = isOwn && (b[0] == '1' || b[0] == '2')
		}
		isHeld := s != nil && s.kind == stepClient && b[0] == 'Z' && s.hold && s.n == 1
		if len(b) < headerLen {
			if isOwn {
				return append(out, held...)
			}
			// A message on its way goes out before what is held.
			return append(append(out, b...), held...)
		}
		size := int(int32(binary.BigEndian.Uint32(b[1:])))
		if size < 4 && !isOwn && !isHeld {
			return append(append(append(out, b[:headerLen]...), held...), b[headerLen:]...)
		}
		if size < 4 {
			return append(append(out, held...), b...)
		}
		if size+1 > len(b) {
			if isOwn && len(b)-headerLen < maxOwn {
				return append(out, held...)
			}
			if isOwn {
				return append(append(out, held...), b...)
			}
			return append(append(out, b...), held...)
		}
		m, body := b[:size+1], b[headerLen:size+1]
		switch {
		case isOwn && m[0] == 'Z':
			if len(held) == 6 && len(body) == 1 {
				held[5] = body[0]
			}
			out = append(out, held...)
			held = nil
			q.pop()
		case isOwn && m[0] == 'E':
			if _, fatal := serverError(body); fatal {
				return append(append(out, held...), b...)
			}
		case isOwn:
			if len(body) > maxOwn { // may be given up before its end
				return append(append(out, held...), b...)
			}
		case isHeld:
			if len(body) != 1 {
				return append(append(out, held...), b...)
			}
			held = bytes.Clone(m)
			q.pop()
		default:
			out = append(out, m...)
			if m[0] == 'C' && s != nil && s.kind == stepJoined {
				s.kind, held = stepAfter, ready('I')
				b = b[len(m):]
				continue
			}
			if m[0] == 'Z' && s != nil && s.kind != stepBefore && s.kind != stepAfter {
				if s.n--; s.n == 0 {
					q.pop()
				}
			}
		}
		b = b[len(m):]
	}
	return append(out, held...)
}

// cuts turns fuzz bytes into a way to cut a stream.
func cuts(how []byte) pieces {
	return func(b []byte) (out [][]byte) {
		for i := 0; len(b) > 0; i++ {
			n := len(b)
			if len(how) > 0 {
				n = min(n, 1+int(how[i%len(how)]))
			}
			out = append(out, b[:n])
			b = b[n:]
		}
		return out
	}
}

func FuzzServerStream(f *testing.F) {
	pos := position(1, 2, false, 'I')
	done := join(tag("INSERT 0 1"), ready('I'))
	f.Add(join(done, pos), []byte{10}, []byte{3}, uint8(7))
	f.Add(join(state(true, true), tag("COMMIT"), ready('I'), pos, notify), []byte{11}, []byte{}, uint8(255))
	f.Add(join(raw('1', ""), bindOK, tag("COMMIT"), pos, done, pos), []byte{16, 10}, []byte{7}, uint8(9))
	f.Add(join(notice, someRow, done, fatal()), []byte{10, 10}, []byte{1, 0, 4}, uint8(1))
	f.Add(join(done, refused("26000"), ready('E'), done), []byte{12, 2}, []byte{200}, uint8(90))
	f.Add(join(done, raw('Z', "II")), []byte{14}, []byte{5}, uint8(2))
	f.Add([]byte("Z\x00\x00\x00\x03IIII"), []byte{10}, []byte{0}, uint8(3))
	f.Add(join(param, done), []byte{}, []byte{0}, uint8(3))
	f.Fuzz(func(t *testing.T, stream, plan, how []byte, size uint8) {
		s := &script{end: io.EOF}
		c := Wrap(s)
		c.armed = len(plan) > 0
		c.steps = owed(plan)
		c.publish()
		s.says(cuts(how)(stream)...)
		got, err := readAll(t, c, int(size)+1)
		if err != io.EOF {
			t.Fatalf("ends with %v", err)
		}
		if len(plan) == 0 && !bytes.Equal(got, stream) {
			t.Fatalf("unarmed, the client reads\n%q of\n%q", got, stream)
		}
		if want := toClient(bytes.Clone(stream), owed(plan)); !bytes.Equal(got, want) {
			t.Fatalf("the client reads\n%q, want\n%q", got, want)
		}
		c.Take()
	})
}

func FuzzClientStream(f *testing.F) {
	f.Add(join(prepare(f, "s"), execute(f, "s")), []byte{200}, uint8(1), uint16(9999))
	f.Add(query("commit"), []byte{3}, uint8(2), uint16(9999))
	f.Add(query("commit"), []byte{}, uint8(0), uint16(9999))
	f.Add(join(query("commit"), query("commit")), []byte{11}, uint8(1), uint16(30))
	f.Add(join(query("copy"), raw('d', "x"), raw('c', "")), []byte{5, 6}, uint8(3), uint16(9999))
	f.Add([]byte("Q\x00\x00\x00\x03"), []byte{}, uint8(1), uint16(2))
	f.Fuzz(func(t *testing.T, stream, how []byte, ask uint8, room uint16) {
		broken := errors.New("broken")
		s := &script{end: io.EOF, writeErr: broken, writeMax: int(room)}
		c := Wrap(s)
		c.MarkPrepared()
		c.Arm(Ask(ask%3 + 1))
		total, failed := 0, false
		// What the server has, cut where the client's writes were.
		var wrote [][]byte
		for _, b := range cuts(how)(stream) {
			s.wrote = nil
			n, err := c.Write(b)
			total += n
			if n < 0 || n > len(b) || n < len(b) && err == nil {
				t.Fatalf("Write returns %d, %v for %d bytes", n, err, len(b))
			}
			if err != nil {
				failed = true
				break
			}
			wrote = append(wrote, join(b), s.wrote)
		}
		if !failed && total != len(stream) {
			t.Fatalf("wrote %d of %d", total, len(stream))
		}
		var fr frame
		clean := true // between two sequences
		for i := 0; i < len(wrote); i += 2 {
			b, got := wrote[i], wrote[i+1]
			startsClean := clean
			clean = follow(&fr, b, clean)
			if rest, ok := bytes.CutPrefix(got, beforeMsg); ok && !bytes.HasPrefix(b, beforeMsg) {
				if !startsClean {
					t.Fatalf("ask in the middle of a sequence, in front of %q", b)
				}
				got = rest
			}
			rest, ok := bytes.CutPrefix(got, b)
			if bytes.Equal(b, commitMsg) && bytes.Equal(got, commitJoinedMsg) && startsClean && Ask(ask%3+1) != AfterCopy {
				continue
			}
			if !ok {
				t.Fatalf("the server gets %q for %q", got, b)
			}
			switch {
			case len(rest) == 0:
			case !bytes.Equal(rest, afterMsg):
				t.Fatalf("behind %q the server gets %q", b, rest)
			case Ask(ask%3+1) == AfterCopy:
				if last := fr.head[0]; fr.seen != 0 || last != 'c' && last != 'f' {
					t.Fatalf("ask behind %q", b)
				}
			case !clean:
				t.Fatalf("ask in the middle of a sequence, behind %q", b)
			}
		}
		if a := c.Take(); a.OK || a.Sent && total == 0 {
			t.Fatalf("%+v after %d bytes", a, total)
		}
	})
}

// follow is a slow second opinion on where the client stands behind b.
func follow(fr *frame, b []byte, clean bool) bool {
	for i := range b {
		one := b[i : i+1]
		if fr.seen < headerLen {
			clean = false
			_, done, ok := fr.header(one)
			if !ok {
				fr.left = 1 << 62 // nonsense: nothing is clean again
			}
			if !done || fr.left > 0 {
				continue
			}
		} else if _, done := fr.body(one); !done {
			continue
		}
		clean = ends(fr.head[0])
		fr.next()
	}
	return clean
}
