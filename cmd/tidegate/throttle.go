package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/pgxgate"
)

type throttleCommand struct {
	DSN             dsns          `name:"dsn" env:"TIDEGATE_DSN" placeholder:"DSN" help:"Connection string of one server, as pgx takes it; once for each, the primary too. In the environment one on each line, where no list of processes shows a password."`
	MaxStaleness    time.Duration `default:"500ms" help:"Wait while a replica is not proven to be at most so old; 0s asks for no age and needs --max-lag."`
	ResumeStaleness time.Duration `help:"Once waiting, until it is at most so old; half of --max-staleness without it."`
	MaxLag          uint64        `placeholder:"BYTES" help:"Wait while a replica is more bytes of log behind than this; any number without it."`
	ResumeLag       uint64        `placeholder:"BYTES" help:"Once waiting, until it is at most so far behind; half of --max-lag without it."`
	Percentile      int           `default:"100" help:"Share of the replicas that have to be near enough, in percent: 100 waits for the worst."`
	AbsentAfter     time.Duration `default:"5s" help:"How long to wait for a replica that does not answer before it is left out."`
	MaxWait         time.Duration `help:"How long to wait at most; without it until a signal."`
	JSON            bool          `name:"json" help:"Print one JSON object and nothing else."`
}

// Help is what tidegate throttle --help adds.
func (throttleCommand) Help() string {
	return "Waits until replicas are near enough to the primary for the next batch of a bulk job:\n\n" +
		"  while batch; do tidegate throttle --max-wait 10m || exit; done\n\n" +
		"Any role that can log in will do. An age is proven without comparing clocks, and an idle cluster is\n" +
		"young. Each call connects anew and knows nothing of the last one: it waits for the lower marks only\n" +
		"if it has seen an upper one passed. Where no replica answers, or there is none, there is nothing to\n" +
		"wait for; while no primary is known nothing is proven, and it waits.\n\n" +
		"Exit status: 0 the next batch may go; 1 the maximum wait was over and replicas are still too far\n" +
		"behind; 2 the command could not run: a mistake in the command line, no server that answers, a signal.\n"
}

// dsns is the value of a flag with one connection string each time, or in the
// environment one on each line: they may hold commas, spaces and semicolons.
type dsns []string

// Decode implements kong.MapperValue.
func (d *dsns) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("dsn", &text); err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			*d = append(*d, line)
		}
	}
	return nil
}

// Run waits and says what it saw.
func (c *throttleCommand) Run(std streams) error {
	switch {
	case len(c.DSN) == 0:
		return errors.New("no server is named; give --dsn for each, or TIDEGATE_DSN with one on each line\nNext: see tidegate throttle --help")
	case c.MaxStaleness == 0 && c.MaxLag == 0:
		return errors.New("--max-staleness is 0s and --max-lag is not given; one of them is needed\nNext: see tidegate throttle --help")
	}
	var result throttled
	interrupted, err := attended(std, func(ctx context.Context, progress *report.Progress) (err error) {
		progress.Show("waiting for replicas")
		result, err = c.wait(ctx)
		return err
	})
	var lagging *pgxgate.LaggingError
	if err != nil && !errors.As(err, &lagging) {
		if interrupted {
			return fmt.Errorf("interrupted: %w", err)
		}
		return err
	}
	if c.JSON {
		if err := result.json(std.out); err != nil {
			return err
		}
	} else if err == nil {
		fmt.Fprintln(std.out, result.line())
	}
	if err == nil {
		return nil
	}
	if !c.JSON {
		fmt.Fprintln(std.err, err)
	}
	return status(exitFailed)
}

// wait connects and waits. A LaggingError comes with the result.
func (c *throttleCommand) wait(ctx context.Context) (throttled, error) {
	cfg := pgxgate.Config{Cluster: "throttle"}
	for _, dsn := range c.DSN {
		cfg.Nodes = append(cfg.Nodes, pgxgate.Node{DSN: dsn})
	}
	db, err := pgxgate.Open(ctx, cfg)
	if err != nil {
		return throttled{}, err
	}
	defer db.Close()
	if err := unreachable(db.Status()); err != nil {
		return throttled{}, err
	}
	th, err := db.NewThrottle(pgxgate.ThrottleConfig{
		MaxStaleness: c.MaxStaleness, ResumeStaleness: c.ResumeStaleness, MaxLag: c.MaxLag, ResumeLag: c.ResumeLag,
		Percentile: c.Percentile, AbsentAfter: c.AbsentAfter, MaxWait: c.MaxWait,
	})
	if err != nil {
		return throttled{}, err
	}
	err = th.Wait(ctx)
	return newThrottled(db.Status(), th.Stats(), err), err
}

// unreachable returns an error if no server has answered: that is no lag.
func unreachable(st engine.Status) error {
	var errs []error
	for _, n := range st.Nodes {
		if n.Err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", n.Node, n.Err))
	}
	return fmt.Errorf("no server answers; check the connection strings\n%w", errors.Join(errs...))
}

// throttled is what was seen at the end of a wait.
type throttled struct {
	Permitted bool `json:"permitted"`
	// Waited tells that the lag did not permit the batch at once.
	Waited   bool          `json:"waited"`
	WaitedMS float64       `json:"waited_ms"`
	Primary  *string       `json:"primary"`
	Replicas []replicaSeen `json:"replicas"`
	// Reason says why the batch may not go, null when it may.
	Reason *string `json:"reason"`
}

// replicaSeen is a node other than the primary.
type replicaSeen struct {
	Node string `json:"node"`
	// Usable tells that reads may go there.
	Usable bool `json:"usable"`
	// StalenessMS is how old its state can be at most, LagBytes how far it was behind at
	// the last look; null where it is not known.
	StalenessMS *float64 `json:"staleness_ms"`
	LagBytes    *uint64  `json:"lag_bytes"`
	Error       *string  `json:"error"`
}

func newThrottled(st engine.Status, stats pgxgate.ThrottleStats, err error) throttled {
	t := throttled{Permitted: err == nil, Waited: stats.Waits > 0, WaitedMS: milliseconds(stats.Waited), Replicas: []replicaSeen{}}
	if st.Primary != "" {
		t.Primary = &st.Primary
	}
	if err != nil {
		t.Reason = ptr(err.Error())
	}
	for _, n := range st.Nodes {
		if n.Node == st.Primary {
			continue
		}
		r := replicaSeen{Node: n.Node, Usable: n.Usable}
		if n.StalenessKnown {
			r.StalenessMS = ptr(milliseconds(n.Staleness))
		}
		if n.LagKnown {
			r.LagBytes = &n.Lag
		}
		if n.Err != nil {
			r.Error = ptr(n.Err.Error())
		}
		t.Replicas = append(t.Replicas, r)
	}
	return t
}

func ptr[T any](v T) *T { return &v }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (t throttled) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(t)
}

// line says it in one line.
func (t throttled) line() string {
	parts := []string{fmt.Sprintf("the next batch may go; waited %v", time.Duration(t.WaitedMS*1e6).Round(time.Millisecond))}
	for _, r := range t.Replicas {
		switch {
		case r.Error != nil:
			parts = append(parts, r.Node+" does not answer")
		case !r.Usable:
			parts = append(parts, r.Node+" gets no reads")
		case r.StalenessMS == nil || r.LagBytes == nil:
			parts = append(parts, r.Node+" of unknown age")
		default:
			parts = append(parts, fmt.Sprintf("%s at most %.0fms old and %d bytes behind", r.Node, *r.StalenessMS, *r.LagBytes))
		}
	}
	return strings.Join(parts, "; ")
}
