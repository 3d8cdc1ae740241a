package httpgate_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/httpgate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

// stage is an application that streams rows: /stream begins a read and shows, once the
// test lets it, what is in the row then; the read stays open until the test ends it.
type stage struct {
	db           *tidegatetest.Cluster
	begun        chan *tidegatetest.Node
	goOn, finish chan struct{}
}

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/stream":
		var rd engine.Read
		if err := s.db.Core().Begin(r.Context(), tidegate.Causal, &rd); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer s.db.Core().End(&rd)
		node := s.db.Replica(0)
		if s.db.Core().NodeName(rd.Node()) != node.Name() {
			node = s.db.Replica(1)
		}
		s.begun <- node
		<-s.goOn
		v, _ := node.Get("k")
		io.WriteString(w, v)
		http.NewResponseController(w).Flush()
		<-s.finish
	case r.Method == http.MethodPut:
		b, _ := io.ReadAll(r.Body)
		if err := s.db.Put(r.Context(), "k", string(b)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
	v, _, err := s.db.Get(r.Context(), tidegate.Causal, "k")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
	io.WriteString(w, v)
}

// Rows that are open when the response begins have been shown: what another request of
// the session, which began before, saves or answers does not undo that.
func TestRowsThatAreOpenAtTheFirstByte(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"store": true, "header": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidegatetest.New(t, tidegatetest.Config{})
			m := newGate(t, func(cfg *httpgate.Config) {
				cfg.Clusters = []string{"test"}
				cfg.Sources = []httpgate.Source{httpgate.Header(""), storeSource(t, newStore(t))}
			})
			s := &stage{db, make(chan *tidegatetest.Node, 1), make(chan struct{}), make(chan struct{})}
			app := httptest.NewServer(m.Wrap(s))
			defer app.Close()
			jar, err := httpgate.NewJar(httpgate.JarConfig{Hosts: []string{hostOf(app)}})
			if err != nil {
				t.Fatal(err)
			}
			ann := &http.Client{Transport: jar}
			if kept {
				ann = loggedIn("ann", nil)
			}
			send(t, ann, http.MethodPut, app.URL, "v1")
			db.Probe()
			for range 3 {
				send(t, ann, http.MethodGet, app.URL, "") // it settles down on a replica
			}
			first, rest := make(chan string), make(chan struct{})
			go func() {
				defer close(rest)
				resp, err := ann.Get(app.URL + "/stream")
				if err != nil {
					t.Error(err)
					close(first)
					return
				}
				defer resp.Body.Close()
				b := make([]byte, 2)
				_, _ = io.ReadFull(resp.Body, b)
				first <- string(b)
				_, _ = io.Copy(io.Discard, resp.Body)
			}()
			home := <-s.begun
			other := db.Replica(0)
			if other.Name() == home.Name() {
				other = db.Replica(1)
			}
			// Meanwhile the session writes, and what it had read before is settled.
			home.Hold()
			other.Hold()
			send(t, ann, http.MethodPut, app.URL, "v2")
			other.Release()
			db.Probe()
			other.Hold()
			if err := db.Put(t.Context(), "k", "v3"); err != nil { // somebody else's
				t.Fatal(err)
			}
			home.Release()
			db.Probe()
			close(s.goOn)
			if got := <-first; got != "v3" {
				t.Fatalf("the stream shows %q", got)
			}
			home.Stop()
			for range 3 {
				if got, node := send(t, ann, http.MethodGet, app.URL, ""); strings.TrimSpace(got) != "v3" {
					t.Errorf("then it sees %q on %s", got, node)
				}
			}
			close(s.finish)
			<-rest
		})
	}
}
