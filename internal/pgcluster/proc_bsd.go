//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package pgcluster

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Without /proc, ps is asked. It is slower, and CPU times of ended children are
// not to be had from it.

// ps prints one column for a process, or an error when there is no such process.
func ps(column string, pid int) (string, error) {
	out, err := exec.Command("ps", "-o", column+"=", "-p", strconv.Itoa(pid)).Output()
	return strings.TrimSpace(string(out)), err
}

func processStart(pid int) (string, error) {
	start, err := ps("lstart", pid)
	return strings.Join(strings.Fields(start), "_"), err
}

func dead(pid int) bool {
	state, err := ps("state", pid)
	return err != nil || strings.HasPrefix(state, "Z")
}

func frozen(pid int) bool {
	state, err := ps("state", pid)
	return err != nil || strings.HasPrefix(state, "T") || strings.HasPrefix(state, "Z")
}

// processes lists the ids of those whose row of the wanted column matches.
func processes(column string, match func(string) bool) ([]int, error) {
	out, err := exec.Command("ps", "-axww", "-o", "pid=", "-o", column+"=").Output()
	if err != nil {
		return nil, fmt.Errorf("pgcluster: ps: %w", err)
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		pid, err := strconv.Atoi(id)
		if err == nil && match(strings.TrimSpace(rest)) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func childrenOf(pid int) ([]int, error) {
	return processes("ppid", func(ppid string) bool { return ppid == strconv.Itoa(pid) })
}

// processesIn lists the PostgreSQL programs that were told to work in the
// folder. A server's children do not say so, but end when the server does.
func processesIn(folder string) ([]int, error) {
	return processes("command", func(command string) bool {
		program, args, _ := strings.Cut(command, " ")
		name := program[strings.LastIndexByte(program, '/')+1:]
		return slices.Contains([]string{"postgres", "initdb", "pg_basebackup"}, name) &&
			(strings.Contains(args, "-D "+folder+"/") || strings.Contains(args+" ", "-D "+folder+" "))
	})
}

func treeCPU(int) (time.Duration, error) {
	return 0, ErrUnsupported
}
