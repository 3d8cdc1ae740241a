package carrier_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/carrier"
)

// backend starts a server and returns where it listens.
func backend(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// balance starts a balancer and returns it with a client of it.
func balance(ctx context.Context, t *testing.T, hosts ...string) (*carrier.Balancer, *http.Client) {
	t.Helper()
	b, err := carrier.StartBalancer(ctx, hosts...)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		b.Close()
	})
	return b, &http.Client{Transport: transport}
}

// get returns the body of a response and its status.
func get(ctx context.Context, t *testing.T, c *http.Client, host string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func named(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }
}

// Each request goes to the next backend, also those of one client and connection.
func TestBalancerTakesTurns(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, c := balance(ctx, t, backend(t, named("a")), backend(t, named("b")), backend(t, named("c")))
	got := ""
	for range 7 {
		_, body := get(ctx, t, c, b.Host())
		got += body
	}
	if got != "abcabca" {
		t.Errorf("got %s", got)
	}
}

// What carries tokens passes in both directions: values, their order, and how many
// there are.
func TestBalancerPassesHeaders(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	sent := http.Header{
		"X-Consistency-Token": {"tg1.a;1, tg1.b;2", "lost;3"},
		"Cookie":              {"tg.aaaaaaaaaaaaaaaa=tg1.a; other=1"},
		"X-Lab-Session":       {"4"},
		"User-Agent":          {"a browser"},
	}
	answered := http.Header{
		"Set-Cookie":          {"tg.b=1; Path=/; HttpOnly", "tg.a=; Path=/; Max-Age=0", "other=2"},
		"X-Consistency-Token": {"tg1.c;4", "tg1.d;5"},
		"Cache-Control":       {"private, no-store"},
		"Content-Type":        {"text/plain"},
	}
	var got *http.Request
	host := backend(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		body, _ := io.ReadAll(r.Body)
		for name, values := range answered {
			w.Header()[name] = values
		}
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(body)
	})
	b, _ := balance(ctx, t, host)
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+b.Host()+"/rows/3?version=1&x=%2C", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = sent.Clone()
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || string(body) != "hello" || resp.StatusCode != http.StatusTeapot {
		t.Errorf("got %s, %q, %v", resp.Status, body, err)
	}
	got.Header.Del("Content-Length")
	if !reflect.DeepEqual(got.Header, sent) {
		t.Errorf("the backend got %v, want %v", got.Header, sent)
	}
	if got.Host != b.Host() || got.RequestURI != "/rows/3?version=1&x=%2C" || got.Method != http.MethodPut {
		t.Errorf("the backend was asked by %s for %s of %s", got.Method, got.RequestURI, got.Host)
	}
	for name, want := range answered {
		if !slices.Equal(resp.Header[name], want) {
			t.Errorf("%s: got %q, want %q", name, resp.Header[name], want)
		}
	}
}

// What a backend sends arrives when it is sent, not when there is more.
func TestBalancerStreams(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	arrived := make(chan struct{})
	b, c := balance(ctx, t, backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "12") // else it would stream by itself
		fmt.Fprintln(w, "first")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-arrived:
			fmt.Fprint(w, "second")
		case <-r.Context().Done():
		}
	}))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.Host()+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	in := bufio.NewReader(resp.Body)
	if line, err := in.ReadString('\n'); err != nil || line != "first\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	close(arrived)
	if rest, err := io.ReadAll(in); err != nil || string(rest) != "second" {
		t.Errorf("got %q, %v", rest, err)
	}
}

// A backend that is replaced gets nothing more, and answers what it has first.
func TestBalancerReplaces(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	asked, answer := make(chan struct{}), make(chan struct{})
	b, c := balance(ctx, t, backend(t, func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-answer
		fmt.Fprint(w, "old")
	}))
	got := make(chan string, 1)
	go func() {
		_, body := get(ctx, t, c, b.Host())
		got <- body
	}()
	<-asked
	replaced := make(chan struct{})
	go func() {
		defer close(replaced)
		b.Replace(0, backend(t, named("new")))
	}()
	// The old one would not answer a second time: this waits for the new one.
	for body := ""; body != "new"; {
		probe := make(chan string, 1)
		go func() {
			_, body := get(ctx, t, c, b.Host())
			probe <- body
		}()
		select {
		case body = <-probe:
		case <-asked: // not replaced yet
			answer <- struct{}{}
			body = <-probe
		}
	}
	select {
	case <-replaced:
		t.Error("the old backend was gone before it had answered")
	default:
	}
	close(answer)
	if body := <-got; body != "old" {
		t.Errorf("the request that was under way got %q", body)
	}
	<-replaced
}

// A backend that does not answer is an error of the request, and the next one gets
// the next request.
func TestBalancerWithoutBackend(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	b, c := balance(ctx, t, strings.TrimPrefix(gone.URL, "http://"), backend(t, named("b")))
	if status, body := get(ctx, t, c, b.Host()); status != http.StatusBadGateway || !strings.Contains(body, "balancer: ") {
		t.Errorf("got %d %q", status, body)
	}
	if status, body := get(ctx, t, c, b.Host()); status != http.StatusOK || body != "b" {
		t.Errorf("got %d %q", status, body)
	}
}

// A closed balancer takes no connection.
func TestBalancerCloses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, err := carrier.StartBalancer(ctx, backend(t, named("a")))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	if _, body := get(ctx, t, &http.Client{Transport: transport}, b.Host()); body != "a" {
		t.Errorf("got %q", body)
	}
	transport.CloseIdleConnections()
	b.Close()
	var d net.Dialer
	if conn, err := d.DialContext(ctx, "tcp", b.Host()); err == nil {
		_ = conn.Close()
		t.Error("it still listens")
	}
}
