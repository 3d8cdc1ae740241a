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
// HTTP client would carry: signed with a key that all instances share. Nothing
// else of a session outlives an operation.
type Tidegate struct{}

// Name implements Strategy.
func (Tidegate) Name() string { return "tidegate" }

// About implements Strategy.
func (Tidegate) About() string {
	return "writes to the primary, reads to a replica that provably has what the session must see"
}

// Open implements Strategy.
func (Tidegate) Open(ctx context.Context, _ int, nodes Nodes, cfg Config) (Instance, error) {
	keys, err := labKeyring()
	if err != nil {
		return nil, err
	}
	c := pgxgate.Config{Cluster: "lab", Wait: cfg.Wait}
	for _, dsn := range nodes.All() {
		pool, err := pgxpool.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		cfg.tune(pool)
		c.Nodes = append(c.Nodes, pgxgate.Node{Pool: pool})
	}
	db, err := pgxgate.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	return &gated{db: db, keys: keys}, nil
}

// labKeyring is the key ring of all instances, as a deployment would share it.
var labKeyring = sync.OnceValues(func() (*tidegate.Keyring, error) {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	return tidegate.NewKeyring(tidegate.KeyringConfig{Keys: []tidegate.Key{{ID: "lab", Secret: secret}}})
})

type gated struct {
	db   *pgxgate.DB
	keys *tidegate.Keyring
}

// Read implements Instance.
func (g *gated) Read(ctx context.Context, s *Session, keys []int64) (answer record.Answer, err error) {
	err = g.with(ctx, s, func(ctx context.Context) error {
		ctx, seen := tidegate.Observe(ctx)
		answer.Rows, err = readRows(ctx, g.db.Read(tidegate.Causal), keys)
		d, _ := seen.Last()
		answer.Node = d.Node
		answer.Replica = err == nil && d.Role == tidegate.RoleReplica
		answer.Fallback = err == nil && d.Role == tidegate.RolePrimary
		answer.Waited = d.Waited > 0
		answer.Unproven = d.Unproven
		// Without a primary there is nothing to protect: that is an error.
		answer.Shed = errors.Is(err, tidegate.ErrNotFresh) && !errors.Is(err, tidegate.ErrNoPrimary)
		return err
	})
	return answer, err
}

// Write implements Instance.
func (g *gated) Write(ctx context.Context, s *Session, key, version int64) error {
	return g.with(ctx, s, func(ctx context.Context) error {
		tag, err := g.db.Write().Exec(ctx, WriteSQL, key, version)
		if err != nil {
			return err
		}
		return wroteOne(tag.RowsAffected(), key, version)
	})
}

// with does something in the session that the token tells of, and leaves the
// token that tells of what was done. It does so after a failure too: what a
// failed operation did or saw belongs to the session.
func (g *gated) with(ctx context.Context, s *Session, do func(context.Context) error) error {
	session := tidegate.NewSession()
	if s.Token != "" {
		token, err := g.keys.Verify(s.Token)
		if err != nil {
			return err
		}
		session = tidegate.NewSession(token)
	}
	done := do(tidegate.WithSession(ctx, session))
	signed, err := g.keys.Sign(session.Token())
	if err == nil {
		s.Token = signed
	}
	return errors.Join(done, err)
}

// Close implements Instance.
func (g *gated) Close() { g.db.Close() }
