package pgcluster

import (
	"os"
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
