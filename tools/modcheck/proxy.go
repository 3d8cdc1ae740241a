package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	xmodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// A lister knows which files of the repository count.
type lister struct {
	root      string
	untracked bool // files that git neither tracks nor ignores count, too
}

// list returns the files below dir, relative to it, in the state of the work tree.
func (l lister) list(ctx context.Context, dir string) ([]string, error) {
	args := []string{"ls-files", "-z", "--cached"}
	if l.untracked {
		args = append(args, "--others", "--exclude-standard")
	}
	return l.git(ctx, dir, args...)
}

// leftOut returns the Go files below dir that list does not have because git
// does not track them.
func (l lister) leftOut(ctx context.Context, dir string) ([]string, error) {
	if l.untracked {
		return nil, nil
	}
	return l.git(ctx, dir, "ls-files", "-z", "--others", "--exclude-standard", "--", "*.go")
}

func (l lister) git(ctx context.Context, dir string, args ...string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = filepath.Join(l.root, dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files in %s: %w: %s", dir, err, strings.TrimSpace(stderr.String()))
	}
	var files []string
	for name := range strings.SplitSeq(string(out), "\x00") {
		if name != "" {
			files = append(files, name)
		}
	}
	return files, nil
}

// A proxy is a folder that GOPROXY=file://... can name.
type proxy struct{ dir string }

// add publishes the module that is made of the files, which are relative to dir.
// A module without a licence gets the one of licenceDir, as it does when the go
// command takes it from a repository.
func (p proxy) add(m xmodule.Version, dir string, files []string, licenceDir string) error {
	escaped, err := xmodule.EscapePath(m.Path)
	if err != nil {
		return err
	}
	versions := filepath.Join(p.dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{m.Version, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	for ext, data := range map[string][]byte{".info": info, ".mod": mod} {
		if err := os.WriteFile(filepath.Join(versions, m.Version+ext), data, 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(versions, "list"), []byte(m.Version+"\n"), 0o644); err != nil {
		return err
	}

	out, err := os.Create(filepath.Join(versions, m.Version+".zip"))
	if err != nil {
		return err
	}
	// Create leaves out the files of modules below this one.
	err = zip.Create(out, m, zipFiles(dir, files, licenceDir))
	return errors.Join(err, out.Close())
}

// zipFiles skips files that git still lists though they are gone.
func zipFiles(dir string, files []string, licenceDir string) []zip.File {
	const licence = "LICENSE"
	var list []zip.File
	licensed := false
	for _, name := range files {
		file := diskFile{name: path.Clean(name), on: filepath.Join(dir, filepath.FromSlash(name))}
		if _, err := file.Lstat(); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		licensed = licensed || file.name == licence
		list = append(list, file)
	}
	if !licensed && licenceDir != "" {
		file := diskFile{name: licence, on: filepath.Join(licenceDir, licence)}
		if _, err := file.Lstat(); err == nil {
			list = append(list, file)
		}
	}
	return list
}

// diskFile implements zip.File.
type diskFile struct {
	name string // in the zip
	on   string // on disk
}

func (f diskFile) Path() string                 { return f.name }
func (f diskFile) Lstat() (fs.FileInfo, error)  { return os.Lstat(f.on) }
func (f diskFile) Open() (io.ReadCloser, error) { return os.Open(f.on) }

// publish puts module m of the workspace into the proxy.
func (c *checker) publish(ctx context.Context, m module) error {
	dir := filepath.Join(c.workspace.root, m.dir)
	files, err := c.files.list(ctx, m.dir)
	if err != nil {
		return err
	}
	if !slices.Contains(files, "go.mod") {
		return fmt.Errorf("git does not track %s: add it, or use -untracked", path.Join(m.dir, "go.mod"))
	}
	return c.proxy.add(xmodule.Version{Path: m.path, Version: c.workspace.version}, dir, files, c.workspace.root)
}
