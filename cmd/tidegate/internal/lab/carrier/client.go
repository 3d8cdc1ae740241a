package carrier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
)

// maxReply bounds a response's body.
const maxReply = 1 << 20

// client is one session's way to the balancer.
type client struct {
	Client
	key  string
	host string
}

// listener is a client that is told of events.
type listener struct {
	*client
	events <-chan traffic.Event
}

// Read implements traffic.Client.
func (c *client) Read(ctx context.Context, op *record.Op) {
	c.ask(ctx, op, http.MethodGet, "/rows", question(op), nil)
}

// Reread implements traffic.Listener.
func (l *listener) Reread(ctx context.Context, op *record.Op, e traffic.Event) {
	l.ask(ctx, op, http.MethodPost, "/events", question(op), e.Message)
}

// Events implements traffic.Listener.
func (l *listener) Events() <-chan traffic.Event { return l.events }

// Write implements traffic.Client.
func (c *client) Write(ctx context.Context, op *record.Op) {
	query := url.Values{"version": {strconv.FormatInt(op.Version, 10)}}
	c.ask(ctx, op, http.MethodPut, fmt.Sprintf("/rows/%d", op.Key), query, nil)
}

// question is the query of a read.
func question(op *record.Op) url.Values {
	var keys []string
	for _, k := range op.Asked {
		keys = append(keys, strconv.FormatInt(k, 10))
	}
	query := url.Values{"keys": {strings.Join(keys, ",")}}
	if op.Strong {
		query.Set("strong", "")
	}
	if op.Budget != nil {
		query.Set("within", op.Budget.Within.String())
		query.Set("breach", string(op.Budget.OnBreach))
	}
	return query
}

// ask sends a request and fills in what came back.
func (c *client) ask(ctx context.Context, op *record.Op, method, path string, query url.Values, event []byte) {
	op.Err = c.send(ctx, op, method, &url.URL{Scheme: "http", Host: c.host, Path: path, RawQuery: query.Encode()}, event)
}

func (c *client) send(ctx context.Context, op *record.Op, method string, to *url.URL, event []byte) error {
	req, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(event))
	if err != nil {
		return err
	}
	req.Header.Set(SessionHeader, c.key)
	if event != nil {
		req.Header.Set("Content-Type", "application/cloudevents+json")
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return err
	}
	if op.Instance, err = strconv.Atoi(resp.Header.Get(instanceHeader)); err != nil {
		return fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(body))
	}
	var r reply
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("%s: %w", resp.Status, err)
	}
	op.Answer = r.Answer
	if r.Error != "" {
		return errors.New(r.Error)
	}
	return nil
}
