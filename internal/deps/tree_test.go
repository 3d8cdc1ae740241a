package deps

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A tree is what the repository's Go files import. In the module cache, where
// the nested modules are not, it is the root module alone.
type tree struct {
	modules []string // folders of the nested modules
	sources []source
}

// A source is one Go file. All its paths are relative to the root.
type source struct {
	file    string
	dir     string
	module  string // folder of the module that it belongs to
	test    bool
	imports []string
}

// readTree reads the files themselves, not what the go command would build of
// them: a build tag hides nothing, and a module that does not build is read too.
func readTree(t *testing.T) tree {
	t.Helper()
	var tree tree
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if entry.IsDir() {
			if rel != "." && ignoredDir(entry.Name()) {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && rel != "." {
				tree.modules = append(tree.modules, rel)
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		src := source{
			file:   rel,
			dir:    path.Dir(rel),
			module: ".",
			test:   strings.HasSuffix(rel, "_test.go"),
		}
		for _, module := range tree.modules { // a nested one comes after the one around it
			if within(rel, module) {
				src.module = module
			}
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			src.imports = append(src.imports, imported)
		}
		tree.sources = append(tree.sources, src)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// ignoredDir reports whether the go command does not look into a folder of
// that name either.
func ignoredDir(name string) bool {
	return name == "testdata" || name == "vendor" || name == "bin" ||
		strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}
