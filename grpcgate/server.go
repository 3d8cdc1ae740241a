package grpcgate

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tidegatedb/tidegate"
)

// Server gives each call a session, and answers with its token. It is safe for
// concurrent use.
type Server struct {
	cfg ServerConfig
	verifier

	emitted, catchUps, fresh atomic.Uint64
	refused                  refusals
}

// NewServer returns a server side, or an error that wraps [tidegate.ErrConfig] and
// names the field.
func NewServer(cfg ServerConfig) (*Server, error) {
	v, err := newVerifier("ServerConfig", cfg.Keyring, cfg.Clusters, cfg.MaxTokens)
	if err != nil {
		return nil, err
	}
	if cfg.Missing == nil {
		known := cfg.Known
		cfg.Missing = func(ctx context.Context, method string) Policy {
			if known != nil && known(ctx, method) {
				return CatchUp
			}
			return Fresh
		}
	}
	return &Server{cfg: cfg, verifier: v}, nil
}

// Options returns the options for grpc.NewServer. The interceptors join those of
// other options, in their order: one that recovers from panics or that reads the
// database belongs before, or behind them.
func (s *Server) Options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(s.Unary), grpc.ChainStreamInterceptor(s.Stream)}
}

// Stats returns the counters. They are read one after the other, while calls go on.
func (s *Server) Stats() ServerStats {
	return ServerStats{Emitted: s.emitted.Load(), CatchUps: s.catchUps.Load(), Fresh: s.fresh.Load(), Refused: s.refused.snapshot()}
}

// call is one call's session, and what its caller knows of it.
type call struct {
	server  *Server
	session *tidegate.Session
	// told is what the caller has: what it sent, later what went out in the header.
	told tidegate.Token
}

// begin gives the call its session.
func (s *Server) begin(ctx context.Context, method string) (context.Context, *call) {
	values := metadata.ValueFromIncomingContext(ctx, Key)
	tokens, bad := s.read(values, &s.refused)
	c := &call{server: s, session: tidegate.NewSession(tokens...)}
	c.told = c.session.Token()
	switch {
	case bad, len(values) == 0 && s.cfg.Missing(ctx, method) == CatchUp:
		s.catchUps.Add(1)
		s.catchUp(c.session)
	case len(values) == 0:
		s.fresh.Add(1)
	}
	return tidegate.WithSession(ctx, c.session), c
}

// emission returns the token that the caller must get, nil when it has it already. What
// is momentary goes out again: the caller may have found out since what it meant
// when it sent it, and would not know that it was read once more.
func (c *call) emission(always bool) metadata.MD {
	t := c.session.Token()
	if !always && t.Same(c.told) && !t.Momentary() {
		return nil
	}
	c.told = t
	return metadata.MD{Key: {c.server.keyring.Sign(t)}}
}

// header puts the token where the caller finds it before the first message; it
// reports whether that was still possible.
func (c *call) header(set func(metadata.MD) error) bool {
	before := c.told
	md := c.emission(false)
	if md == nil {
		return true
	}
	if set(md) != nil {
		c.told = before
		return false
	}
	c.server.emitted.Add(1)
	return true
}

// trailer puts the token where the caller finds it at the end. A failed call always
// has one: by that its caller knows that the service has spoken.
func (c *call) trailer(set func(metadata.MD), failed bool) {
	if md := c.emission(failed); md != nil {
		set(md)
		c.server.emitted.Add(1)
	}
}

// Unary is the interceptor of unary calls.
func (s *Server) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	inner, c := s.begin(ctx, info.FullMethod)
	setTrailer := func(md metadata.MD) { _ = grpc.SetTrailer(ctx, md) } // it fails when the call is over: nobody listens
	failed := true
	// Also when the handler panics: somebody further out may recover and answer.
	defer func() {
		if failed {
			c.trailer(setTrailer, true)
		}
	}()
	resp, err := handler(inner, req)
	if failed = err != nil; failed {
		return resp, err
	}
	if !c.header(func(md metadata.MD) error { return grpc.SetHeader(ctx, md) }) {
		c.trailer(setTrailer, false)
	}
	return resp, nil
}

// Stream is the interceptor of streaming calls.
func (s *Server) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, c := s.begin(stream.Context(), info.FullMethod)
	w := &serverStream{ServerStream: stream, ctx: ctx, call: c}
	failed := true
	defer func() { w.end(failed) }()
	err := handler(srv, w)
	failed = err != nil
	return err
}

// serverStream is a stream with the call's session.
type serverStream struct {
	grpc.ServerStream
	ctx context.Context

	mu   sync.Mutex // a handler can send and return in different goroutines
	call *call
	sent bool // the header
}

func (w *serverStream) Context() context.Context { return w.ctx }

func (w *serverStream) SendHeader(md metadata.MD) error {
	w.first()
	return w.ServerStream.SendHeader(md)
}

func (w *serverStream) SendMsg(m any) error {
	w.first()
	return w.ServerStream.SendMsg(m)
}

// first puts the token into the header, which goes out with the first message.
func (w *serverStream) first() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.sent {
		w.sent = true
		w.call.header(w.SetHeader) // too late for it: the trailer
	}
}

func (w *serverStream) end(failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.call.trailer(w.SetTrailer, failed)
}
