package pgxgate

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
)

// Config configures [Open].
type Config struct {
	// Cluster names the cluster in tokens: 1 to 32 bytes, the same on every
	// instance.
	Cluster string
	// Nodes lists the cluster's servers in any order. [DB.SetNodes] changes it.
	// Exactly one of Nodes and Discoverer must be set.
	Nodes []Node
	// Discoverer finds the nodes, at Open and again every DiscoverInterval.
	Discoverer Discoverer
	// DiscoverInterval is the time between two questions to the Discoverer, 1s to
	// 24h. Zero means 30s, and is all that there can be without a Discoverer.
	DiscoverInterval time.Duration
	// Zone is where this process is; reads prefer nodes of the same zone. "" means
	// no preference.
	Zone string
	// Wait is how long a causal or relaxed read may wait for a replica to
	// qualify, unless its class says otherwise. Zero means 20ms; negative means
	// not at all. Where a replica is expected to need longer a causal read may wait that
	// long, once after each write, rather than put its session on the primary: up to half a
	// second or 25 times as long, whichever is less, or five times as long if that is more.
	Wait time.Duration
	// ProofWait bounds the wait for the proof that the primary shows what a
	// session has seen on replicas. Zero means 1s. The caller's deadline clips it.
	ProofWait time.Duration
	// ProbeInterval is the time between two probes of a node that nobody asked
	// for. Zero means 100ms.
	ProbeInterval time.Duration
	// ProbeTimeout bounds one probe, connecting included. Zero means 1s.
	ProbeTimeout time.Duration
	// DemandRate bounds the probes per second of one node that reads and writes
	// of this process ask for. Zero means 250. Divide it by the number of
	// instances.
	DemandRate float64
	// DemandBurst is how many of them may follow each other at once. Zero means 8.
	DemandBurst int
	// AsyncCommits says whether commits can be acknowledged before they are
	// durable. Zero means AsyncAuto.
	AsyncCommits AsyncCommits
	// PrimaryReads bounds the connections on which Read handles use the primary:
	// the bulkhead between reads and writes. Zero means three quarters of the node's
	// MaxConns, at least one.
	PrimaryReads int32
	// LongestLag is how old a replica's state may be for a session that has neither
	// written nor read yet, or whose token has ended. Tokens have to live longer: see
	// [tidegate.KeyringConfig] and [tidegate.KeeperConfig], where the same value belongs.
	// Zero means one hour. Sessions with a mark read from whatever covers it.
	//
	// An age is proven against the primary. So a process that has not reached the primary
	// since it began, or has no primary among its Nodes, refuses sessions without a mark;
	// less than zero allows any age, and with it that somebody whose token has ended does
	// not see their own write.
	//
	// It is the outermost bound, too: a replica that is proven to be older, or whose age
	// could not be proven for so long while the primary answers, is left out, until it is
	// younger than half. Only relaxed classes with AnyStaleness use it all the same, and those
	// that say so ([tidegate.MinServing]). A class with a larger budget is refused.
	LongestLag time.Duration
	// MostLag is how many bytes of log a replica may be behind before it is left out in the
	// same way: for all of those reads, also those whose own budget or mark it would still
	// keep. Zero means any number.
	MostLag uint64
	// PrimaryWait is how long a write, and a read that belongs on the primary, may wait for
	// one while none is known, or none takes connections: during a failover. Zero means 1s;
	// negative means not at all. The caller's deadline clips it. Nothing that was sent is
	// sent again.
	PrimaryWait time.Duration
	// Foreign says what becomes of causal and strong reads whose session must see something
	// of another database system, or that is ahead of the cluster's history: after a
	// restore, or with a token from elsewhere. The zero value is [tidegate.ForeignPrimary].
	Foreign tidegate.ForeignPolicy
	// FallbackReads bounds the reads that are on the primary at one time for want of a
	// replica, so that strong reads find room among the PrimaryReads however far
	// replicas are behind. Others queue; see FallbackWait. Zero means two thirds of
	// PrimaryReads, at least one, so half of MaxConns. With more than the connections that
	// PrimaryReads is by default these are the only bound, and strong reads queue with the
	// others.
	//
	// That is the most. The bound follows how long this process's own work on the primary
	// takes: statements of Write handles on their own, COMMIT, and reads that are not there in
	// a replica's place. While reads fall back it shrinks when more than one of ten takes a
	// quarter longer than nine of ten did before, down to one read for a 32nd of the time,
	// and grows when they do not. Before, it is an eighth of the most, and at least one. A
	// process that has no such work has nothing to go by: its bound grows to the most.
	FallbackReads int32
	// FixedFallbacks keeps the bound at FallbackReads, whatever becomes of that work.
	FixedFallbacks bool
	// FallbackWait is how long such a read may queue, and at most half of what its
	// context leaves. Then it fails with a [tidegate.OverloadedError], or is answered by
	// a replica as its class says: see [tidegate.StaleWhenShed]. Zero means 200ms.
	FallbackWait time.Duration
	// FallbackShare is the part of the causal and relaxed reads that may want the primary
	// for want of a replica within the last FallbackWindow. Beyond it hooks are told
	// ([tidegate.FallbacksHigh]), and classes with [tidegate.ShedFirst] go without the
	// primary until it is less than half. At least 20 reads have to want it. Zero
	// means half; 1 or more, or less than zero, means never.
	FallbackShare float64
	// FallbackWindow is how long back that is counted, 100ms to 1h. Zero means 10s.
	FallbackWindow time.Duration
	// ReadUser and ReadPassword, if set, are the role that Read handles connect
	// as, on every node. It should only be able to read.
	ReadUser, ReadPassword string
	// Rollout says which reads are routed to replicas. The zero Rollout routes all.
	// [DB.SetRollout] changes it.
	Rollout tidegate.Rollout
	// Suspects makes writes be told of ([tidegate.Hook].Suspected) whose session has read
	// from a replica before. It costs a look at the stack for each such read and write: it
	// is for tests and trials.
	Suspects bool
	// Hooks are told of every decision on a read, every probe and every change.
	Hooks []tidegate.Hook
	// Logger gets changes of role, history and reachability. Nil means silence.
	Logger *slog.Logger
}

// Node is one server of the cluster. Exactly one of DSN and Pool must be set.
type Node struct {
	// Name is what decisions, logs and metrics call the node: valid UTF-8. "" means
	// host:port.
	Name string
	// DSN is a connection string or URL as pgxpool.ParseConfig takes it. No error
	// repeats any of it: it may hold a password.
	DSN string
	// Pool is the pool's configuration, made by pgxpool.ParseConfig. It is
	// copied. All hooks, tracers and limits are kept; MaxConns holds for the
	// node's write pool and for its read pool each.
	Pool *pgxpool.Config
	// Zone is where the node is, or "".
	Zone string
	// Weight is the node's share of reads relative to the others. Zero means 1.
	Weight int
	// Tags are what classes require or prefer ([tidegate.Require], [tidegate.Prefer]): at
	// most 16, each of at most 64 bytes of UTF-8. They concern the node as a replica only:
	// whoever is the primary serves what goes to the primary.
	Tags []string
	// Dedicated keeps the node's reads as a replica for classes that require or prefer one
	// of its Tags. Without it any class may use the node.
	Dedicated bool
}

// AsyncCommits says whether commits can be acknowledged before they are durable
// (synchronous_commit = off), anywhere in the cluster and by whomever.
//
// Where they can, a safe position of a commit is the end of everything inserted
// into the log, other transactions' open work included; a replica reaches that
// only when somebody flushes it. Where they cannot, the flushed position is
// safe, and reached at once.
type AsyncCommits uint8

const (
	// AsyncAuto looks at the settings of the server, the databases and the
	// roles, once a second, and at the setting in force at each commit captured
	// by this process. It treats the cluster as one with asynchronous commits from
	// the moment one is seen.
	// Sessions of other programs that switch the setting off for themselves are
	// not seen: declare AsyncPossible if there are any.
	AsyncAuto AsyncCommits = iota
	// AsyncAbsent declares that nobody commits asynchronously. Writes cost less then,
	// transactions above all. Where it is not true a session can miss its own write; a
	// default of the server, a database or a role that says otherwise is logged.
	AsyncAbsent
	// AsyncPossible declares that somebody may.
	AsyncPossible
)

// String returns "auto", "absent" or "possible".
func (a AsyncCommits) String() string {
	switch a {
	case AsyncAuto:
		return "auto"
	case AsyncAbsent:
		return "absent"
	case AsyncPossible:
		return "possible"
	}
	return "AsyncCommits(" + strconv.Itoa(int(a)) + ")"
}

func configError(field, format string, args ...any) error {
	return fmt.Errorf("%w: Config.%s %s", tidegate.ErrConfig, field, fmt.Sprintf(format, args...))
}

func (c *Config) validate() error {
	switch {
	case c.Discoverer == nil && len(c.Nodes) == 0:
		return configError("Nodes", "is empty; give at least one node, or a Discoverer")
	case c.Discoverer != nil && len(c.Nodes) != 0:
		return configError("Discoverer", "is set and so is Nodes; set one of them")
	case c.DiscoverInterval != 0 && c.Discoverer == nil:
		return configError("DiscoverInterval", "is %v and there is no Discoverer to ask; leave it out, or set Discoverer instead of Nodes", c.DiscoverInterval)
	case c.DiscoverInterval != 0 && (c.DiscoverInterval < time.Second || c.DiscoverInterval > 24*time.Hour):
		return configError("DiscoverInterval", "is %v; use 1s to 24h, or zero for 30s", c.DiscoverInterval)
	}
	if c.AsyncCommits > AsyncPossible {
		return configError("AsyncCommits", "is %d; use AsyncAuto, AsyncAbsent or AsyncPossible", c.AsyncCommits)
	}
	if c.FallbackReads < 0 {
		return configError("FallbackReads", "is %d; use a positive number of reads, or zero for the default", c.FallbackReads)
	}
	if c.PrimaryReads > 0 && c.FallbackReads > c.PrimaryReads {
		return configError("FallbackReads", "is %d, more than Config.PrimaryReads, which is %d; strong reads would queue behind reads that fall back", c.FallbackReads, c.PrimaryReads)
	}
	if c.PrimaryReads < 0 {
		return configError("PrimaryReads", "is %d; use a positive number of connections, or zero for the default", c.PrimaryReads)
	}
	if c.ReadPassword != "" && c.ReadUser == "" {
		return configError("ReadUser", "is empty although ReadPassword is set; name the role")
	}
	return nil
}

// poolConfig returns the node's own copy of its pool configuration.
func (n *Node) poolConfig(i int) (cfg *pgxpool.Config, err error) {
	field := fmt.Sprintf("Nodes[%d]", i)
	from := field + ".DSN"
	switch {
	case !utf8.ValidString(n.Name):
		return nil, configError(field+".Name", "is %q, which is not valid UTF-8; metrics and JSON could not tell it from others", n.Name)
	case n.DSN != "" && n.Pool != nil:
		return nil, configError(field, "has both DSN and Pool; set one of them")
	case n.Pool != nil:
		cfg, from = n.Pool.Copy(), field+".Pool"
	case n.DSN == "":
		return nil, configError(from, "is empty; give a connection string, or set Pool")
	default:
		if cfg, err = pgxpool.ParseConfig(n.DSN); err != nil {
			if n.Name != "" {
				from += fmt.Sprintf(" (of node %q)", n.Name)
			}
			return nil, dsnError(from, err)
		}
	}
	if !utf8.ValidString(n.name(cfg)) {
		return nil, configError(from, "names a host that is not valid UTF-8, and so would the node be; correct the host, or set Name")
	}
	return cfg, channelBinding(from, cfg)
}

// dsnHints say what to check in a connection string, by how pgx begins to say
// what is wrong with it.
var dsnHints = []struct{ says, check string }{
	{"failed to parse as URL", "is no valid URL; check it, percent-encoding in the user and the password first"},
	{"failed to parse as keyword/value", "is no list of keyword=value; check it, quotes and backslashes first"},
	{"failed to read service", "names a service that cannot be read; check service and servicefile"},
	{"invalid port", "has a port that is none; check port, a number from 1 to 65535"},
	{"could not match", "has more ports than one and not as many as hosts; check host and port"},
	{"invalid connect_timeout", "has a connect_timeout that is none; check it, a number of seconds"},
	{"failed to configure TLS", "has TLS settings that do not work; check sslmode, sslrootcert, sslcert, sslkey and sslpassword"},
	{"cannot parse pool_", "has a setting of the pool that cannot be read; check all that begin with pool_"},
	{"pool_max_conns", "has too small a pool; check pool_max_conns, 1 or more"},
}

// dsnError says that a connection string cannot be used, and nothing that stands
// in it, as pgx's own errors do: where a password begins and ends cannot be told
// in a string that could not be read. Of the cause it wraps what has a fixed text.
func dsnError(field string, err error) error {
	check := "cannot be read; check each setting against what pgxpool.ParseConfig takes"
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		bare := *parse
		bare.ConnString = ""
		_, says, _ := strings.Cut(bare.Error(), "``: ")
		for _, h := range dsnHints {
			if strings.HasPrefix(says, h.says) {
				check = h.check
			}
		}
	}
	for _, cause := range []error{fs.ErrNotExist, fs.ErrPermission} {
		if errors.Is(err, cause) {
			return fmt.Errorf("%w (%w)", configError(field, "%s", check), cause)
		}
	}
	return configError(field, "%s", check)
}

// channelBinding refuses what pgx could not do on a wrapped connection: it looks
// for the TLS connection to bind to and would not find it.
func channelBinding(field string, cfg *pgxpool.Config) error {
	if cfg.ConnConfig.ChannelBinding == "require" {
		return configError(field, "asks for channel_binding=require, which does not work on connections that take positions; use prefer, which authenticates without binding then")
	}
	return nil
}

func (n *Node) name(cfg *pgxpool.Config) string {
	if n.Name != "" {
		return n.Name
	}
	return net.JoinHostPort(cfg.ConnConfig.Host, strconv.Itoa(int(cfg.ConnConfig.Port)))
}
