package admin_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/admin"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

var (
	_ admin.RolloutSource = (*engine.Core)(nil)

	claim     = tidegate.Strong("admin-test-claim", "two workers must not both win", tidegate.Owner("jobs"))
	dashboard = tidegate.Relaxed("admin-test-dashboard", "rollups for humans", tidegate.Within(1500*time.Millisecond), tidegate.Wait(0))
	archive   = tidegate.Relaxed("admin-test-archive", "old things", tidegate.AnyStaleness())
	twice1    = tidegate.NewCausal("admin-test-twice", "one reason")
	twice2    = tidegate.NewCausal("admin-test-twice", "another reason")
	same1     = tidegate.NewCausal("admin-test-same", "the same reason")
	same2     = tidegate.NewCausal("admin-test-same", "the same reason")
	unusable  = tidegate.NewCausal("admin-test-unusable", "")
	tagged    = tidegate.NewCausal("admin-test-tagged", "w", tidegate.Require("reporting"), tidegate.Prefer("big"), tidegate.MinServing(2))
	tags1     = tidegate.NewCausal("admin-test-tags", "w", tidegate.Require("reporting"))
	tags2     = tidegate.NewCausal("admin-test-tags", "w", tidegate.Prefer("reporting"))
)

// Declared classes are listed for as long as somebody holds them.
var _ = []tidegate.Class{claim, dashboard, archive, twice1, twice2, same1, same2, unusable, tagged, tags1, tags2}

// world is a cluster in a bubble and the handler over it.
type world struct {
	t       *testing.T
	cluster *fake.Cluster
	gate    *fake.Gate
	keyring *tidegate.Keyring
	h       http.Handler
}

// inBubble runs test on a cluster of a primary and two replicas. prepare hurts it
// before anybody has looked at it.
func inBubble(t *testing.T, change func(*admin.Config), prepare func(*fake.Cluster), test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, cluster: fake.New(fake.Config{Replicas: 2})}
		if prepare != nil {
			prepare(w.cluster)
		}
		var err error
		w.gate, err = w.cluster.Open(t.Context(), fake.Options{Core: engine.Config{Cluster: "main"}})
		if err != nil {
			t.Fatal(err)
		}
		defer w.gate.Close()
		w.keyring = newKeyring(t)
		cfg := admin.Config{Sources: []admin.Source{w.gate.Core()}, Keyring: w.keyring}
		if change != nil {
			change(&cfg)
		}
		w.h = admin.Handler(cfg)
		test(t, w)
	})
}

func newKeyring(t *testing.T) *tidegate.Keyring {
	t.Helper()
	k, err := tidegate.NewKeyring(tidegate.KeyringConfig{Keys: []tidegate.Key{{ID: "a", Secret: bytes.Repeat([]byte("s"), 32)}}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func serve(h http.Handler, method, target, form string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(form))
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// get returns the answer to a GET as it is decoded by somebody who knows nothing
// of it.
func (w *world) get(target string, status int) map[string]any {
	w.t.Helper()
	return decode(w.t, serve(w.h, http.MethodGet, target, ""), status)
}

func decode(t *testing.T, r *httptest.ResponseRecorder, status int) map[string]any {
	t.Helper()
	if r.Code != status {
		t.Errorf("status %d, want %d: %s", r.Code, status, r.Body)
	}
	for name, want := range map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
		if got := r.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	var x map[string]any
	if err := json.Unmarshal(r.Body.Bytes(), &x); err != nil {
		t.Fatalf("%v: %s", err, r.Body)
	}
	return x
}

// refused checks an error's parts.
func refused(t *testing.T, x map[string]any, status int, field string) {
	t.Helper()
	e, _ := x["error"].(map[string]any)
	if e == nil {
		t.Errorf("no error: %v", x)
		return
	}
	got, _ := e["field"].(string)
	if e["status"] != float64(status) || got != field || e["message"] == "" || e["next"] == "" {
		t.Errorf("%v, want status %d, field %q, a message and what to do", e, status, field)
	}
}

// item returns the object of a list whose key has that value.
func item(t *testing.T, list any, key, value string) map[string]any {
	t.Helper()
	all, _ := list.([]any)
	for _, x := range all {
		if m, _ := x.(map[string]any); m[key] == value {
			return m
		}
	}
	t.Fatalf("no %s %q in %v", key, value, list)
	return nil
}

// has checks some of an object's fields; nil is null.
func has(t *testing.T, x map[string]any, want map[string]any) {
	t.Helper()
	for k, v := range want {
		if got, ok := x[k]; !ok || !reflect.DeepEqual(got, v) {
			t.Errorf("%s is %v (there: %v), want %v", k, got, ok, v)
		}
	}
}
