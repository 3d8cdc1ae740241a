package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/figure"
)

// The names of the figures.
const (
	ReadOverhead        = "read_overhead"
	ReadThroughput      = "read_throughput_ratio"
	PrimaryReadOverhead = "primary_read_overhead"
	ReadAllocs          = "read_allocs"
	WriteOverhead       = "write_overhead"
	TxWriteOverhead     = "tx_write_overhead"
	TxWriteOverheadAuto = "tx_write_overhead_auto"
	WriteOverheadFsync  = "write_overhead_fsync"
	ProbeCPU            = "probe_cpu_share"
	DemandProbes        = "demand_probe_rate"
	PickTime            = "pick_ns"
	ReadRouting         = "read_routing_ns"
	PickAllocs          = "pick_allocs"
	SessionBytes        = "session_bytes"
	TokenBytes          = "token_bytes"
)

// measurement measures one figure, or several that cost no more together.
type measurement struct {
	names   []string
	about   string
	servers bool // it needs them
	take    func(*bench, context.Context) ([]figure.Figure, error)
}

var measurements = []measurement{
	{[]string{ReadOverhead}, "a routed causal read against the replica's pool", true, (*bench).readOverhead},
	{[]string{ReadThroughput}, "routed reads per second against direct ones, all cores busy", true, (*bench).readThroughput},
	{[]string{PrimaryReadOverhead}, "a routed strong read against the primary's pool", true, (*bench).primaryReadOverhead},
	{[]string{ReadAllocs}, "what a routed read allocates beyond a direct one", true, (*bench).readAllocs},
	{[]string{WriteOverhead}, "a captured write against a bare one, fsync off", true, (*bench).writeOverhead},
	{[]string{TxWriteOverhead, TxWriteOverheadAuto}, "a captured transaction of one insert, fsync off; auto: asynchronous commits not declared absent", true, (*bench).txOverhead},
	{[]string{WriteOverheadFsync}, "a captured write against a bare one, fsync on", true, (*bench).writeOverheadFsync},
	{[]string{ProbeCPU}, "CPU that probing takes, per node", true, (*bench).probeCPU},
	{[]string{DemandProbes}, "probes that 200 waiting reads ask for, per node", true, (*bench).demandRate},
	{[]string{PickTime, ReadRouting, PickAllocs}, "the router's decision at 5 nodes", false, (*bench).pick},
	{[]string{SessionBytes, TokenBytes}, "memory of a session and length of its token", true, (*bench).sessionSize},
}

// Names are the figures' names.
func Names() (names []string) {
	for _, m := range measurements {
		names = append(names, m.names...)
	}
	return names
}

// About says what each measurement measures, names first.
func About() (about [][2]string) {
	for _, m := range measurements {
		for i, name := range m.names {
			what := m.about
			if i > 0 {
				what = "with it"
			}
			about = append(about, [2]string{name, what})
		}
	}
	return about
}

// Progress tells a person how far the measurements are. A nil one is not
// allowed.
type Progress interface {
	// Show replaces what was shown.
	Show(line string)
}

// bench is one run of all measurements.
type bench struct {
	cfg      Config
	progress Progress
	stage    *stage // nil until a measurement needs it
	now      string // the figure that is measured
}

// Measure starts the servers, measures, stops the servers and returns the
// figures, judged. A figure that could not be measured is one of them, with its
// error for a verdict. When ctx ends early, the result has what there was until
// then and the error is that of ctx. The configuration must be valid.
func Measure(ctx context.Context, cfg Config, progress Progress) (result *figure.Result, err error) {
	b := &bench{cfg: cfg, progress: progress}
	result = &figure.Result{Machine: figure.ThisMachine(), Quick: cfg.Quick, Figures: []figure.Figure{}}
	defer func() {
		if b.stage != nil {
			err = errors.Join(err, b.stage.Stop())
		}
	}()
	for _, m := range measurements {
		if !slices.ContainsFunc(m.names, b.wants) {
			continue
		}
		if m.servers && b.stage == nil {
			progress.Show(fmt.Sprintf("starting a primary and %d replicas ...", replicas))
			if b.stage, err = raise(ctx, cfg.PGBin); err != nil {
				return result, err
			}
			result.Machine.PostgreSQL = b.stage.Install.Version
		}
		b.now = m.names[0]
		progress.Show(b.now)
		figures, err := m.take(b, ctx)
		if ctx.Err() != nil {
			return result, ctx.Err()
		}
		for _, name := range m.names {
			i := slices.IndexFunc(figures, func(f figure.Figure) bool { return f.Name == name })
			switch {
			case !b.wants(name):
			case i >= 0:
				result.Add(figures[i])
			default:
				result.Add(figure.Failure(name, err))
			}
		}
	}
	return result, nil
}

func (b *bench) wants(name string) bool { return slices.Contains(b.cfg.Figures, name) }
