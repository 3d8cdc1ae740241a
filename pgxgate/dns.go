package pgxgate

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DNS is a [Discoverer] that makes a node of every address of a name. It serves
// one DB; use its address.
//
// The roles of the addresses are found out by asking them, so the name may lead
// to replicas, to the primary, or to both: but a cluster whose primary is not
// among the nodes has no writes. A name that answers with one of several hosts in
// turn, as a provider's reader endpoint can, brings in each host when it is first
// seen; give it the Patience to see each of them again.
type DNS struct {
	// DSN is the connection string of every node. Its host is the name to look up,
	// and the one that certificates are checked against. Exactly one of DSN and Pool
	// must be set.
	DSN string
	// Pool is the pool's configuration of every node, made by pgxpool.ParseConfig.
	Pool *pgxpool.Config
	// SRV, if set, is the full name of SRV records, such as
	// "_postgresql._tcp.db.example". Their targets and ports are looked up instead
	// of the connection's host and port. Certificates are checked against that host
	// all the same: an answer of the DNS must not say whom to trust.
	SRV string
	// More are names that are looked up beside the host, each with its own
	// addresses: the primary's, if the host leads only to replicas. They have the
	// host's port; certificates there are checked against the name itself.
	More []string
	// Patience is how many answers in a row lack an address when its node leaves.
	// Zero means 3.
	Patience int
	// Resolver looks names up. Nil means net.DefaultResolver.
	Resolver Resolver

	mu    sync.Mutex
	known map[string]*address
}

// Resolver is the part of [net.Resolver] that [DNS] needs.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, addrs []*net.SRV, err error)
}

// address is a node that a name has led to.
type address struct {
	node   Node
	missed int
}

// target is a host and port to look up.
type target struct {
	host string
	port uint16
	// own tells that certificates are checked against host, not the base's.
	own bool
}

// place is an address that a target has.
type place struct {
	target
	ip string
}

// name is what the node there is called.
func (p place) name() string { return net.JoinHostPort(p.ip, strconv.Itoa(int(p.port))) }

// Discover implements [Discoverer]. It fails when a name cannot be looked up, or
// none has an address: then nothing is known, and no node must leave for that.
func (d *DNS) Discover(ctx context.Context) ([]Node, error) {
	base, err := d.base()
	if err != nil {
		return nil, err
	}
	targets, err := d.targets(ctx, base)
	if err != nil {
		return nil, err
	}
	places, err := d.places(ctx, targets)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[string]*address{}
	}
	found := map[string]bool{}
	for _, p := range places {
		name := p.name()
		found[name] = true
		if d.known[name] == nil {
			// The same pool configuration every time: that keeps the node the same.
			d.known[name] = &address{node: Node{Name: name, Pool: p.config(base)}}
		}
	}
	return d.settle(found), nil
}

// places looks up the addresses of the targets.
func (d *DNS) places(ctx context.Context, targets []target) (all []place, err error) {
	for _, t := range targets {
		addrs, err := d.resolver().LookupNetIP(ctx, "ip", t.host)
		if err != nil {
			return nil, fmt.Errorf("pgxgate: look up %s: %w", t.host, err)
		}
		for _, a := range addrs {
			all = append(all, place{t, a.Unmap().String()})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("pgxgate: %s has no address", targets[0].host)
	}
	return all, nil
}

// settle returns the nodes that are there, and forgets those that were missing too
// often. d.mu is held.
func (d *DNS) settle(found map[string]bool) (nodes []Node) {
	patience := d.Patience
	if patience <= 0 {
		patience = 3
	}
	for name, a := range d.known {
		switch {
		case found[name]:
			a.missed = 0
		case a.missed+1 >= patience:
			delete(d.known, name)
			continue
		default:
			a.missed++
		}
		nodes = append(nodes, a.node)
	}
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

func (d *DNS) resolver() Resolver {
	if d.Resolver != nil {
		return d.Resolver
	}
	return net.DefaultResolver
}

// base returns the configuration that every node starts from.
func (d *DNS) base() (cfg *pgxpool.Config, err error) {
	switch {
	case d.DSN != "" && d.Pool != nil:
		return nil, configError("Discoverer", "has both DNS.DSN and DNS.Pool; set one of them")
	case d.DSN == "" && d.Pool == nil:
		return nil, configError("Discoverer", "has no DNS.DSN; give the connection string of the nodes")
	case d.Pool != nil:
		cfg = d.Pool
	default:
		if cfg, err = pgxpool.ParseConfig(d.DSN); err != nil {
			return nil, dsnError("Discoverer: DNS.DSN", err)
		}
	}
	c := cfg.ConnConfig
	// TLS settings do not hold for a socket: what has them would lose them.
	if network, _ := pgconn.NetworkAddress(c.Host, c.Port); network == "unix" {
		return nil, configError("Discoverer", "leads to the socket %s; give DNS.DSN the name of a host, with DNS.SRV too", c.Host)
	}
	for _, f := range c.Fallbacks {
		if f.Host != c.Host || f.Port != c.Port {
			return nil, configError("Discoverer", "has several hosts in DNS.DSN; give one name, and the others in DNS.More")
		}
	}
	return cfg, nil
}

func (d *DNS) targets(ctx context.Context, base *pgxpool.Config) ([]target, error) {
	var all []target
	if d.SRV == "" {
		all = append(all, target{host: base.ConnConfig.Host, port: base.ConnConfig.Port})
	} else {
		// Empty service and protocol: the name is looked up as it is.
		_, records, err := d.resolver().LookupSRV(ctx, "", "", d.SRV)
		if err != nil {
			return nil, fmt.Errorf("pgxgate: look up %s: %w", d.SRV, err)
		}
		for _, r := range records {
			all = append(all, target{host: r.Target, port: r.Port})
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("pgxgate: %s has no records", d.SRV)
		}
	}
	for _, host := range d.More {
		all = append(all, target{host, base.ConnConfig.Port, true})
	}
	return all, nil
}

// config returns the configuration of a pool that leads there.
func (p place) config(base *pgxpool.Config) *pgxpool.Config {
	cfg := base.Copy()
	c := cfg.ConnConfig
	name := func(t *tls.Config) {
		if p.own && t != nil && t.ServerName == base.ConnConfig.Host {
			t.ServerName = p.host
		}
	}
	c.Host, c.Port = p.ip, p.port
	name(c.TLSConfig)
	for _, f := range c.Fallbacks {
		f.Host, f.Port = p.ip, p.port
		name(f.TLSConfig)
	}
	return cfg
}

var _ Discoverer = (*DNS)(nil)
