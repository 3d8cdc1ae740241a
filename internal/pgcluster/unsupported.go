//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package pgcluster

import (
	"os"
	"syscall"
	"time"
)

// The package needs Unix signals, users and file locks. Here it only compiles,
// so that programs which offer it among other things can be built.

var supported = ErrUnsupported

type account struct{ name string }

func findAccount() (*account, error)        { return nil, ErrUnsupported }
func (*account) attr() *syscall.SysProcAttr { return nil }
func (*account) String() string             { return "" }
func (*account) give(string) error          { return ErrUnsupported }
func (*account) owns(os.FileInfo) bool      { return false }
func signal(int, syscall.Signal) error      { return ErrUnsupported }
func signalGroup(int, syscall.Signal) error { return ErrUnsupported }
func freeze(int) error                      { return ErrUnsupported }
func thaw(int) error                        { return ErrUnsupported }
func frozen(int) bool                       { return true }
func reaped(int) bool                       { return true }
func dead(int) bool                         { return true }
func lock(*os.File) (held bool, err error)  { return false, ErrUnsupported }
func processStart(int) (string, error)      { return "", ErrUnsupported }
func childrenOf(int) ([]int, error)         { return nil, ErrUnsupported }
func processesIn(string) ([]int, error)     { return nil, ErrUnsupported }
func treeCPU(int) (time.Duration, error)    { return 0, ErrUnsupported }
