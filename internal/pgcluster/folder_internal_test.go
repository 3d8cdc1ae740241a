//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pgcluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// abandoned makes a folder whose owner file says that text and is locked by
// nobody.
func abandoned(t *testing.T, parent, text string) string {
	t.Helper()
	path, err := os.MkdirTemp(parent, folderPrefix)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{ownerFile: text, "primary.log": "x"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// endedProcess returns the id of a process that was there.
func endedProcess(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestSweepJudgesOwners(t *testing.T) {
	self, err := processStart(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		owner string
		gone  bool
	}{
		"gone":             {fmt.Sprintf("pid %d started 1\n", endedProcess(t)), true},
		"id used again":    {fmt.Sprintf("pid %d started 1%s\n", os.Getpid(), self), true},
		"alive":            {fmt.Sprintf("pid %d started %s\n", os.Getpid(), self), false},
		"killed at once":   {"", true},
		"killed in a line": {"pid 12", true},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			path := abandoned(t, parent, tc.owner)
			removed, err := Sweep(parent)
			if err != nil {
				t.Fatal(err)
			}
			if (len(removed) == 1) != tc.gone || exists(path) == tc.gone {
				t.Errorf("removed %v, folder exists: %v", removed, exists(path))
			}
		})
	}
}

func TestSweepLeavesWhatIsHeld(t *testing.T) {
	parent := t.TempDir()
	f, err := newFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	// The lock alone protects it: from another container the id means nothing.
	if err := f.owner.Truncate(0); err != nil {
		t.Fatal(err)
	}
	stranger := filepath.Join(parent, "other-folder")
	link := filepath.Join(parent, folderPrefix+"link")
	if err := os.Mkdir(stranger, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(stranger, link); err != nil {
		t.Fatal(err)
	}
	if removed, err := Sweep(parent); err != nil || len(removed) > 0 {
		t.Errorf("Sweep = %v, %v", removed, err)
	}
	for _, path := range []string{f.path, stranger, link} {
		if !exists(path) {
			t.Errorf("%s is gone", path)
		}
	}
	if err := f.remove(); err != nil {
		t.Fatal(err)
	}
	if exists(f.path) {
		t.Error("remove leaves the folder")
	}
}

func TestSweepFinishesACutRemoval(t *testing.T) {
	parent := t.TempDir()
	empty := filepath.Join(parent, folderPrefix+"1")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Sweep(parent); err != nil || exists(empty) {
		t.Errorf("%v, folder exists: %v", err, exists(empty))
	}
}

// Sweepers and owners at the same time: each abandoned folder is removed by one
// sweeper, and no owner's is.
func TestSweepRaces(t *testing.T) {
	parent := t.TempDir()
	const folders = 50
	for range folders {
		abandoned(t, parent, "")
	}
	var wg sync.WaitGroup
	var removed atomic.Int64
	for range 4 {
		wg.Go(func() {
			for range 10 {
				swept, err := Sweep(parent)
				if err != nil {
					t.Error(err)
				}
				removed.Add(int64(len(swept)))
			}
		})
		wg.Go(func() {
			for range 100 {
				f, err := newFolder(parent)
				if err != nil {
					t.Error(err)
					return
				}
				if !exists(filepath.Join(f.path, ownerFile)) {
					t.Errorf("%s was taken from its owner", f.path)
				}
				if err := f.remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	// A folder that an owner gave up to a sweeper counts too.
	if removed.Load() < folders {
		t.Errorf("%d of %d folders were removed", removed.Load(), folders)
	}
}
