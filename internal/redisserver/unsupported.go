//go:build !unix

package redisserver

import (
	"errors"
	"syscall"
)

// The servers need Unix signals. Here the package only compiles.

var errUnsupported = errors.New("not supported on this platform")

func kill(int) error   { return errUnsupported }
func freeze(int) error { return errUnsupported }
func thaw(int) error   { return errUnsupported }

func owned() *syscall.SysProcAttr { return nil }
