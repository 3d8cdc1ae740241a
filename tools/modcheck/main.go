// Command modcheck looks at the published modules of the workspace the way a
// user meets them: one at a time, from a module proxy, without the workspace
// file. It puts them into a throwaway proxy in a temporary folder, at the
// version that they require of each other, and runs the go command against it.
//
//	modcheck build    build each module from an empty one, install the tool, run it
//	modcheck tidy     go mod tidy in every module of the workspace
//	modcheck verify   fail if modcheck tidy would change anything
//
// go mod tidy alone cannot do it: the modules require a version of each other
// that is not published before it is released. For the same reason no go.sum
// here holds a hash of our own modules: it would change with every commit.
//
// Exit status: 0 all is well, 1 something is not, 2 wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `usage: modcheck [-untracked] [build | tidy | verify]

  build    build each published module alone, as a user would get it (default)
  tidy     bring the go.mod and go.sum of all modules up to date
  verify   fail if tidy would change anything
`

// errProblem says that what was wrong has been printed already.
var errProblem = errors.New("modcheck: not all is well")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("modcheck", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	untracked := flags.Bool("untracked", false, "build: take files that git does not track, too")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	mode := "build"
	switch flags.NArg() {
	case 0:
	case 1:
		mode = flags.Arg(0)
	default:
		flags.Usage()
		return 2
	}

	var do func(context.Context, *checker) error
	switch mode {
	case "build":
		do = build
	case "tidy":
		do = tidy
	case "verify":
		do = verify
		*untracked = true
	default:
		fmt.Fprintf(stderr, "modcheck: there is no %q\n%s", mode, usage)
		return 2
	}

	start := time.Now()
	err := check(ctx, do, *untracked || mode != "build", stdout)
	switch {
	case err == nil:
		fmt.Fprintf(stdout, "modcheck %s: all is well (%.1f s)\n", mode, time.Since(start).Seconds())
		return 0
	case !errors.Is(err, errProblem):
		fmt.Fprintf(stderr, "modcheck %s: %v\n", mode, err)
	}
	return 1
}

// check gives do a workspace, a proxy and a module cache that are gone after it.
func check(ctx context.Context, do func(context.Context, *checker) error, untracked bool, out io.Writer) (err error) {
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	ws, err := openWorkspace(wd)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "modcheck-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	gocmd, err := newGoCommand(ctx, temp)
	if err != nil {
		return err
	}
	return do(ctx, &checker{
		workspace: ws,
		proxy:     proxy{dir: gocmd.proxyDir},
		gocmd:     gocmd,
		temp:      temp,
		files:     lister{root: ws.root, untracked: untracked},
		out:       out,
	})
}

// A checker is what each of the modes works with.
type checker struct {
	workspace *workspace
	proxy     proxy
	gocmd     *goCommand
	temp      string // removed at the end
	files     lister
	out       io.Writer
}

func (c *checker) printf(format string, args ...any) {
	fmt.Fprintf(c.out, format+"\n", args...)
}
