package grpcgate_test

import (
	"bytes"
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/grpcgate"
)

// orders is a service of the application.
type orders struct {
	testpb.UnimplementedTestServiceServer
}

func (orders) EmptyCall(ctx context.Context, _ *testpb.Empty) (*testpb.Empty, error) {
	// A write through a routed database would leave this position in the session.
	tidegate.SessionFrom(ctx).Merge(tidegate.NewToken(tidegate.Mark{
		Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 1}, Position: tidegate.At(4711),
	}))
	return &testpb.Empty{}, nil
}

func Example() {
	keyring, err := tidegate.NewKeyring(tidegate.KeyringConfig{
		Keys: []tidegate.Key{{ID: "2026-01", Secret: bytes.Repeat([]byte("s"), 32)}}, // in production: random, from a secret store
	})
	if err != nil {
		panic(err)
	}

	// The service.
	server, err := grpcgate.NewServer(grpcgate.ServerConfig{Keyring: keyring, Clusters: []string{"main"}})
	if err != nil {
		panic(err)
	}
	s := grpc.NewServer(server.Options()...)
	testpb.RegisterTestServiceServer(s, orders{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	served := make(chan error)
	go func() { served <- s.Serve(l) }()

	// Its caller.
	client, err := grpcgate.NewClient(grpcgate.ClientConfig{Keyring: keyring, Clusters: []string{"main"}})
	if err != nil {
		panic(err)
	}
	conn, err := grpc.NewClient(l.Addr().String(), append(client.Options(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		panic(err)
	}
	session := tidegate.NewSession()
	ctx := tidegate.WithSession(context.Background(), session)
	if _, err := testpb.NewTestServiceClient(conn).EmptyCall(ctx, &testpb.Empty{}); err != nil {
		panic(err)
	}
	// From here on the caller's reads, and its calls of other services, see the write.
	fmt.Println(session.Token().Marks()[0].Position)

	if err := conn.Close(); err != nil {
		panic(err)
	}
	s.GracefulStop()
	if err := <-served; err != nil {
		panic(err)
	}
	// Output: 4711
}
