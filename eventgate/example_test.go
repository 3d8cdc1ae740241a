package eventgate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
	"github.com/tidegatedb/tidegate/eventgate"
)

func exampleGate() *eventgate.Gate {
	keyring, err := tidegate.NewKeyring(tidegate.KeyringConfig{
		Keys: []tidegate.Key{{ID: "2026-01", Secret: bytes.Repeat([]byte("s"), 32)}}, // in production: random, from a secret store
	})
	if err != nil {
		panic(err)
	}
	gate, err := eventgate.New(eventgate.Config{Keyring: keyring, Clusters: []string{"main"}})
	if err != nil {
		panic(err)
	}
	return gate
}

// exampleWrite stands for a write through a routed database.
func exampleWrite() context.Context {
	return tidegate.WithToken(context.Background(), tidegate.NewToken(tidegate.Mark{
		Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 1}, Position: tidegate.At(4711),
	}))
}

// A consumer goes on where the sender of an event was.
func Example() {
	gate := exampleGate()

	// The sender, when its write has committed.
	headers := map[string]string{"type": "order.paid"}
	if err := gate.Inject(exampleWrite(), eventgate.InMap(headers, eventgate.Header)); err != nil {
		panic(err)
	}

	// The consumer. Its reads with ctx see the order as it is paid.
	ctx, err := gate.Extract(context.Background(), eventgate.InMap(headers, eventgate.Header))
	if err != nil {
		fmt.Println("goes on, and catches up:", err)
	}
	fmt.Println(tidegate.SessionFrom(ctx).Token().Marks()[0].Position)
	// Output: 4711
}

// A payload that is passed on keeps all its other bytes.
func ExampleInJSON() {
	event := json.RawMessage(`{"specversion": "1.0", "type": "order.paid", "id": "7", "data": {"total": 10.00}}`)
	if err := eventgate.InJSON(&event, eventgate.CloudEventsAttribute).SetToken("tg1.example"); err != nil {
		panic(err)
	}
	fmt.Println(string(event))
	// Output: {"consistencytoken":"tg1.example","specversion": "1.0", "type": "order.paid", "id": "7", "data": {"total": 10.00}}
}

// kafkaRecord is a record of a Kafka client; only its headers matter here.
type kafkaRecord struct{ Headers []kafkaHeader }

type kafkaHeader struct {
	Key   string
	Value []byte
}

// inRecord is the carrier for it.
type inRecord struct{ r *kafkaRecord }

func (c inRecord) Tokens() (all []string) {
	for _, h := range c.r.Headers {
		if h.Key == eventgate.Header {
			all = append(all, string(h.Value))
		}
	}
	return all
}

func (c inRecord) SetToken(text string) error {
	c.r.Headers = append(c.r.Headers, kafkaHeader{eventgate.Header, []byte(text)})
	return nil
}

// Whatever has a place for a text is a carrier by two methods.
func ExampleCarrier() {
	gate, record := exampleGate(), &kafkaRecord{}
	if err := gate.Inject(exampleWrite(), inRecord{record}); err != nil {
		panic(err)
	}
	ctx, err := gate.Extract(context.Background(), inRecord{record})
	fmt.Println(len(record.Headers), tidegate.SessionFrom(ctx).Token().Marks()[0].Position, err)
	// Output: 1 4711 <nil>
}

// A job in the same database is enqueued in the transaction of its write.
func ExampleGate_InjectBeforeCommit() {
	type args struct {
		eventgate.Envelope
		Order int `json:"order"`
	}
	job := args{Order: 7}
	if err := exampleGate().InjectBeforeCommit(context.Background(), eventgate.InString(&job.ConsistencyToken)); err != nil {
		panic(err)
	}
	// Now insert the order and the job, and commit.
	fmt.Println(job.Order, job.ConsistencyToken != "")
	// Output: 7 true
}

// A worker gives back what no replica can answer yet.
func ExampleJobs_Begin() {
	db, err := fake.New(fake.Config{Replicas: 1}).Open(context.Background(), fake.Options{Core: engine.Config{Cluster: "main"}})
	if err != nil {
		panic(err)
	}
	defer db.Close()
	gate := exampleGate()
	jobs, err := eventgate.NewJobs(eventgate.JobConfig{
		Gate:     gate,
		Database: db.Core(), // with a pgxgate.DB: db, and Settle: eventgate.Settle(db)
		MinAfter: time.Second,
	})
	if err != nil {
		panic(err)
	}

	work := func(token string) error {
		ctx, err := jobs.Begin(context.Background(), eventgate.Job{
			Messages: []eventgate.Carrier{eventgate.InString(&token)},
			Mode:     eventgate.Postpone,
		})
		if err != nil {
			return err
		}
		_, err = db.Read(ctx, tidegate.Causal, 1)
		return err
	}

	far := tidegate.NewToken(tidegate.Mark{Cluster: "main", Epoch: db.Core().Status().Epoch, Position: tidegate.At(1 << 40)})
	var token string
	if err := gate.InjectToken(far, eventgate.InString(&token)); err != nil {
		panic(err)
	}
	var postponed *eventgate.PostponedError
	if err := work(token); errors.As(err, &postponed) {
		fmt.Println("try again in", postponed.After) // River: return river.JobSnooze(postponed.After)
	}
	fmt.Println(work("")) // no token: catches up
	// Output:
	// try again in 1s
	// <nil>
}
