package main

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
)

// notPublished are the modules that nobody imports: this program, and tests that
// need what the published modules must not require.
var notPublished = []string{"tools", "test"}

// A workspace is what go.work says, read together with the go.mod files.
type workspace struct {
	root    string
	modules []module // the ones that others require come first
	version string   // the one that the modules require of each other
}

// A module is one of the workspace.
type module struct {
	dir       string // relative to the workspace's root, with slashes
	path      string
	requires  []string // paths of modules of the workspace
	published bool
}

// own reports whether path is of a module of the workspace.
func (ws *workspace) own(modulePath string) bool {
	return slices.ContainsFunc(ws.modules, func(m module) bool { return m.path == modulePath })
}

func (ws *workspace) published() []module {
	var list []module
	for _, m := range ws.modules {
		if m.published {
			list = append(list, m)
		}
	}
	return list
}

// openWorkspace reads the workspace that dir is in.
func openWorkspace(dir string) (*workspace, error) {
	root, work, err := findWork(dir)
	if err != nil {
		return nil, err
	}
	ws := &workspace{root: root}
	files := map[string]*modfile.File{}
	for _, use := range work.Use {
		file, err := readModFile(filepath.Join(root, use.Path, "go.mod"))
		if err != nil {
			return nil, err
		}
		m := module{dir: filepath.ToSlash(filepath.Clean(use.Path)), path: file.Module.Mod.Path}
		m.published = !slices.Contains(notPublished, m.dir)
		files[m.path] = file
		ws.modules = append(ws.modules, m)
	}
	for i := range ws.modules {
		m := &ws.modules[i]
		for _, require := range files[m.path].Require {
			if !ws.own(require.Mod.Path) {
				continue
			}
			m.requires = append(m.requires, require.Mod.Path)
			if err := ws.agree(require.Mod.Version, m.dir+"/go.mod"); err != nil {
				return nil, err
			}
		}
	}
	for _, replace := range work.Replace {
		if !ws.own(replace.Old.Path) {
			continue
		}
		if err := ws.agree(replace.Old.Version, "go.work"); err != nil {
			return nil, err
		}
	}
	if ws.version == "" {
		return nil, errors.New("no go.mod here requires another module of the workspace")
	}
	return ws, ws.sort()
}

// agree holds all that name a version of our modules to the same one.
func (ws *workspace) agree(version, where string) error {
	if ws.version == "" {
		ws.version = version
	}
	if version != ws.version {
		return fmt.Errorf("all modules share one version, but %s names %s where another go.mod names %s", where, version, ws.version)
	}
	return nil
}

// owner returns the module of the workspace that a package is in, if any.
func (ws *workspace) owner(pkg string) string {
	owner := ""
	for _, m := range ws.modules {
		if (pkg == m.path || strings.HasPrefix(pkg, m.path+"/")) && len(m.path) > len(owner) {
			owner = m.path
		}
	}
	return owner
}

// addImports makes m require what its files import, too: a go.mod that is not
// up to date does not say it.
func (ws *workspace) addImports(m *module, files []string) error {
	for _, name := range files {
		if path.Ext(name) != ".go" {
			continue
		}
		name = filepath.Join(ws.root, filepath.FromSlash(m.dir), filepath.FromSlash(name))
		if inner := ws.innermost(name); inner != m.dir {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if errors.Is(err, fs.ErrNotExist) {
			continue // git still lists it, and it is gone
		} else if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			owner := ws.owner(imported)
			if owner != "" && owner != m.path && !slices.Contains(m.requires, owner) {
				m.requires = append(m.requires, owner)
			}
		}
	}
	return nil
}

// innermost returns the folder of the module that a file on disk is in.
func (ws *workspace) innermost(name string) string {
	dir := ""
	for _, m := range ws.modules {
		rel, err := filepath.Rel(filepath.Join(ws.root, filepath.FromSlash(m.dir)), name)
		if err == nil && filepath.IsLocal(rel) && (dir == "" || dir == "." || len(m.dir) > len(dir)) {
			dir = m.dir
		}
	}
	return dir
}

// sort puts each module behind the ones that it requires.
func (ws *workspace) sort() error {
	var sorted []module
	done := map[string]bool{}
	for len(sorted) < len(ws.modules) {
		before := len(sorted)
		for _, m := range ws.modules {
			ready := !slices.ContainsFunc(m.requires, func(required string) bool { return !done[required] })
			if ready && !done[m.path] {
				sorted = append(sorted, m)
				done[m.path] = true
			}
		}
		if len(sorted) == before {
			return errors.New("the modules require each other in a circle")
		}
	}
	ws.modules = sorted
	return nil
}

// findWork reads the go.work in dir or in the nearest folder above it.
func findWork(dir string) (string, *modfile.WorkFile, error) {
	for {
		name := filepath.Join(dir, "go.work")
		data, err := os.ReadFile(name)
		if err == nil {
			work, err := modfile.ParseWork(name, data, nil)
			return dir, work, err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", nil, err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", nil, errors.New("there is no go.work here: run modcheck in the repository")
		}
		dir = parent
	}
}

func readModFile(name string) (*modfile.File, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	file, err := modfile.Parse(name, data, nil)
	if err != nil {
		return nil, err
	}
	if file.Module == nil {
		return nil, fmt.Errorf("%s: no module line", name)
	}
	return file, nil
}

// withoutOwn takes the lines about the workspace's modules out of a go.sum.
func (ws *workspace) withoutOwn(sum []byte) []byte {
	var kept strings.Builder
	for line := range strings.Lines(string(sum)) {
		if modulePath, _, _ := strings.Cut(line, " "); !ws.own(modulePath) {
			kept.WriteString(line)
		}
	}
	return []byte(kept.String())
}
