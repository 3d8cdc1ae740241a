package admin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/tidegatedb/tidegate"
)

// problem is an error as a page answers it.
type problem struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
	// Field names the parameter that it is about, if any.
	Field string `json:"field,omitempty"`
	// Next says what to do.
	Next string `json:"next"`
}

func (p *problem) write(w http.ResponseWriter, r *http.Request) {
	write(w, r, p.Status, struct {
		Error *problem `json:"error"`
	}{p})
}

func write(w http.ResponseWriter, r *http.Request, status int, body any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	// A strict position is written with a ">". No browser takes this for HTML.
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes()) // whoever asked has gone
	}
}

// known returns a pointer to v, nil when it is not known.
func known[T any](v T, isKnown bool) *T {
	if !isKnown {
		return nil
	}
	return &v
}

// millis returns a duration in milliseconds, to the microsecond.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// text returns s, nil when it is empty.
func text(s string) *string { return known(s, s != "") }

// epoch is a history. Its parts are strings: they are 64 bits wide.
type epoch struct {
	System string `json:"system"`
	Line   string `json:"line"`
	// Fork is where the line began, null where that is not known.
	Fork *string `json:"fork"`
}

// epochOf returns nil for an epoch that is not known.
func epochOf(e tidegate.Epoch) *epoch {
	return known(epoch{strconv.FormatUint(e.System, 10), strconv.FormatUint(e.Line, 10), known(strconv.FormatUint(e.Fork, 10), e.Fork != 0)}, e.Known())
}
