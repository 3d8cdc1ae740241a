//go:build unix

package bench

import (
	"syscall"
	"time"
)

// ownCPU is the CPU time that this process has used.
func ownCPU() (time.Duration, error) {
	var r syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), err
}
