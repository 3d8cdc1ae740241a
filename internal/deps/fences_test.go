package deps

import (
	"fmt"
	"slices"
	"testing"
)

// A fence is what the packages in a folder do not import. The linter's
// configuration has the same ones: change both.
type fence struct {
	dir     string   // the folder, and all below it unless only is set
	only    bool     // just the folder itself
	code    bool     // just what is not a test
	except  []string // folders that are free of it
	deny    []string // these packages, and all below them
	allow   []string // but these
	because string
}

var fences = []fence{
	{
		dir: ".", only: true, code: true,
		deny: []string{own}, allow: []string{own + "/internal/mono"},
		because: "the root package is the vocabulary that the others are built with",
	},
	{
		dir: "internal/mono", code: true,
		deny:    []string{own},
		because: "internal/mono is the bottom",
	},
	{
		dir:     "internal/freshness",
		deny:    []string{own + "/internal/route", own + "/engine", "database"},
		because: "the watcher owns facts: policy is the router's, the dialect is the engine's",
	},
	{
		dir:     "internal/route",
		deny:    []string{own + "/engine", "net", "database", "crypto", "encoding/base64"},
		because: "the router never dials and never parses a token",
	},
	{
		dir:     "engine",
		deny:    []string{own + "/httpgate", own + "/eventgate", own + "/admin", own + "/tidegatetest", "github.com/jackc"},
		because: "carriers, displays and adapters are built on the engine",
	},
	{
		dir: "httpgate", code: true,
		deny:    []string{own + "/internal", own + "/engine", own + "/admin", own + "/eventgate", "database"},
		because: "a carrier moves tokens, and knows no database",
	},
	{
		dir: "eventgate", code: true,
		deny:    []string{own + "/internal", own + "/engine/enginetest", own + "/admin", own + "/httpgate", "database", "net"},
		because: "an envelope knows no transport, and a job of the database what it says of itself",
	},
	{
		dir: "grpcgate", code: true,
		deny:    []string{own + "/internal", own + "/engine", own + "/admin", own + "/httpgate", own + "/eventgate", "database"},
		because: "a carrier moves tokens, and knows no database",
	},
	{
		dir: ".", except: []string{"grpcgate"},
		deny:    []string{own + "/grpcgate", "google.golang.org/grpc"},
		because: "gRPC is the business of grpcgate",
	},
	{
		dir: "admin", code: true,
		deny:    []string{own + "/internal", own + "/engine/enginetest", "database"},
		because: "the display shows what the engine tells everybody",
	},
	{
		dir: ".", code: true, except: []string{"tidegatetest"},
		deny:    []string{own + "/tidegatetest"},
		because: "only tests use the helpers for tests",
	},
	{
		dir:     "promgate",
		deny:    []string{own + "/pgxgate", own + "/internal"},
		because: "metrics are made of what the hook tells everybody, whatever the adapter is",
	},
	{
		dir: ".", except: []string{"promgate"},
		deny:    []string{own + "/promgate", "github.com/prometheus"},
		because: "metrics hang off the core's hook",
	},
	{
		dir: "redisgate", code: true,
		deny:    []string{own + "/internal", own + "/engine", own + "/admin", own + "/httpgate", own + "/eventgate", "database"},
		because: "a store keeps tokens, and knows neither what is in them nor who carries them",
	},
	{
		dir: ".", except: []string{"redisgate", "cmd/tidegate/internal/lab/carrier"},
		deny:    []string{own + "/redisgate", "github.com/redis"},
		because: "Redis is the business of redisgate, and of the lab that keeps sessions in it",
	},
	{
		dir: ".", code: true, except: []string{"cmd", "internal/redisserver"},
		deny:    []string{own + "/internal/redisserver"},
		because: "only tests and the lab start servers",
	},
	{
		dir: ".", code: true, except: []string{"internal/storetest"},
		deny:    []string{own + "/internal/storetest"},
		because: "only tests use the suite for stores",
	},
	{
		dir: ".", code: true, except: []string{"cmd", "internal/pgcluster", "test/robustness"},
		deny:    []string{own + "/internal/pgcluster"},
		because: "only tests and the lab start database servers",
	},
	{
		dir: ".", code: true, except: []string{"cmd", "internal/pgcluster", "internal/netfault", "test/robustness"},
		deny:    []string{own + "/internal/netfault"},
		because: "only tests and the lab break the network",
	},
	{
		dir: ".", except: []string{"pgxgate", "cmd", "test"},
		deny:    []string{"github.com/jackc"},
		because: "pgx is the business of pgxgate, the command line tool and the compatibility tests",
	},
	{
		dir: ".", except: []string{"cmd"},
		deny:    []string{own + "/cmd"},
		because: "nothing builds on the command line tool",
	},
	{
		dir: ".", except: []string{"tools"},
		deny:    []string{own + "/tools"},
		because: "the tools are not published",
	},
}

// holds reports whether the fence is about the file.
func (f fence) holds(src source) bool {
	if f.code && src.test || f.only && src.dir != f.dir {
		return false
	}
	if slices.ContainsFunc(f.except, func(dir string) bool { return within(src.dir, dir) }) {
		return false
	}
	return f.dir == "." || within(src.dir, f.dir)
}

// stops reports whether the fence is against the package.
func (f fence) stops(path string) bool {
	in := func(base string) bool { return within(path, base) }
	return slices.ContainsFunc(f.deny, in) && !slices.ContainsFunc(f.allow, in)
}

func broken(sources []source) []string {
	var problems []string
	for _, src := range sources {
		for _, fence := range fences {
			for _, path := range src.imports {
				if fence.holds(src) && fence.stops(path) {
					problems = append(problems, fmt.Sprintf("%s imports %s: %s", src.file, path, fence.because))
				}
			}
		}
	}
	return problems
}

func TestFences(t *testing.T) {
	t.Parallel()
	for _, problem := range broken(readTree(t).sources) {
		t.Error(problem)
	}
}

func TestFencesStopPlantedImports(t *testing.T) {
	t.Parallel()
	for _, planted := range []struct {
		dir     string
		test    bool
		imports string
		stopped bool
	}{
		{".", false, own + "/engine", true},
		{".", false, own + "/internal/route", true},
		{".", false, own + "/internal/mono", false},
		{".", true, own + "/engine/enginetest", false},
		{".", true, own + "/cmd/tidegate", true},
		{"internal/mono", false, own, true},
		{"internal/freshness", false, own, false},
		{"internal/freshness", false, own + "/internal/route", true},
		{"internal/freshness", true, own + "/engine/enginetest", true},
		{"internal/freshness", false, "database/sql", true},
		{"internal/route", false, own + "/internal/freshness", false},
		{"internal/route", true, own + "/engine", true},
		{"internal/route", false, "net", true},
		{"internal/route", false, "net/http", true},
		{"internal/route/sub", false, "crypto/hmac", true},
		{"internal/routes", false, "net", false},
		{"engine", false, own + "/internal/route", false},
		{"engine", false, own + "/admin", true},
		{"engine/enginetest", true, "github.com/jackc/pgx/v5", true},
		{"engine", true, own + "/internal/pgcluster", false},
		{"engine", false, own + "/internal/pgcluster", true},
		{"engine", true, own + "/internal/netfault", false},
		{"engine", false, own + "/internal/netfault", true},
		{"internal/pgcluster", false, own + "/internal/netfault", false},
		{"pgxgate", false, own + "/internal/pgcluster", true},
		{"pgxgate", false, "github.com/jackc/pgx/v5/pgxpool", false},
		{"pgxgate", true, own + "/cmd/tidegate/internal/lab", true},
		{"httpgate", false, own, false},
		{"httpgate", false, own + "/engine", true},
		{"httpgate", true, own + "/tidegatetest", false},
		{"eventgate", false, own + "/internal/mono", true},
		{"eventgate", false, own + "/engine", false},
		{"eventgate", false, "net/http", true},
		{"grpcgate", false, "google.golang.org/grpc", false},
		{"grpcgate", false, own + "/httpgate", true},
		{"engine", true, "google.golang.org/grpc/metadata", true},
		{"admin", false, own + "/engine", false},
		{"admin", false, own + "/internal/freshness", true},
		{"admin", false, own + "/engine/enginetest/fake", true},
		{"admin", true, own + "/engine/enginetest/fake", false},
		{"admin", false, "database/sql", true},
		{"admin", false, "github.com/jackc/pgx/v5", true},
		{"tidegatetest", false, own + "/engine/enginetest/fake", false},
		{"tidegatetest", true, own + "/tidegatetest", false},
		{"tidegatetest", true, "github.com/jackc/pgx/v5", true},
		{"engine", true, own + "/tidegatetest", true},
		{"httpgate", true, own + "/tidegatetest", false},
		{"httpgate", false, own + "/tidegatetest", true},
		{"promgate", false, "github.com/prometheus/client_golang/prometheus", false},
		{"promgate", false, own + "/engine", false},
		{"promgate", true, own + "/pgxgate", true},
		{"promgate", true, "github.com/jackc/pgx/v5", true},
		{"promgate", false, own + "/internal/route", true},
		{"pgxgate", false, own + "/promgate", true},
		{"pgxgate", false, "github.com/prometheus/client_golang/prometheus", true},
		{"admin", true, own + "/promgate", true},
		{"redisgate", false, "github.com/redis/go-redis/v9", false},
		{"redisgate", false, own, false},
		{"redisgate", false, own + "/httpgate", true},
		{"redisgate", false, own + "/internal/redisserver", true},
		{"redisgate", true, own + "/internal/redisserver", false},
		{"redisgate", true, own + "/internal/storetest", false},
		{"httpgate", true, own + "/redisgate", true},
		{"httpgate", true, "github.com/redis/go-redis/v9", true},
		{".", true, own + "/internal/storetest", false},
		{".", false, own + "/internal/storetest", true},
		{"cmd/tidegate/internal/lab", false, own + "/internal/redisserver", false},
		{"cmd/tidegate/internal/lab/carrier", false, own + "/redisgate", false},
		{"cmd/tidegate/internal/lab/strategy", false, own + "/redisgate", true},
		{"cmd/tidegate/internal/lab", false, own + "/internal/pgcluster", false},
		{"cmd/tidegate/internal/lab", false, "github.com/jackc/pgx/v5", false},
		{"cmd/tidegate", false, own + "/tools/modcheck", true},
		{"tools/modcheck", false, "github.com/jackc/pgx/v5", true},
	} {
		src := source{file: planted.dir + "/planted.go", dir: planted.dir, test: planted.test, imports: []string{planted.imports}}
		if got := broken([]source{src}); len(got) > 0 != planted.stopped {
			t.Errorf("%s (test: %v) importing %s: stopped is not %v: %q", planted.dir, planted.test, planted.imports, planted.stopped, got)
		}
	}
}
