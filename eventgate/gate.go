package eventgate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidegatedb/tidegate"
)

// RefusedError tells that tokens of a message were refused. The session that was
// to go on with them catches up instead. It wraps [tidegate.ErrToken] through its
// reasons.
type RefusedError struct {
	// Reasons has an error for each token that was refused; each wraps
	// tidegate.ErrToken.
	Reasons []error
	// Clusters are those that the session catches up with.
	Clusters []string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("eventgate: %d tokens of a message were refused, the session catches up with %v: %v", len(e.Reasons), e.Clusters, errors.Join(e.Reasons...))
}

// Unwrap returns the reasons.
func (e *RefusedError) Unwrap() []error { return e.Reasons }

// ErrTooManyTokens means a token above Config.MaxTokens in one message.
var ErrTooManyTokens = fmt.Errorf("%w: too many in one message", tidegate.ErrToken)

// Inject puts the token of the context's session into a message: whoever takes it
// out sees what the session has written and seen so far. Call it after the commit;
// before it, use [Gate.InjectBeforeCommit].
//
// Without a session it leaves the message as it is, which makes consumers catch up if
// there is no token yet, and counts.
// Errors are the carrier's, or the context's if a session that is kept in a store
// could not be loaded before: the message is as it was then.
func (g *Gate) Inject(ctx context.Context, c Carrier) error {
	s := tidegate.SessionFrom(ctx)
	if s == nil {
		g.counts.sessionless.Add(1)
		return nil
	}
	if err := s.Load(ctx); err != nil {
		return err
	}
	return g.put(c, s.Token())
}

// InjectSession is [Gate.Inject] for a session that is in no context. One that is kept
// in a store has to be loaded before ([tidegate.Session.Load]), or the consumer catches
// up.
func (g *Gate) InjectSession(s *tidegate.Session, c Carrier) error { return g.put(c, s.Token()) }

// InjectToken puts a token into a message that goes on, such as PostponedError.Token
// into a job that will be tried again. Errors are those of [Gate.Inject].
func (g *Gate) InjectToken(t tidegate.Token, c Carrier) error { return g.put(c, t) }

// InjectBeforeCommit is [Gate.Inject] for a message that becomes visible by a
// transaction, together with what it tells of: a job in the same database, a row of
// an outbox. A commit has no position before it has happened, so the consumer must
// see all that is committed in the named clusters by when it takes the token
// out. That is never too little, because it can have the message only after the
// commit; it can be more than needed. It needs no session.
//
// A message that is sent to another system before the commit is beyond this, as it
// is beyond every token: its consumer can be there first.
func (g *Gate) InjectBeforeCommit(ctx context.Context, c Carrier, clusters ...string) error {
	if len(clusters) == 0 {
		clusters = g.cfg.Clusters
	}
	marks := make([]tidegate.Mark, len(clusters))
	for i, name := range clusters {
		marks[i] = tidegate.Mark{Cluster: name, CatchUp: true}
	}
	t := tidegate.NewToken(marks...)
	if s := tidegate.SessionFrom(ctx); s != nil {
		if err := s.Load(ctx); err != nil {
			return err
		}
		t = s.Token().Merge(t)
	}
	return g.put(c, t)
}

func (g *Gate) put(c Carrier, t tidegate.Token) error {
	if err := c.SetToken(g.text(t)); err != nil {
		return err
	}
	g.counts.injected.Add(1)
	return nil
}

// Extract merges the tokens of messages into the context's session, or into a new
// one that the returned context has if there is none. From then on its reads see
// what the senders had written and seen. Several messages ask for all of it.
//
// The returned context can be used whatever the error, which is a [RefusedError]:
// the session catches up then. A consumer usually logs it and goes on; an error that
// makes it take the message again would come again.
func (g *Gate) Extract(ctx context.Context, messages ...Carrier) (context.Context, error) {
	in := g.read(ctx, messages)
	s := tidegate.SessionFrom(ctx)
	if s == nil {
		s = tidegate.NewSession(in.tokens...)
		ctx = tidegate.WithSession(ctx, s)
	} else {
		for _, t := range in.tokens {
			s.Merge(t)
		}
	}
	return ctx, g.catchUp(ctx, s, in)
}

// extractNew is Extract into a session of its own, whatever the context has. No
// message at all is one without a token.
func (g *Gate) extractNew(ctx context.Context, messages []Carrier) (context.Context, error) {
	in := g.read(ctx, messages)
	if len(messages) == 0 {
		in.unknown = g.missing(ctx)
	}
	s := tidegate.NewSession(in.tokens...)
	ctx = tidegate.WithSession(ctx, s)
	return ctx, g.catchUp(ctx, s, in)
}

// arrived is what messages brought.
type arrived struct {
	tokens  []tidegate.Token
	refused []error
	// unknown tells that a message had no token and may not go without.
	unknown bool
}

func (g *Gate) read(ctx context.Context, messages []Carrier) arrived {
	var in arrived
	for _, c := range messages {
		texts := split(c.Tokens())
		if len(texts) == 0 {
			in.unknown = g.missing(ctx) || in.unknown
			continue
		}
		if n := g.cfg.MaxTokens; len(texts) > n {
			g.counts.refuse(ErrTooManyTokens)
			in.refused = append(in.refused, fmt.Errorf("%w: %d, at most %d", ErrTooManyTokens, len(texts), n))
			texts = texts[:n]
		}
		for _, text := range texts {
			t, err := g.parse(text)
			if err != nil {
				g.counts.refuse(err)
				in.refused = append(in.refused, err)
				continue
			}
			g.counts.merged.Add(1)
			in.tokens = append(in.tokens, t)
		}
	}
	return in
}

// split takes apart what somebody has joined by commas: no token has one.
func split(values []string) (texts []string) {
	for _, v := range values {
		for text := range strings.SplitSeq(v, ",") {
			texts = append(texts, strings.Trim(text, " \t"))
		}
	}
	return texts
}

// catchUp makes the session see everything if what arrived does not say all that it
// must see.
func (g *Gate) catchUp(ctx context.Context, s *tidegate.Session, in arrived) error {
	if len(in.refused) == 0 && !in.unknown {
		return nil
	}
	g.counts.catchUps.Add(1)
	for _, name := range g.cfg.Clusters {
		s.CatchUp(name)
	}
	if len(in.refused) == 0 {
		return nil
	}
	err := &RefusedError{Reasons: in.refused, Clusters: append([]string(nil), g.cfg.Clusters...)}
	if g.cfg.Refused != nil {
		g.cfg.Refused(ctx, err)
	}
	return err
}

// missing reports whether a message without a token makes the session catch up.
func (g *Gate) missing(ctx context.Context) bool {
	g.counts.missing.Add(1)
	if g.cfg.Missing != nil && g.cfg.Missing(ctx) == Fresh {
		g.counts.fresh.Add(1)
		return false
	}
	return true
}
