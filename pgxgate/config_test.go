package pgxgate_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// refusals returns the errors of Open and of DNS for a connection string.
func refusals(t *testing.T, dsn string) map[string]error {
	t.Helper()
	db, err := pgxgate.Open(t.Context(), pgxgate.Config{Cluster: "main", Nodes: []pgxgate.Node{{DSN: "host=db1 user=app"}, {Name: "db2", DSN: dsn}}})
	if err == nil {
		db.Close()
	}
	_, found := (&pgxgate.DNS{DSN: dsn, Resolver: &zone{}}).Discover(t.Context())
	return map[string]error{`Config.Nodes[1].DSN (of node "db2") `: err, "Config.Discoverer: DNS.DSN ": found}
}

// However a connection string is broken, errors do not repeat any of it.
func TestErrorsHoldNoPassword(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for dsn, check := range map[string]string{
		"host=db1 password = hunter2 port=abc":                   "check port,",
		`host=db1 password=hun\ ter2hunter2 port=abc`:            "check port,",
		`host=db1 password='x\'hunter2' port=abc`:                "check port,",
		"host=db1 password='hunter2 port=1":                      "quotes and backslashes",
		"host=db1 hunter2":                                       "quotes and backslashes",
		"postgres://app:hunter2%zz@db1/shop":                     "percent-encoding",
		"postgres://app:x/hunter2@db1/shop":                      "",
		"postgres://db1:hunter2/shop":                            "",
		"host=db1 port=1,2 password = hunter2":                   "check host and port",
		"host=db1 password = hunter2 connect_timeout=soon":       "check it, a number of seconds",
		"host=db1 connect_timeout=hunter2":                       "check it, a number of seconds",
		"host=db1 password = hunter2 sslmode=maybe":              "check sslmode,",
		"host=db1 password = x sslmode=hunter2":                  "check sslmode,",
		"host=db1 password = hunter2 service=gone":               "check service",
		"host=db1 password = hunter2 target_session_attrs=first": "check each setting",
		"host=db1 target_session_attrs=hunter2":                  "check each setting",
		"host=db1 channel_binding=hunter2":                       "check each setting",
		"host=db1 password = hunter2 pool_max_conns=many":        "begin with pool_",
		"host=db1 password = hunter2 pool_max_conns=0":           "check pool_max_conns",
		"host=db1 pool_max_conn_lifetime=hunter2":                "begin with pool_",
		"host=db1 default_query_exec_mode=hunter2":               "check each setting",
	} {
		for names, err := range refusals(t, dsn) {
			if !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), names) || !strings.Contains(err.Error(), check) {
				t.Errorf("%s: %v, want an error that says %q and %q", dsn, err, names, check)
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				if strings.Contains(e.Error(), secret) || strings.Contains(e.Error(), "ter2") || strings.Contains(e.Error(), "db1") {
					t.Errorf("%s: the error repeats some of it: %v", dsn, e)
				}
			}
			var parse *pgconn.ParseConfigError
			if errors.As(err, &parse) {
				t.Errorf("%s: pgx's error, which repeats it, can be reached", dsn)
			}
		}
	}
}

// That a file is missing can be told, and which one is not said.
func TestErrorsOfFilesInConnectionStrings(t *testing.T) {
	t.Parallel()
	dsn := "host=db1 sslmode=verify-full sslrootcert=" + t.TempDir() + "/hunter2"
	for names, err := range refusals(t, dsn) {
		if !errors.Is(err, tidegate.ErrConfig) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), names) {
			t.Errorf("%v, want one that wraps %v", err, fs.ErrNotExist)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error repeats some of it: %v", err)
		}
	}
}

// A name that metrics cannot show is refused, wherever it comes from.
func TestNodeNamesAreUTF8(t *testing.T) {
	t.Parallel()
	open := func(nodes ...pgxgate.Node) error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nobody has to be asked
		db, err := pgxgate.Open(ctx, pgxgate.Config{Cluster: "main", Nodes: nodes})
		if err == nil {
			db.Close()
		}
		return err
	}
	named := nowhere(t, "r\xff")
	odd := nowhere(t, "")
	odd[0].Pool.ConnConfig.Host = "db\xff"
	for says, n := range map[string]pgxgate.Node{
		"Config.Nodes[1].Name ": named[0],
		"Config.Nodes[1].Pool ": odd[0],
		"Config.Nodes[1].DSN ":  {DSN: "host=db\xff user=app"},
	} {
		if err := open(nowhere(t, "a")[0], n); !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%v, want one that says %q", err, says)
		}
	}
	odd[0].Name = "r\ufffd \u00e9"
	if err := open(odd...); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's: the name is valid", err)
	}
}
