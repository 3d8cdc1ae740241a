package carrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/eventgate"
)

// instanceHeader says in a response which instance it is of.
const instanceHeader = "X-Lab-Instance"

// maxEvent bounds an event in a request.
const maxEvent = 1 << 16

// reply is the body of every response of an instance.
type reply struct {
	Answer record.Answer `json:"answer"`
	Error  string        `json:"error,omitempty"`
}

// instance is one copy of the application behind HTTP.
type instance struct {
	number int
	app    strategy.Instance
	gate   Gate            // nil: no sessions
	events *eventgate.Gate // nil: events carry no token
	queue  *Queue          // nil: no events
	server *server
}

// start starts the instance's server.
func (i *instance) start(ctx context.Context) (err error) {
	i.server, err = serve(ctx, i.handler())
	return err
}

// close ends the server, when it has answered what it was asked, and the app.
func (i *instance) close() {
	if i.server != nil {
		i.server.close()
	}
	i.app.Close()
}

func (i *instance) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rows", i.read)
	mux.HandleFunc("PUT /rows/{key}", i.write)
	mux.HandleFunc("POST /events", i.reread)
	if i.gate == nil {
		return mux
	}
	return i.gate.Wrap(mux)
}

func (i *instance) read(w http.ResponseWriter, r *http.Request) {
	answer, err := i.rows(r.Context(), r)
	i.reply(w, answer, err)
}

// reread is read with an event that the client was told: what that requires joins
// what the session requires.
func (i *instance) reread(w http.ResponseWriter, r *http.Request) {
	event, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEvent))
	if err != nil {
		i.reply(w, record.Answer{}, err)
		return
	}
	ctx := r.Context()
	if i.events != nil {
		// A token that is refused is counted, and makes the session catch up.
		ctx, _ = i.events.Extract(ctx, eventgate.InJSON(&event, eventgate.CloudEventsAttribute))
	}
	answer, err := i.rows(ctx, r)
	i.reply(w, answer, err)
}

// rows reads the rows that the request asks for.
func (i *instance) rows(ctx context.Context, r *http.Request) (record.Answer, error) {
	query := r.URL.Query()
	var keys []int64
	for text := range strings.SplitSeq(query.Get("keys"), ",") {
		key, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return record.Answer{}, err
		}
		keys = append(keys, key)
	}
	if query.Has("strong") {
		return i.app.ReadStrong(ctx, session(r), keys)
	}
	if relaxed, ok := i.app.(strategy.Relaxed); ok && query.Has("within") {
		within, err := time.ParseDuration(query.Get("within"))
		if err != nil {
			return record.Answer{}, err
		}
		return relaxed.ReadRelaxed(ctx, session(r), keys, record.Budget{Within: within, OnBreach: record.Breach(query.Get("breach"))})
	}
	return i.app.Read(ctx, session(r), keys)
}

func (i *instance) write(w http.ResponseWriter, r *http.Request) {
	key, err := strconv.ParseInt(r.PathValue("key"), 10, 64)
	version, err2 := strconv.ParseInt(r.URL.Query().Get("version"), 10, 64)
	if err = errors.Join(err, err2); err == nil {
		err = i.app.Write(r.Context(), session(r), key, version)
	}
	if err == nil && i.queue != nil {
		err = i.tell(r.Context(), record.Row{Key: key, Version: version})
	}
	i.reply(w, record.Answer{}, err)
}

// tell sends the event of a write that is committed.
func (i *instance) tell(ctx context.Context, row record.Row) error {
	event, err := encode(i.number, row)
	if err != nil {
		return err
	}
	if i.events != nil {
		if err := i.events.Inject(ctx, eventgate.InJSON(&event, eventgate.CloudEventsAttribute)); err != nil {
			return err
		}
	}
	return i.queue.Publish(ctx, event)
}

func (i *instance) reply(w http.ResponseWriter, answer record.Answer, err error) {
	out, status := reply{Answer: answer}, http.StatusOK
	if err != nil {
		out.Error, status = err.Error(), http.StatusInternalServerError
	}
	body, err := json.Marshal(out)
	if err != nil {
		http.Error(w, fmt.Sprintf("instance %d: %v", i.number, err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(instanceHeader, strconv.Itoa(i.number))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// session is what a strategy may know of who asks. It has no token: that is the
// carrier's.
func session(r *http.Request) *strategy.Session {
	id, _ := strconv.Atoi(r.Header.Get(SessionHeader))
	return &strategy.Session{ID: id}
}
