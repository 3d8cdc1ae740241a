package grpcgate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/grpcgate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

func position(cluster string, n uint64) tidegate.Token {
	return tidegate.NewToken(tidegate.Mark{Cluster: cluster, Epoch: tidegate.Epoch{System: 1, Line: 1}, Position: tidegate.At(n)})
}

func sign(t testing.TB, k *tidegate.Keyring, token tidegate.Token) string {
	t.Helper()
	return k.Sign(token)
}

type refusal struct {
	name   string
	values []string
	reason func(grpcgate.Refusals) uint64
	// merged is how many of them are taken all the same.
	merged uint64
}

func refusals(t testing.TB) []refusal {
	good := sign(t, ring(t, 1), position("main", 1<<50))
	at := func(away time.Duration, id string) string {
		return sign(t, ringAt(t, 1, id, away), position("main", 1<<50))
	}
	return []refusal{
		{"garbage", []string{"garbage"}, func(r grpcgate.Refusals) uint64 { return r.Malformed }, 0},
		{"empty", []string{""}, func(r grpcgate.Refusals) uint64 { return r.Malformed }, 0},
		{"forged", []string{sign(t, ring(t, 9), position("main", 1<<50))}, func(r grpcgate.Refusals) uint64 { return r.Signature }, 0},
		{"another key", []string{at(0, "k2")}, func(r grpcgate.Refusals) uint64 { return r.Key }, 0},
		{"expired", []string{at(-25*time.Hour, "k1")}, func(r grpcgate.Refusals) uint64 { return r.Expired }, 0},
		{"from the future", []string{at(time.Hour, "k1")}, func(r grpcgate.Refusals) uint64 { return r.Future }, 0},
		{"too large", []string{"tg1." + strings.Repeat("A", tidegate.MaxSignedBytes)}, func(r grpcgate.Refusals) uint64 { return r.TooLarge }, 0},
		{"foreign", []string{sign(t, ring(t, 1), position("elsewhere", 7))}, func(r grpcgate.Refusals) uint64 { return r.Foreign }, 0},
		{"too many", slices.Repeat([]string{good}, 9), func(r grpcgate.Refusals) uint64 { return r.TooMany }, 8},
		{"too many, joined", []string{strings.Repeat(good+", ", 8) + good}, func(r grpcgate.Refusals) uint64 { return r.TooMany }, 8},
		{"one of two", []string{"garbage", good}, func(r grpcgate.Refusals) uint64 { return r.Malformed }, 1},
	}
}

// spy returns a service that keeps the session of each call, before anything is
// read, and does nothing.
func spy(db *tidegatetest.Cluster) (*service, func() tidegate.Token) {
	got := make(chan tidegate.Token, 1)
	return &service{db: db, also: func(ctx context.Context, _ string) (string, error) {
		got <- tidegate.SessionFrom(ctx).Token()
		return "", nil
	}}, func() tidegate.Token { return <-got }
}

// What a request has brought in the header of httpgate is read as it is: several
// tokens, each with an ID behind it.
func TestTokensAsHTTPSendsThem(t *testing.T) {
	t.Parallel()
	svc, got := spy(lagging(t))
	server := newServer(t)
	conn := dial(t, false, svc, server.Options(), nil)
	value := sign(t, ring(t, 1), position("main", 5)) + ";AbCdEfGhIjKlMnOp, " + sign(t, ring(t, 1), position("main", 9)) + ";0123456789abcdef"
	ask(metadata.AppendToOutgoingContext(t.Context(), grpcgate.Key, value), t, conn, "look")
	if m := got().Marks(); len(m) != 1 || m[0].Position != tidegate.At(9) || m[0].CatchUp {
		t.Errorf("%+v; %+v", m, server.Stats())
	}
}

func TestServerRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range refusals(t) {
		for _, stream := range []bool{false, true} {
			svc, got := spy(lagging(t))
			server := newServer(t)
			conn := dial(t, false, svc, server.Options(), nil)
			ctx := t.Context()
			for _, v := range c.values {
				ctx = metadata.AppendToOutgoingContext(ctx, grpcgate.Key, v)
			}
			if stream {
				if err := bidi(ctx, conn, "look"); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			} else {
				ask(ctx, t, conn, "look")
			}
			checkCaughtUp(t, c, got())
			st := server.Stats()
			if c.reason(st.Refused) != 1 || st.Refused.Total() != 1 || st.CatchUps != 1 || st.Fresh != 0 {
				t.Errorf("%s: %+v", c.name, st)
			}
		}
	}
}

func checkCaughtUp(t *testing.T, c refusal, token tidegate.Token) {
	t.Helper()
	caught := false
	for _, m := range token.Marks() {
		caught = caught || m.Cluster == "main" && m.CatchUp
		if c.merged == 0 && !m.Position.IsZero() {
			t.Errorf("%s: a refused token advanced the session: %+v", c.name, m)
		}
	}
	if !caught {
		t.Errorf("%s: the session does not catch up: %+v", c.name, token.Marks())
	}
}

// A forged token shows nothing older and holds nobody up.
func TestForgedTokenIsNeverSilentlyFresh(t *testing.T) {
	t.Parallel()
	db := lagging(t)
	conn := dial(t, false, &service{db: db}, newServer(t).Options(), nil)
	ask(t.Context(), t, conn, "put:new")
	if v := ask(t.Context(), t, conn, "get"); v != "old" {
		t.Fatalf("without a token %q was read: nothing is proven here", v)
	}
	forged := sign(t, ring(t, 9), position("main", 1))
	if v := ask(metadata.AppendToOutgoingContext(t.Context(), grpcgate.Key, forged), t, conn, "get"); v != "new" {
		t.Errorf("read %q", v)
	}
}

// A client takes from a service only what verifies, and catches up for the rest.
func TestClientRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range refusals(t) {
		for _, where := range []string{"header", "trailer"} {
			svc := &service{also: func(ctx context.Context, _ string) (string, error) {
				md := metadata.MD{grpcgate.Key: c.values}
				if where == "header" {
					return "", grpc.SetHeader(ctx, md)
				}
				return "", grpc.SetTrailer(ctx, md)
			}}
			for _, stream := range []bool{false, true} {
				client := newClient(t)
				conn := dial(t, false, svc, nil, client.Options())
				ctx, s := session(t)
				if stream {
					if err := bidi(ctx, conn, "emit"); err != nil {
						t.Errorf("%s: %v", c.name, err)
					}
				} else {
					ask(ctx, t, conn, "emit")
				}
				checkCaughtUp(t, c, s.Token())
				st := client.Stats()
				if c.reason(st.Refused) != 1 || st.Refused.Total() != 1 || st.CatchUps != 1 || st.Merged != c.merged || st.Lost != 0 {
					t.Errorf("%s in the %s: %+v", c.name, where, st)
				}
			}
		}
	}
}

// All tokens of a call count, however they are spread over values.
func TestSeveralTokensAreMerged(t *testing.T) {
	t.Parallel()
	a, b, c := sign(t, ring(t, 1), position("main", 5)), sign(t, ring(t, 1), position("main", 9)), sign(t, ring(t, 1), position("side", 3))
	svc, got := spy(lagging(t))
	server := newServer(t, func(c *grpcgate.ServerConfig) { c.Clusters = []string{"main", "side"} })
	conn := dial(t, false, svc, server.Options(), nil)
	ctx := metadata.AppendToOutgoingContext(t.Context(), grpcgate.Key, b, grpcgate.Key, a+" ,"+c)
	ask(ctx, t, conn, "look")
	want := map[string]tidegate.Position{"main": tidegate.At(9), "side": tidegate.At(3)}
	for _, m := range got().Marks() {
		if m.Position != want[m.Cluster] || m.CatchUp {
			t.Errorf("%+v", m)
		}
		delete(want, m.Cluster)
	}
	if len(want) != 0 || server.Stats().Refused.Total() != 0 {
		t.Error(want, server.Stats())
	}
}

func TestMissingToken(t *testing.T) {
	t.Parallel()
	const method = "/grpc.testing.TestService/UnaryCall"
	policy := func(p grpcgate.Policy) func(context.Context, string) grpcgate.Policy {
		return func(_ context.Context, m string) grpcgate.Policy {
			if m != method {
				t.Errorf("asked for %q", m)
			}
			return p
		}
	}
	known := func(yes bool) func(context.Context, string) bool {
		return func(_ context.Context, m string) bool { return yes && m == method }
	}
	for _, c := range []struct {
		name   string
		change func(*grpcgate.ServerConfig)
		want   string
	}{
		{"nobody is known", func(*grpcgate.ServerConfig) {}, "old"},
		{"not known", func(c *grpcgate.ServerConfig) { c.Known = known(false) }, "old"},
		{"known", func(c *grpcgate.ServerConfig) { c.Known = known(true) }, "new"},
		{"catch up", func(c *grpcgate.ServerConfig) { c.Missing = policy(grpcgate.CatchUp) }, "new"},
		{"fresh, though known", func(c *grpcgate.ServerConfig) { c.Missing, c.Known = policy(grpcgate.Fresh), known(true) }, "old"},
	} {
		db := lagging(t)
		if err := db.Put(t.Context(), "k", "new"); err != nil {
			t.Fatal(err)
		}
		server := newServer(t, c.change)
		conn := dial(t, false, &service{db: db}, server.Options(), nil)
		if v := ask(t.Context(), t, conn, "get"); v != c.want {
			t.Errorf("%s: read %q, want %q", c.name, v, c.want)
		}
		st, caught := server.Stats(), uint64(0)
		if c.want == "new" {
			caught = 1
		}
		if st.CatchUps != caught || st.Fresh != 1-caught {
			t.Errorf("%s: %+v", c.name, st)
		}
	}
}

// A session that has outgrown a token is not silent about it, in either direction.
func TestOversizedToken(t *testing.T) {
	t.Parallel()
	outgrown := func(clusters int) tidegate.Token {
		var marks []tidegate.Mark
		for i := range 9 {
			marks = append(marks, tidegate.Mark{Cluster: fmt.Sprint("main", i%clusters), Epoch: tidegate.Epoch{System: 1, Line: uint64(i + 1)}, Position: tidegate.At(7)})
		}
		return tidegate.NewToken(marks...)
	}
	for _, clusters := range []int{1, 9} {
		catches := func(token tidegate.Token) bool {
			return token.CatchesUp() || slices.ContainsFunc(token.Marks(), func(m tidegate.Mark) bool { return m.CatchUp })
		}
		large, arrived := outgrown(clusters), make(chan tidegate.Token, 1)
		svc := &service{also: func(ctx context.Context, _ string) (string, error) {
			s := tidegate.SessionFrom(ctx)
			arrived <- s.Token()
			s.Merge(large)
			return "", nil
		}}
		client, err := grpcgate.NewClient(grpcgate.ClientConfig{Keyring: ring(t, 1), Clusters: []string{"main0"}})
		if err != nil {
			t.Fatal(err)
		}
		server := newServer(t, func(c *grpcgate.ServerConfig) { c.Clusters = []string{"main0"} })
		conn := dial(t, false, svc, server.Options(), client.Options())
		ctx, s := session(t)
		ask(ctx, t, conn, "grow")
		if got := <-arrived; !got.IsZero() || !catches(s.Token()) {
			t.Errorf("%d clusters: %+v arrived, back came %+v", clusters, got.Marks(), s.Token().Marks())
		}
		other := tidegate.NewSession(large)
		ask(tidegate.WithSession(t.Context(), other), t, conn, "grow")
		if got := <-arrived; !catches(got) {
			t.Errorf("%d clusters: what arrived is %+v", clusters, got.Marks())
		}
		if c, s := client.Stats(), server.Stats(); c.Refused.Total()+s.Refused.Total() != 0 {
			t.Errorf("%+v, %+v", c, s)
		}
	}
}

// A token that asks for all there is, wherever, is nobody's foreigner, and it goes back
// to the caller.
func TestTokenOfAllClusters(t *testing.T) {
	t.Parallel()
	arrived := make(chan tidegate.Token, 1)
	svc := &service{also: func(ctx context.Context, _ string) (string, error) {
		s := tidegate.SessionFrom(ctx)
		arrived <- s.Token()
		s.Merge(tidegate.CatchUpToken())
		return "", nil
	}}
	client, server := newClient(t), newServer(t)
	conn := dial(t, false, svc, server.Options(), client.Options())
	ctx, s := session(t)
	ask(ctx, t, conn, "all")
	if <-arrived; !s.Token().CatchesUp() {
		t.Error("the caller does not know of it")
	}
	s.Merge(position("elsewhere", 7))
	ask(ctx, t, conn, "all")
	if got := <-arrived; !got.CatchesUp() || server.Stats().Refused.Total() != 0 {
		t.Errorf("arrived %+v, %+v", got.Marks(), server.Stats())
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	keys := ring(t, 1)
	for _, c := range []struct {
		field    string
		keys     *tidegate.Keyring
		clusters []string
		most     int
	}{
		{"Keyring", nil, []string{"main"}, 0},
		{"Clusters", keys, nil, 0},
		{"Clusters", keys, make([]string, 9), 0},
		{"Clusters[1]", keys, []string{"main", ""}, 0},
		{"MaxTokens", keys, []string{"main"}, -1},
		{"MaxTokens", keys, []string{"main"}, 65},
	} {
		_, serr := grpcgate.NewServer(grpcgate.ServerConfig{Keyring: c.keys, Clusters: c.clusters, MaxTokens: c.most})
		_, cerr := grpcgate.NewClient(grpcgate.ClientConfig{Keyring: c.keys, Clusters: c.clusters, MaxTokens: c.most})
		for err, side := range map[error]string{serr: "ServerConfig.", cerr: "ClientConfig."} {
			if !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), side+c.field) {
				t.Errorf("%s%s: %v", side, c.field, err)
			}
		}
	}
	if grpcgate.CatchUp.String() != "catch-up" || grpcgate.Fresh.String() != "fresh" {
		t.Error("the words of the policies")
	}
}
