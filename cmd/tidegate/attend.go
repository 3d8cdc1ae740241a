package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
)

// attended runs what starts servers, with a line of progress on a terminal and a
// context that ends when somebody interrupts the program, asks it to end or closes
// its terminal, so that the servers are stopped. It tells whether that happened.
func attended(std streams, run func(ctx context.Context, progress *report.Progress) error) (interrupted bool, err error) {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup: it shall outlive its terminal
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	// A second signal ends the program at once. The next run then removes what
	// this one leaves behind. A terminal that is closed is no such wish, though the
	// system and the shell may both tell of it.
	ended := context.AfterFunc(ctx, func() {
		signal.Ignore(syscall.SIGHUP)
		stop()
	})
	defer ended()

	progress := report.NewProgress(std.err)
	err = run(ctx, progress)
	progress.Clear()
	return ctx.Err() != nil, err
}
