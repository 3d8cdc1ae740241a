package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	xmodule "golang.org/x/mod/module"
)

// zipNames returns what is in a module's zip, without the prefix.
func zipNames(t *testing.T, p proxy, m xmodule.Version) []string {
	t.Helper()
	r, err := zip.OpenReader(filepath.Join(p.dir, m.Path, "@v", m.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var names []string
	for _, file := range r.File {
		name, ok := strings.CutPrefix(file.Name, m.String()+"/")
		if !ok {
			t.Errorf("%s is not below %s", file.Name, m)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestProxyAdd(t *testing.T) {
	t.Parallel()
	root := writeWorkspace(t, nil)
	p := proxy{dir: t.TempDir()}

	var all []string
	for name := range files {
		all = append(all, name)
	}
	all = append(all, "gone.go") // git still lists it, and it is gone
	core := xmodule.Version{Path: "example.com/core", Version: "v0.1.0"}
	if err := p.add(core, root, all, root); err != nil {
		t.Fatal(err)
	}
	// Nothing of the modules below; go.work is a file like any other.
	if got, want := zipNames(t, p, core), []string{"LICENSE", "core.go", "go.mod", "go.work"}; !slices.Equal(got, want) {
		t.Errorf("core: got %q, want %q", got, want)
	}

	adapter := xmodule.Version{Path: "example.com/core/adapter", Version: "v0.1.0"}
	if err := p.add(adapter, filepath.Join(root, "adapter"), []string{"go.mod", "adapter.go"}, root); err != nil {
		t.Fatal(err)
	}
	if got, want := zipNames(t, p, adapter), []string{"LICENSE", "adapter.go", "go.mod"}; !slices.Equal(got, want) {
		t.Errorf("adapter: got %q, want %q", got, want)
	}

	versions := filepath.Join(p.dir, "example.com", "core", "adapter", "@v")
	mod, err := os.ReadFile(filepath.Join(versions, "v0.1.0.mod"))
	if err != nil || string(mod) != files["adapter/go.mod"] {
		t.Errorf(".mod: %q, %v", mod, err)
	}
	var info struct{ Version string }
	data, err := os.ReadFile(filepath.Join(versions, "v0.1.0.info"))
	if err != nil || json.Unmarshal(data, &info) != nil || info.Version != "v0.1.0" {
		t.Errorf(".info: %q, %v", data, err)
	}
}

func TestListerTracked(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	root := writeWorkspace(t, map[string]string{
		".gitignore": "*.log\n",
		"new.go":     "package core\n",
		"noise.log":  "noise\n",
	})
	for _, args := range [][]string{
		{"init", "-q"},
		{"add", ".gitignore", "core.go", "adapter"},
	} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}

	has := func(l lister, dir, name string, want bool) {
		t.Helper()
		list, err := l.list(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(list, name) != want {
			t.Errorf("untracked %v: %s in %q is %v", l.untracked, name, list, !want)
		}
	}
	tracked, all := lister{root: root}, lister{root: root, untracked: true}
	has(tracked, ".", "core.go", true)
	has(tracked, ".", "new.go", false)
	has(tracked, "adapter", "adapter.go", true)
	has(all, ".", "new.go", true)
	has(all, ".", "noise.log", false)

	left, err := tracked.leftOut(t.Context(), ".")
	if err != nil || !slices.Contains(left, "new.go") || slices.Contains(left, "core.go") {
		t.Errorf("left out: %q, %v", left, err)
	}
}

func TestRunUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"nonsense"}, {"build", "tidy"}, {"-nonsense"}} {
		var stdout, stderr bytes.Buffer
		if status := run(t.Context(), args, &stdout, &stderr); status != 2 {
			t.Errorf("%q: status %d", args, status)
		}
		if !strings.Contains(stderr.String(), "usage: modcheck") {
			t.Errorf("%q: no usage in %q", args, stderr.String())
		}
	}
}
