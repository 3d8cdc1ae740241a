package grpcgate

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tidegatedb/tidegate"
)

// Client sends the token of a call's session, and merges what comes back into it. It
// is safe for concurrent use.
//
// Tokens go to the connections that it is installed on and nowhere else: leave it
// out where the other side is none of yours.
type Client struct {
	verifier

	sent, merged, catchUps, lost atomic.Uint64
	refused                      refusals
}

// NewClient returns a client side, or an error that wraps [tidegate.ErrConfig] and
// names the field.
func NewClient(cfg ClientConfig) (*Client, error) {
	v, err := newVerifier("ClientConfig", cfg.Keyring, cfg.Clusters, cfg.MaxTokens)
	if err != nil {
		return nil, err
	}
	return &Client{verifier: v}, nil
}

// Options returns the options for grpc.NewClient. The interceptors join those of
// other options, in their order.
func (c *Client) Options() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(c.Unary), grpc.WithChainStreamInterceptor(c.Stream)}
}

// Stats returns the counters. They are read one after the other, while calls go on.
func (c *Client) Stats() ClientStats {
	return ClientStats{Sent: c.sent.Load(), Merged: c.merged.Load(), CatchUps: c.catchUps.Load(), Lost: c.lost.Load(), Refused: c.refused.snapshot()}
}

// send returns the context of the call. A token that requires nothing is sent, too:
// a call without one is somebody whose history is not known.
func (c *Client) send(ctx context.Context, s *tidegate.Session) context.Context {
	c.sent.Add(1)
	return metadata.AppendToOutgoingContext(ctx, Key, c.keyring.Sign(s.Token()))
}

// merge takes what came back; it reports whether there was anything.
func (c *Client) merge(s *tidegate.Session, md metadata.MD) bool {
	values := md.Get(Key)
	if len(values) == 0 {
		return false
	}
	tokens, bad := c.read(values, &c.refused)
	for _, t := range tokens {
		c.merged.Add(1)
		s.Merge(t)
	}
	if bad {
		c.catchUp(s)
		c.catchUps.Add(1)
	}
	return true
}

// failed makes the session catch up after a call that failed without the service's
// word, if the failure can be one of the way there or back: it may have committed.
// What is no status counts as unknown.
func (c *Client) failed(s *tidegate.Session, err error) {
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Internal, codes.ResourceExhausted, codes.Unknown:
		c.catchUp(s)
		c.catchUps.Add(1)
		c.lost.Add(1)
	}
}

// Unary is the interceptor of unary calls.
func (c *Client) Unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	s := tidegate.SessionFrom(ctx)
	if s == nil {
		return invoker(ctx, method, req, reply, cc, opts...)
	}
	// What the service writes is the session's as well, and no call says that it only reads.
	if err := s.BeginWrite(ctx); err != nil {
		return status.FromContextError(err).Err()
	}
	defer s.EndWrite()
	var header, trailer metadata.MD
	opts = append(opts[:len(opts):len(opts)], grpc.Header(&header), grpc.Trailer(&trailer))
	err := invoker(c.send(ctx, s), method, req, reply, cc, opts...)
	c.merge(s, header)
	if !c.merge(s, trailer) && err != nil {
		c.failed(s, err)
	}
	return err
}

// Stream is the interceptor of streaming calls.
func (c *Client) Stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s := tidegate.SessionFrom(ctx)
	if s == nil {
		return streamer(ctx, desc, cc, method, opts...)
	}
	if err := s.BeginWrite(ctx); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	inner, err := streamer(c.send(ctx, s), desc, cc, method, opts...)
	if err != nil {
		c.failed(s, err)
		s.EndWrite()
		return inner, err
	}
	w := &clientStream{ClientStream: inner, client: c, session: s, single: !desc.ServerStreams}
	// A caller that gives up need not ask the stream for its end.
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop = context.AfterFunc(ctx, func() { w.end(ctx.Err()) })
	return w, nil
}

// clientStream merges what a stream brings into the session before its caller sees
// the message or the end that it came with.
type clientStream struct {
	grpc.ClientStream
	client  *Client
	session *tidegate.Session
	single  bool // there is one message to receive, and nothing behind it

	mu   sync.Mutex
	head bool // the header has been merged
	over bool
	stop func() bool
}

func (w *clientStream) Header() (metadata.MD, error) {
	md, err := w.ClientStream.Header()
	if err == nil {
		w.header(md)
	}
	return md, err
}

// header merges the header, once.
func (w *clientStream) header(md metadata.MD) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.head && md != nil {
		w.head = true
		w.client.merge(w.session, md)
	}
}

// headed reports whether the header has been merged.
func (w *clientStream) headed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.head
}

func (w *clientStream) RecvMsg(m any) error {
	err := w.ClientStream.RecvMsg(m)
	if !w.headed() {
		// It is there, or will never be: this does not wait.
		if md, herr := w.ClientStream.Header(); herr == nil {
			w.header(md)
		}
	}
	if err != nil || w.single {
		w.finish(err)
	}
	return err
}

func (w *clientStream) SendMsg(m any) error {
	err := w.ClientStream.SendMsg(m)
	if err != nil && !errors.Is(err, io.EOF) {
		w.end(err) // at io.EOF the caller asks RecvMsg for the reason
	}
	return err
}

// finish takes the trailer, which is there when a message was the last one.
func (w *clientStream) finish(err error) {
	heard := w.client.merge(w.session, w.Trailer())
	if errors.Is(err, io.EOF) || heard {
		err = nil
	}
	w.end(err)
}

// end ends the stream for the session, with an error if the service's word on what
// it did is missing. Only the first call counts; the others return when it is done, so
// that a caller who is told of the end has a session that knows.
func (w *clientStream) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.over = true
	w.stop()
	if err != nil {
		w.client.failed(w.session, err)
	}
	w.session.EndWrite()
}
