package pgcluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const pidFileName = "postmaster.pid"

// pidFile is what a running server says about itself in its data folder.
type pidFile struct {
	pid int
	// shm is the id of its System V shared memory. Empty: not yet known.
	shm string
	// ready: connections are accepted, or will be when the server is a standby
	// that was configured to take none.
	ready bool
}

func readPIDFile(dataDir string) (pidFile, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, pidFileName))
	if err != nil {
		return pidFile{}, err
	}
	return parsePIDFile(string(text))
}

// parsePIDFile reads as many of the eight lines as a starting server has written.
func parsePIDFile(text string) (pidFile, error) {
	lines := strings.Split(text, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 1 {
		return pidFile{}, fmt.Errorf("pgcluster: %s begins with %q", pidFileName, lines[0])
	}
	pf := pidFile{pid: pid}
	if len(lines) > 6 {
		if keyAndID := strings.Fields(lines[6]); len(keyAndID) == 2 {
			pf.shm = keyAndID[1]
		}
	}
	if len(lines) > 7 {
		status := strings.TrimSpace(lines[7])
		pf.ready = status == "ready" || status == "standby"
	}
	return pf, nil
}

// freeSharedMemory removes the segment of a server that was killed. It is a few
// bytes, but their number is small on some systems. It runs as the servers'
// user, who can remove no one else's, and a failure leaves those bytes behind.
func (pf pidFile) freeSharedMemory(acc *account) {
	if pf.shm == "" || pf.shm == "0" {
		return
	}
	cmd := exec.Command("ipcrm", "-m", pf.shm)
	cmd.SysProcAttr = acc.attr()
	_ = cmd.Run()
}
