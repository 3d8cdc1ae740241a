// Package strategy holds the ways of routing that the lab compares. Each is
// written as an application would write it, and gets nothing from the lab but
// addresses and a place for its token.
package strategy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// The lab's table and the two statements that every strategy runs on it. A
// write never takes a row back to an older version: one whose client gave up
// on it may arrive after the next, and the checker relies on versions that rise.
const (
	Table    = "lab_rows"
	ReadSQL  = "select k, v from " + Table + " where k = any($1)"
	WriteSQL = "update " + Table + " set v = $2 where k = $1 and v < $2"
)

// Strategy is a way of routing. Abilities that only some strategies need come
// as further small interfaces that the lab asks for, so that this one can stay.
type Strategy interface {
	// Name is what --strategies and the report call it: lower case, dashes.
	Name() string
	// About says in one sentence what it does.
	About() string
	// Open starts one application instance, with pools of its own, and returns
	// when it is ready.
	Open(ctx context.Context, instance int, nodes Nodes, cfg Config) (Instance, error)
}

// Configurer is a strategy that relies on settings of the primary.
type Configurer interface {
	// PrimarySettings are the settings that the primary needs with so many
	// standbys. They are in force before the first instance opens, and are taken
	// back after the run.
	PrimarySettings(standbys int) map[string]string
}

// Homebound is a strategy whose sessions must stay on one instance for as long
// as that one runs, because what it knows of them does not travel.
type Homebound interface {
	// Homebound does nothing but mark the strategy.
	Homebound()
}

// Instance is one running copy of the application. It is safe for concurrent
// use, but no session uses it twice at the same time.
type Instance interface {
	// Read runs ReadSQL for the session and leaves the session's new token.
	// Beside an error the answer says how far the read came.
	Read(ctx context.Context, s *Session, keys []int64) (record.Answer, error)
	// ReadStrong is Read for an answer that must be the newest there is.
	ReadStrong(ctx context.Context, s *Session, keys []int64) (record.Answer, error)
	// Write runs WriteSQL for the session and leaves the session's new token.
	// An error means that the outcome is unknown.
	Write(ctx context.Context, s *Session, key, version int64) error
	Close()
}

// Relaxed is an instance that knows reads whose answer may be old. Any other answers
// them as it answers all.
type Relaxed interface {
	// ReadRelaxed is [Instance.Read] for an answer that may be as old as the budget
	// says.
	ReadRelaxed(ctx context.Context, s *Session, keys []int64, b record.Budget) (record.Answer, error)
}

// Session is what moves with a user from instance to instance: an identity and
// a token, which only the strategy understands.
type Session struct {
	ID    int
	Token string
}

// Nodes are the connection strings of a cluster, for an unprivileged role.
type Nodes struct {
	Primary  string
	Replicas []string
}

// All returns the connection strings, the primary's last: a strategy that finds
// the roles by itself is not helped by the order.
func (n Nodes) All() []string {
	return append(append([]string(nil), n.Replicas...), n.Primary)
}

// ReplicaName is what answers call a replica, counted from 0.
func ReplicaName(replica int) string { return fmt.Sprintf("replica-%d", replica+1) }

// Config is what the lab's flags say to a strategy.
type Config struct {
	// PoolSize is the most connections of one pool.
	PoolSize int32
	// ConnLifetime is how long a connection lives; zero means the pool's own.
	ConnLifetime time.Duration
	// Wait is how long a causal read may wait for a replica; zero means the
	// library's own.
	Wait time.Duration
	// FallbackReads bounds the reads of one instance of tidegate that are on the primary
	// for want of a replica. Zero means the library's own.
	FallbackReads int32
	// FixedFallbacks keeps that bound what it is, however long writes take.
	FixedFallbacks bool
	// AnyLag lets sessions without a mark read from replicas of any age.
	AnyLag bool
	// Ejected, if any, is called whenever an instance of tidegate leaves a replica out.
	// It must be safe for concurrent use.
	Ejected func()
	// Carried says that something else carries the sessions: each operation's
	// context has its own. It is for a [Carriable] strategy.
	Carried bool
}

// tune sets a pool up as the lab wants every strategy's to be.
func (c Config) tune(pool *pgxpool.Config) {
	pool.MaxConns, pool.MinConns = c.PoolSize, min(4, c.PoolSize)
	if c.ConnLifetime > 0 {
		pool.MaxConnLifetime = c.ConnLifetime
	}
}

// All lists the strategies that `--strategies all` compares, in their order.
func All() []Strategy {
	return []Strategy{PrimaryOnly{}, RoundRobin{}, Sticky{}, ProbePerRead{}, RemoteApply{}, Tidegate{}}
}

// Carriers lists the variants of tidegate that carry sessions in another way.
// They are for the scenario that shows what each way keeps.
func Carriers() []Strategy {
	return []Strategy{Memory{}, Memory{Forgets: true}}
}

// Limits lists the variants of tidegate with another limit of what may fall back to
// the primary. They are for the scenario that shows what the limit does.
func Limits() []Strategy { return []Strategy{Unlimited{}} }

// Throttles lists the variants of tidegate that hold bulk jobs back. They are for the
// scenario that has such a job.
func Throttles() []Strategy { return []Strategy{Throttled{}} }

// Usual names the strategies that a run compares when nobody says which.
func Usual() []string { return []string{RoundRobin{}.Name(), Tidegate{}.Name()} }

// Names lists the names of [All].
func Names() []string { return names(All()) }

func names(list []Strategy) (names []string) {
	for _, s := range list {
		names = append(names, s.Name())
	}
	return names
}

// Find returns the strategy with the name, a variant's included.
func Find(name string) (Strategy, error) {
	every := slices.Concat(All(), Carriers(), Limits(), Throttles())
	for _, s := range every {
		if s.Name() == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("there is no strategy %q; there are %s", name, strings.Join(names(every), ", "))
}
