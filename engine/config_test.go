package engine_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

func TestConfigNamesTheField(t *testing.T) {
	t.Parallel()
	node := func(name string) engine.Node { return engine.Node{Name: name, Source: primaryStub(1, 1)} }
	for _, x := range []struct {
		field  string
		change func(c *engine.Config)
	}{
		{"Cluster", func(c *engine.Config) { c.Cluster = "" }},
		{"Cluster", func(c *engine.Config) { c.Cluster = strings.Repeat("x", tidegate.MaxClusterName+1) }},
		{"Nodes", func(c *engine.Config) { c.Nodes = nil }},
		{"Nodes", func(c *engine.Config) { c.Nodes = make([]engine.Node, engine.MaxNodes+1) }},
		{"Nodes[1].Name", func(c *engine.Config) { c.Nodes = append(c.Nodes, node("")) }},
		{"Nodes[1].Name", func(c *engine.Config) { c.Nodes = append(c.Nodes, node("a")) }},
		{"Nodes[0].Source", func(c *engine.Config) { c.Nodes[0].Source = nil }},
		{"Nodes[0].Weight", func(c *engine.Config) { c.Nodes[0].Weight = -1 }},
		{"Nodes[0].Weight", func(c *engine.Config) { c.Nodes[0].Weight = 1001 }},
		{"Nodes[0].Tags", func(c *engine.Config) { c.Nodes[0].Tags = []string{"a", "a"} }},
		{"Nodes[0].Dedicated", func(c *engine.Config) { c.Nodes[0].Dedicated = true }},
		{"Wait", func(c *engine.Config) { c.Wait = 2 * time.Hour }},
		{"ProofWait", func(c *engine.Config) { c.ProofWait = -1 }},
		{"ProbeInterval", func(c *engine.Config) { c.ProbeInterval = time.Microsecond }},
		{"ProbeTimeout", func(c *engine.Config) { c.ProbeTimeout = 2 * time.Hour }},
		{"FallbackShare", func(c *engine.Config) { c.FallbackShare = math.NaN() }},
		{"FallbackWindow", func(c *engine.Config) { c.FallbackWindow = time.Millisecond }},
		{"FallbackWindow", func(c *engine.Config) { c.FallbackWindow = 2 * time.Hour }},
		{"DemandRate", func(c *engine.Config) { c.DemandRate = -1 }},
		{"DemandRate", func(c *engine.Config) { c.DemandRate = 1e9 }},
		{"DemandBurst", func(c *engine.Config) { c.DemandBurst = -1 }},
		{"DemandBurst", func(c *engine.Config) { c.DemandBurst = 5000 }},
	} {
		cfg := engine.Config{Cluster: "main", Nodes: []engine.Node{node("a")}}
		x.change(&cfg)
		c, err := engine.New(cfg)
		if !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), "Config."+x.field+" ") {
			t.Errorf("%v, want one that wraps ErrConfig and names %s", err, x.field)
		}
		if err == nil {
			c.Close()
		}
	}
}

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	nodes := []engine.Node{{Name: "a", Source: primaryStub(1, 1)}}
	c, err := engine.New(engine.Config{Cluster: "main", Nodes: nodes, Wait: -1})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if nodes[0].Weight != 0 {
		t.Error("New changed the caller's nodes")
	}
}
