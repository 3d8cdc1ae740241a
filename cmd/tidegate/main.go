// Command tidegate shows, measures and helps to operate Tidegate, the library
// that routes each database read to a replica that provably has what the
// session must see.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
)

// The exit statuses of every command.
const (
	exitOK     = 0
	exitFailed = 1 // the command ran and found something wrong
	exitUsage  = 2 // the command could not run, or says nothing
)

type commands struct {
	Lab      labCommand      `cmd:"" help:"Compare routing strategies on a real PostgreSQL cluster, and check every read."`
	Bench    benchCommand    `cmd:"" help:"Measure on real servers what routing costs."`
	Throttle throttleCommand `cmd:"" help:"Wait until replicas are near enough for the next batch of a bulk job."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
}

// streams are where a command writes. Stderr is a file because only a terminal
// gets a progress line.
type streams struct {
	out io.Writer
	err *os.File
}

// status is an exit status that a command returns as its error, after it has
// said itself what there is to say.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

func main() {
	os.Exit(run(os.Args[1:], streams{out: os.Stdout, err: os.Stderr}))
}

// run executes the command line and returns the exit status.
func run(args []string, std streams) int {
	exited := -1 // by a flag such as --help
	parser, err := kong.New(&commands{},
		kong.Name("tidegate"),
		kong.Description("Reads from replicas that provably have what the session must see."),
		kong.Writers(std.out, std.err),
		kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		labVars(),
		kong.Bind(std),
	)
	if err != nil {
		fmt.Fprintf(std.err, "tidegate: %v\n", err)
		return exitUsage
	}
	ctx, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		fmt.Fprintf(std.err, "tidegate: %v\nNext: %s\n", err, helpHint(err))
		return exitUsage
	}
	err = ctx.Run()
	var s status
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &s):
		return int(s)
	}
	fmt.Fprintf(std.err, "tidegate %s: %v\n", ctx.Command(), err)
	return exitUsage
}

// helpHint names the help that fits a command line that could not be read.
func helpHint(err error) string {
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		if node := parse.Context.Selected(); node != nil {
			return "see tidegate " + node.Name + " --help"
		}
	}
	return "see tidegate --help"
}
