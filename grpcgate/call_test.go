package grpcgate_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/grpcgate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

// writes are all the ways in which a call can write and end.
var writes = map[string]func(ctx context.Context, c testpb.TestServiceClient) error{
	"unary": func(ctx context.Context, c testpb.TestServiceClient) error {
		_, err := unary(ctx, c, "put:new")
		return err
	},
	"unary that sends its header itself before": func(ctx context.Context, c testpb.TestServiceClient) error {
		_, err := unary(ctx, c, "header,put:new")
		return err
	},
	"unary that sets a header": func(ctx context.Context, c testpb.TestServiceClient) error {
		var header, trailer metadata.MD
		_, err := unary(ctx, c, "own,put:new", grpc.Header(&header), grpc.Trailer(&trailer))
		if header.Get("own")[0] != "x" || len(header.Get(grpcgate.Key)) != 1 || len(trailer.Get(grpcgate.Key)) != 0 {
			return errors.New("the caller's own options are gone")
		}
		return err
	},
	"unary, error after the commit": func(ctx context.Context, c testpb.TestServiceClient) error {
		_, err := unary(ctx, c, "put:new,fail")
		return asAsked(err, codes.FailedPrecondition)
	},
	"unary, error after header and commit": func(ctx context.Context, c testpb.TestServiceClient) error {
		_, err := unary(ctx, c, "header,put:new,fail")
		return asAsked(err, codes.FailedPrecondition)
	},
	"unary, panic after the commit": func(ctx context.Context, c testpb.TestServiceClient) error {
		_, err := unary(ctx, c, "put:new,panic")
		return asAsked(err, codes.Aborted)
	},
	"server streaming, before the first message": func(ctx context.Context, c testpb.TestServiceClient) error {
		stream, err := c.StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{Payload: payload("put:new,get")})
		if err != nil {
			return err
		}
		// The first message is enough: the header came with it.
		_, err = stream.Recv()
		return errors.Join(err, drain(stream))
	},
	"server streaming, after the first message": func(ctx context.Context, c testpb.TestServiceClient) error {
		stream, err := c.StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{Payload: payload("get,put:new,get")})
		if err != nil {
			return err
		}
		return drain(stream)
	},
	"server streaming, error after the commit": func(ctx context.Context, c testpb.TestServiceClient) error {
		stream, err := c.StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{Payload: payload("get,put:new,fail")})
		if err != nil {
			return err
		}
		return asAsked(drain(stream), codes.FailedPrecondition)
	},
	"server streaming, panic after the commit": func(ctx context.Context, c testpb.TestServiceClient) error {
		stream, err := c.StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{Payload: payload("get,put:new,panic")})
		if err != nil {
			return err
		}
		return asAsked(drain(stream), codes.Aborted)
	},
	"server streaming, header asked for": func(ctx context.Context, c testpb.TestServiceClient) error {
		stream, err := c.StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{Payload: payload("put:new")})
		if err != nil {
			return err
		}
		md, err := stream.Header()
		if len(md.Get(grpcgate.Key)) != 1 {
			return errors.New("no token in the header")
		}
		return errors.Join(err, drain(stream))
	},
	"client streaming": func(ctx context.Context, c testpb.TestServiceClient) error {
		stream, err := c.StreamingInputCall(ctx)
		if err != nil {
			return err
		}
		for _, what := range []string{"get", "put:new", "get"} {
			if err := stream.Send(&testpb.StreamingInputCallRequest{Payload: payload(what)}); err != nil {
				return err
			}
		}
		_, err = stream.CloseAndRecv()
		return err
	},
	"client streaming, error after the commit": func(ctx context.Context, c testpb.TestServiceClient) error {
		stream, err := c.StreamingInputCall(ctx)
		if err != nil {
			return err
		}
		if err := stream.Send(&testpb.StreamingInputCallRequest{Payload: payload("put:new,fail")}); err != nil {
			return err
		}
		_, err = stream.CloseAndRecv()
		return asAsked(err, codes.FailedPrecondition)
	},
	"bidi": func(ctx context.Context, c testpb.TestServiceClient) error {
		return bidi(ctx, c, "get", "put:new", "get")
	},
	"bidi, error after the commit": func(ctx context.Context, c testpb.TestServiceClient) error {
		return asAsked(bidi(ctx, c, "get", "put:new,fail"), codes.FailedPrecondition)
	},
}

func bidi(ctx context.Context, c testpb.TestServiceClient, what ...string) error {
	stream, err := c.FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	for _, w := range what {
		if err := stream.Send(&testpb.StreamingOutputCallRequest{Payload: payload(w)}); err != nil {
			return err
		}
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return drain(stream)
}

// drain receives up to the end.
func drain[M any](stream interface{ Recv() (M, error) }) error {
	for {
		if _, err := stream.Recv(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func asAsked(err error, code codes.Code) error {
	if status.Code(err) == code {
		return nil
	}
	return errors.Join(errors.New("not the error that was asked for"), err)
}

// more knows what only these tests ask for.
func more(ctx context.Context, word string) (string, error) {
	switch word {
	case "header":
		return "", grpc.SendHeader(ctx, metadata.Pairs("early", "x"))
	case "own":
		return "", grpc.SetHeader(ctx, metadata.Pairs("own", "x"))
	default:
		return "", status.Error(codes.InvalidArgument, word)
	}
}

// recovering answers panics, outside of the interceptors under test.
func recovering() []grpc.ServerOption {
	answer := func(err *error) {
		if p := recover(); p != nil {
			*err = status.Error(codes.Aborted, "panic")
		}
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (_ any, err error) {
			defer answer(&err)
			return h(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
			defer answer(&err)
			return h(srv, s)
		}),
	}
}

// However a call ends that has written, its caller's next call, to another
// instance, sees it. Without the client side it does not: the control.
func TestCallerSeesItsWrites(t *testing.T) {
	t.Parallel()
	for _, tcp := range []bool{false, true} {
		for name, write := range writes {
			for _, control := range []bool{false, true} {
				db := lagging(t)
				client, want := newClient(t), "new"
				options := client.Options()
				if control {
					options, want = nil, "old"
				}
				svc := &service{db: db, also: more}
				first, second := newServer(t), newServer(t)
				one := dial(t, tcp, svc, append(recovering(), first.Options()...), options)
				two := dial(t, tcp, svc, second.Options(), options)
				ctx, s := session(t)
				if err := write(ctx, one); err != nil && !control {
					t.Errorf("%s: %v", name, err)
				}
				db.StaleUnlessRouted("k")
				marks := s.Token().Marks()
				if v := ask(ctx, t, two, "get"); v != want {
					t.Errorf("%s, control %v: read %q, want %q", name, control, v, want)
				}
				if control {
					continue
				}
				if len(marks) != 1 || marks[0].Position.IsZero() || marks[0].CatchUp {
					t.Errorf("%s: the session has %+v, which is not the write's position", name, marks)
				}
				if st := client.Stats(); st.Sent != 2 || st.Merged == 0 || st.CatchUps != 0 || st.Lost != 0 || st.Refused.Total() != 0 {
					t.Errorf("%s: client %+v", name, st)
				}
				if st := first.Stats(); st.Emitted == 0 || st.Fresh != 0 || st.CatchUps != 0 || st.Refused.Total() != 0 {
					t.Errorf("%s: server %+v", name, st)
				}
			}
		}
	}
}

// The header of a stream is merged before its first message is seen, so that what
// follows from the message is read with it.
func TestHeaderCountsAtTheFirstMessage(t *testing.T) {
	t.Parallel()
	db := lagging(t)
	svc := &service{db: db, also: func(ctx context.Context, _ string) (string, error) {
		<-ctx.Done() // the stream stays open
		return "", ctx.Err()
	}}
	client := newClient(t)
	conn := dial(t, false, svc, newServer(t).Options(), client.Options())
	ctx, s := session(t)
	open, cancel := context.WithCancel(ctx)
	stream, err := conn.StreamingOutputCall(open, &testpb.StreamingOutputCallRequest{Payload: payload("put:new,wait")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if m := s.Token().Marks(); len(m) != 1 || m[0].Position.IsZero() {
		t.Errorf("%+v", m)
	}
	if v := ask(ctx, t, conn, "get"); v != "new" {
		t.Errorf("read %q while the stream is open", v)
	}
	cancel()
	if err := drain(stream); status.Code(err) != codes.Canceled {
		t.Error(err)
	}
}

// Who only reads gets back what it has seen; whom nothing changed gets nothing.
func TestEmitsWhenChanged(t *testing.T) {
	t.Parallel()
	db := tidegatetest.New(t, tidegatetest.Config{Name: "main"})
	server := newServer(t)
	conn := dial(t, false, &service{db: db, also: func(context.Context, string) (string, error) { return "", nil }}, server.Options(), newClient(t).Options())
	ctx, s := session(t)
	ask(ctx, t, conn, "nothing")
	if st := server.Stats(); st.Emitted != 0 {
		t.Errorf("nothing was done: %+v", st)
	}
	ask(ctx, t, conn, "get")
	if m := s.Token().Marks(); len(m) != 1 || len(m[0].Seen) != 1 {
		t.Errorf("after a read on a replica: %+v", m)
	}
	// The same replica again: the token says the same, and means another moment.
	ask(ctx, t, conn, "get")
	if st := server.Stats(); st.Emitted != 2 {
		t.Errorf("after two reads on a replica: %+v", st)
	}
	if err := bidi(ctx, conn, "nothing"); err != nil {
		t.Error(err)
	}
	before := server.Stats().Emitted
	fresh, _ := session(t)
	if err := bidi(fresh, conn, "nothing", "nothing"); err != nil || server.Stats().Emitted != before {
		t.Errorf("nothing was done in a stream: %v, %+v", err, server.Stats())
	}
}

// A session that has a position gets a newer one.
func TestPositionAdvances(t *testing.T) {
	t.Parallel()
	db := lagging(t)
	one := dial(t, false, &service{db: db}, newServer(t).Options(), newClient(t).Options())
	two := dial(t, false, &service{db: db}, newServer(t).Options(), newClient(t).Options())
	ctx, s := session(t)
	var last tidegate.Position
	for _, v := range []string{"1", "2", "3"} {
		ask(ctx, t, one, "put:"+v)
		now := s.Token().Marks()[0].Position
		if last.Covers(now) {
			t.Errorf("after %s the session has still %v", v, now)
		}
		last = now
	}
	if v := ask(ctx, t, two, "get"); v != "3" {
		t.Errorf("read %q", v)
	}
}

// Two calls of one session run at once, and the answer with the older position comes
// last. The newer one stays.
func TestAnswersInTheWrongOrder(t *testing.T) {
	t.Parallel()
	db := lagging(t)
	wrote, release := make(chan struct{}), make(chan struct{})
	svc := &service{db: db, also: func(context.Context, string) (string, error) {
		close(wrote)
		<-release
		return "", nil
	}}
	conn := dial(t, true, svc, newServer(t).Options(), newClient(t).Options())
	ctx, s := session(t)
	older := make(chan error, 1)
	go func() {
		_, err := unary(ctx, conn, "put:older,held")
		older <- err
	}()
	<-wrote
	ask(ctx, t, conn, "put:newer")
	newer := s.Token()
	close(release)
	if err := <-older; err != nil {
		t.Fatal(err)
	}
	if got := s.Token().Marks(); len(got) != 1 || got[0].Position != newer.Marks()[0].Position {
		t.Errorf("now %+v, before the older answer %+v", got, newer.Marks())
	}
	if v := ask(ctx, t, conn, "get"); v != "newer" {
		t.Errorf("read %q", v)
	}
}

// A handler that sends the header itself, after a write, sends the token with it.
func TestHeaderOfTheHandler(t *testing.T) {
	t.Parallel()
	conn := dial(t, false, &service{db: lagging(t)}, newServer(t).Options(), newClient(t).Options())
	ctx, _ := session(t)
	stream, err := conn.StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{Payload: payload("put and send header,get")})
	if err != nil {
		t.Fatal(err)
	}
	md, err := stream.Header()
	if err != nil || len(md.Get(grpcgate.Key)) != 1 || len(md.Get("own")) != 1 {
		t.Errorf("header %v, %v", md, err)
	}
	if err := drain(stream); err != nil {
		t.Error(err)
	}
}

// Without a session the interceptors are as if they were not there.
func TestWithoutSession(t *testing.T) {
	t.Parallel()
	client, server := newClient(t), newServer(t)
	conn := dial(t, false, &service{db: lagging(t)}, server.Options(), client.Options())
	ask(t.Context(), t, conn, "put:new")
	if err := bidi(t.Context(), conn, "put:new"); err != nil {
		t.Error(err)
	}
	if st := client.Stats(); st != (grpcgate.ClientStats{}) {
		t.Errorf("%+v", st)
	}
	if st := server.Stats(); st.Fresh != 2 || st.Emitted != 2 {
		t.Errorf("%+v", st)
	}
}
