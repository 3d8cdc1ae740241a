package httpgate_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

// Two instances of an application share nothing but the keys and the database,
// whose replicas are late. A browser saves on one and reads on the other.
func Example() {
	t := newTB() // a database in memory needs a test to belong to
	defer t.done()
	db := tidegatetest.New(t, tidegatetest.Config{Name: "main"})
	db.Replica(0).Hold()
	db.Replica(1).Hold()

	keyring, err := tidegate.NewKeyring(tidegate.KeyringConfig{
		Keys: []tidegate.Key{{ID: "2026-01", Secret: []byte("at least 32 random bytes, from a secret store")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	instance := func() *httptest.Server {
		gate, err := httpgate.New(httpgate.Config{
			Keyring:  keyring,
			Clusters: []string{"main"},
			// Insecure is for this example's plain http.
			Sources: []httpgate.Source{httpgate.Cookie(httpgate.CookieConfig{Insecure: true})},
		})
		if err != nil {
			log.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.HandleFunc("PUT /name", func(w http.ResponseWriter, r *http.Request) {
			name, _ := io.ReadAll(r.Body)
			if err := db.Put(r.Context(), "name", string(name)); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
		mux.HandleFunc("GET /name", func(w http.ResponseWriter, r *http.Request) {
			name, _, err := db.Get(r.Context(), tidegate.Causal, "name")
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			fmt.Fprint(w, name)
		})
		return httptest.NewServer(gate.Wrap(mux))
	}
	one, two := instance(), instance()
	defer one.Close()
	defer two.Close()

	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	req, _ := http.NewRequest(http.MethodPut, one.URL+"/name", strings.NewReader("Ann"))
	if resp, err := browser.Do(req); err == nil {
		fmt.Println(resp.Status, resp.Header["Cache-Control"])
		resp.Body.Close()
	}
	if resp, err := browser.Get(two.URL + "/name"); err == nil {
		name, _ := io.ReadAll(resp.Body)
		fmt.Println(resp.Status, string(name))
		resp.Body.Close()
	}
	// Output:
	// 200 OK [private, no-store]
	// 200 OK Ann
}

// A service sends its caller's token along to the service behind it, and learns
// what that one has written.
func ExampleTransport() {
	keyring, err := tidegate.NewKeyring(tidegate.KeyringConfig{
		Keys: []tidegate.Key{{ID: "2026-01", Secret: []byte("at least 32 random bytes, from a secret store")}},
	})
	if err != nil {
		log.Fatal(err)
	}
	transport, err := httpgate.NewTransport(httpgate.TransportConfig{
		Keyring:  keyring,
		Clusters: []string{"orders"},
		Hosts:    []string{"orders.internal:8080"},
	})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	handler := func(w http.ResponseWriter, r *http.Request) {
		// The request's context has the session.
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "http://orders.internal:8080/orders", r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		resp, err := client.Do(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
	}
	_ = handler
}

// A client without cookies keeps its tokens in a Jar.
func ExampleJar() {
	jar, err := httpgate.NewJar(httpgate.JarConfig{Hosts: []string{"api.example.org"}})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: jar}
	_ = client // its requests to https://api.example.org see what earlier ones wrote
	fmt.Println(len(jar.Tokens()))
	// Output: 0
}

// newTB returns what stands in for a test outside of one.
func newTB() *tb { return &tb{} }

// tb is a testing.TB outside of a test: in a test it is the test's own t.
type tb struct {
	testing.TB
	cleanups []func()
}

func (t *tb) Helper()                      {}
func (t *tb) Context() context.Context     { return context.Background() }
func (t *tb) Cleanup(f func())             { t.cleanups = append(t.cleanups, f) }
func (t *tb) Fatalf(f string, args ...any) { log.Fatalf(f, args...) }
func (t *tb) done() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}
