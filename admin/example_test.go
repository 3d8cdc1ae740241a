package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/admin"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

func ExampleHandler() {
	ctx := context.Background()
	// In an application this is a *pgxgate.DB.
	db, err := fake.New(fake.Config{Replicas: 1}).Open(ctx, fake.Options{Core: engine.Config{Cluster: "main"}})
	if err != nil {
		panic(err)
	}
	defer db.Close()
	mux := http.NewServeMux()
	mux.Handle("/debug/tidegate/", http.StripPrefix("/debug/tidegate", admin.Handler(admin.Config{Sources: []admin.Source{db.Core()}})))

	var table struct {
		Clusters []struct {
			Nodes []struct {
				Node, Role string
				Usable     bool
			}
		}
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/tidegate/table", nil))
	if err := json.Unmarshal(w.Body.Bytes(), &table); err != nil {
		panic(err)
	}
	for _, n := range table.Clusters[0].Nodes {
		fmt.Println(n.Node, n.Role, n.Usable)
	}
	// Output:
	// p primary false
	// r1 replica true
}

// A user who complains brings a token along: why is the read not answered by a
// replica?
func ExampleHandler_explain() {
	ctx := context.Background()
	cluster := fake.New(fake.Config{Replicas: 1})
	db, err := cluster.Open(ctx, fake.Options{Core: engine.Config{Cluster: "main"}})
	if err != nil {
		panic(err)
	}
	defer db.Close()
	keyring, err := tidegate.NewKeyring(tidegate.KeyringConfig{Keys: []tidegate.Key{{ID: "2026", Secret: bytes.Repeat([]byte("!"), 32)}}})
	if err != nil {
		panic(err)
	}
	cluster.Nodes()[1].Pause()
	session := tidegate.NewSession()
	if _, err := db.Write(tidegate.WithSession(ctx, session), 1); err != nil {
		panic(err)
	}
	token := keyring.Sign(session.Token())

	h := admin.Handler(admin.Config{Sources: []admin.Source{db.Core()}, Keyring: keyring})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/explain?class=causal&token="+token, nil))
	var x struct {
		Required string
		Nodes    []struct{ Node, Why string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &x); err != nil {
		panic(err)
	}
	fmt.Println("required", x.Required)
	fmt.Println(x.Nodes[1].Node, x.Nodes[1].Why)
	// Output:
	// required 10
	// r1 has applied 0, less than required
}
