package pgcluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// sweepPatience is how long servers of a dead owner have to end by themselves,
// and then how long killed ones have to be gone.
const sweepPatience = 5 * time.Second

// Sweep stops the servers and removes the folders of the clusters in the parent
// folder whose owner is gone, and returns the folders it removed. An empty
// parent is os.TempDir(). Clusters with a living owner, and other users'
// clusters, are left alone. Start calls it; sweepers at the same time in any
// number of processes share the work.
func Sweep(parent string) (removed []string, err error) {
	if supported != nil {
		return nil, supported
	}
	parent, err = realParent(parent)
	if err != nil {
		return nil, fmt.Errorf("pgcluster: sweep: %w", err)
	}
	acc, err := findAccount()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil, fmt.Errorf("pgcluster: sweep: %w", err)
	}
	var errs []error
	for _, e := range entries {
		// An entry that cannot be looked at any more has just been removed.
		if info, err := e.Info(); err != nil || !isClusterFolder(e) || !acc.owns(info) {
			continue
		}
		f, err := adopt(filepath.Join(parent, e.Name()))
		if err == nil && f == nil {
			continue
		}
		if err == nil {
			err = f.clear(acc)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("pgcluster: sweep %s: %w", e.Name(), err))
			continue
		}
		removed = append(removed, f.path)
	}
	return removed, errors.Join(errs...)
}

// clear ends the processes and removes the folder. While a process is left the
// folder stays, because the next sweep finds the process by it.
func (f *folder) clear(acc *account) error {
	if err := f.endProcesses(acc); err != nil {
		f.owner.Close()
		return err
	}
	return f.remove()
}

// endProcesses ends whatever still works in the folder and returns when it is
// gone. At first they are asked, because then they give back their shared
// memory; the data of an abandoned cluster is of no concern.
func (f *folder) endProcesses(acc *account) error {
	for deadline := time.Now().Add(2 * sweepPatience); ; time.Sleep(10 * time.Millisecond) {
		pids, err := processesIn(f.path)
		if err != nil {
			return err
		}
		servers, err := f.pidFiles()
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			for _, server := range servers {
				server.freeSharedMemory(acc)
			}
			return nil
		}
		left := time.Until(deadline)
		if left < 0 {
			return fmt.Errorf("processes %v do not end", pids)
		}
		for _, pid := range pids {
			sig := syscall.SIGTERM
			switch {
			case left < sweepPatience:
				sig = syscall.SIGKILL
			case slices.ContainsFunc(servers, func(server pidFile) bool { return server.pid == pid }):
				sig = syscall.SIGQUIT
			}
			// It may have ended since it was listed.
			if err := signal(pid, sig); err != nil && !dead(pid) {
				return fmt.Errorf("end process %d: %w", pid, err)
			}
		}
	}
}

// pidFiles are what servers in the folder say, running ones and killed ones.
func (f *folder) pidFiles() ([]pidFile, error) {
	files, err := filepath.Glob(filepath.Join(f.path, "*", pidFileName))
	if err != nil {
		return nil, err
	}
	var all []pidFile
	for _, file := range files {
		// One that cannot be read is being written or removed by its server.
		if pf, err := readPIDFile(filepath.Dir(file)); err == nil {
			all = append(all, pf)
		}
	}
	return all, nil
}
