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
	Inject:        pauseReplay,
}

func pauseReplay(ctx context.Context, site *Site, duration time.Duration) (err error) {
	n := len(site.Replicas)
	victim := site.Replicas[n-1]
	if err := sleep(ctx, duration/5); err != nil {
		return nil
	}
	defer func() {
		// Also when the run is cut short: the cluster may be used again.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), repairTime)
		defer cancel()
		if e := setReplay(ctx, victim, "resume"); e != nil {
			err = errors.Join(err, fmt.Errorf("replica %d stays paused: %w", n, e))
		}
		site.Say("")
	}()
	if err := setReplay(ctx, victim, "pause"); err != nil {
		return unlessOver(ctx, err)
	}
	site.Say(fmt.Sprintf("replica %d replays nothing", n))
	_ = sleep(ctx, duration*3/5)
	return nil
}

// setReplay pauses or resumes replay and waits until the server says so.
func setReplay(ctx context.Context, s Server, how string) error {
	if err := on(ctx, s, "select pg_wal_replay_"+how+"()"); err != nil {
		return err
	}
	return until(ctx, s, "select pg_is_wal_replay_paused() = $1", how == "pause")
}
