package redisgate_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tidegatedb/tidegate"
)

func BenchmarkRequest(b *testing.B) {
	ctx := b.Context()
	n := start(ctx, b)
	save(ctx, b, n.store, "warm", 1) // the connection and the scripts are there
	count := &trips{}
	n.client.AddHook(count)
	for _, name := range []string{"reads", "writes", "writesThenReads", "readsThenWrites"} {
		b.Run(name, func(b *testing.B) {
			k := newKeeper(b, n.store, patience/2)
			position := 0
			before := count.n.Load()
			for b.Loop() {
				position++
				s := k.Open(name)
				if err := requests[name].do(ctx, s, position); err != nil {
					b.Fatal(err)
				}
				if err := s.Save(ctx); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(count.n.Load()-before)/float64(b.N), "trips/op")
		})
	}
}

func BenchmarkStore(b *testing.B) {
	ctx := b.Context()
	n := start(ctx, b)
	save(ctx, b, n.store, "k", 1)
	b.Run("Ping", func(b *testing.B) { // what a round trip costs
		for b.Loop() {
			if err := n.client.Ping(ctx).Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Load", func(b *testing.B) {
		for b.Loop() {
			load(ctx, b, n.store, "k", "")
		}
	})
	b.Run("LoadNew", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			load(ctx, b, n.store, fmt.Sprint("new ", i), "")
		}
	})
	b.Run("Save", func(b *testing.B) {
		birth, last := load(ctx, b, n.store, "k", "").Birth, "1"
		for i := 0; b.Loop(); i++ {
			name := fmt.Sprint("name ", i)
			s := tidegate.Saving{Birth: birth, Add: tidegate.KeptToken{Name: name, Token: token(i)}, Forget: []string{last}}
			if err := n.store.Save(ctx, "k", s); err != nil {
				b.Fatal(err)
			}
			last = name
		}
	})
}

// What it costs the server to learn its history in each script: the load's script as it is,
// against the same with an answer of INFO that was made before. Both run a thousand
// times inside one script, side by side, so that neither the network nor what else the
// machine does is in the ratio.
func BenchmarkHistory(b *testing.B) {
	ctx := b.Context()
	n := start(ctx, b)
	var source string
	for _, name := range []string{"use.lua", "load.lua"} {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		source += string(text)
	}
	const asks = "redis.call('INFO', 'replication')"
	if strings.Count(source, asks) != 1 {
		b.Fatalf("the script has %q %d times", asks, strings.Count(source, asks))
	}
	thousand := func(source string) *redis.Script {
		return redis.NewScript("local said = redis.call('INFO', 'replication')\nlocal function once()\n" + source +
			"\nend\nfor i = 1, 1000 do local answer = once() if answer.err then return answer end end")
	}
	asking, knowing := thousand(source), thousand(strings.Replace(source, asks, "said", 1))
	save(ctx, b, n.store, "k", 1)
	keys := n.client.Keys(ctx, "*").Val() // an entry, and what is known of the server
	if len(keys) != 2 {
		b.Fatalf("keys %q", keys)
	}
	if strings.HasSuffix(keys[0], "}") {
		keys[0], keys[1] = keys[1], keys[0]
	}
	var spent [2]float64
	for b.Loop() {
		for i, s := range []*redis.Script{asking, knowing} {
			begun := b.Elapsed()
			if err := s.Run(ctx, n.client, keys, 3_600_000, "fresh", "").Err(); err != nil && err != redis.Nil {
				b.Fatal(err)
			}
			spent[i] += (b.Elapsed() - begun).Seconds()
		}
	}
	perCall := func(s float64) float64 { return s / float64(b.N) / 1000 * 1e6 }
	b.ReportMetric(perCall(spent[0]), "us/asking")
	b.ReportMetric(perCall(spent[1]), "us/knowing")
	b.ReportMetric(spent[0]/spent[1], "ratio")
	b.ReportMetric(0, "ns/op")
}
