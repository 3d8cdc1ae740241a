package browser

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/chromedp/chromedp"
)

// startBrowser starts a browser that ends with the tests, and returns its context.
// Its profile, its home and all else that it writes are temporary.
func startBrowser() (context.Context, error) {
	c, err := chosen()
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "tidegate-browser-") // a socket of the browser's lies in it: it must be short
	if err != nil {
		return nil, err
	}
	atEnd(func() error { return os.RemoveAll(home) })

	options := append(chromedp.DefaultExecAllocatorOptions[:], // headless, among others
		chromedp.ExecPath(c.program),
		chromedp.UserDataDir(profileIn(home)),
		chromedp.Env("HOME="+home, "TMPDIR="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home),
		// Chromium does not start as root with its sandbox, and in a container
		// without user namespaces nobody can have one. The sandbox is there for
		// pages of strangers; all pages here are the test's.
		chromedp.NoSandbox,
		// It finds no other host than the test's: the outcome is of this machine only.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("disable-component-update", true),
		// The certificate is accepted as if somebody trusted had signed it. With
		// ignore-certificate-errors it would stay a faulty one, and what comes from
		// such servers is not cached: nothing could be said of caches.
		chromedp.Flag("ignore-certificate-errors-spki-list", keyOfTestServers()),
	)
	allocator, freeAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	atEnd(func() error {
		err := endBrowser(ctx)
		freeAllocator() // kills what has not ended, and waits for it
		return errors.Join(err, endLeftovers(home))
	})

	started := make(chan error, 1)
	go func() { started <- chromedp.Do(ctx) }() // not with a limited context: the browser would end with it
	select {
	case err = <-started:
	case <-time.After(limit):
		err = fmt.Errorf("it took longer than %v", limit)
		freeAllocator()
		<-started
	}
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.program, err)
	}
	return ctx, c.note()
}

// endBrowser asks the browser to end. One that does not is killed afterwards.
func endBrowser(ctx context.Context) error {
	if chromedp.FromContext(ctx).Browser == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if err := chromedp.Cancel(ctx); err != nil {
		return fmt.Errorf("ending the browser: %w", err)
	}
	return nil
}

// keyOfTestServers is the hash of the public key of all servers of httptest.
func keyOfTestServers() string {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	hash := sha256.Sum256(s.Certificate().RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(hash[:])
}

// profileIn is the folder of the browser's profile. All its processes name it in
// their command lines.
func profileIn(home string) string { return filepath.Join(home, "profile") }

// endLeftovers returns when nothing that the browser has started is left. What does
// not end of itself is ended, and an error.
func endLeftovers(home string) error {
	var left []int
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); {
		if left = processesOf(home); len(left) == 0 {
			return nil
		}
	}
	for _, pid := range left {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // it may have ended meanwhile
		}
	}
	return fmt.Errorf("the browser left the processes %v behind", left)
}

// processesOf lists the processes of the browser with that home, where the system
// shows command lines as files. Chromium rewrites those of its children, and parts
// the arguments by spaces then.
func processesOf(home string) []int {
	var pids []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // none elsewhere than on Linux
	for _, name := range files {
		line, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(line, []byte(profileIn(home))) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
