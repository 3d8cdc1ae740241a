package wire

// step is one or more ReadyForQuery messages that the server still owes, and
// whose answers they end. The server answers in the order of the requests, so
// a queue of steps says of every message whose it is.
type step struct {
	kind stepKind
	n    int  // how many, of the client's own; an ask ends in one
	hold bool // the last of the n waits for the ask behind it
	dead bool // nobody waits for what it tells
}

type stepKind uint8

const (
	stepClient stepKind = iota
	stepBefore
	stepAfter
	// stepJoined is a COMMIT with an ask in one sequence. The client has sent a
	// Query, so of the COMMIT it gets the tag or the error, and a ReadyForQuery. With
	// the tag the COMMIT is over, and the step becomes a stepAfter.
	stepJoined
)

// own reports whether a message of the type answers an ask.
func (s *step) own(typ byte) bool {
	switch s.kind {
	case stepClient:
		return false
	case stepJoined:
		return typ == msgParseComplete || typ == msgBindComplete
	}
	return true
}

// steps is a queue that keeps its memory.
type steps struct {
	q    []step
	head int
}

// front returns the step that the server is at, or nil.
func (s *steps) front() *step {
	if s.head == len(s.q) {
		return nil
	}
	return &s.q[s.head]
}

func (s *steps) pop() {
	s.head++
	if s.head == len(s.q) {
		s.clear()
	}
}

func (s *steps) clear() { s.q, s.head = s.q[:0], 0 }

// client adds n answers to the client's own messages.
func (s *steps) client(n int) {
	if n == 0 {
		return
	}
	if t := s.tail(); t != nil {
		t.n += n
		return
	}
	s.add(step{kind: stepClient, n: n})
}

// ask adds an ask. The one behind a command holds the command's end back.
func (s *steps) ask(kind stepKind) {
	if t := s.tail(); t != nil && kind == stepAfter {
		t.hold = true
	}
	s.add(step{kind: kind, n: 1})
}

// tail returns the newest step if it is the client's and open for more.
func (s *steps) tail() *step {
	if s.front() == nil {
		return nil
	}
	if t := &s.q[len(s.q)-1]; t.kind == stepClient && !t.hold && !t.dead {
		return t
	}
	return nil
}

func (s *steps) add(st step) {
	// A pipeline that never runs dry would otherwise push the queue along.
	if s.head > 16 && s.head > len(s.q)/2 {
		s.q = s.q[:copy(s.q, s.q[s.head:])]
		s.head = 0
	}
	s.q = append(s.q, st)
}

// owed reports whether the client has not been given all of its own answers.
func (s *steps) owed() bool {
	for _, st := range s.q[s.head:] {
		if (st.kind == stepClient || st.kind == stepJoined) && !st.dead {
			return true
		}
	}
	return false
}

// abandon lets what is still owed go by without telling anything.
func (s *steps) abandon() {
	for i := s.head; i < len(s.q); i++ {
		s.q[i].dead = true
	}
}
