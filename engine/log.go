package engine

import (
	"log/slog"

	"github.com/tidegatedb/tidegate"
)

// logHook logs changes: roles, reachability, histories. Not positions: those
// change all the time.
func logHook(logger *slog.Logger) tidegate.Hook {
	return tidegate.Hook{Changed: func(c tidegate.Change) { logChange(logger, c) }}
}

func logChange(logger *slog.Logger, c tidegate.Change) {
	log := logger
	if c.Node != "" {
		log = log.With("node", c.Node)
	}
	switch c.Kind {
	case tidegate.NodeAdded:
		log.Info("node added")
	case tidegate.NodeRemoved:
		log.Info("node removed", "role", c.Role)
	case tidegate.NodeFound:
		log.Info("node found", "role", c.Role)
	case tidegate.NodeFailing:
		log.Warn("node does not answer probes", "error", c.Err)
	case tidegate.NodeAnswering:
		log.Info("node answers probes again", "role", c.Role)
	case tidegate.RoleChanged:
		log.Warn("role changed", "role", c.Role, "before", c.Before)
	case tidegate.NodeRestarted:
		log.Warn("node began a new life: what it showed before proves nothing", "role", c.Role)
	case tidegate.HistoryChanged:
		log.Warn("history changed", "system", c.Epoch.System, "now", c.Epoch, "before", c.EpochBefore)
	case tidegate.PrimariesConflict:
		log.Error("more than one primary of the same line in sight: writes are refused; stop the wrong one")
	case tidegate.ConflictOver:
		log.Info("one primary again")
	case tidegate.NodeFenced:
		log.Warn("node is not used", "why", c.Fence, "role", c.Role)
	case tidegate.NodeUnfenced:
		log.Info("nothing speaks against the node any more", "role", c.Role)
	case tidegate.NodeEjected:
		log.Warn("reads leave the node out", "reason", c.Ejection)
	case tidegate.NodeReturned:
		log.Info("reads use the node again")
	case tidegate.FloorRaised:
		log.Info("floor raised: reads leave replicas out that have less", "floor", c.Floor)
	case tidegate.FloorDropped:
		log.Warn("floor dropped: it belongs to another history; set it again by a token of this one", "floor", c.Floor)
	case tidegate.NodeSlow:
		log.Warn("reads go around the node: it answers late", "took", c.Took)
	case tidegate.NodeQuick:
		log.Info("the node answers as others do again", "took", c.Took)
	case tidegate.FallbacksHigh:
		log.Warn("too many reads want the primary in a replica's place", "share", c.Share)
	case tidegate.FallbacksNormal:
		log.Info("replicas answer most reads again", "share", c.Share)
	case tidegate.RolloutChanged:
		log.Info("rollout changed", "rollout", c.Rollout)
	}
}
