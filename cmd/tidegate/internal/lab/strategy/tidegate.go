package strategy

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// Tidegate routes with this library: writes to the primary, causal reads to a
// replica that provably has what the session must see. Its token is what an
// HTTP client would carry: signed with a key that all instances share.
type Tidegate struct{}

// Name implements Strategy.
func (Tidegate) Name() string { return "tidegate" }

// About implements Strategy.
func (Tidegate) About() string {
	return "writes to the primary, reads to a replica that provably has what the session must see"
}

// Open implements Strategy.
func (Tidegate) Open(ctx context.Context, _ int, nodes Nodes, cfg Config) (Instance, error) {
	if cfg.Carried {
		return openGated(ctx, nodes, cfg, inContext{})
	}
	keys, err := Keyring()
	if err != nil {
		return nil, err
	}
	return openGated(ctx, nodes, cfg, signed{keys})
}

// Cluster is what tokens call the lab's cluster.
const Cluster = "lab"

// strong is the class of the reads whose answer must be the newest.
var strong = tidegate.Strong("lab-strong", "the lab wants a part of the reads to decide something")

// carrier moves a session's history from one operation to the next.
type carrier interface {
	// load returns the session that goes on.
	load(ctx context.Context, s *Session) (*tidegate.Session, error)
	// save keeps what the session knows now.
	save(s *Session, session *tidegate.Session)
}

// openGated starts an instance whose sessions are carried in that way.
func openGated(ctx context.Context, nodes Nodes, cfg Config, by carrier) (*gated, error) {
	c := pgxgate.Config{Cluster: Cluster, Wait: cfg.Wait, FallbackReads: cfg.FallbackReads, FixedFallbacks: cfg.FixedFallbacks}
	if cfg.AnyLag {
		c.LongestLag = -1
	}
	if cfg.Ejected != nil {
		c.Hooks = append(c.Hooks, tidegate.Hook{Changed: func(x tidegate.Change) {
			if x.Kind == tidegate.NodeEjected {
				cfg.Ejected()
			}
		}})
	}
	for i, dsn := range nodes.All() {
		pool, err := pgxpool.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		cfg.tune(pool)
		name := "primary"
		if i < len(nodes.Replicas) {
			name = ReplicaName(i)
		}
		c.Nodes = append(c.Nodes, pgxgate.Node{Name: name, Pool: pool})
	}
	db, err := pgxgate.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	return &gated{db: db, by: by}, nil
}

type gated struct {
	db *pgxgate.DB
	by carrier
}

// Read implements Instance.
func (g *gated) Read(ctx context.Context, s *Session, keys []int64) (record.Answer, error) {
	return g.read(ctx, s, tidegate.Causal, keys)
}

// ReadStrong implements Instance.
func (g *gated) ReadStrong(ctx context.Context, s *Session, keys []int64) (record.Answer, error) {
	return g.read(ctx, s, strong, keys)
}

func (g *gated) read(ctx context.Context, s *Session, class tidegate.Class, keys []int64) (answer record.Answer, err error) {
	err = g.with(ctx, s, func(ctx context.Context) error {
		ctx, seen := tidegate.Observe(ctx)
		rows, err := readRows(ctx, g.db.Read(class), keys)
		d, _ := seen.Last()
		answer = record.Answer{
			Rows: rows, Node: d.Node, Reason: d.Reason.String(),
			Replica:  err == nil && d.Role == tidegate.RoleReplica,
			Fallback: err == nil && d.Role == tidegate.RolePrimary && d.Reason != tidegate.ReasonStrong,
			Waited:   d.Waited > 0,
			Unproven: d.Unproven, MarkedStale: d.Stale, Queued: d.Queued,
			Bound: d.Staleness, Bounded: d.StalenessKnown,
			Retries: d.Retries,
			Begun:   err != nil && len(rows) > 0,
			Shed:    refused(err),
		}
		answer.NotFresh = answer.Shed && errors.Is(err, tidegate.ErrNotFresh)
		answer.Typed = answer.Shed && typed(err)
		return err
	})
	return answer, err
}

// refused reports whether an error is the library's own choice. Without a primary there
// is nothing to protect, and a read whose time is over was not answered in time: those
// are errors.
func refused(err error) bool {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return false
	case errors.Is(err, tidegate.ErrOverloaded):
		return true
	}
	return errors.Is(err, tidegate.ErrNotFresh) && !errors.Is(err, tidegate.ErrNoPrimary)
}

// typed reports whether a refusal says what an application needs to know of it.
func typed(err error) bool {
	var full *tidegate.OverloadedError
	var late *tidegate.NotFreshError
	return errors.As(err, &full) && full.RetryAfter > 0 || errors.As(err, &late)
}

// Write implements Instance.
func (g *gated) Write(ctx context.Context, s *Session, key, version int64) error {
	return g.with(ctx, s, func(ctx context.Context) error {
		return write(ctx, g.db.Write(), key, version)
	})
}

// with does something in the session that the carrier brings, and has it keep
// what was done. It does so after a failure too: what a failed operation did or
// saw belongs to the session.
func (g *gated) with(ctx context.Context, s *Session, do func(context.Context) error) error {
	session, err := g.by.load(ctx, s)
	if err != nil {
		return err
	}
	err = do(tidegate.WithSession(ctx, session))
	g.by.save(s, session)
	return err
}

// Close implements Instance.
func (g *gated) Close() { g.db.Close() }

// signed carries sessions by signed tokens. Nothing else of a session outlives
// an operation.
type signed struct{ keys *tidegate.Keyring }

func (c signed) load(_ context.Context, s *Session) (*tidegate.Session, error) {
	if s.Token == "" {
		return tidegate.NewSession(), nil
	}
	token, err := c.keys.Verify(s.Token)
	if err != nil {
		return nil, err
	}
	return tidegate.NewSession(token), nil
}

func (c signed) save(s *Session, session *tidegate.Session) {
	s.Token = c.keys.Sign(session.Token())
}

// Keyring returns the key ring of all instances, as a deployment would share it:
// the same one each time.
func Keyring() (*tidegate.Keyring, error) { return keyring() }

var keyring = sync.OnceValues(func() (*tidegate.Keyring, error) {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	return tidegate.NewKeyring(tidegate.KeyringConfig{Keys: []tidegate.Key{{ID: "lab", Secret: secret}}})
})
