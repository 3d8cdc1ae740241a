package pgcluster_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// owner starts a process that will own a cluster in the parent folder. The
// channel has the cluster's folder when it is up.
func owner(t *testing.T, parent string, inst pgcluster.Install) (*os.Process, <-chan string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envOwner+"="+parent, pgcluster.EnvBinDir+"="+inst.BinDir)
	cmd.Stderr = os.Stderr
	// Its standard input ends with this process, so that it cannot outlive it.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(dir)
		if line, err := bufio.NewReader(out).ReadString('\n'); err == nil {
			dir <- strings.TrimSpace(line)
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-read
		cmd.Wait()
	})
	return cmd.Process, dir
}

// kill returns when the process has been reaped, so that it holds nothing more.
func kill(t *testing.T, p *os.Process) {
	t.Helper()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestSweepRemovesAKilledOwnersCluster(t *testing.T) {
	inst := pgcluster.InstallForTest(t)
	t.Log(inst)
	parent := openFolder(t)
	mine, err := pgcluster.Start(t.Context(), pgcluster.Config{Install: inst, Parent: parent})
	if err != nil {
		t.Fatal(err)
	}
	process, up := owner(t, parent, inst)
	dir := <-up
	if removed, err := pgcluster.Sweep(parent); err != nil || len(removed) > 0 {
		t.Fatalf("with living owners, Sweep = %v, %v", removed, err)
	}
	kill(t, process)
	if len(processes(t, dir)) == 0 {
		t.Fatal("the servers did not outlive their owner; there is nothing to test")
	}

	var mu sync.Mutex
	var removed []string
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			swept, err := pgcluster.Sweep(parent)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			removed = append(removed, swept...)
		})
	}
	wg.Wait()
	if !slices.Equal(removed, []string{dir}) {
		t.Errorf("three sweepers removed %v, want %s once", removed, dir)
	}
	if left := processes(t, dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	query(t, mine.Primary(), "SELECT 1")
	if err := mine.Stop(); err != nil {
		t.Error(err)
	}
	mustBeEmpty(t, parent)
}

func TestSweepRemovesWhatAnOwnerKilledInInitdbLeaves(t *testing.T) {
	inst := pgcluster.InstallForTest(t)
	t.Log(inst)
	parent := openFolder(t)
	process, _ := owner(t, parent, inst)
	awaitFile(filepath.Join(parent, "*", "primary", "PG_VERSION"))
	kill(t, process)
	if removed, err := pgcluster.Sweep(parent); err != nil || len(removed) != 1 {
		t.Errorf("Sweep = %v, %v", removed, err)
	}
	mustBeEmpty(t, parent)
}

func TestStartSweeps(t *testing.T) {
	inst := pgcluster.InstallForTest(t)
	parent := openFolder(t)
	process, up := owner(t, parent, inst)
	dir := <-up
	kill(t, process)
	c := pgcluster.ForTest(t, pgcluster.Config{Install: inst, Parent: parent})
	if _, err := os.Stat(dir); !os.IsNotExist(err) || len(processes(t, dir)) > 0 {
		t.Errorf("Start leaves the dead owner's cluster: %v", err)
	}
	query(t, c.Primary(), "SELECT 1")
}
