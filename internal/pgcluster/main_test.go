package pgcluster_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// envOwner makes the test binary the owner of a cluster in the folder that it
// names, so that a test can kill that owner.
const envOwner = "TIDEGATE_PGCLUSTER_TEST_OWNER"

func TestMain(m *testing.M) {
	if parent := os.Getenv(envOwner); parent != "" {
		own(parent)
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	if leaked := leak(before); code == 0 && leaked != "" {
		fmt.Fprintln(os.Stderr, leaked)
		code = 1
	}
	os.Exit(code)
}

// own starts a cluster, says where, and lives until it is killed or its standard
// input ends.
func own(parent string) {
	c, err := pgcluster.Start(context.Background(), pgcluster.Config{Replicas: 1, Parent: parent})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.Dir)
	os.Stdin.Read(make([]byte, 1))
	os.Exit(2)
}

// leak describes goroutines that the tests have left.
func leak(before int) string {
	// One that has done its work may still be on its way out.
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if runtime.NumGoroutine() <= before {
			return ""
		}
	}
	stacks := make([]byte, 1<<20)
	return "goroutines are left:\n" + string(stacks[:runtime.Stack(stacks, true)])
}
