package grpcgate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/grpcgate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	if left := leak(before); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, left)
		code = 1
	}
	os.Exit(code)
}

// leak describes goroutines that the tests have left.
func leak(before int) string {
	// One that has done its work may still be on its way out.
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if runtime.NumGoroutine() <= before {
			return ""
		}
	}
	stacks := make([]byte, 1<<20)
	return "goroutines are left:\n" + string(stacks[:runtime.Stack(stacks, true)])
}

func ring(t testing.TB, secret byte) *tidegate.Keyring {
	t.Helper()
	return ringAt(t, secret, "k1", 0)
}

// ringAt returns a key ring whose clock stands, so much away from the other ones'.
func ringAt(t testing.TB, secret byte, id string, away time.Duration) *tidegate.Keyring {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(away)
	k, err := tidegate.NewKeyring(tidegate.KeyringConfig{
		Keys: []tidegate.Key{{ID: id, Secret: bytes.Repeat([]byte{secret}, 32)}}, Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newServer(t testing.TB, change ...func(*grpcgate.ServerConfig)) *grpcgate.Server {
	t.Helper()
	cfg := grpcgate.ServerConfig{Keyring: ring(t, 1), Clusters: []string{"main"}}
	for _, f := range change {
		f(&cfg)
	}
	s, err := grpcgate.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newClient(t testing.TB) *grpcgate.Client {
	t.Helper()
	c, err := grpcgate.NewClient(grpcgate.ClientConfig{Keyring: ring(t, 1), Clusters: []string{"main"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// service does in all kinds of calls what the messages say.
type service struct {
	testpb.UnimplementedTestServiceServer
	db     *tidegatetest.Cluster
	server *grpc.Server // that it is registered with
	// also, if set, is asked for words that are not known here.
	also func(ctx context.Context, word string) (string, error)
}

// do does one thing: "get", "put:value", "fail", "panic", or what also knows.
func (s *service) do(ctx context.Context, what string) (string, error) {
	word, value, _ := strings.Cut(what, ":")
	switch word {
	case "get":
		v, _, err := s.db.Get(ctx, tidegate.Causal, "k")
		return v, err
	case "put":
		return "", s.db.Put(ctx, "k", value)
	case "fail":
		return "", status.Error(codes.FailedPrecondition, "as asked")
	case "panic":
		panic("as asked")
	}
	if s.also == nil {
		return "", status.Error(codes.InvalidArgument, what)
	}
	return s.also(ctx, what)
}

// all does several things and returns what the last one said.
func (s *service) all(ctx context.Context, what string) (last string, err error) {
	for w := range strings.SplitSeq(what, ",") {
		if last, err = s.do(ctx, w); err != nil {
			return "", err
		}
	}
	return last, nil
}

func payload(text string) *testpb.Payload { return &testpb.Payload{Body: []byte(text)} }

func (s *service) UnaryCall(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	v, err := s.all(ctx, string(req.Payload.Body))
	return &testpb.SimpleResponse{Payload: payload(v)}, err
}

// StreamingOutputCall answers with a message for each thing.
func (s *service) StreamingOutputCall(req *testpb.StreamingOutputCallRequest, stream grpc.ServerStreamingServer[testpb.StreamingOutputCallResponse]) error {
	for w := range strings.SplitSeq(string(req.Payload.Body), ",") {
		if w == "put and send header" {
			if err := errors.Join(s.db.Put(stream.Context(), "k", "new"), stream.SendHeader(metadata.Pairs("own", "x"))); err != nil {
				return err
			}
			continue
		}
		v, err := s.do(stream.Context(), w)
		if err != nil {
			return err
		}
		if err := stream.Send(&testpb.StreamingOutputCallResponse{Payload: payload(v)}); err != nil {
			return err
		}
	}
	return nil
}

func (s *service) StreamingInputCall(stream grpc.ClientStreamingServer[testpb.StreamingInputCallRequest, testpb.StreamingInputCallResponse]) error {
	for {
		req, err := stream.Recv()
		if err == io.EOF {
			return stream.SendAndClose(&testpb.StreamingInputCallResponse{})
		}
		if err != nil {
			return err
		}
		if _, err := s.all(stream.Context(), string(req.Payload.Body)); err != nil {
			return err
		}
	}
}

func (s *service) FullDuplexCall(stream grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]) error {
	for {
		req, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		v, err := s.all(stream.Context(), string(req.Payload.Body))
		if err != nil {
			return err
		}
		if err := stream.Send(&testpb.StreamingOutputCallResponse{Payload: payload(v)}); err != nil {
			return err
		}
	}
}

// dial serves and returns a connection, over a real socket or in memory.
func dial(t testing.TB, tcp bool, svc *service, server []grpc.ServerOption, client []grpc.DialOption) testpb.TestServiceClient {
	t.Helper()
	s := grpc.NewServer(server...)
	if svc.server == nil {
		svc.server = s
	}
	testpb.RegisterTestServiceServer(s, svc)
	var l net.Listener
	client = append(client[:len(client):len(client)], grpc.WithTransportCredentials(insecure.NewCredentials()))
	target := "passthrough:///memory"
	if tcp {
		var err error
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		target = l.Addr().String()
	} else {
		b := bufconn.Listen(1 << 16)
		client = append(client, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return b.DialContext(ctx) }))
		l = b
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(l); err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient(target, client...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		s.Stop()
		<-done
	})
	return testpb.NewTestServiceClient(conn)
}

// lagging returns a cluster "main" whose replicas have only "old" and stay so.
func lagging(t testing.TB) *tidegatetest.Cluster {
	t.Helper()
	db := tidegatetest.New(t, tidegatetest.Config{Name: "main"})
	if err := db.Put(t.Context(), "k", "old"); err != nil {
		t.Fatal(err)
	}
	db.Replica(0).Hold()
	db.Replica(1).Hold()
	return db
}

func session(t testing.TB) (context.Context, *tidegate.Session) {
	s := tidegate.NewSession()
	return tidegate.WithSession(t.Context(), s), s
}

func unary(ctx context.Context, c testpb.TestServiceClient, what string, opts ...grpc.CallOption) (string, error) {
	resp, err := c.UnaryCall(ctx, &testpb.SimpleRequest{Payload: payload(what)}, opts...)
	return string(resp.GetPayload().GetBody()), err
}

func ask(ctx context.Context, t testing.TB, c testpb.TestServiceClient, what string) string {
	t.Helper()
	v, err := unary(ctx, c, what)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return v
}
