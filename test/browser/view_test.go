package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// view is what a tab shows.
type view struct {
	Body     string `json:"body"`
	Instance string `json:"instance"`
	Node     string `json:"node"`
	Protocol string `json:"protocol"` // that the page came by
}

const look = `({
	body: document.getElementById("body").textContent,
	instance: document.getElementById("instance").textContent,
	node: document.getElementById("node").textContent,
	protocol: performance.getEntriesByType("navigation")[0].nextHopProtocol,
})`

// see returns what the tab shows now.
func see(ctx context.Context, t *testing.T) view {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[view](look))
	for err != nil && strings.Contains(err.Error(), "of null") && ctx.Err() == nil {
		// The page is there and has not been taken in yet.
		v, err = chromedp.Run(ctx, chromedp.Evaluate[view](look))
	}
	if err != nil {
		t.Fatal("looking at the page: ", err)
	}
	return v
}

// open goes to an address and returns what it shows.
func open(ctx context.Context, t *testing.T, url string) view {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatalf("opening %s: %v", url, err)
	}
	return see(ctx, t)
}

// save types into the form of the page, sends it, and returns what the browser
// shows after the redirect.
func save(ctx context.Context, t *testing.T, body string) view {
	t.Helper()
	resp, err := chromedp.RunResponse(ctx,
		chromedp.SendKeys(chromedp.CSS("input"), body),
		chromedp.Click(chromedp.CSS("button")),
	)
	if err != nil || resp.Status != 200 {
		t.Fatalf("sending the form: %+v, %v", resp, err)
	}
	return see(ctx, t)
}

// script runs a script in the page and waits for the promise that it is.
func script(ctx context.Context, t *testing.T, text string, args ...any) string {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(text, args...), chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal("running a script: ", err)
	}
	return v
}

// tokens returns the cookies of the jar that carry tokens.
func tokens(ctx context.Context, t *testing.T) []*network.Cookie {
	t.Helper()
	got, err := chromedp.Call(ctx, network.GetCookies, network.GetCookiesParams{})
	if err != nil {
		t.Fatal("asking for the cookies: ", err)
	}
	var found []*network.Cookie
	for _, c := range got.Cookies {
		if strings.HasPrefix(c.Name, prefix) {
			found = append(found, c)
		}
	}
	return found
}

// forget empties the tab's jar.
func forget(ctx context.Context, t *testing.T) {
	t.Helper()
	if _, err := chromedp.Call(ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		t.Fatal("emptying the jar: ", err)
	}
}
