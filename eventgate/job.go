package eventgate

import (
	"context"
	"fmt"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// Mode says what a job does while no replica has what its token requires.
type Mode uint8

const (
	// WaitThenPrimary begins at once; each read waits as its class says and uses the
	// primary then.
	WaitThenPrimary Mode = iota
	// AlwaysWait begins when a replica has it, or never: it waits as long as the
	// context lets it.
	AlwaysWait
	// Postpone does not begin either, but waits only for a moment and gives the
	// worker back, with a [PostponedError] that says when to try again.
	Postpone
)

// String returns the mode as a word for logs and metrics.
func (m Mode) String() string {
	switch m {
	case AlwaysWait:
		return "always-wait"
	case Postpone:
		return "postpone"
	default:
		return "wait-then-primary"
	}
}

// Database is a routed database as a job sees it, such as a pgxgate.DB or an
// engine.Core. If it has Closed() bool, as those have, jobs do not wait for one that
// is closed.
type Database interface {
	// Status returns what is known of the cluster now.
	Status() engine.Status
	// Explain says for each node why a read of the class may or may not go there
	// now for the context's session.
	Explain(ctx context.Context, class tidegate.Class) engine.Explanation
}

// JobConfig configures [Jobs].
type JobConfig struct {
	// Gate takes the tokens out of the jobs. It must be set.
	Gate *Gate
	// Database is what the jobs read. It must be set, except where all jobs are of
	// the mode WaitThenPrimary.
	Database Database
	// Settle makes a session's requirement definite: Settle(db), with a pgxgate.DB. Nil
	// is for an engine.Core as the Database, which needs none.
	Settle SettleFunc
	// Class is what the jobs' reads are of. The zero Class is Causal. Strong reads
	// never wait, so jobs of such a class begin at once.
	Class tidegate.Class
	// Wait is how long a job of the mode Postpone waits for a replica before it is
	// postponed. Zero means 100ms: the usual lag is shorter, and to postpone costs the
	// runner writes. Negative means not at all. To find out which position a token
	// stands for can take longer, up to 3s while no primary answers.
	Wait time.Duration
	// MinAfter and MaxAfter bound PostponedError.After. Zero means 100ms and 1m.
	MinAfter, MaxAfter time.Duration
}

const (
	defaultJobWait  = 100 * time.Millisecond
	defaultMinAfter = 100 * time.Millisecond
	defaultMaxAfter = time.Minute
	// unknownAfter is when to try again if no replica is usable: nobody can say.
	unknownAfter = 5 * time.Second
	// firstPause and longestPause space the looks at what is known already; the
	// database asks its nodes by its own clock.
	firstPause   = time.Millisecond
	longestPause = 50 * time.Millisecond
	// settleTime bounds one try to settle: longer than a database waits for a proof.
	settleTime = 3 * time.Second
)

// Jobs begins jobs that carry a token. It is safe for concurrent use.
type Jobs struct {
	cfg    JobConfig
	settle tidegate.Class
	memory memory
	counts jobCounts
}

// NewJobs returns Jobs, or an error that wraps [tidegate.ErrConfig] or
// [tidegate.ErrClass] and names the field.
func NewJobs(cfg JobConfig) (*Jobs, error) {
	if cfg.Gate == nil {
		return nil, fmt.Errorf("%w: JobConfig.Gate is nil; set it", tidegate.ErrConfig)
	}
	if err := cfg.Class.Err(); err != nil {
		return nil, fmt.Errorf("JobConfig.Class: %w", err)
	}
	if cfg.Settle == nil && cfg.Database != nil {
		r, ok := cfg.Database.(router)
		if !ok {
			return nil, fmt.Errorf("%w: JobConfig.Settle is nil; use Settle(db)", tidegate.ErrConfig)
		}
		cfg.Settle = settleBy(r)
	}
	switch {
	case cfg.Wait == 0:
		cfg.Wait = defaultJobWait
	case cfg.Wait < 0:
		cfg.Wait = 0
	}
	if cfg.MinAfter == 0 {
		cfg.MinAfter = defaultMinAfter
	}
	if cfg.MaxAfter == 0 {
		cfg.MaxAfter = max(defaultMaxAfter, cfg.MinAfter)
	}
	if cfg.MinAfter < 0 || cfg.MaxAfter < cfg.MinAfter {
		return nil, fmt.Errorf("%w: JobConfig.MinAfter is %v and MaxAfter %v; use 0 < MinAfter <= MaxAfter", tidegate.ErrConfig, cfg.MinAfter, cfg.MaxAfter)
	}
	return &Jobs{
		cfg:    cfg,
		settle: tidegate.NewCausal("job-settle", "finds out which position a job's token stands for", tidegate.Wait(0), tidegate.Owner("eventgate")),
	}, nil
}

// Job is one try of one job.
type Job struct {
	// Messages are where its tokens are.
	Messages []Carrier
	// Mode says what it does while no replica has what they require.
	Mode Mode
	// ID, if not empty, names the job within this [Jobs], the same in each try and
	// no other job's. A token that asks for all that is committed by now asks for
	// more at every try; with an ID the later tries of a job that could not begin ask
	// for what the first one did, as long as they are made in this process. A runner
	// that can change the job stores PostponedError.Token in it instead.
	ID string
}

// Begin returns the context for the work of a job: one with a session of its own
// that goes on where the job's tokens end, whatever session ctx has. It begins as the
// mode says. What it has waited for holds for the session's next read; one that
// finds its replica gone since then follows the ordinary ladder.
//
// A token that is missing or refused is no error: the session catches up, and the
// gate counts it and tells Config.Refused. Errors are, with Postpone, a
// [PostponedError]; with AlwaysWait, when the context ends, one that wraps the
// context's cause and a [tidegate.NotFreshError]; and what the database says, such as
// [tidegate.ErrClosed]. The context is usable then too: a runner that has lost
// patience can go on with it as with WaitThenPrimary.
//
// Neither of the two waits when there is nothing to wait for: the database has no
// node but the primary, its rollout keeps reads there, or what the token requires
// belongs to a history that is over. The reads and their decisions tell.
func (j *Jobs) Begin(ctx context.Context, job Job) (context.Context, error) {
	if t, ok := j.memory.recall(job.ID); ok {
		ctx = tidegate.WithToken(ctx, t)
	} else {
		ctx, _ = j.cfg.Gate.extractNew(ctx, job.Messages) // told by Config.Refused
	}
	if job.Mode != WaitThenPrimary && j.cfg.Class.Need() != tidegate.NeedStrong {
		if err := j.await(ctx, job); err != nil {
			return ctx, err
		}
	}
	j.memory.forget(job.ID)
	j.counts.begun.Add(1)
	return ctx, nil
}
