package grpcgate_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/grpcgate"
)

// BenchmarkUnaryServer is what the interceptor adds to a call on the server, without
// gRPC: the header is taken by nobody.
func BenchmarkUnaryServer(b *testing.B) {
	server := newServer(b)
	text := sign(b, ring(b, 1), position("main", 1<<30))
	with := metadata.NewIncomingContext(b.Context(), metadata.Pairs(grpcgate.Key, text))
	advance := func(ctx context.Context, _ any) (any, error) {
		tidegate.SessionFrom(ctx).Merge(position("main", 1<<40))
		return nil, nil
	}
	for _, c := range []struct {
		name    string
		ctx     context.Context
		handler grpc.UnaryHandler
	}{
		{"no token", metadata.NewIncomingContext(b.Context(), metadata.MD{}), func(context.Context, any) (any, error) { return nil, nil }},
		{"token", with, func(context.Context, any) (any, error) { return nil, nil }},
		{"token and a write", with, advance},
	} {
		b.Run(c.name, func(b *testing.B) {
			info := &grpc.UnaryServerInfo{FullMethod: "/x/Y"}
			ctx := grpc.NewContextWithServerTransportStream(c.ctx, noStream{})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := server.Unary(ctx, nil, info, c.handler); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type noStream struct{}

func (noStream) Method() string               { return "/x/Y" }
func (noStream) SetHeader(metadata.MD) error  { return nil }
func (noStream) SendHeader(metadata.MD) error { return nil }
func (noStream) SetTrailer(metadata.MD) error { return nil }

// BenchmarkUnaryClient is what the interceptor adds to a call on the client.
func BenchmarkUnaryClient(b *testing.B) {
	client := newClient(b)
	invoker := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	for name, ctx := range map[string]context.Context{
		"no session": b.Context(), "session": tidegate.WithToken(b.Context(), position("main", 1<<30)),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := client.Unary(ctx, "/x/Y", nil, nil, nil, invoker); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCall is a whole call in memory, without the package and with it.
func BenchmarkCall(b *testing.B) {
	for _, with := range []bool{false, true} {
		name, server, client := "bare", []grpc.ServerOption(nil), []grpc.DialOption(nil)
		if with {
			name, server, client = "with tokens", newServer(b).Options(), newClient(b).Options()
		}
		b.Run(name, func(b *testing.B) {
			svc := &service{also: func(context.Context, string) (string, error) { return "", nil }}
			conn := dial(b, false, svc, server, client)
			ctx := tidegate.WithToken(b.Context(), position("main", 1<<30))
			req := &testpb.SimpleRequest{Payload: payload("nothing")}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := conn.UnaryCall(ctx, req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
