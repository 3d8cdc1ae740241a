package fault

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Capacity is what a server can do for the application: it serves Slots statements
// at a time, each for Cost. The zero value is a server that is as fast as the
// machine lets it be.
//
// All servers of the lab share the machine's cores, so that a primary that is too
// busy would slow down everything else as well, the load included. So the cost is time and not work:
// a statement holds one of the slots while it sleeps, and one that finds none free
// queues. That goes on inside the server, for every statement of the application on the table, reads
// and writes alike, over whatever connection of whatever pool it comes. No strategy
// can see it or get around it.
type Capacity struct {
	// Slots is how many statements are served at once. Zero means all that come.
	Slots int
	// Cost is how long each is served. Zero means not at all.
	Cost time.Duration
}

// String says how much it is.
func (c Capacity) String() string {
	switch {
	case c.Cost == 0:
		return "all that comes"
	case c.Slots == 0:
		return fmt.Sprintf("each statement for %v", c.Cost)
	}
	return fmt.Sprintf("%d statements at a time, each for %v, so %.0f a second", c.Slots, c.Cost, float64(c.Slots)/c.Cost.Seconds())
}

// The settings that a metered server reads its capacity from. They are the server's
// own, and not replicated.
const (
	SlotsSetting = "lab.slots"
	CostSetting  = "lab.cost_ms"
)

// Settings are the capacity as settings of a server.
func (c Capacity) Settings() map[string]string {
	return map[string]string{SlotsSetting: strconv.Itoa(c.Slots), CostSetting: millis(c.Cost)}
}

func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64)
}

// setCost changes what a statement costs on a running server, and returns when new
// statements cost that. [Alter] does not know settings of this kind.
func setCost(ctx context.Context, s Server, d time.Duration) error {
	if err := on(ctx, s, "alter system set "+CostSetting+" = '"+millis(d)+"'"); err != nil {
		return err
	}
	if err := on(ctx, s, "select pg_reload_conf()"); err != nil {
		return err
	}
	return until(ctx, s, "select current_setting($1) = $2", CostSetting, millis(d))
}
