package redisserver

import "syscall"

// owned makes a process end with the one that has started it, also when that is killed.
// It is in a session of its own: Ctrl-C in the terminal is for the tests.
func owned() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
