package engine

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/ledger"
)

// libraries begin the names of functions that are no call site of the application's.
var libraries = []string{
	"github.com/tidegatedb/tidegate.", "github.com/tidegatedb/tidegate/engine.", "github.com/tidegatedb/tidegate/engine/enginetest",
	"github.com/tidegatedb/tidegate/internal/", "github.com/tidegatedb/tidegate/pgxgate.", "github.com/tidegatedb/tidegate/pgxgate/internal/",
	"github.com/tidegatedb/tidegate/tidegatetest.", "github.com/jackc/pgx/", "runtime.",
}

// callSite returns where the application called the library: "function (file:line)",
// "" if it is not on this goroutine's stack.
func callSite() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
next:
	for {
		f, more := frames.Next()
		for _, prefix := range libraries {
			if strings.HasPrefix(f.Function, prefix) {
				if !more {
					return ""
				}
				continue next
			}
		}
		if f.Function == "" {
			return ""
		}
		return fmt.Sprintf("%s (%s:%d)", f.Function, path.Base(f.File), f.Line)
	}
}

// readFrom remembers where the session has read from a replica last.
func (c *Core) readFrom(rd *Read) {
	if l := rd.ticket.Ledger; c.cfg.Suspects && l != nil && rd.ticket.Role == tidegate.RoleReplica {
		l.SetReadSite(callSite())
	}
}

// suspect tells of a write whose session has read from a replica before: what it
// writes may be based on what is not the newest state any more.
func (c *Core) suspect(ctx context.Context, l *ledger.Ledger) {
	read := l.ReadSite()
	if read == "" {
		return
	}
	c.suspects.Add(1)
	x := tidegate.Suspect{Cluster: c.cfg.Cluster, Read: read, Write: callSite()}
	for _, h := range c.cfg.Hooks {
		if h.Suspected != nil {
			h.Suspected(ctx, x)
		}
	}
}
