//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pgcluster

import (
	"errors"
	"os"
	"syscall"
)

// supported is the error of Start on this platform.
var supported error

func signal(pid int, sig syscall.Signal) error { return syscall.Kill(pid, sig) }

// signalGroup reaches a program and what it has started.
func signalGroup(leader int, sig syscall.Signal) error { return syscall.Kill(-leader, sig) }

func freeze(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

func thaw(pid int) error { return syscall.Kill(pid, syscall.SIGCONT) }

// reaped tells that no process has this id any more. A dead process whose parent
// has not yet taken note of its death is not reaped.
func reaped(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// lock takes the file's lock, which the kernel gives back when this process
// ends, however it ends. It does not wait: held tells that someone has it.
func lock(f *os.File) (held bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
