package tidegate_test

import (
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"strings"
	"sync"
	"testing"
)

const modulePath = "github.com/tidegatedb/tidegate"

// withPackage imports this folder's package as it was parsed here, and the
// standard library from its export data.
type withPackage struct {
	std  types.Importer
	self *types.Package
}

func (w withPackage) Import(path string) (*types.Package, error) {
	if path == modulePath {
		return w.self, nil
	}
	return w.std.Import(path)
}

// sources parses the files of this folder that are no tests.
func sources(fset *token.FileSet) (files []*ast.File, err error) {
	entries, err := os.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	return files, nil
}

// compiler type-checks single expressions, one at a time.
type compiler struct {
	mu    sync.Mutex
	fset  *token.FileSet
	using withPackage
}

var newCompiler = sync.OnceValues(func() (*compiler, error) {
	c := &compiler{fset: token.NewFileSet()}
	c.using.std = importer.Default()
	files, err := sources(c.fset)
	if err != nil {
		return nil, err
	}
	conf := types.Config{Importer: c.using.std, IgnoreFuncBodies: true}
	c.using.self, err = conf.Check(modulePath, c.fset, files, nil)
	return c, err
})

// check returns every error of a program that uses the expression.
func (c *compiler) check(expr string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	const head = `package p; import ("time"; . "` + modulePath + `"); var _ = Causal; var _ time.Duration
type mine struct{}; func (mine) applyStrong(any) {}
var _ = `
	f, err := parser.ParseFile(c.fset, "snippet.go", head+expr, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var all []error
	conf := types.Config{Importer: c.using, Error: func(err error) { all = append(all, err) }}
	_, _ = conf.Check("p", c.fset, []*ast.File{f}, nil)
	return errors.Join(all...)
}

// Options that make no sense for a class do not compile. Every pair differs in
// what is wrong and in nothing else.
func TestClassCompiles(t *testing.T) {
	t.Parallel()
	c, err := newCompiler()
	if err != nil {
		t.Fatalf("this package does not type-check from source: %v", err)
	}
	for _, x := range []struct{ name, bad, good, says string }{
		{"a strong class does not wait", `Strong("n", "w", Wait(time.Second))`, `NewCausal("n", "w", Wait(time.Second))`, "missing method applyStrong"},
		{"a strong class has no budget", `Strong("n", "w", Within(time.Second))`, `Relaxed("n", "w", Within(time.Second))`, "missing method applyStrong"},
		{"a strong class is never stale", `Strong("n", "w", AnyStaleness())`, `Strong("n", "w", Owner("o"))`, "missing method applyStrong"},
		{"a causal class has no budget", `NewCausal("n", "w", Within(time.Second))`, `NewCausal("n", "w", Wait(time.Second), Owner("o"))`, "missing method applyCausal"},
		{"a causal class is never stale", `NewCausal("n", "w", AnyStaleness())`, `Relaxed("n", "w", AnyStaleness())`, "missing method applyCausal"},
		{"a relaxed class needs a budget", `Relaxed("n", "w")`, `Relaxed("n", "w", AnyStaleness())`, "not enough arguments"},
		{"a wait is no budget", `Relaxed("n", "w", Wait(time.Second))`, `Relaxed("n", "w", Within(time.Second), Wait(time.Second))`, "Budget value"},
		{"a duration is no budget", `Relaxed("n", "w", time.Second)`, `Relaxed("n", "w", Within(time.Second))`, "Budget value"},
		{"one budget only", `Relaxed("n", "w", Within(1), AnyStaleness())`, `Relaxed("n", "w", Within(1), Owner("o"))`, "missing method applyRelaxed"},
		{"a strong class says why", `Strong("n")`, `Strong("n", "w")`, "not enough arguments"},
		{"a causal class says why", `NewCausal("n")`, `NewCausal("n", "w")`, "not enough arguments"},
		{"an option of one's own", `Strong("n", "w", mine{})`, `[]any{Strong("n", "w"), mine{}}`, "applyStrong"},
		{"a class cannot be put together", `Class{c: nil}`, `Class{}`, "field c"},
		{"a budget cannot be put together", `Budget{d: 1}`, `Budget{}`, "field d"},
		{"a position cannot be put together", `Position{n: 1}`, `At(1)`, "field n"},
		{"a position is no number", `At(1) + 1`, `Beyond(1)`, "mismatched types"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			if err := c.check(x.good); err != nil {
				t.Errorf("%s must compile: %v", x.good, err)
			}
			if err := c.check(x.bad); err == nil {
				t.Errorf("%s must not compile", x.bad)
			} else if !strings.Contains(err.Error(), x.says) {
				t.Errorf("%s fails with %q, want %q in it", x.bad, err, x.says)
			}
		})
	}
}
