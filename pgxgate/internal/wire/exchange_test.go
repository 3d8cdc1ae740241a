package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// move is one turn of a conversation: what the client writes, what of it and
// of the asks the server gets, what the server sends and what of it the client
// gets.
type move struct {
	client, toServer []byte
	server, toClient []byte
}

// exchange is a conversation under one Arm.
//
// A name with a star says that cutting the client's writes changes what is
// asked, because a piece ends where a write could.
type exchange struct {
	name  string
	ask   Ask
	moves []move
	end   error  // how the stream ends; nil: it does not
	tail  []byte // what the client gets at the end
	want  Answer
}

// instead is a move whose client bytes are replaced.
func instead(pre, client, toServer, server, toClient []byte) move {
	return move{client: client, toServer: join(pre, toServer), server: server, toClient: toClient}
}

// say is a move whose client bytes get asks around them.
func say(pre, client, post, server, toClient []byte) move {
	return move{client: client, toServer: join(pre, client, post), server: server, toClient: toClient}
}

func exchanges(t testing.TB) []exchange {
	insert := query("insert into t values (1)")
	done := join(tag("INSERT 0 1"), ready('I'))
	pos := position(0x1122334455667788, 0x1122334455667799, false, 'I')
	ok := Answer{OK: true, Flush: 0x1122334455667788, Insert: 0x1122334455667799, Sent: true, TxStatus: 'I'}
	with := func(f func(*Answer)) Answer { a := ok; f(&a); return a }
	lost := func(f func(*Answer)) Answer { a := Answer{Sent: true, TxStatus: 'I'}; f(&a); return a }
	tagged := func(s string) Answer { return with(func(a *Answer) { a.Tag = s }) }
	extended := join(raw('1', ""), bindOK, raw('n', ""), tag("INSERT 0 1"), ready('I'))
	described := join(raw('1', ""), raw('t', "\x00\x01\x00\x00\x00\x17"), raw('n', ""), ready('I'))
	copyIn := raw('G', "\x01\x00\x01\x00\x01")
	copyBytes := join(raw('d', "PGCOPY\n\xff\r\n\x00c\x00\x00\x00\x04"), raw('d', string(make([]byte, 300))))
	bad := refused("23505")
	missing := &ServerError{Severity: "ERROR", Code: "26000", Message: "no"}
	aborted := &ServerError{Severity: "ERROR", Code: "25P02", Message: "no"}
	committed := join(tag("COMMIT"), ready('I'))
	both := msgs(t, &pgproto3.Parse{Query: "commit"}, &pgproto3.Bind{}, &pgproto3.Execute{},
		&pgproto3.Bind{PreparedStatement: AfterName, ResultFormatCodes: []int16{1}}, &pgproto3.Execute{}, &pgproto3.Sync{})
	bound := join(raw('1', ""), bindOK)
	commit := join(bound, tag("COMMIT"))
	going := &ServerError{Severity: "FATAL", Code: "57P01", Message: "going"}

	return []exchange{
		{"simple", After, []move{say(nil, insert, afterMsg, join(done, pos), done)}, nil, nil, tagged("INSERT")},
		{"extended", After, []move{say(nil, execute(t, "s"), afterMsg, join(extended, pos), extended)}, nil, nil, tagged("INSERT")},
		{"asynchronous commit", After, []move{say(nil, insert, afterMsg, join(done, position(1, 2, true, 'I')), done)}, nil, nil,
			Answer{OK: true, Flush: 1, Insert: 2, AsyncCommit: true, Sent: true, TxStatus: 'I', Tag: "INSERT"}},
		{"only the flush position", After, []move{
			say(nil, insert, afterMsg, join(done, bindOK, raw('D', "\x00\x01\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x07"), tag("SELECT 1"), ready('I')), done),
		}, nil, nil, Answer{OK: true, Flush: 7, Insert: 7, Sent: true, TxStatus: 'I', Tag: "INSERT"}},
		{"first use prepares: nothing is asked behind that", After, []move{
			say(nil, prepare(t, "s"), nil, described, described),
			say(nil, execute(t, "s"), afterMsg, join(extended, pos), extended),
		}, nil, nil, tagged("INSERT")},
		{"only prepared", After, []move{say(nil, prepare(t, "s"), nil, described, described)}, nil, nil, Answer{TxStatus: 'I'}},
		{"several statements in one string", After, []move{
			say(nil, query("insert; call"), afterMsg, join(tag("INSERT 0 1"), tag("CALL"), done, pos), join(tag("INSERT 0 1"), tag("CALL"), done)),
		}, nil, nil, with(func(a *Answer) { a.Tag, a.Called = "INSERT", true })},
		{"do", After, []move{say(nil, query("do"), afterMsg, join(tag("DO"), ready('I'), pos), join(tag("DO"), ready('I')))}, nil, nil,
			with(func(a *Answer) { a.Tag, a.Called = "DO", true })},
		{"rare tag", After, []move{say(nil, query("x"), afterMsg, join(tag("CREATE INDEX"), ready('I'), pos), join(tag("CREATE INDEX"), ready('I')))}, nil, nil,
			tagged("CREATE INDEX")},
		{"*pipeline with two syncs in a write", After, []move{
			say(nil, join(execute(t, "s"), execute(t, "s")), afterMsg, join(extended, extended, pos), join(extended, extended)),
		}, nil, nil, tagged("INSERT")},
		{"pipeline of writes without reads between", After, []move{
			say(nil, execute(t, "s"), afterMsg, nil, nil),
			say(nil, insert, afterMsg, join(extended, position(1, 1, true, 'I'), done, pos), join(extended, done)),
		}, nil, nil, tagged("INSERT")},
		{"flush without sync, then sync", After, []move{
			say(nil, join(execute(t, "s")[:len(execute(t, "s"))-5], raw('H', "")), nil, bindOK, bindOK),
			say(nil, raw('S', ""), afterMsg, join(done, pos), done),
		}, nil, nil, tagged("INSERT")},
		{"function call", After, []move{
			say(nil, raw('F', "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"), afterMsg, join(raw('V', "\xff\xff\xff\xff"), ready('I'), pos), join(raw('V', "\xff\xff\xff\xff"), ready('I'))),
		}, nil, nil, ok},
		{"rows that look like the end", After, []move{
			say(nil, query("insert returning"), afterMsg, join(raw('T', "\x00\x00"), someRow, someRow, done, pos), join(raw('T', "\x00\x00"), someRow, someRow, done)),
		}, nil, nil, tagged("INSERT")},
		{"asynchronous messages everywhere", After, []move{
			say(nil, insert, afterMsg,
				join(notice, tag("INSERT 0 1"), notify, ready('I'), param, pos[:5], notify, pos[5:41], notice, notify, pos[41:], notify),
				join(notice, tag("INSERT 0 1"), notify, param, notify, notice, notify, ready('I'), notify)),
		}, nil, nil, tagged("INSERT")},
		{"error of the command", After, []move{say(nil, insert, afterMsg, join(bad, ready('I'), pos), join(bad, ready('I')))}, nil, nil,
			with(func(a *Answer) { a.Failed = true })},
		{"error behind the tag", After, []move{
			say(nil, insert, afterMsg, join(tag("INSERT 0 1"), bad, ready('I'), pos), join(tag("INSERT 0 1"), bad, ready('I'))),
		}, nil, nil, with(func(a *Answer) { a.Tag, a.Failed = "INSERT", true })},
		{"ask refused", After, []move{say(nil, insert, afterMsg, join(done, refused("55000"), ready('I')), done)}, nil, nil,
			lost(func(a *Answer) {
				a.Tag, a.Err = "INSERT", &ServerError{Severity: "ERROR", Code: "55000", Message: "no"}
			})},
		{"ask refused inside a transaction: the client hears of it", After, []move{
			say(nil, insert, afterMsg, join(tag("INSERT 0 1"), ready('T'), refused("26000"), ready('E')), join(tag("INSERT 0 1"), ready('E'))),
		}, nil, nil, Answer{Sent: true, TxStatus: 'T', Tag: "INSERT", Err: missing}},
		{"row of somebody else's statement", After, []move{
			say(nil, insert, afterMsg, join(done, bindOK, someRow, tag("SELECT 1"), ready('I')), done),
		}, nil, nil, lost(func(a *Answer) { a.Tag, a.Err = "INSERT", errRow })},
		{"newest position counts, also when it is lost", After, []move{
			say(nil, insert, afterMsg, join(done, pos), done),
			say(nil, insert, afterMsg, join(done, refused("26000"), ready('I')), done),
		}, nil, nil, lost(func(a *Answer) { a.Tag, a.Err = "INSERT", missing })},
		{"*commit", AroundCommit, []move{
			instead(beforeMsg, query("commit"), both, join(state(true, true), commit, pos), committed),
		}, nil, nil, with(func(a *Answer) { a.Tag, a.Before = "COMMIT", Before{OK: true, AsyncCommit: true, Wrote: true} })},
		{"commit of another spelling", AroundCommit, []move{
			say(beforeMsg, query("COMMIT"), afterMsg, join(state(false, true), committed, pos), committed),
		}, nil, nil, with(func(a *Answer) { a.Tag, a.Before = "COMMIT", Before{OK: true, Wrote: true} })},
		{"*commit of a read-only transaction", AroundCommit, []move{
			instead(beforeMsg, query("commit"), both, join(notify, state(false, false), commit, pos), join(notify, committed)),
		}, nil, nil, with(func(a *Answer) { a.Tag, a.Before = "COMMIT", Before{OK: true} })},
		{"*commit of an aborted transaction", AroundCommit, []move{
			instead(beforeMsg, query("commit"), both, join(refused("25P02"), ready('E'), bound, tag("ROLLBACK"), pos), join(tag("ROLLBACK"), ready('I'))),
		}, nil, nil, with(func(a *Answer) { a.Tag, a.Before = "ROLLBACK", Before{Err: aborted} })},
		{"*commit without a look at the state before", After, []move{
			instead(nil, query("commit"), both, join(notice, commit, pos[:5], notify, pos[5:]), join(notice, tag("COMMIT"), notify, ready('I'))),
		}, nil, nil, tagged("COMMIT")},
		{"*commit with the setting off", After, []move{
			instead(nil, query("commit"), both, join(commit, position(1, 2, true, 'I')), committed),
		}, nil, nil, Answer{OK: true, Flush: 1, Insert: 2, AsyncCommit: true, Sent: true, TxStatus: 'I', Tag: "COMMIT"}},
		{"*commit that fails", After, []move{
			instead(nil, query("commit"), both, join(bound, bad, ready('I')), join(bad, ready('I'))),
		}, nil, nil, lost(func(a *Answer) { a.Failed = true })},
		{"*commit whose ask is refused", After, []move{
			instead(nil, query("commit"), both, join(commit, refused("26000"), ready('I')), committed),
		}, nil, nil, lost(func(a *Answer) { a.Tag, a.Err = "COMMIT", missing })},
		{"*commit with somebody else's row", After, []move{
			instead(nil, query("commit"), both, join(commit, someRow, tag("SELECT 1"), ready('I')), committed),
		}, nil, nil, lost(func(a *Answer) { a.Tag, a.Err = "COMMIT", errRow })},
		{"*commit without any row", After, []move{
			instead(nil, query("commit"), both, join(commit, tag("SELECT 0"), ready('I')), committed),
		}, nil, nil, lost(func(a *Answer) { a.Tag, a.Err = "COMMIT", errRow })},
		{"*commit behind another write", After, []move{
			say(nil, execute(t, "s"), afterMsg, nil, nil),
			instead(nil, query("commit"), both, join(extended, position(1, 1, true, 'T'), commit, pos), join(extended[:len(extended)-1], []byte("T"), committed)),
		}, nil, nil, tagged("COMMIT")},
		{"*commit and a write behind it", After, []move{
			instead(nil, query("commit"), both, nil, nil),
			say(nil, insert, afterMsg, join(commit, position(1, 2, true, 'I'), done, pos), join(committed, done)),
		}, nil, nil, tagged("INSERT")},
		{"*end behind the commit", After, []move{
			instead(nil, query("commit"), both, commit, tag("COMMIT")),
		}, io.EOF, ready('I'), lost(func(a *Answer) { a.Tag = "COMMIT" })},
		{"*deadline behind the commit", After, []move{
			instead(nil, query("commit"), both, join(commit, pos[:20]), tag("COMMIT")),
		}, errTimeout, ready('I'), lost(func(a *Answer) { a.Tag = "COMMIT" })},
		{"*end in front of the commit's tag", After, []move{
			instead(nil, query("commit"), both, bound, nil),
		}, io.EOF, nil, Answer{Sent: true}},
		{"*fatal behind the commit", After, []move{
			instead(nil, query("commit"), both, join(commit, fatal()), join(committed, fatal())),
		}, io.EOF, nil, lost(func(a *Answer) { a.Tag, a.Err = "COMMIT", going })},
		{"*commit, prepared first", AroundCommit, []move{
			say(nil, prepare(t, "s"), nil, described, described),
			say(beforeMsg, execute(t, "s"), afterMsg, join(state(false, true), extended, pos), extended),
		}, nil, nil, with(func(a *Answer) { a.Tag, a.Before = "INSERT", Before{OK: true, Wrote: true} })},
		{"*commit that comes in pieces", AroundCommit, []move{
			say(beforeMsg, execute(t, "s")[:20], nil, nil, nil),
			say(nil, execute(t, "s")[20:], afterMsg, join(state(false, true), extended, pos), extended),
		}, nil, nil, with(func(a *Answer) { a.Tag, a.Before = "INSERT", Before{OK: true, Wrote: true} })},
		{"*in the middle of a sequence nothing goes in front", AroundCommit, []move{
			say(beforeMsg, join(prepare(t, "s")[:len(prepare(t, "s"))-5], raw('H', "")), nil, state(false, false), nil),
			say(nil, execute(t, "s"), afterMsg, join(extended, pos), extended),
		}, nil, nil, with(func(a *Answer) { a.Tag, a.Before = "INSERT", Before{OK: true} })},
		{"copy", AfterCopy, []move{
			say(nil, prepare(t, ""), nil, described, described),
			say(nil, query("copy t from stdin"), nil, copyIn, copyIn),
			say(nil, copyBytes, nil, nil, nil),
			say(nil, raw('c', ""), afterMsg, join(tag("COPY 2"), ready('I'), pos), join(tag("COPY 2"), ready('I'))),
		}, nil, nil, tagged("COPY")},
		{"copy that the client gives up", AfterCopy, []move{
			say(nil, query("copy t from stdin"), nil, copyIn, copyIn),
			say(nil, join(copyBytes, raw('f', "no\x00")), afterMsg, join(bad, ready('I'), pos), join(bad, ready('I'))),
		}, nil, nil, with(func(a *Answer) { a.Failed = true })},
		{"copy refused at once, client says no more", AfterCopy, []move{
			say(nil, query("copy nope from stdin"), nil, join(bad, ready('I')), join(bad, ready('I'))),
		}, nil, nil, lost(func(a *Answer) { a.Failed = true })},
		{"copy refused, client ends it late", AfterCopy, []move{
			say(nil, query("copy t from stdin"), nil, join(copyIn, bad, ready('I')), join(copyIn, bad, ready('I'))),
			say(nil, raw('c', ""), nil, nil, nil),
		}, nil, nil, lost(func(a *Answer) { a.Failed = true })},
		{"copy refused, client ends it before it knows", AfterCopy, []move{
			say(nil, query("copy t from stdin"), nil, copyIn, copyIn),
			say(nil, raw('c', ""), afterMsg, join(bad, ready('I'), pos), join(bad, ready('I'))),
		}, nil, nil, with(func(a *Answer) { a.Failed = true })},
		{"copy out", After, []move{
			say(nil, query("copy t to stdout"), afterMsg, join(raw('H', "\x00\x00\x00"), raw('d', "Z\n"), raw('c', ""), tag("COPY 1"), ready('I'), pos),
				join(raw('H', "\x00\x00\x00"), raw('d', "Z\n"), raw('c', ""), tag("COPY 1"), ready('I'))),
		}, nil, nil, tagged("COPY")},

		{"fatal in the command", After, []move{say(nil, insert, afterMsg, nil, nil)}, io.EOF, nil, Answer{Sent: true}},
		{"fatal in the command, said", After, []move{say(nil, insert, afterMsg, fatal(), fatal())}, io.EOF, nil, Answer{Sent: true, Failed: true}},
		{"fatal behind the command", After, []move{say(nil, insert, afterMsg, join(done, fatal()), join(done, fatal()))}, io.EOF, nil,
			lost(func(a *Answer) { a.Tag, a.Err = "INSERT", going })},
		{"fatal in the answer", After, []move{say(nil, insert, afterMsg, join(done, bindOK, fatal()), join(done, fatal()))}, io.EOF, nil,
			lost(func(a *Answer) { a.Tag, a.Err = "INSERT", going })},
		{"end in the answer", After, []move{say(nil, insert, afterMsg, join(done, pos[:20]), tag("INSERT 0 1"))}, io.EOF, ready('I'),
			lost(func(a *Answer) { a.Tag = "INSERT" })},
		{"end right behind the command", After, []move{say(nil, insert, afterMsg, done, tag("INSERT 0 1"))}, io.EOF, ready('I'),
			lost(func(a *Answer) { a.Tag = "INSERT" })},
		{"end in the command's end", After, []move{say(nil, insert, afterMsg, done[:len(done)-2], tag("INSERT 0 1"))}, io.EOF, ready('I')[:4],
			Answer{Sent: true, Tag: "INSERT"}},
		{"end behind the first trip", After, []move{
			say(nil, prepare(t, "s"), nil, described, described),
			say(nil, execute(t, "s"), afterMsg, bindOK, bindOK),
		}, io.EOF, nil, Answer{Sent: true}},
		{"end behind the first of two positions", After, []move{
			say(nil, execute(t, "s"), afterMsg, nil, nil),
			say(nil, insert, afterMsg, join(extended, pos), extended),
		}, io.EOF, nil, Answer{Sent: true, Tag: "INSERT"}},
		{"reset behind the command", After, []move{say(nil, insert, afterMsg, done, tag("INSERT 0 1"))}, errors.New("reset"), ready('I'),
			lost(func(a *Answer) { a.Tag = "INSERT" })},
		{"deadline behind the command", After, []move{say(nil, insert, afterMsg, join(done, pos[:20]), tag("INSERT 0 1"))}, errTimeout, ready('I'),
			lost(func(a *Answer) { a.Tag = "INSERT" })},
		{"deadline in the command's end", After, []move{say(nil, insert, afterMsg, done[:len(done)-2], tag("INSERT 0 1"))}, errTimeout, nil,
			Answer{Sent: true, Tag: "INSERT"}},
		{"nonsense from the server", After, []move{say(nil, insert, afterMsg, []byte("C\x00\x00\x00\x00more"), []byte("C\x00\x00\x00\x00more"))}, io.EOF, nil,
			Answer{Sent: true, Err: ErrStream}},
		{"nonsense in the answer", After, []move{say(nil, insert, afterMsg, join(done, bindOK, []byte("D\x00\x00\x00\x03more")), join(done, []byte("D\x00\x00\x00\x03more")))}, io.EOF, nil,
			lost(func(a *Answer) { a.Tag, a.Err = "INSERT", ErrStream })},
		{"an end that is not one", After, []move{say(nil, insert, afterMsg, join(raw('Z', "II"), pos), join(raw('Z', "II"), pos))}, io.EOF, nil,
			Answer{Sent: true, Err: ErrStream}},
	}
}

// pieces is a way to cut bytes.
type pieces func(b []byte) [][]byte

func cutAt(n int) pieces {
	return func(b []byte) [][]byte {
		if n <= 0 || n >= len(b) {
			return [][]byte{b}
		}
		return [][]byte{b[:n], b[n:]}
	}
}

func cutEvery(n int) pieces {
	return func(b []byte) (out [][]byte) {
		for ; len(b) > n; b = b[n:] {
			out = append(out, b[:n])
		}
		return append(out, b)
	}
}

// play runs a conversation with both directions cut into pieces.
func play(t *testing.T, x exchange, client, server pieces, size int) {
	t.Helper()
	c, s := scripted()
	c.Arm(x.ask)
	for i, m := range x.moves {
		s.wrote = nil
		if len(m.client) > 0 {
			for _, b := range client(m.client) {
				if n, err := c.Write(b); n != len(b) || err != nil {
					t.Fatalf("move %d: Write: %d, %v", i, n, err)
				}
			}
		}
		if !bytes.Equal(s.wrote, m.toServer) {
			t.Fatalf("move %d: the server gets\n%q, want\n%q", i, s.wrote, m.toServer)
		}
		s.says(server(m.server)...)
		mustRead(t, c, m.toClient, size)
	}
	if x.end != nil {
		s.end = x.end
		got, err := readAll(t, c, size)
		if !bytes.Equal(got, x.tail) || err != x.end {
			t.Fatalf("at the end the client reads %q and %v, want %q and %v", got, err, x.tail, x.end)
		}
	}
	sameAnswer(t, c.Take(), x.want)
	if x.end == nil {
		if got, err := readAll(t, c, size); len(got) > 0 || err != errDry {
			t.Fatalf("the client also reads %q, %v", got, err)
		}
		if c.state.Load() != 0 {
			t.Fatalf("state %b after the end", c.state.Load())
		}
		// And the connection is as good as before.
		want := join(notify, tag("SELECT 1"), ready('I'))
		s.says(want)
		mustRead(t, c, want, size)
	}
}

func sameAnswer(t *testing.T, got, want Answer) {
	t.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Fatalf("answer\n%s, want\n%s", g, w)
	}
}

func TestExchanges(t *testing.T) {
	t.Parallel()
	whole := cutEvery(1 << 30)
	for _, x := range exchanges(t) {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			play(t, x, whole, whole, 8192)
			for _, size := range []int{1, 2, 5, 6, 7, 31} {
				play(t, x, whole, whole, size)
			}
			cuts := x.name[0] != '*'
			for n := range 12 {
				play(t, x, whole, cutEvery(n+1), 8192)
				if cuts {
					play(t, x, cutEvery(n+1), cutEvery(n+1), 8192)
				}
			}
			longest := 0
			for _, m := range x.moves {
				longest = max(longest, len(m.client), len(m.server))
			}
			for n := range longest {
				if cuts {
					play(t, x, cutAt(n), whole, 8192)
				}
				play(t, x, whole, cutAt(n), 8192)
				play(t, x, whole, cutAt(n), 3)
			}
		})
	}
}
