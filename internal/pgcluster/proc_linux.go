package pgcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc: USER_HZ, which is 100 on every platform
// that Go runs on.
const tick = 10 * time.Millisecond

// procStat is what is used of /proc/PID/stat.
type procStat struct {
	state     byte
	ppid      int
	own       time.Duration // user and system CPU of the process
	reapedCPU time.Duration // the same of its children that have ended
	start     string        // ticks since boot
}

func readStat(pid int) (procStat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(string(text))
}

// parseStat reads the fields after the command's name, which may itself hold
// spaces and parentheses.
func parseStat(text string) (procStat, error) {
	f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(f) < 20 {
		return procStat{}, fmt.Errorf("pgcluster: /proc stat line %q is too short", text)
	}
	// f[0] is field 3 of proc(5).
	var n [5]int64
	for i, field := range []int{4, 14, 15, 16, 17} {
		v, err := strconv.ParseInt(f[field-3], 10, 64)
		if err != nil {
			return procStat{}, fmt.Errorf("pgcluster: /proc stat field %d: %w", field, err)
		}
		n[i] = v
	}
	return procStat{
		state:     f[0][0],
		ppid:      int(n[0]),
		own:       time.Duration(n[1]+n[2]) * tick,
		reapedCPU: time.Duration(n[3]+n[4]) * tick,
		start:     f[22-3],
	}, nil
}

// processStart identifies a process among those that had or will have its id.
func processStart(pid int) (string, error) {
	st, err := readStat(pid)
	return st.start, err
}

// dead tells that the process runs no more. It may wait to be reaped, for ever
// in a container whose first process does not do that.
func dead(pid int) bool {
	st, err := readStat(pid)
	return err != nil || st.state == 'Z' || st.state == 'X'
}

// frozen tells that a process that was sent SIGSTOP has stopped, or is dead.
func frozen(pid int) bool {
	st, err := readStat(pid)
	return err != nil || strings.IndexByte("TtZX", st.state) >= 0
}

// childrenOf lists the children of a process, dead ones that wait to be reaped
// included.
func childrenOf(pid int) ([]int, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	var children []int
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, f := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(f)
			if err != nil {
				return nil, err
			}
			children = append(children, child)
		}
	}
	if len(threads) > 0 {
		return children, nil
	}
	// The kernel can be built without these files.
	all, err := allProcesses()
	return slices.DeleteFunc(all, func(p int) bool {
		st, err := readStat(p)
		return err != nil || st.ppid != pid
	}), err
}

func allProcesses() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// processesIn lists the PostgreSQL programs that work in the folder: a server and
// its children stay in the data folder, and every other program is started in
// the cluster's. Someone's shell that happens to be there is not listed.
func processesIn(folder string) ([]int, error) {
	all, err := allProcesses()
	return slices.DeleteFunc(all, func(pid int) bool {
		proc := filepath.Join("/proc", strconv.Itoa(pid))
		cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
		if err != nil || cwd != folder && !strings.HasPrefix(cwd, folder+"/") {
			return true
		}
		return !runs(pid, "postgres", "initdb", "pg_basebackup", "pg_rewind", "psql")
	}), err
}

// runs tells whether a process runs one of the programs.
func runs(pid int, programs ...string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	exe, err := os.Readlink(filepath.Join(proc, "exe"))
	if err != nil {
		return false
	}
	name := filepath.Base(strings.TrimSuffix(exe, " (deleted)"))
	if !strings.HasPrefix(name, "ld-") {
		return slices.Contains(programs, name)
	}
	// Programs that bring their own libraries are started by their own loader,
	// which has the program among its arguments.
	line, err := os.ReadFile(filepath.Join(proc, "cmdline"))
	return err == nil && slices.ContainsFunc(strings.Split(string(line), "\x00"), func(arg string) bool {
		return slices.Contains(programs, filepath.Base(arg))
	})
}

// treeCPU is the CPU time of a server: the process's own, that of the children it
// has reaped and that of those it has. A child that is reaped between two of the
// reads would be missed or counted twice, so they are repeated until none was.
func treeCPU(pid int) (time.Duration, error) {
	var sum time.Duration
	for range 5 {
		before, err := readStat(pid)
		if err != nil {
			return 0, err
		}
		children, err := childrenOf(pid)
		if err != nil {
			return 0, err
		}
		var live time.Duration
		for _, child := range children {
			if st, err := readStat(child); err == nil {
				live += st.own + st.reapedCPU
			}
		}
		after, err := readStat(pid)
		if err != nil {
			return 0, err
		}
		sum = after.own + after.reapedCPU + live
		if before.reapedCPU == after.reapedCPU {
			break
		}
	}
	return sum, nil
}
