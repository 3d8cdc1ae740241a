//go:build unix && !linux

package redisserver

import "syscall"

// owned puts a process into a session of its own: Ctrl-C in the terminal is for the tests.
func owned() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
