//go:build !unix

package bench

import (
	"time"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// ownCPU is not told here, where no server can be started either.
func ownCPU() (time.Duration, error) { return 0, pgcluster.ErrUnsupported }
