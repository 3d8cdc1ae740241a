package carrier_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/carrier"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
	"github.com/tidegatedb/tidegate/httpgate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

// app is an instance on a cluster in memory. It knows no session but that of its
// context.
type app struct {
	db     *tidegatetest.Cluster
	mu     sync.Mutex
	closed bool
	served int
	budget record.Budget // of the last read that could be old
}

func (a *app) Read(ctx context.Context, s *strategy.Session, keys []int64) (record.Answer, error) {
	return a.read(ctx, s, tidegate.Causal, keys)
}

var strong = tidegate.Strong("carrier-strong", "a test asks for it")

func (a *app) ReadStrong(ctx context.Context, s *strategy.Session, keys []int64) (record.Answer, error) {
	return a.read(ctx, s, strong, keys)
}

// ReadRelaxed implements strategy.Relaxed.
func (a *app) ReadRelaxed(ctx context.Context, s *strategy.Session, keys []int64, b record.Budget) (record.Answer, error) {
	a.mu.Lock()
	a.budget = b
	a.mu.Unlock()
	return a.read(ctx, s, tidegate.Causal, keys)
}

// broken is the key of a row that cannot be read or written.
const broken = 13

var errBroken = errors.New("the row is broken")

func (a *app) read(ctx context.Context, s *strategy.Session, class tidegate.Class, keys []int64) (answer record.Answer, err error) {
	a.mu.Lock()
	a.served++
	if a.closed || s.Token != "" {
		err = errors.New("asked after the end, or with a token")
	}
	a.mu.Unlock()
	ctx, seen := tidegate.Observe(ctx)
	for _, key := range keys {
		if key == broken {
			return record.Answer{Rows: answer.Rows, Begun: true}, errBroken
		}
		text, _, e := a.db.Get(ctx, class, strconv.FormatInt(key, 10))
		version, e2 := strconv.ParseInt("0"+text, 10, 64)
		err = errors.Join(err, e, e2)
		answer.Rows = append(answer.Rows, record.Row{Key: key, Version: version})
	}
	d, _ := seen.Last()
	answer.Node, answer.Replica, answer.Reason = d.Node, d.Role == tidegate.RoleReplica, d.Reason.String()
	return answer, err
}

func (a *app) Write(ctx context.Context, _ *strategy.Session, key, version int64) error {
	if key == broken {
		return errBroken
	}
	return a.db.Put(ctx, strconv.FormatInt(key, 10), strconv.FormatInt(version, 10))
}

func (a *app) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

// trial is a fleet of two instances over a cluster whose replicas lag for ever.
type trial struct {
	*testing.T
	ctx   context.Context
	db    *tidegatetest.Cluster
	apps  []*app
	fleet *carrier.Fleet
}

func newTrial(ctx context.Context, t *testing.T, c carrier.Carrier, change ...func(*carrier.FleetConfig)) *trial {
	t.Helper()
	db := tidegatetest.New(t, tidegatetest.Config{Name: "lab", Wait: -1})
	db.Replica(0).Hold()
	db.Replica(1).Hold()
	keys, err := strategy.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	cfg := carrier.FleetConfig{
		Config:  carrier.Config{Keyring: keys, Cluster: "lab", Missing: httpgate.CatchUp},
		Carrier: c, Carried: true, Sessions: 8, Seed: 1,
	}
	for _, f := range change {
		f(&cfg)
	}
	tr := &trial{T: t, ctx: ctx, db: db, apps: []*app{{db: db}, {db: db}}}
	tr.fleet, err = carrier.Open(ctx, cfg, tr.apps[0], tr.apps[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.fleet.Close)
	return tr
}

// patience is how long a test waits for what would otherwise never come.
const patience = 20 * time.Second

// event waits for what a client is told.
func (tr *trial) event(l traffic.Listener) traffic.Event {
	tr.Helper()
	ctx, cancel := context.WithTimeout(tr.ctx, patience)
	defer cancel()
	select {
	case e := <-l.Events():
		return e
	case <-ctx.Done():
		tr.Fatal("no event came")
		return traffic.Event{}
	}
}

func fresh(c *carrier.FleetConfig) { c.Missing = httpgate.Fresh }

func (tr *trial) write(c traffic.Client, key, version int64) {
	tr.Helper()
	op := record.Op{Key: key, Version: version}
	if c.Write(tr.ctx, &op); op.Err != nil {
		tr.Fatal(op.Err)
	}
}

// read reads one row.
func (tr *trial) read(c traffic.Client, key int64) (version int64, op record.Op) {
	tr.Helper()
	op = record.Op{Asked: []int64{key}}
	c.Read(tr.ctx, &op)
	return tr.version(&op), op
}

func (tr *trial) version(op *record.Op) int64 {
	tr.Helper()
	if op.Err != nil {
		tr.Fatal(op.Err)
	}
	if len(op.Answer.Rows) != 1 || op.Answer.Rows[0].Key != op.Asked[0] {
		tr.Fatalf("asked for %v: %+v", op.Asked, op.Answer)
	}
	return op.Answer.Rows[0].Version
}

// each runs a test with every carrier.
func each(t *testing.T, f func(ctx context.Context, t *testing.T, c carrier.Carrier)) {
	for _, c := range carrier.All() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			f(t.Context(), t, c)
		})
	}
}
