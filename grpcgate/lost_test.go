package grpcgate_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/tidegatedb/tidegate"
)

// hanging returns a service that does not answer any more once it has written, and a
// channel on which it says so.
func hanging(t testing.TB) (*service, chan struct{}) {
	wrote := make(chan struct{}, 1)
	svc := &service{db: lagging(t)}
	svc.also = func(ctx context.Context, _ string) (string, error) {
		wrote <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}
	return svc, wrote
}

// A call that its caller gives up has perhaps written. The session finds out.
func TestLostCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		call func(ctx context.Context, conn testpb.TestServiceClient, wrote <-chan struct{}, cancel func()) error
	}{
		{"unary", func(ctx context.Context, conn testpb.TestServiceClient, wrote <-chan struct{}, cancel func()) error {
			go func() { <-wrote; cancel() }()
			_, err := unary(ctx, conn, "put:new,hang")
			return err
		}},
		{"bidi, cancelled while receiving", func(ctx context.Context, conn testpb.TestServiceClient, wrote <-chan struct{}, cancel func()) error {
			go func() { <-wrote; cancel() }()
			return bidi(ctx, conn, "get", "put:new,hang")
		}},
		{"server streaming, left after a message", func(ctx context.Context, conn testpb.TestServiceClient, wrote <-chan struct{}, cancel func()) error {
			stream, err := conn.StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{Payload: payload("get,put:new,hang")})
			if err != nil {
				return err
			}
			_, err = stream.Recv()
			<-wrote
			cancel()
			if err != nil {
				return err
			}
			return status.FromContextError(ctx.Err()).Err()
		}},
		{"client streaming, left", func(ctx context.Context, conn testpb.TestServiceClient, wrote <-chan struct{}, cancel func()) error {
			stream, err := conn.StreamingInputCall(ctx)
			if err != nil {
				return err
			}
			err = stream.Send(&testpb.StreamingInputCallRequest{Payload: payload("put:new,hang")})
			<-wrote
			cancel()
			if err != nil {
				return err
			}
			return status.FromContextError(ctx.Err()).Err()
		}},
	} {
		svc, wrote := hanging(t)
		client := newClient(t)
		conn := dial(t, true, svc, newServer(t).Options(), client.Options())
		ctx, s := session(t)
		limited, cancel := context.WithCancel(ctx)
		if err := c.call(limited, conn, wrote, cancel); status.Code(err) != codes.Canceled {
			t.Errorf("%s: %v", c.name, err)
		}
		// Nobody has to ask a stream for its end: the context tells.
		for deadline := time.Now().Add(10 * time.Second); client.Stats().Lost == 0 && time.Now().Before(deadline); {
			runtime.Gosched()
		}
		if st := client.Stats(); st.Lost != 1 || st.CatchUps != 1 {
			t.Errorf("%s: %+v", c.name, st)
		}
		if v := ask(ctx, t, conn, "get"); v != "new" {
			t.Errorf("%s: read %q, with %+v", c.name, v, s.Token().Marks())
		}
	}
}

// A service that has gone takes its word with it.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	db := lagging(t)
	svc := &service{db: db}
	svc.also = func(ctx context.Context, _ string) (string, error) {
		go svc.server.Stop()
		<-ctx.Done()
		return "", ctx.Err()
	}
	client := newClient(t)
	conn := dial(t, true, svc, newServer(t).Options(), client.Options())
	ctx, s := session(t)
	if _, err := unary(ctx, conn, "put:new,stop"); status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
	if m := s.Token().Marks(); len(m) != 1 || !m[0].CatchUp || client.Stats().Lost != 1 {
		t.Errorf("%+v, %+v", m, client.Stats())
	}
}

// An error by which the service speaks says that there is nothing more to know.
func TestErrorsThatAreNotLost(t *testing.T) {
	t.Parallel()
	for _, code := range []codes.Code{codes.Unavailable, codes.Internal, codes.Unknown, codes.NotFound} {
		for _, early := range []bool{false, true} {
			svc := &service{db: lagging(t), also: func(ctx context.Context, word string) (string, error) {
				if word == "header" {
					return more(ctx, word)
				}
				return "", status.Error(code, "as asked")
			}}
			client := newClient(t)
			conn := dial(t, false, svc, newServer(t).Options(), client.Options())
			ctx, s := session(t)
			what := "err"
			if early {
				what = "header,err"
			}
			if _, err := unary(ctx, conn, what); status.Code(err) != code {
				t.Error(err)
			}
			if err := bidi(ctx, conn, "err"); status.Code(err) != code {
				t.Error(err)
			}
			if st := client.Stats(); st.Lost != 0 || st.CatchUps != 0 || !s.Token().IsZero() {
				t.Errorf("%v: %+v, %+v", code, st, s.Token().Marks())
			}
		}
	}
}

// A stream that ends as it should is not lost when its context ends later.
func TestContextEndsAfterTheStream(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	conn := dial(t, false, &service{db: lagging(t)}, newServer(t).Options(), client.Options())
	ctx, _ := session(t)
	for name, call := range map[string]func(ctx context.Context) error{
		"bidi":  func(ctx context.Context) error { return bidi(ctx, conn, "get") },
		"input": func(ctx context.Context) error { return writes["client streaming"](ctx, conn) },
	} {
		limited, cancel := context.WithCancel(ctx)
		if err := call(limited); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	ask(tidegate.WithSession(t.Context(), tidegate.NewSession()), t, conn, "get")
	if st := client.Stats(); st.Lost != 0 || st.CatchUps != 0 {
		t.Errorf("%+v", st)
	}
}

// counting is a context that does not end, and counts who waits for that.
type counting struct {
	context.Context
	done    chan struct{}
	waiting atomic.Int64
}

func (c *counting) Done() <-chan struct{} { return c.done }

// AfterFunc is what package context asks for where the context is not its own.
func (c *counting) AfterFunc(func()) func() bool {
	c.waiting.Add(1)
	var once sync.Once
	return func() bool {
		once.Do(func() { c.waiting.Add(-1) })
		return true
	}
}

// A stream that has ended leaves nothing with a context that lives on.
func TestStreamLeavesNothing(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	conn := dial(t, false, &service{db: lagging(t)}, newServer(t).Options(), client.Options())
	inner, _ := session(t)
	ctx := &counting{Context: inner, done: make(chan struct{})}
	for range 3 {
		if err := bidi(ctx, conn, "get"); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ctx.waiting.Load() != 0 && time.Now().Before(deadline); {
		runtime.Gosched() // a stream of gRPC lets go in its own goroutine
	}
	if n := ctx.waiting.Load(); n != 0 || client.Stats().Sent != 3 {
		t.Errorf("%d still wait for the context", n)
	}
}
