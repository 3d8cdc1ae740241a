package deps

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Words that are of one machine, or of one way to reach packages, and mean
// nothing to a reader elsewhere. Each is written in two pieces, so that this
// file does not have it.
var unwelcome = []string{
	"/wo" + "rk/",
	"/ro" + "ot/",
	".." + "/shared",
	"proxy.golang" + ".org",
	"sum.golang" + ".org",
	"index.golang" + ".org",
	"goproxy" + ".",
	"deb.debian" + ".org",
	"security.debian" + ".org",
	"registry.npmjs" + ".org",
}

func TestFilesNameNoMachine(t *testing.T) {
	t.Parallel()
	names := repositoryFiles(t)
	for _, name := range names {
		data, err := readText(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range found(data) {
			t.Errorf("%s has %q", name, word)
		}
	}
	if len(names) == 0 {
		t.Error("no file was found")
	}
}

func TestUnwelcomeWordsAreFound(t *testing.T) {
	t.Parallel()
	for _, word := range unwelcome {
		if got := found([]byte("see https:/" + strings.ToUpper(word) + "x")); len(got) != 1 {
			t.Errorf("%q: found %q", word, got)
		}
	}
	if got := found([]byte("works, network/ed, root, shared")); len(got) != 0 {
		t.Errorf("found %q", got)
	}
}

func found(text []byte) []string {
	text = bytes.ToLower(text)
	var words []string
	for _, word := range unwelcome {
		if bytes.Contains(text, []byte(word)) {
			words = append(words, word)
		}
	}
	return words
}

// repositoryFiles asks git, which knows what it ignores; without it, all files
// are the repository's.
func repositoryFiles(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil && len(out) > 0 {
		return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	}
	var names []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			switch entry.Name() {
			case ".git", ".cache", "bin":
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, name)
		names = append(names, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// readText reads a file; one that is not text, not a plain file or gone has none.
func readText(name string) ([]byte, error) {
	info, err := os.Lstat(name)
	if os.IsNotExist(err) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(name)
	if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
		return nil, err
	}
	return data, err
}
