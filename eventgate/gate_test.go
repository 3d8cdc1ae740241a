package eventgate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/eventgate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

// A consumer that takes the token out sees what the event is about, and one that
// does not is stale: the control.
func TestEventMakesItsConsumerSeeTheWrite(t *testing.T) {
	t.Parallel()
	for _, trusted := range []bool{false, true} {
		g := gate(t, fresh, func(c *eventgate.Config) {
			if c.TrustedBroker = trusted; trusted {
				c.Keyring = nil
			}
		})
		db := lagging(t)
		producer := session(t)
		put(producer, t, db, "new")
		db.StaleUnlessRouted("k")
		event := map[string]string{}
		if err := g.Inject(producer, eventgate.InMap(event, eventgate.Header)); err != nil {
			t.Fatal(err)
		}

		control, err := g.Extract(t.Context(), eventgate.InMap(map[string]string{}, eventgate.Header))
		if err != nil {
			t.Fatal(err)
		}
		if v := get(control, t, db); v != "old" {
			t.Errorf("trusted %v: without the token %q was read: nothing is proven here", trusted, v)
		}
		ctx, err := g.Extract(t.Context(), eventgate.InMap(event, eventgate.Header))
		if err != nil {
			t.Fatal(err)
		}
		tidegatetest.Covers(t, tidegate.SessionFrom(ctx).Token(), tidegate.SessionFrom(producer))
		if v := get(ctx, t, db); v != "new" {
			t.Errorf("trusted %v: with the token %q was read", trusted, v)
		}
		if s := g.Stats(); s.Injected != 1 || s.Merged != 1 || s.Missing != 1 || s.Fresh != 1 || s.CatchUps != 0 || s.Refused.Total() != 0 {
			t.Errorf("trusted %v: %+v", trusted, s)
		}
	}
}

// Several events ask for all that any of them does, and what the consumer's session
// had before stays.
func TestEventsMergeIntoTheSession(t *testing.T) {
	t.Parallel()
	g := gate(t)
	at := func(cluster string, n uint64) *tidegate.Session {
		return tidegate.NewSession(tidegate.NewToken(tidegate.Mark{Cluster: cluster, Epoch: tidegate.Epoch{System: 1, Line: 1}, Position: tidegate.At(n)}))
	}
	own := at("own", 5)
	ctx := tidegate.WithSession(t.Context(), own)
	var events []eventgate.Carrier
	for _, s := range []*tidegate.Session{at("main", 7), at("main", 9), at("main", 8), at("other", 3)} {
		var text string
		c := eventgate.InString(&text)
		if err := g.InjectSession(s, c); err != nil {
			t.Fatal(err)
		}
		events = append(events, c)
	}
	for _, several := range [][]eventgate.Carrier{events[:3], events[3:]} {
		got, err := g.Extract(ctx, several...)
		if err != nil {
			t.Fatal(err)
		}
		if tidegate.SessionFrom(got) != own {
			t.Fatal("the consumer's session was replaced")
		}
	}
	want := map[string]uint64{"own": 5, "main": 9, "other": 3}
	for _, m := range own.Token().Marks() {
		if m.Position != tidegate.At(want[m.Cluster]) || m.CatchUp {
			t.Errorf("%+v", m)
		}
		delete(want, m.Cluster)
	}
	if len(want) != 0 {
		t.Errorf("missing %v", want)
	}
}

// What a request has brought in the header of httpgate is read as it is: several
// tokens, each with an ID behind it.
func TestTokensAsHTTPSendsThem(t *testing.T) {
	t.Parallel()
	keys := ring(t, tidegate.KeyringConfig{Now: func() time.Time { return standing }})
	token := func(n uint64) string {
		return keys.Sign(tidegate.NewToken(tidegate.Mark{Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 1}, Position: tidegate.At(n)}))
	}
	g := gate(t, func(cfg *eventgate.Config) { cfg.Keyring = keys })
	header := map[string]string{eventgate.Header: token(5) + ";AbCdEfGhIjKlMnOp, " + token(9) + ";0123456789abcdef"}
	ctx, err := g.Extract(t.Context(), eventgate.InMap(header, eventgate.Header))
	if m := tidegate.SessionFrom(ctx).Token().Marks(); err != nil || len(m) != 1 || m[0].Position != tidegate.At(9) || m[0].CatchUp {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestRefusedTokensMakeTheSessionCatchUp(t *testing.T) {
	t.Parallel()
	clock := func(d time.Duration) func() time.Time { return func() time.Time { return standing.Add(d) } }
	keys := func(id string, b byte) []tidegate.Key {
		return []tidegate.Key{{ID: id, Secret: bytes.Repeat([]byte{b}, 32)}}
	}
	token := tidegate.NewToken(tidegate.Mark{Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 1}, Position: tidegate.At(1 << 60)})
	sign := func(cfg tidegate.KeyringConfig) string {
		return ring(t, cfg).Sign(token)
	}
	good := sign(tidegate.KeyringConfig{Now: clock(0)})
	var unsigned string
	if err := gate(t, func(c *eventgate.Config) { c.TrustedBroker = true }).InjectSession(tidegate.NewSession(token), eventgate.InString(&unsigned)); err != nil {
		t.Fatal(err)
	}
	flipped := []byte(good)
	flipped[len(flipped)/2] ^= 1
	for _, c := range []struct {
		name   string
		texts  []string
		want   error
		reason func(eventgate.Refusals) uint64
		merged uint64
	}{
		{"garbage", []string{"garbage"}, tidegate.ErrTokenMalformed, func(r eventgate.Refusals) uint64 { return r.Malformed }, 0},
		{"altered", []string{string(flipped)}, tidegate.ErrToken, eventgate.Refusals.Total, 0},
		{"forged", []string{sign(tidegate.KeyringConfig{Keys: keys("k1", 9), Now: clock(0)})}, tidegate.ErrTokenSignature, func(r eventgate.Refusals) uint64 { return r.Signature }, 0},
		{"not signed", []string{unsigned}, tidegate.ErrTokenSignature, func(r eventgate.Refusals) uint64 { return r.Signature }, 0},
		{"another key", []string{sign(tidegate.KeyringConfig{Keys: keys("k2", 1), Now: clock(0)})}, tidegate.ErrTokenKey, func(r eventgate.Refusals) uint64 { return r.Key }, 0},
		{"expired", []string{sign(tidegate.KeyringConfig{Now: clock(-25 * time.Hour)})}, tidegate.ErrTokenExpired, func(r eventgate.Refusals) uint64 { return r.Expired }, 0},
		{"from the future", []string{sign(tidegate.KeyringConfig{Now: clock(time.Hour)})}, tidegate.ErrTokenFuture, func(r eventgate.Refusals) uint64 { return r.Future }, 0},
		{"too large", []string{"tg1." + strings.Repeat("A", tidegate.MaxSignedBytes)}, tidegate.ErrTokenTooLarge, func(r eventgate.Refusals) uint64 { return r.TooLarge }, 0},
		{"too many", []string{good, good, good}, eventgate.ErrTooManyTokens, func(r eventgate.Refusals) uint64 { return r.TooMany }, 2},
		{"one of two", []string{"garbage", good}, tidegate.ErrTokenMalformed, func(r eventgate.Refusals) uint64 { return r.Malformed }, 1},
	} {
		var told error
		g := gate(t, fresh, func(cfg *eventgate.Config) {
			cfg.Keyring, cfg.MaxTokens = ring(t, tidegate.KeyringConfig{Now: clock(0)}), 2
			cfg.Refused = func(_ context.Context, err error) { told = err }
		})
		ctx, err := g.Extract(t.Context(), eventgate.InMultiMap(map[string][]string{eventgate.Header: c.texts}, eventgate.Header))
		var refused *eventgate.RefusedError
		if !errors.As(err, &refused) || len(refused.Reasons) != 1 || !errors.Is(err, tidegate.ErrToken) || !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if told != err {
			t.Errorf("%s: Config.Refused was told %v", c.name, told)
		}
		s := g.Stats()
		if c.reason(s.Refused) != 1 || s.Refused.Total() != 1 || s.CatchUps != 1 || s.Merged != c.merged {
			t.Errorf("%s: %+v", c.name, s)
		}
		caught := false
		for _, m := range tidegate.SessionFrom(ctx).Token().Marks() {
			caught = caught || m.Cluster == "main" && m.CatchUp
			if c.merged == 0 && !m.Position.IsZero() {
				t.Errorf("%s: a refused token advanced the session: %+v", c.name, m)
			}
		}
		if !caught {
			t.Errorf("%s: the session does not catch up", c.name)
		}
	}
}

// What a refused token leaves is not fresh: it sees everything, and the position
// that was forged holds nobody up.
func TestForgedTokenIsNeverSilentlyFresh(t *testing.T) {
	t.Parallel()
	g := gate(t, fresh)
	db := lagging(t)
	put(t.Context(), t, db, "new")
	text := "tg1.forged"
	ctx, err := g.Extract(t.Context(), eventgate.InString(&text))
	if !errors.Is(err, tidegate.ErrToken) {
		t.Error(err)
	}
	ctx, seen := tidegate.Observe(ctx)
	if v := get(ctx, t, db); v != "new" {
		t.Errorf("read %q", v)
	}
	tidegatetest.Routed(t, seen, tidegate.RolePrimary)
}

func TestMissingToken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*eventgate.Config)
		want   string
		fresh  uint64
	}{
		{"by default it catches up", func(*eventgate.Config) {}, "new", 0},
		{"declared", func(c *eventgate.Config) {
			c.Missing = func(context.Context) eventgate.Policy { return eventgate.CatchUp }
		}, "new", 0},
		{"fresh", fresh, "old", 1},
	} {
		g, db := gate(t, c.change), lagging(t)
		put(t.Context(), t, db, "new")
		var none string
		ctx, err := g.Extract(t.Context(), eventgate.InString(&none))
		if err != nil {
			t.Fatal(err)
		}
		if v := get(ctx, t, db); v != c.want {
			t.Errorf("%s: read %q", c.name, v)
		}
		if s := g.Stats(); s.Missing != 1 || s.Fresh != c.fresh || s.CatchUps != 1-c.fresh {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

func TestInjectWithoutSession(t *testing.T) {
	t.Parallel()
	g := gate(t)
	event := map[string]string{}
	if err := g.Inject(t.Context(), eventgate.InMap(event, eventgate.Header)); err != nil || len(event) != 0 {
		t.Error(err, event)
	}
	if s := g.Stats(); s.Sessionless != 1 || s.Injected != 0 {
		t.Errorf("%+v", s)
	}
}

// A message that becomes visible with its write cannot have the write's position.
// Inject before the commit misses it: the control.
func TestInjectBeforeCommit(t *testing.T) {
	t.Parallel()
	for _, withSession := range []bool{true, false} {
		g, db := gate(t), lagging(t)
		ctx := t.Context()
		if withSession {
			ctx = session(t)
		}
		var early, right string
		if err := g.InjectSession(tidegate.NewSession(), eventgate.InString(&early)); err != nil {
			t.Fatal(err)
		}
		if err := g.InjectBeforeCommit(ctx, eventgate.InString(&right)); err != nil {
			t.Fatal(err)
		}
		put(ctx, t, db, "new") // the commit
		for text, want := range map[string]string{early: "old", right: "new"} {
			ctx, err := g.Extract(t.Context(), eventgate.InString(&text))
			if err != nil {
				t.Fatal(err)
			}
			if v := get(ctx, t, db); v != want {
				t.Errorf("session %v: read %q, want %q", withSession, v, want)
			}
		}
	}
}

// More marks than a token takes become duties to catch up, not silence.
func TestOversizedToken(t *testing.T) {
	t.Parallel()
	for _, trusted := range []bool{false, true} {
		g := gate(t, func(c *eventgate.Config) { c.TrustedBroker = trusted })
		for clusters, want := range map[int]int{3: 3, 12: 0} {
			var all []tidegate.Mark
			for i := range 12 {
				all = append(all, tidegate.Mark{Cluster: fmt.Sprint("c", i%clusters), Epoch: tidegate.Epoch{System: 1, Line: uint64(i + 1)}, Position: tidegate.At(7)})
			}
			var text string
			if err := g.InjectSession(tidegate.NewSession(tidegate.NewToken(all...)), eventgate.InString(&text)); err != nil {
				t.Fatal(err)
			}
			ctx, err := g.Extract(t.Context(), eventgate.InString(&text))
			if err != nil {
				t.Fatal(err)
			}
			got := tidegate.SessionFrom(ctx).Token()
			if len(got.Marks()) != want || want == 0 && !got.CatchesUp() {
				t.Errorf("%d clusters: %+v, all others %v", clusters, got.Marks(), got.CatchesUp())
			}
			for _, m := range got.Marks() {
				if !m.CatchUp {
					t.Errorf("%+v", m)
				}
			}
		}
	}
}

func TestTrustedBrokerTakesBothKinds(t *testing.T) {
	t.Parallel()
	s := tidegate.NewSession(tidegate.NewToken(tidegate.Mark{Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 1}, Position: tidegate.At(3)}))
	signer := gate(t)
	both := gate(t, func(c *eventgate.Config) { c.TrustedBroker = true })
	only := gate(t, func(c *eventgate.Config) { c.TrustedBroker, c.Keyring = true, nil })
	var signed, unsigned string
	if err := errors.Join(signer.InjectSession(s, eventgate.InString(&signed)), both.InjectSession(s, eventgate.InString(&unsigned))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		g    *eventgate.Gate
		text string
		want error
	}{
		{"unsigned, with keys", both, unsigned, nil},
		{"signed, with keys", both, signed, nil},
		{"unsigned, without", only, unsigned, nil},
		{"signed, without", only, signed, tidegate.ErrTokenKey},
		{"not base64", only, "tgu1.!", tidegate.ErrTokenMalformed},
		{"line break", only, unsigned[:9] + "\n" + unsigned[9:], tidegate.ErrTokenMalformed},
		{"cut short", only, unsigned[:len(unsigned)-4], tidegate.ErrTokenMalformed},
		{"too large", only, "tgu1." + strings.Repeat("A", 4096), tidegate.ErrTokenTooLarge},
	} {
		if _, err := c.g.Extract(t.Context(), eventgate.InString(&c.text)); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	keys := ring(t, tidegate.KeyringConfig{})
	for _, c := range []struct {
		field string
		cfg   eventgate.Config
	}{
		{"Keyring", eventgate.Config{Clusters: []string{"main"}}},
		{"Clusters", eventgate.Config{Keyring: keys}},
		{"Clusters", eventgate.Config{Keyring: keys, Clusters: make([]string, 9)}},
		{"Clusters[1]", eventgate.Config{Keyring: keys, Clusters: []string{"main", ""}}},
		{"Clusters[0]", eventgate.Config{Keyring: keys, Clusters: []string{strings.Repeat("x", 33)}}},
		{"MaxTokens", eventgate.Config{Keyring: keys, Clusters: []string{"main"}, MaxTokens: -1}},
	} {
		if _, err := eventgate.New(c.cfg); !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: %v", c.field, err)
		}
	}
	if eventgate.CatchUp.String() != "catch-up" || eventgate.Fresh.String() != "fresh" {
		t.Error("the words of the policies")
	}
}
