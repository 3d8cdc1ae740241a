// Package traffic makes sessions read and write by several instances of an application.
package traffic

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/pgxgate"
	"github.com/tidegatedb/tidegate/test/robustness/record"
)

// The table that sessions write: a row for each.
const (
	Setup    = "create table kv (k bigint primary key, v bigint not null) with (fillfactor = 50); insert into kv select i, 0 from generate_series(0, 999) i"
	writeSQL = "update kv set v = $2 where k = $1 and v < $2"
	readSQL  = "select k, v from kv where k = any($1)"
)

// perOp is how long an operation may take.
const perOp = 3 * time.Second

var decision = tidegate.Strong("robustness-decision", "a read that somebody would base a decision on")

// Load is what makes the traffic.
type Load struct {
	Instances []*pgxgate.DB
	Sessions  int
	Seed      uint64
	// Pause is the longest time between two operations of a session.
	Pause time.Duration
}

// Drive lets all sessions go on until ctx ends, and returns when their last operations have.
func (l Load) Drive(ctx context.Context, h *record.History, begun time.Time) {
	var all sync.WaitGroup
	for i := range l.Sessions {
		s := &session{load: &l, id: i, h: h, begun: begun, r: rand.New(rand.NewPCG(l.Seed, uint64(100+i)))}
		all.Go(func() {
			for ctx.Err() == nil {
				s.step(context.WithoutCancel(ctx))
				time.Sleep(time.Duration(s.r.Int64N(int64(l.Pause))))
			}
		})
	}
	all.Wait()
}

// session is somebody whose requests reach one instance or another, with what the last
// response said.
type session struct {
	load    *Load
	id      int
	h       *record.History
	begun   time.Time
	r       *rand.Rand
	token   tidegate.Token
	version int64
	wire    []byte
}

// step makes one request: a few operations on one instance, then the token goes back to the
// client as bytes.
func (s *session) step(ctx context.Context) {
	instance := s.r.IntN(len(s.load.Instances))
	own := tidegate.NewSession(s.token)
	for range 1 + s.r.IntN(3) {
		within, cancel := context.WithTimeout(tidegate.WithSession(ctx, own), perOp)
		s.operate(within, instance)
		cancel()
	}
	var err error
	if s.wire, err = own.Token().AppendBinary(s.wire[:0]); err == nil {
		s.token, err = tidegate.ParseBinary(s.wire)
	}
	if err != nil {
		panic(err) // a token that we made ourselves
	}
}

func (s *session) operate(ctx context.Context, instance int) {
	op := record.Op{Session: s.id, Instance: instance, Began: time.Since(s.begun), Outcome: record.OK}
	switch u := s.r.Float64(); {
	case u < .25:
		s.write(ctx, &op)
	case u < .35:
		s.read(ctx, &op, record.Strong, decision)
	default:
		s.read(ctx, &op, record.Read, tidegate.Causal)
	}
	op.Ended = time.Since(s.begun)
	s.h.Add(op)
}

func (s *session) write(ctx context.Context, op *record.Op) {
	s.version++
	op.Kind, op.Key, op.Version = record.Write, int64(s.id), s.version
	db := s.load.Instances[op.Instance]
	var err error
	if s.r.IntN(3) == 0 {
		err = db.Write().Tx(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, writeSQL, op.Key, op.Version)
			return err
		})
	} else {
		_, err = db.Write().Exec(ctx, writeSQL, op.Key, op.Version)
	}
	if err != nil {
		op.Error, op.Outcome = err.Error(), record.Unknown
		if errors.Is(err, tidegate.ErrNoPrimary) {
			op.Outcome = record.Failed // nothing was sent
		}
	}
}

func (s *session) read(ctx context.Context, op *record.Op, kind record.Kind, class tidegate.Class) {
	op.Kind, op.Rows = kind, map[int64]int64{}
	keys := []int64{int64(s.id), int64(s.r.IntN(s.load.Sessions))}
	ctx, seen := tidegate.Observe(ctx)
	rows, err := s.load.Instances[op.Instance].Read(class).Query(ctx, readSQL, keys)
	if err == nil {
		var k, v int64
		_, err = pgx.ForEachRow(rows, []any{&k, &v}, func() error {
			op.Rows[k] = v
			return nil
		})
	}
	if d, ok := seen.Last(); ok {
		op.Decision, op.Replica, op.Unproven = d.String(), d.Role == tidegate.RoleReplica, d.Unproven
		op.Told = d.Reason == tidegate.ReasonHistoryChanged
	}
	if err != nil {
		op.Error, op.Outcome = err.Error(), record.Failed
	}
}
