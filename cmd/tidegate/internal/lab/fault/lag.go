package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// lagSpike is the commonest fault of all: a replica that answers, quickly, with
// the past. Replay stops on one of the replicas after a fifth of the run and
// goes on three fifths later.
var lagSpike = Scenario{
	Name:          "lag-spike",
	About:         "one replica stops replaying for three fifths of the run, and goes on answering",
	Opportunities: 1000,
	Inject: func(ctx context.Context, site *Site, duration time.Duration) error {
		n := len(site.Replicas)
		what := fmt.Sprintf("replica %d replays nothing", n)
		return pauseReplay(ctx, site, []int{n - 1}, what, duration/5, duration*3/5)
	},
}

// allLag leaves nothing but the primary to those who must see what was written
// since: every replica stops replaying for two fifths of the run. The primary takes all that
// comes, so that no read may be refused; with a small one (--primary-slots) some may, and
// stampede is the scenario that is made for that.
var allLag = Scenario{
	Name:          "all-lag",
	About:         "all replicas stop replaying for two fifths of the run, and go on answering",
	Opportunities: 1000,
	Inject: func(ctx context.Context, site *Site, duration time.Duration) error {
		return pauseReplay(ctx, site, everyReplica(site), "no replica replays anything", duration/5, duration*2/5)
	},
}

// everyReplica numbers the replicas.
func everyReplica(site *Site) (all []int) {
	for i := range site.Replicas {
		all = append(all, i)
	}
	return all
}

// pauseReplay stops replay on the victims after a while and for a time.
func pauseReplay(ctx context.Context, site *Site, victims []int, what string, after, lasting time.Duration) (err error) {
	if err := sleep(ctx, after); err != nil {
		return nil
	}
	over := site.Trouble(victims...)
	defer repair(ctx, &err, func(ctx context.Context) error {
		var errs []error
		for _, v := range victims {
			errs = append(errs, setReplay(ctx, site.Replicas[v], "resume"))
		}
		over()
		site.Say("")
		return errors.Join(errs...)
	})
	for _, v := range victims {
		if err := setReplay(ctx, site.Replicas[v], "pause"); err != nil {
			return unlessOver(ctx, err)
		}
	}
	site.Say(what)
	_ = sleep(ctx, lasting)
	return nil
}

// setReplay pauses or resumes replay and waits until the server says so.
func setReplay(ctx context.Context, s Server, how string) error {
	if err := on(ctx, s, "select pg_wal_replay_"+how+"()"); err != nil {
		return err
	}
	return until(ctx, s, "select pg_is_wal_replay_paused() = $1", how == "pause")
}
