package tidegatetest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// tb is a testing.TB outside of a test: for examples, and to see what an assertion
// says. In a test of an application it is the test's own t.
type tb struct {
	testing.TB
	ctx      context.Context
	cleanups []func()
	errors   []string
}

func newTB() *tb { return &tb{ctx: context.Background()} }

func (t *tb) Helper()                      {}
func (t *tb) Context() context.Context     { return t.ctx }
func (t *tb) Cleanup(f func())             { t.cleanups = append(t.cleanups, f) }
func (t *tb) Error(args ...any)            { t.errors = append(t.errors, fmt.Sprint(args...)) }
func (t *tb) Errorf(f string, args ...any) { t.errors = append(t.errors, fmt.Sprintf(f, args...)) }
func (t *tb) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

// done ends it.
func (t *tb) done() {
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}

// failed returns what was reported since the last call.
func (t *tb) failed() string {
	all := strings.Join(t.errors, "\n")
	t.errors = nil
	return all
}
