package browser

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// The cookies are what the defaults promise, in the jar of a browser, and scripts do
// not see them. A response that sets one may be kept by no cache, whatever the
// application says; of others it is for the application to say.
func TestCookiesInTheJar(t *testing.T) {
	t.Parallel()
	needs(t)
	for _, p := range protocols {
		t.Run(p.alpn, func(t *testing.T) {
			t.Parallel()
			ctx := tab(t)
			b := newBalancer(t, p, startInstances(t, p, true), carrier{})
			open(ctx, t, b.url+"/about")
			open(ctx, t, b.url+newNote(t))
			save(ctx, t, "new")
			jar := tokens(ctx, t)
			if len(jar) != 1 {
				t.Fatalf("the jar has %d tokens", len(jar))
			}
			c := jar[0]
			if !c.HTTPOnly || !c.Secure || c.SameSite != network.CookieSameSiteLax || c.Path != "/" || c.Domain != "127.0.0.1" || c.Session {
				t.Errorf("the cookie is %+v", c)
			}
			// The other cookie shows that there is something to see.
			if seen := script(ctx, t, `Promise.resolve(document.cookie)`); seen != "visible=yes" {
				t.Errorf("scripts see %q", seen)
			}
			// A read on a replica and a write always carry a token; the page after the
			// redirect does when the primary has moved on since.
			trips := b.since(0)
			if len(trips) != 4 || setsToken(trips[0].header) || !setsToken(trips[1].header) || !setsToken(trips[2].header) {
				t.Fatalf("the requests were %+v", trips)
			}
			for _, trip := range trips {
				want := cacheable
				if setsToken(trip.header) {
					want = "private, no-store"
				}
				if got := trip.header.Get("Cache-Control"); got != want {
					t.Errorf("%s %s says %q, not %q", trip.method, trip.path, got, want)
				}
			}
		})
	}
}

// setsToken reports whether a response with that header sets a cookie with a token.
func setsToken(h http.Header) bool {
	for _, line := range h.Values("Set-Cookie") {
		if name, value, _ := strings.Cut(line, "="); strings.HasPrefix(name, prefix) && !strings.HasPrefix(value, ";") {
			return true
		}
	}
	return false
}

// Whoever comes back to a page with a token gets it from the server, by a link and
// by the back button, and sees what was written in between. A page without one stays
// with the browser, as the application says of both.
func TestPagesWithTokensAreAskedForAgain(t *testing.T) {
	t.Parallel()
	needs(t)
	for _, p := range protocols {
		t.Run(p.alpn, func(t *testing.T) {
			t.Parallel()
			ctx := tab(t)
			b := newBalancer(t, p, startInstances(t, p, true), carrier{})
			note, about := b.url+newNote(t), b.url+"/about"
			asked := func(what string, want int, f func()) {
				t.Helper()
				before := b.count()
				f()
				if trips := b.since(before); len(trips) != want {
					t.Errorf("%s takes %d requests, not %d: %+v", what, len(trips), want, trips)
				}
			}
			// On replicas, every read carries a token.
			asked("the note", 1, func() { open(ctx, t, note) })
			asked("a page without a token", 1, func() { open(ctx, t, about) })
			asked("the note again", 1, func() { open(ctx, t, note) })
			asked("a page without a token again", 0, func() { open(ctx, t, about) })
			old := tokens(ctx, t)

			asked("the write", 1, func() {
				script(ctx, t, `fetch(%q, {method: "POST", redirect: "manual", body: new URLSearchParams({body: "new"})}).then(r => r.type)`, note)
			})
			if jar := tokens(ctx, t); len(jar) != 1 || len(old) != 1 || jar[0].Name == old[0].Name {
				t.Fatalf("the write made %+v of %+v", jar, old)
			}
			// Chromium keeps whole pages, those with no-store too, and drops such a one
			// when a cookie changes that scripts do not see.
			asked("going back to the note", 1, func() { back(ctx, t) })
			if v := see(ctx, t); v.Body != "new" {
				t.Errorf("going back shows %+v", v)
			}
			asked("going back to a page without a token", 0, func() { back(ctx, t) })
			asked("the note at last", 1, func() {
				if v := open(ctx, t, note); v.Body != "new" || v.Protocol != p.alpn {
					t.Errorf("at last it shows %+v", v)
				}
			})
		})
	}
}

// back is the browser's button. It returns when the page before is there, be it from
// the server, from the cache or because it was never gone.
func back(ctx context.Context, t *testing.T) {
	t.Helper()
	there := make(chan struct{})
	arrived := sync.OnceFunc(func() { close(there) })
	listening, stop := context.WithCancel(ctx)
	defer stop()
	loads := false
	err := chromedp.Listen(listening, func(event any) { // chromedp itself waits for pages that load, only
		switch event := event.(type) {
		case *page.EventFrameNavigated:
			if loads = event.Type == page.NavigationTypeNavigation; !loads {
				arrived()
			}
		case *page.EventLoadEventFired:
			if loads {
				arrived()
			}
		}
	})
	if err == nil {
		err = chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](`history.back()`))
	}
	if err != nil {
		t.Fatal("going back: ", err)
	}
	select {
	case <-there:
	case <-ctx.Done():
		t.Fatal("going back: ", context.Cause(ctx))
	}
}
