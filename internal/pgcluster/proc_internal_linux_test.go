package pgcluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	line := "42 (po) st (gres) S 7 42 42 0 -1 4194560 1 2 0 0 11 22 300 400 20 0 1 0 123456 1 1"
	want := procStat{state: 'S', ppid: 7, own: 330 * time.Millisecond, reapedCPU: 7 * time.Second, start: "123456"}
	if got, err := parseStat(line); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "42 (postgres)", "42 (p) S x 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"} {
		if got, err := parseStat(bad); err == nil {
			t.Errorf("%q gives %+v", bad, got)
		}
	}
}

func TestOwnProcess(t *testing.T) {
	start, err := processStart(os.Getpid())
	if err != nil || start == "" || start == "0" {
		t.Errorf("start %q, %v", start, err)
	}
	if dead(os.Getpid()) || reaped(os.Getpid()) || frozen(os.Getpid()) {
		t.Error("this process counts as dead, reaped or frozen")
	}
	children, err := childrenOf(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, child := range children {
		found = found || child == os.Getpid()
	}
	if !found {
		t.Errorf("this process %d is not among its parent's children %v", os.Getpid(), children)
	}
}

// A program is recognised also when its loader was told to run it.
func TestRuns(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(sleep) // one program can be many
	if err != nil {
		t.Fatal(err)
	}
	start := func(args ...string) int {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed is how it ends
		})
		return cmd.Process.Pid
	}
	pids := []int{start(sleep, "60")}
	if loaders, _ := filepath.Glob("/lib*/ld-linux*.so.*"); len(loaders) > 0 {
		pids = append(pids, start(loaders[0], sleep, "60"))
	} else {
		t.Log("not tested: there is no loader of glibc here")
	}
	for _, pid := range pids {
		if !runs(pid, "postgres", filepath.Base(sleep), filepath.Base(real)) || runs(pid, "postgres") {
			t.Errorf("process %d of %v is not recognised", pid, pids)
		}
	}
}
