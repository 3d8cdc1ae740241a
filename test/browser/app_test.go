package browser

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// layout is of a page that shows a note, says who answered, and has a form to change
// the note. The icon keeps the browser from asking for one.
var layout = template.Must(template.New("").Parse(`<!doctype html>
<title>{{.Path}}</title>
<link rel="icon" href="data:,">
<p id="body">{{.Body}}</p>
<p id="instance">{{.Instance}}</p>
<p id="node">{{.Node}}</p>
<form method="post" action="{{.Path}}"><input name="body"><button>Save</button></form>
`))

// cacheable is what the pages say of themselves, and no response with a token may.
const cacheable = "public, max-age=600"

// instance is one of the application's. Its pages may be cached, as far as it is
// concerned: that a response with a token is not is for the middleware to see to.
type instance struct {
	name string
	db   *pgxgate.DB
}

func (i instance) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /notes/{id}", i.show)
	mux.HandleFunc("POST /notes/{id}", i.save)
	mux.HandleFunc("GET /about", func(w http.ResponseWriter, r *http.Request) { // asks no database
		i.render(w, r, "about", "")
	})
	return mux
}

func (i instance) show(w http.ResponseWriter, r *http.Request) {
	ctx, seen := tidegate.Observe(r.Context())
	var body string
	if err := i.db.Read(tidegate.Causal).QueryRow(ctx, "select body from notes where id = $1", r.PathValue("id")).Scan(&body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	d, _ := seen.Last()
	// A cookie that scripts may see, beside those that they may not.
	http.SetCookie(w, &http.Cookie{Name: "visible", Value: "yes", Path: "/", Secure: true, SameSite: http.SameSiteLaxMode})
	i.render(w, r, body, d.Node)
}

func (i instance) save(w http.ResponseWriter, r *http.Request) {
	if _, err := i.db.Write().Exec(r.Context(), "update notes set body = $2 where id = $1", r.PathValue("id"), r.FormValue("body")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	http.Redirect(w, r, r.URL.Path, http.StatusSeeOther)
}

func (i instance) render(w http.ResponseWriter, r *http.Request, body, node string) {
	var text bytes.Buffer
	err := layout.Execute(&text, struct{ Path, Body, Instance, Node string }{r.URL.Path, body, i.name, node})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", cacheable)
	_, _ = text.WriteTo(w)
}

// protocol is one that browsers speak with servers.
type protocol struct {
	name  string // as a request's Proto has it
	alpn  string // as the browser's performance entries have it
	http2 bool
}

var protocols = []protocol{{"HTTP/1.1", "http/1.1", false}, {"HTTP/2.0", "h2", true}}

// serveTLS starts a server that speaks that protocol and no other.
func serveTLS(t *testing.T, p protocol, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = p.http2
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// startInstances starts two instances with the same keys, each with a database and
// a middleware of its own. All that the cookies are is the default.
func startInstances(t *testing.T, p protocol, visitorReads bool) []*httptest.Server {
	t.Helper()
	servers, err := theServers()
	if err != nil {
		t.Fatal(err)
	}
	var all []*httptest.Server
	for i, db := range servers.dbs {
		keyring, err := tidegate.NewKeyring(tidegate.KeyringConfig{Keys: []tidegate.Key{{ID: "k", Secret: bytes.Repeat([]byte{1}, 32)}}})
		if err != nil {
			t.Fatal(err)
		}
		gate, err := httpgate.New(httpgate.Config{
			Keyring: keyring, Clusters: []string{"main"},
			Sources:      []httpgate.Source{httpgate.Cookie(httpgate.CookieConfig{})},
			VisitorReads: visitorReads,
		})
		if err != nil {
			t.Fatal(err)
		}
		routes := gate.Wrap(instance{fmt.Sprintf("instance%d", i+1), db}.routes())
		all = append(all, serveTLS(t, p, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Proto != p.name {
				t.Errorf("an instance is asked over %s, not %s", r.Proto, p.name)
			}
			routes.ServeHTTP(w, r)
		})))
	}
	return all
}

var lastNote atomic.Int64

// newNote returns the path of a note that no other test uses. It says "old", and
// all that is written to it the replicas do not have.
func newNote(t *testing.T) string {
	t.Helper()
	id := lastNote.Add(1)
	if id > notes {
		t.Fatalf("there are %d notes", notes)
	}
	return fmt.Sprintf("/notes/%d", id)
}
