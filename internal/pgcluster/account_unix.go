//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pgcluster

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// account is the user that the servers run as. Nil: this process's own user.
type account struct {
	name     string
	uid, gid uint32
}

// findAccount picks the unprivileged user that root hands the servers to:
// PostgreSQL refuses to run as root.
func findAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		// Some systems write the user nobody as -2.
		uid, errUID := strconv.ParseInt(u.Uid, 10, 64)
		gid, errGID := strconv.ParseInt(u.Gid, 10, 64)
		if errUID == nil && errGID == nil && uid != 0 {
			return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("pgcluster: PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody to run it as; start this program as another user")
}

// String is the name, for errors.
func (a *account) String() string {
	if a == nil {
		return "of this process"
	}
	return a.name
}

// attr makes a program run as the account, in a session of its own: Ctrl-C in
// this process's terminal is for this process, which then stops the servers.
func (a *account) attr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}

// give hands a file or folder that this process made to the account.
func (a *account) give(path string) error {
	if a == nil {
		return nil
	}
	if err := os.Lchown(path, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("pgcluster: hand over to user %s: %w", a.name, err)
	}
	return nil
}

// owns tells whether a cluster's folder can be ours: this user's, or its servers'.
// In a shared temporary folder anyone can make one that looks like ours.
func (a *account) owns(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (int(st.Uid) == os.Geteuid() || a != nil && st.Uid == a.uid)
}
