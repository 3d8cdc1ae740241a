package fault

import (
	"context"
	"fmt"
	"time"
)

// restartReplica is maintenance: one replica is restarted in order, and later
// another one.
var restartReplica = Scenario{
	Name:   "restart-replica",
	About:  "one replica is restarted in order, later another one",
	Errors: true,
	Inject: restartReplicas,
}

func restartReplicas(ctx context.Context, site *Site, duration time.Duration) error {
	for i := range 2 {
		if err := sleep(ctx, duration*3/10); err != nil {
			return nil
		}
		n := i % len(site.Replicas)
		site.Say(fmt.Sprintf("replica %d is restarted", n+1))
		site.Restarted()
		over := site.Trouble(n)
		err := restart(ctx, site.Replicas[n])
		over()
		site.Say("")
		if err == nil {
			err = caughtUp(ctx, site.Primary, site.Replicas[n])
		}
		if err != nil {
			return unlessOver(ctx, err)
		}
	}
	return nil
}

// restart restarts a server even when the run ends meanwhile: it must not be
// left stopped.
func restart(ctx context.Context, s Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recoveryTime)
	defer cancel()
	return s.Restart(ctx)
}

// killReplica is the loss of a machine that comes back: its processes are gone
// at once, connections break, and those who need it must do without.
var killReplica = Scenario{
	Name:       "kill-replica",
	About:      "one replica is killed with signal 9, stays dead for two fifths of the run and comes back",
	Strategies: []string{"remote-apply", "tidegate"},
	Errors:     true,
	Inject:     killOneReplica,
}

func killOneReplica(ctx context.Context, site *Site, duration time.Duration) (err error) {
	n := len(site.Replicas)
	victim := site.Replicas[n-1]
	if err := sleep(ctx, duration/5); err != nil {
		return nil
	}
	site.Say(fmt.Sprintf("replica %d is dead", n))
	site.Restarted()
	over := site.Trouble(n - 1)
	if err := victim.Kill(); err != nil {
		return err
	}
	_ = sleep(ctx, duration*2/5)
	site.Restarted()
	site.Say(fmt.Sprintf("replica %d recovers", n))
	defer site.Say("")
	// Recovery can take longer than other repairs.
	begun, cancel := context.WithTimeout(context.WithoutCancel(ctx), recoveryTime)
	defer cancel()
	if err := victim.Start(begun); err != nil {
		return fmt.Errorf("replica %d stays dead: %w", n, err)
	}
	over()
	return unlessOver(ctx, caughtUp(ctx, site.Primary, victim))
}
