package netfault_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	if leaked := leak(before); code == 0 && leaked != "" {
		fmt.Fprintln(os.Stderr, leaked)
		code = 1
	}
	os.Exit(code)
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
