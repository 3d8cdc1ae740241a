package pgxgate_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// zone is what a name server says.
type zone struct {
	hosts map[string][]string // addresses by name
	srv   map[string][]*net.SRV
	err   error
}

func (z *zone) LookupNetIP(_ context.Context, network, host string) (all []netip.Addr, err error) {
	if network != "ip" {
		return nil, errors.New("asked for " + network)
	}
	addrs, ok := z.hosts[host]
	if z.err != nil || !ok {
		return nil, errors.Join(z.err, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true})
	}
	for _, a := range addrs {
		all = append(all, netip.MustParseAddr(a))
	}
	return all, nil
}

func (z *zone) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	records, ok := z.srv[name]
	if z.err != nil || !ok || service+proto != "" {
		return "", nil, errors.Join(z.err, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true})
	}
	return name, records, nil
}

// discovered returns what is found, and its names.
func discovered(t *testing.T, d *pgxgate.DNS, want ...string) []pgxgate.Node {
	t.Helper()
	nodes, err := d.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("found %v, want %v", names, want)
	}
	return nodes
}

func TestDNSAddresses(t *testing.T) {
	t.Parallel()
	z := &zone{hosts: map[string][]string{"db.example": {"10.0.0.2", "::ffff:10.0.0.1", "2001:db8::7", "10.0.0.1", "fe80::1%eth0"}}}
	d := &pgxgate.DNS{DSN: "host=db.example port=6000 user=app password=secret dbname=x sslmode=disable application_name=me", Resolver: z}
	for _, n := range discovered(t, d, "10.0.0.1:6000", "10.0.0.2:6000", "[2001:db8::7]:6000", "[fe80::1%eth0]:6000") {
		c := n.Pool.ConnConfig
		if net.JoinHostPort(c.Host, "6000") != n.Name || c.Port != 6000 || c.User != "app" || c.Password != "secret" || c.Database != "x" || c.RuntimeParams["application_name"] != "me" {
			t.Errorf("%s leads to %s:%d as %s", n.Name, c.Host, c.Port, c.User)
		}
		if c.TLSConfig != nil || len(c.Fallbacks) != 0 || n.DSN != "" {
			t.Errorf("%s: %+v", n.Name, c)
		}
	}
}

// An address that stays keeps its node, whose pool configuration says that it is
// the same; one that is missing keeps it for a while.
func TestDNSPatience(t *testing.T) {
	t.Parallel()
	z := &zone{hosts: map[string][]string{}}
	d := &pgxgate.DNS{DSN: "host=db.example user=app sslmode=disable", Resolver: z}
	say := func(addrs ...string) { z.hosts["db.example"] = addrs }
	const a, b, c = "10.0.0.1:5432", "10.0.0.2:5432", "10.0.0.3:5432"
	say("10.0.0.1", "10.0.0.2")
	first := discovered(t, d, a, b)
	say("10.0.0.2", "10.0.0.3") // another order, and one is missing
	if again := discovered(t, d, a, b, c); again[0].Pool != first[0].Pool || again[1].Pool != first[1].Pool {
		t.Error("an address that stayed has a new pool configuration: its connections would be closed")
	}
	discovered(t, d, a, b, c)
	say("10.0.0.1", "10.0.0.2", "10.0.0.3") // back in time
	discovered(t, d, a, b, c)
	say("10.0.0.2", "10.0.0.3")
	discovered(t, d, a, b, c)
	discovered(t, d, a, b, c)
	discovered(t, d, b, c) // the third answer without it
	say("10.0.0.1")
	if again := discovered(t, d, a, b, c); again[0].Pool == first[0].Pool {
		t.Error("a node that had left came back as the same: its pools are closed")
	}
	d.Patience = 1
	discovered(t, d, a)
}

// Errors are no answers: nothing leaves for them, however many there are, and what
// an answer in parts has brought is nothing yet.
func TestDNSErrorsKeepNodes(t *testing.T) {
	t.Parallel()
	z := &zone{hosts: map[string][]string{"db.example": {"10.0.0.1"}, "primary.example": {"10.0.0.9"}}}
	d := &pgxgate.DNS{DSN: "host=db.example user=app sslmode=disable", More: []string{"primary.example"}, Patience: 2, Resolver: z}
	discovered(t, d, "10.0.0.1:5432", "10.0.0.9:5432")
	fails := func(says string) {
		t.Helper()
		for range 5 {
			if nodes, err := d.Discover(t.Context()); err == nil || nodes != nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v, %v, want an error that names %s", nodes, err, says)
			}
		}
	}
	broken := errors.New("servfail")
	z.err = broken
	fails("db.example")
	if _, err := d.Discover(t.Context()); !errors.Is(err, broken) {
		t.Errorf("%v does not wrap the resolver's", err)
	}
	z.err = nil
	z.hosts["db.example"] = []string{"10.0.0.5"}
	delete(z.hosts, "primary.example")
	fails("primary.example")
	z.hosts = map[string][]string{"db.example": nil, "primary.example": nil}
	fails("db.example has no address")
	z.hosts = map[string][]string{"db.example": {"10.0.0.1"}, "primary.example": {}}
	discovered(t, d, "10.0.0.1:5432", "10.0.0.9:5432") // and not 10.0.0.5
	discovered(t, d, "10.0.0.1:5432")
}

func TestDNSMore(t *testing.T) {
	t.Parallel()
	z := &zone{hosts: map[string][]string{"readers.example": {"10.0.0.1", "10.0.0.2"}, "primary.example": {"10.0.0.2", "10.0.0.9"}}}
	d := &pgxgate.DNS{DSN: "host=readers.example port=7000 user=app sslmode=disable", More: []string{"primary.example"}, Resolver: z}
	discovered(t, d, "10.0.0.1:7000", "10.0.0.2:7000", "10.0.0.9:7000")
}

func TestDNSServices(t *testing.T) {
	t.Parallel()
	const name = "_postgresql._tcp.db.example"
	z := &zone{
		hosts: map[string][]string{"one.db.example.": {"10.0.0.1"}, "two.db.example.": {"10.0.0.2", "2001:db8::2"}, "more.example": {"10.0.0.3"}},
		srv:   map[string][]*net.SRV{name: {{Target: "one.db.example.", Port: 7001}, {Target: "two.db.example.", Port: 7002}, {Target: "one.db.example.", Port: 7003}}},
	}
	d := &pgxgate.DNS{DSN: "host=db.example port=7000 user=app sslmode=disable", SRV: name, More: []string{"more.example"}, Resolver: z}
	discovered(t, d, "10.0.0.1:7001", "10.0.0.1:7003", "10.0.0.2:7002", "10.0.0.3:7000", "[2001:db8::2]:7002")
	for name, records := range map[string][]*net.SRV{"has no records": {}, "look up gone.example.": {{Target: "gone.example.", Port: 1}}} {
		z.srv[d.SRV] = records
		if _, err := d.Discover(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want one that says %q", err, name)
		}
	}
	delete(z.srv, d.SRV)
	if _, err := d.Discover(t.Context()); err == nil || !strings.Contains(err.Error(), d.SRV) {
		t.Errorf("%v, want one that names %s", err, d.SRV)
	}
}

// Certificates are checked against names that were configured, never against one
// that the DNS has said.
func TestDNSCertificateNames(t *testing.T) {
	t.Parallel()
	const name = "_postgresql._tcp.db.example"
	z := &zone{
		hosts: map[string][]string{"db.example": {"10.0.0.1"}, "one.example.": {"10.0.0.2"}, "primary.example": {"10.0.0.3"}, "10.0.0.4": {"10.0.0.4"}},
		srv:   map[string][]*net.SRV{name: {{Target: "one.example.", Port: 5432}}},
	}
	for dsn, names := range map[string][]string{
		"host=db.example user=app sslmode=verify-full": {"db.example", "db.example", "primary.example"},
		"host=db.example user=app sslmode=require":     {"db.example", "db.example", "primary.example"}, // the name is sent
		"host=10.0.0.4 user=app sslmode=verify-full":   {"10.0.0.4", "10.0.0.4", "primary.example"},
		"host=10.0.0.4 user=app sslmode=require":       {"", "", ""}, // none was sent before
	} {
		host, service := &pgxgate.DNS{DSN: dsn, Resolver: z}, &pgxgate.DNS{DSN: dsn, SRV: name, More: []string{"primary.example"}, Resolver: z}
		var got []string
		for _, d := range []*pgxgate.DNS{host, service} {
			nodes, err := d.Discover(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range nodes {
				c := n.Pool.ConnConfig
				got = append(got, c.TLSConfig.ServerName)
				if c.TLSConfig.InsecureSkipVerify != strings.HasSuffix(dsn, "require") {
					t.Errorf("%s: verification has changed", dsn)
				}
			}
		}
		if !slices.Equal(got, names) {
			t.Errorf("%s: certificates are checked against %q, want %q", dsn, got, names)
		}
	}
	// A fallback is the same address with other TLS settings.
	d := &pgxgate.DNS{DSN: "host=db.example port=7000 user=app sslmode=allow", More: []string{"primary.example"}, Resolver: z}
	nodes := discovered(t, d, "10.0.0.1:7000", "10.0.0.3:7000")
	for i, want := range []string{"db.example", "primary.example"} {
		c := nodes[i].Pool.ConnConfig
		if f := c.Fallbacks; len(f) != 1 || c.TLSConfig != nil || f[0].Host != c.Host || f[0].Port != 7000 || f[0].TLSConfig.ServerName != want {
			t.Errorf("%s falls back to %+v", nodes[i].Name, f)
		}
	}
	// A name of the user's own stays.
	own, err := pgxpool.ParseConfig("host=db.example user=app sslmode=verify-full")
	if err != nil {
		t.Fatal(err)
	}
	own.ConnConfig.TLSConfig.ServerName = "internal.example"
	own.MaxConns = 7
	for _, n := range discovered(t, &pgxgate.DNS{Pool: own, More: []string{"primary.example"}, Resolver: z}, "10.0.0.1:5432", "10.0.0.3:5432") {
		if n.Pool.ConnConfig.TLSConfig.ServerName != "internal.example" || n.Pool.MaxConns != 7 || n.Pool == own {
			t.Errorf("%s: the user's configuration has changed", n.Name)
		}
	}
	if own.ConnConfig.Host != "db.example" {
		t.Error("the user's configuration leads elsewhere")
	}
}

func TestDNSRefusesConfigurations(t *testing.T) {
	t.Setenv("PGHOST", "/var/run/postgresql")
	own, err := pgxpool.ParseConfig("host=db.example user=app")
	if err != nil {
		t.Fatal(err)
	}
	z := &zone{hosts: map[string][]string{"a.example": {"10.0.0.1"}}, srv: map[string][]*net.SRV{"_pg": {{Target: "a.example", Port: 1}}}}
	for says, d := range map[string]*pgxgate.DNS{
		"both DNS.DSN and DNS.Pool": {DSN: "host=a.example", Pool: own},
		"no DNS.DSN":                {},
		"several hosts":             {DSN: "host=a.example,b.example user=app"},
		"several hosts in":          {DSN: "host=a.example,a.example port=1,2 user=app"},
		"DNS.DSN has a port":        {DSN: "host=a.example port=none"},
		// TLS settings would be lost without a word.
		"socket": {DSN: "user=app sslmode=verify-full", SRV: "_pg"},
	} {
		d.Resolver = z
		if nodes, err := d.Discover(t.Context()); !errors.Is(err, tidegate.ErrConfig) || nodes != nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "Discoverer") {
			t.Errorf("%v, %v, want an error that says %q", nodes, err, says)
		}
	}
}
