package redisserver_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/internal/redisserver"
)

// envOwner makes the test binary the owner of a server, so that a test can kill that
// owner.
const envOwner = "TIDEGATE_REDISSERVER_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(envOwner) != "" {
		own()
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	if left := leak(before); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, left)
		code = 1
	}
	os.Exit(code)
}

// own starts a server, says where, and lives until it is killed or its standard input
// ends.
func own() {
	inst, err := redisserver.Find()
	var s *redisserver.Server
	if err == nil {
		s, err = redisserver.Start(context.Background(), inst)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.Addr, s.Dir)
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
