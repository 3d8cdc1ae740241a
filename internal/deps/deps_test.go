package deps

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// own is the path of the root module.
const own = "github.com/tidegatedb/tidegate"

// root is the root module's folder: go test runs a test in its own.
var root = filepath.Join("..", "..")

func TestRootModuleRequiresNothing(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if got := directives(string(data)); got["module"] != 1 || got["go"] != 1 {
		t.Fatalf("go.mod was not understood: it has the directives %v", got)
	}
	for _, directive := range []string{"require", "replace", "exclude", "tool"} {
		if directives(string(data))[directive] > 0 {
			t.Errorf("go.mod has %q: whoever imports the core would get more than the core", directive)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "go.sum")); err == nil {
		t.Error("the root module has a go.sum: there is nothing that it could hold")
	}
}

// A replace in a go.mod counts for the main module only: it would hide from us
// what users get, and make go install refuse the command line tool.
func TestNestedModulesReplaceNothing(t *testing.T) {
	t.Parallel()
	for _, dir := range readTree(t).modules {
		data, err := os.ReadFile(filepath.Join(root, dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, directive := range []string{"replace", "exclude"} {
			if directives(string(data))[directive] > 0 {
				t.Errorf("%s/go.mod has %q: the workspace's replacements belong into go.work", dir, directive)
			}
		}
	}
}

func TestRootModuleImportsNothing(t *testing.T) {
	t.Parallel()
	tree := readTree(t)
	for _, problem := range foreignImports(tree) {
		t.Error(problem)
	}
	if len(tree.sources) == 0 {
		t.Error("no Go file was found")
	}
}

func TestForeignImportsAreFound(t *testing.T) {
	t.Parallel()
	bad := []string{"example.com/x", own + "/pgxgate", own + "/pgxgate/internal/wire", own + "/cmd/tidegate", "github.com/jackc/pgx/v5", "C"}
	good := []string{"fmt", "net/http", own, own + "/engine", own + "/internal/pgxgatelike"}
	for _, test := range []bool{false, true} {
		planted := tree{
			modules: []string{"cmd/tidegate", "pgxgate"},
			sources: []source{
				{dir: "engine", module: ".", file: "engine/planted.go", test: test, imports: slices.Concat(bad, good)},
				{dir: "pgxgate", module: "pgxgate", file: "pgxgate/planted.go", test: test, imports: bad},
			},
		}
		if got := foreignImports(planted); len(got) != len(bad) {
			t.Errorf("test files %v: %d problems of %d: %q", test, len(got), len(bad), got)
		}
	}
}

// foreignImports says what the root module, tests included, imports beyond the
// standard library and itself.
func foreignImports(tree tree) []string {
	var problems []string
	for _, src := range tree.sources {
		if src.module != "." {
			continue
		}
		for _, path := range src.imports {
			inNested := slices.ContainsFunc(tree.modules, func(dir string) bool { return within(path, own+"/"+dir) })
			if !standard(path) && (!within(path, own) || inNested) {
				problems = append(problems, fmt.Sprintf("%s imports %s: the root module has the standard library and itself only", src.file, path))
			}
		}
	}
	return problems
}

// standard reports whether a package is of the standard library: only there
// does a path begin without a dot in its first element.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return path != "C" && !strings.Contains(first, ".")
}

// within reports whether a package is the one at base or below it.
func within(path, base string) bool {
	return path == base || strings.HasPrefix(path, base+"/")
}

// directives counts the directives of a go.mod. It stands in for
// golang.org/x/mod/modfile, which the root module may not require.
func directives(mod string) map[string]int {
	found := map[string]int{}
	block := false
	for line := range strings.Lines(mod) {
		line, _, _ = strings.Cut(line, "//")
		fields := strings.Fields(strings.ReplaceAll(line, "(", " ( "))
		switch {
		case len(fields) == 0:
		case block:
			block = fields[0] != ")"
		default:
			found[fields[0]]++
			block = len(fields) > 1 && fields[1] == "("
		}
	}
	return found
}

func TestDirectives(t *testing.T) {
	t.Parallel()
	got := directives(`// require in a comment
module example.com/x // replace

go 1.25.0
require(
	example.com/replace v1.0.0
	exclude v1
)
replace a => b
`)
	for directive, want := range map[string]int{"module": 1, "go": 1, "require": 1, "replace": 1, "exclude": 0} {
		if got[directive] != want {
			t.Errorf("%s: %d, want %d", directive, got[directive], want)
		}
	}
}
