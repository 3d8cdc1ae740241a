package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/eventgate"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// ShipArgs is a job about an order.
type ShipArgs struct {
	eventgate.Envelope
	Order int64          `json:"order"`
	Mode  eventgate.Mode `json:"mode"`
}

// Kind implements river.JobArgs.
func (ShipArgs) Kind() string { return "ship" }

// Enqueue puts an order and the job about it into the database, in one transaction.
// The job has a token, unless gate is nil.
func Enqueue(ctx context.Context, db *pgxgate.DB, gate *eventgate.Gate, queue *river.Client[pgx.Tx], args ShipArgs) error {
	if gate != nil {
		if err := gate.InjectBeforeCommit(ctx, eventgate.InString(&args.ConsistencyToken)); err != nil {
			return err
		}
	}
	return db.Write().Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into orders values ($1, 'paid')", args.Order); err != nil {
			return err
		}
		_, err := queue.InsertTx(ctx, tx, args, nil)
		return err
	})
}

// Shipped is what came of one job.
type Shipped struct {
	Args ShipArgs
	// Found tells whether the job saw the order that it is about.
	Found bool
	// Role says who answered.
	Role tidegate.Role
	// Snoozes counts how often the job was postponed.
	Snoozes int
	Err     error
}

// ShipWorker works on jobs in the way of an application. It never goes to the
// primary by itself: that is for its reads' ladder to decide.
type ShipWorker struct {
	river.WorkerDefaults[ShipArgs]
	DB   *pgxgate.DB
	Jobs *eventgate.Jobs
	// Done gets what came of each job.
	Done chan<- Shipped
}

// Work implements river.Worker.
func (w *ShipWorker) Work(ctx context.Context, job *river.Job[ShipArgs]) error {
	ctx, err := w.Jobs.Begin(ctx, eventgate.Job{
		Messages: []eventgate.Carrier{eventgate.InString(&job.Args.ConsistencyToken)},
		Mode:     job.Args.Mode,
		ID:       strconv.FormatInt(job.ID, 10),
	})
	if p := (*eventgate.PostponedError)(nil); errors.As(err, &p) {
		return river.JobSnooze(p.After)
	}
	if err != nil {
		return err
	}
	ctx, seen := tidegate.Observe(ctx)
	var state string
	err = w.DB.Read(tidegate.Causal).QueryRow(ctx, "select state from orders where id = $1", job.Args.Order).Scan(&state)
	found := err == nil
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil // a real worker would call the order deleted
	}
	d, _ := seen.Last()
	var meta struct{ Snoozes int }
	if err == nil {
		err = json.Unmarshal(job.Metadata, &meta)
	}
	w.Done <- Shipped{Args: job.Args, Found: found, Role: d.Role, Snoozes: meta.Snoozes, Err: err}
	return err
}
