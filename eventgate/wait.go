package eventgate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// await returns nil when the session's next read can be answered by a replica, or
// when there is no sense in waiting.
func (j *Jobs) await(ctx context.Context, job Job) error {
	if j.cfg.Database == nil {
		return fmt.Errorf("%w: JobConfig.Database is nil; the mode %v needs it", tidegate.ErrConfig, job.Mode)
	}
	begun := time.Now()
	limited, cancel := ctx, context.CancelFunc(func() {})
	if job.Mode == Postpone {
		limited, cancel = context.WithTimeout(ctx, j.cfg.Wait)
	}
	defer cancel()
	w := wait{j: j, id: job.ID}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		// The first look is free, however little time there is.
		if ready, err := w.look(ctx); ready || err != nil {
			return err
		}
		j.counts.wait(&w.waited)
		if !sleep(limited, pause) {
			break
		}
	}
	if job.Mode == Postpone && ctx.Err() == nil {
		j.counts.postponed.Add(1)
		return j.postponed(ctx)
	}
	j.counts.gaveUp.Add(1)
	ex := j.cfg.Database.Explain(ctx, j.cfg.Class)
	observed, _ := newest(j.cfg.Database.Status())
	return fmt.Errorf("%w: %w", context.Cause(ctx), &tidegate.NotFreshError{
		Cluster: ex.Cluster, Class: j.cfg.Class, Required: ex.Required, Observed: observed, Waited: time.Since(begun),
	})
}

// wait is one job's.
type wait struct {
	j      *Jobs
	id     string
	waited bool
}

// look reports whether the job can begin.
func (w *wait) look(ctx context.Context) (bool, error) {
	db := w.j.cfg.Database
	if c, ok := db.(interface{ Closed() bool }); ok && c.Closed() {
		return false, tidegate.ErrClosed
	}
	st := db.Status()
	if pointless(st) {
		return true, nil
	}
	if w.j.cfg.Class.Need() == tidegate.NeedCausal && indefinite(tidegate.SessionFrom(ctx).Token(), st) {
		// With Postpone, too, this has its time: it waits for a proof and not for a
		// replica, and without it the next try would be no wiser.
		done, err := w.settle(ctx)
		if done || err != nil {
			return done, err
		}
		if t := tidegate.SessionFrom(ctx).Token(); !indefinite(t, db.Status()) {
			w.j.memory.keep(w.id, t)
		}
	}
	for _, v := range db.Explain(ctx, w.j.cfg.Class).Nodes {
		if v.Eligible && v.Role == tidegate.RoleReplica {
			return true, nil
		}
	}
	return false, nil
}

// settle makes the session's requirement definite. Otherwise it would be
// looked at anew each time, and "all that is committed by now" is more with each
// look: a replica that is always late would never have it. It reports whether the
// read that it takes has found that there is nothing to wait for.
func (w *wait) settle(ctx context.Context) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	d, err := w.j.cfg.Settle(limited, w.j.settle)
	if err != nil {
		// No primary, or not in time: there may be one at the next look. When the
		// caller's time is over, await says so, with what was waited for.
		if errors.Is(err, tidegate.ErrNotFresh) || limited.Err() != nil {
			return false, nil
		}
		return false, err
	}
	switch d.Reason {
	case tidegate.ReasonHistoryChanged, tidegate.ReasonRollout, tidegate.ReasonShadow:
		return true, nil
	}
	return d.Role == tidegate.RoleReplica, nil
}

// pointless reports whether no replica will ever answer: there is no node but the
// primary, or reads are kept there.
func pointless(st engine.Status) bool {
	if st.Rollout.Share() == 0 {
		return true
	}
	for _, n := range st.Nodes {
		if n.Node != st.Primary {
			return false
		}
	}
	return true
}

// indefinite reports whether a token asks for more than a position of the present
// history.
func indefinite(t tidegate.Token, st engine.Status) bool {
	return slices.ContainsFunc(t.Marks(), func(m tidegate.Mark) bool {
		return m.Cluster == st.Cluster && (m.CatchUp || len(m.Seen) > 0 || len(m.Pending) > 0 || !m.Epoch.Same(st.Epoch))
	})
}

// newest returns the newest position of a usable replica.
func newest(st engine.Status) (pos tidegate.Position, usable bool) {
	for _, n := range st.Nodes {
		if n.Usable {
			pos, usable = pos.Join(n.Applied), true
		}
	}
	return pos, usable
}

// sleep reports whether the time went by before the context was over.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
