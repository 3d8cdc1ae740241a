package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A small workspace: a core, an adapter and a tool that uses both.
var files = map[string]string{
	"go.work":            "go 1.26.0\n\nuse (\n\t.\n\t./cmd/tool\n\t./adapter\n\t./tools\n)\n\nreplace example.com/core v0.1.0 => ./\n",
	"go.mod":             "module example.com/core\n\ngo 1.25.0\n",
	"core.go":            "package core\n",
	"LICENSE":            "do as you like\n",
	"adapter/go.mod":     "module example.com/core/adapter\n\ngo 1.25.0\n\nrequire example.com/core v0.1.0\n",
	"adapter/adapter.go": "package adapter\n",
	"cmd/tool/go.mod":    "module example.com/core/cmd/tool\n\ngo 1.25.0\n\nrequire (\n\texample.com/core v0.1.0\n\texample.com/core/adapter v0.1.0\n)\n",
	"cmd/tool/main.go":   "package main\n\nfunc main() {}\n",
	"tools/go.mod":       "module example.com/core/tools\n\ngo 1.26.0\n",
}

// writeWorkspace writes files, some of them with another content.
func writeWorkspace(t *testing.T, changed map[string]string) string {
	t.Helper()
	root := t.TempDir()
	all := maps.Clone(files)
	maps.Copy(all, changed)
	for name, content := range all {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestOpenWorkspace(t *testing.T) {
	t.Parallel()
	root := writeWorkspace(t, nil)
	ws, err := openWorkspace(filepath.Join(root, "cmd", "tool"))
	if err != nil {
		t.Fatal(err)
	}
	if ws.version != "v0.1.0" {
		t.Errorf("version %q", ws.version)
	}
	var order []string
	for _, m := range ws.modules {
		order = append(order, m.dir)
	}
	// The tool is listed before the adapter and requires it.
	if got, want := strings.Join(order, " "), ". adapter tools cmd/tool"; got != want {
		t.Errorf("order %q, want %q", got, want)
	}
	for _, m := range ws.published() {
		if m.dir == "tools" {
			t.Error("the tools count as published")
		}
	}
	if n := len(ws.published()); n != 3 {
		t.Errorf("%d published modules", n)
	}
}

func TestOpenWorkspaceRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		changed map[string]string
		want    string
	}{
		"two versions": {
			map[string]string{"adapter/go.mod": "module example.com/core/adapter\n\nrequire example.com/core v0.2.0\n"},
			"all modules share one version",
		},
		"another version in go.work": {
			map[string]string{"go.work": "go 1.26.0\n\nuse (\n\t.\n\t./adapter\n)\n\nreplace example.com/core v0.0.9 => ./\n"},
			"all modules share one version, but go.work",
		},
		"a circle": {
			map[string]string{"go.mod": "module example.com/core\n\nrequire example.com/core/adapter v0.1.0\n"},
			"in a circle",
		},
		"no module line": {
			map[string]string{"adapter/go.mod": "go 1.25.0\n"},
			"no module line",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := openWorkspace(writeWorkspace(t, test.changed))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// A go.mod that does not name the adapter yet: the imports do.
func TestAddImports(t *testing.T) {
	t.Parallel()
	root := writeWorkspace(t, map[string]string{
		"cmd/tool/go.mod":  "module example.com/core/cmd/tool\n\nrequire example.com/core v0.1.0\n",
		"cmd/tool/main.go": "package main\n\nimport (\n\t\"fmt\"\n\n\t_ \"example.com/core/adapter/sub\"\n)\n",
		"core_test.go":     "package core\n\nimport _ \"example.com/core/sub\"\n",
	})
	ws, err := openWorkspace(root)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ws.modules {
		m := &ws.modules[i]
		var list []string
		switch m.dir {
		case "cmd/tool":
			list = []string{"go.mod", "main.go", "gone.go"}
		case ".":
			list = []string{"core_test.go", "cmd/tool/main.go"} // the latter is another module's
		}
		if err := ws.addImports(m, list); err != nil {
			t.Fatal(err)
		}
	}
	if err := ws.sort(); err != nil {
		t.Fatal(err)
	}
	for _, m := range ws.modules {
		want := map[string]string{
			"adapter":  "example.com/core",
			"cmd/tool": "example.com/core example.com/core/adapter",
		}[m.dir]
		if got := strings.Join(m.requires, " "); got != want {
			t.Errorf("%s requires %q, want %q", m.dir, got, want)
		}
	}
	if last := ws.modules[len(ws.modules)-1].dir; last != "cmd/tool" {
		t.Errorf("the last is %s", last)
	}
}

func TestWithoutOwn(t *testing.T) {
	t.Parallel()
	ws := &workspace{modules: []module{{path: "example.com/core"}, {path: "example.com/core/adapter"}}}
	sum := "example.com/core v0.1.0 h1:a=\n" +
		"example.com/core v0.1.0/go.mod h1:b=\n" +
		"example.com/core/adapter v0.1.0 h1:c=\n" +
		"example.com/core2 v1.0.0 h1:d=\n" +
		"example.com/other v1.0.0/go.mod h1:e=\n"
	want := "example.com/core2 v1.0.0 h1:d=\nexample.com/other v1.0.0/go.mod h1:e=\n"
	if got := string(ws.withoutOwn([]byte(sum))); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := ws.withoutOwn(nil); len(got) != 0 {
		t.Errorf("got %q of nothing", got)
	}
}
