package pgcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// folderPrefix starts the name of every cluster's folder. The name is short
// because the path of a Unix socket in it has a limit.
const folderPrefix = "tidegate-pg-"

// ownerFile says whose a cluster is. Its owner holds a lock on it for as long as
// it lives: that needs no clean-up, holds across process id reuse and is seen
// from other containers that share the folder.
const ownerFile = "owner"

// folder is a cluster's folder together with the lock that makes it one's own.
type folder struct {
	path  string
	owner *os.File
}

// newFolder makes a folder that no sweeper will take while this process lives.
func newFolder(parent string) (*folder, error) {
	// A sweeper may meet the folder before the lock is held and take it for a
	// dead one's. Then it is the sweeper's, and another one is made.
	for range 20 {
		path, err := os.MkdirTemp(parent, folderPrefix)
		if err != nil {
			return nil, fmt.Errorf("pgcluster: %w", err)
		}
		owner, err := os.OpenFile(filepath.Join(path, ownerFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("pgcluster: %w", err)
		}
		mine, err := lockCurrent(owner)
		if err != nil {
			owner.Close()
			os.RemoveAll(path)
			return nil, fmt.Errorf("pgcluster: lock %s (does the file system know locks?): %w", owner.Name(), err)
		}
		if !mine {
			owner.Close()
			continue
		}
		f := &folder{path: path, owner: owner}
		if err := f.sign(); err != nil {
			return nil, errors.Join(err, f.remove())
		}
		return f, nil
	}
	return nil, fmt.Errorf("pgcluster: no folder could be made in %s: each was swept away at once", parent)
}

// sign writes who the owner is, for people and for file systems on which locks
// are accepted but do nothing.
func (f *folder) sign() error {
	start, err := processStart(os.Getpid())
	if err != nil {
		return fmt.Errorf("pgcluster: start time of this process: %w", err)
	}
	if _, err := fmt.Fprintf(f.owner, "pid %d started %s\n", os.Getpid(), start); err != nil {
		return fmt.Errorf("pgcluster: %w", err)
	}
	return nil
}

// adopt opens the folder of an owner that is gone, or returns nil when its owner
// lives, another sweeper has it, or it is not ours to judge.
func adopt(path string) (*folder, error) {
	owner, err := os.Open(filepath.Join(path, ownerFile))
	if errors.Is(err, fs.ErrNotExist) {
		// What a removal that was cut short leaves. It is empty, or it stays.
		os.Remove(path)
		return nil, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	mine, err := lockCurrent(owner)
	if err == nil && mine && !signerLives(owner) {
		return &folder{path: path, owner: owner}, nil
	}
	owner.Close()
	return nil, err
}

// lockCurrent takes the lock of a file that is still the one its path names:
// another sweeper may have removed it after it was opened here.
func lockCurrent(f *os.File) (bool, error) {
	held, err := lock(f)
	if err != nil || held {
		return false, err
	}
	opened, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Lstat(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, named), err
}

// signerLives tells that the process in the owner file exists. A process with
// its id but another start time is another process. An owner killed before it
// signed has started nothing.
func signerLives(owner *os.File) bool {
	var pid int
	var start string
	if _, err := fmt.Fscanf(owner, "pid %d started %s\n", &pid, &start); err != nil {
		return false
	}
	now, err := processStart(pid)
	return err == nil && now == start && !dead(pid)
}

// remove deletes the folder, its owner file last: whatever cuts the removal
// short, the next sweep knows what is left.
func (f *folder) remove() error {
	defer f.owner.Close()
	entries, err := os.ReadDir(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("pgcluster: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if e.Name() != ownerFile {
			errs = append(errs, os.RemoveAll(filepath.Join(f.path, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("pgcluster: remove %s: %w", f.path, err)
	}
	if err := os.RemoveAll(f.path); err != nil {
		return fmt.Errorf("pgcluster: %w", err)
	}
	return nil
}

// isClusterFolder tells that an entry has the name and the kind of one.
func isClusterFolder(e fs.DirEntry) bool {
	return e.IsDir() && strings.HasPrefix(e.Name(), folderPrefix)
}
