package httpgate_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

// slowNetwork is one on which requests and responses of one client overtake each
// other.
type slowNetwork struct {
	handler http.Handler
	delay   func() time.Duration
}

func (n slowNetwork) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(n.delay())
	w := httptest.NewRecorder()
	n.handler.ServeHTTP(w, req)
	time.Sleep(n.delay())
	return w.Result(), nil
}

// counter is an application whose only number grows all the time. A GET shows it,
// a POST raises it.
func counter(t *testing.T, db *tidegatetest.Cluster) http.Handler {
	var mu sync.Mutex
	n := 0
	m := newGate(t, func(cfg *httpgate.Config) {
		cfg.Clusters = []string{"test"}
		cfg.Sources = []httpgate.Source{storeSource(t, newStore(t)), httpgate.Header(""), httpgate.Cookie(httpgate.CookieConfig{Insecure: true})}
		cfg.VisitorReads = true
	})
	return m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			mu.Lock()
			defer mu.Unlock()
			if err := db.Put(r.Context(), "n", strconv.Itoa(n+1)); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			n++
			fmt.Fprint(w, n)
			return
		}
		ctx, seen := tidegate.Observe(r.Context())
		value, _, err := db.Get(ctx, tidegate.Causal, "n")
		if d, ok := seen.Last(); err != nil || !ok || d.Unproven {
			http.Error(w, fmt.Sprint(err), http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, value)
	}))
}

// A client runs requests in parallel while replicas lag, stop applying and catch
// up: what a response has shown, every request that is sent afterwards shows too.
func TestParallelRequestsStayMonotonic(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(n http.RoundTripper) *http.Client{
		"cookie": func(n http.RoundTripper) *http.Client {
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			return &http.Client{Transport: n, Jar: jar}
		},
		"header": func(n http.RoundTripper) *http.Client {
			jar, err := httpgate.NewJar(httpgate.JarConfig{Hosts: []string{"app"}, Base: n})
			if err != nil {
				t.Fatal(err)
			}
			return &http.Client{Transport: jar}
		},
		"store": func(n http.RoundTripper) *http.Client {
			return &http.Client{Transport: loginTransport{n, "ann"}}
		},
	} {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(name, "/", seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { parallelRequests(t, seed, client) })
			})
		}
	}
}

func parallelRequests(t *testing.T, seed uint64, newClient func(http.RoundTripper) *http.Client) {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1))
	pick := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	upTo := func(d time.Duration) time.Duration { return time.Duration(pick(int(d))) }
	db := tidegatetest.New(t, tidegatetest.Config{})
	app := counter(t, db)
	network := slowNetwork{app, func() time.Duration { return upTo(15 * time.Millisecond) }}
	done := make(chan struct{})
	var world, readers sync.WaitGroup
	background := func(pause time.Duration, do func()) {
		world.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(upTo(pause)):
					do()
				}
			}
		})
	}
	writer := &http.Client{Transport: slowNetwork{app, func() time.Duration { return 0 }}}
	background(3*time.Millisecond, func() { fetch(t, writer, http.MethodPost) })
	background(12*time.Millisecond, func() {
		node := db.Replica(pick(2))
		switch pick(3) {
		case 0:
			node.Hold()
		case 1:
			node.Release()
		default:
			node.Lag(upTo(30 * time.Millisecond))
		}
	})

	client := newClient(network)
	shown, answered := 0, 0
	for range 8 {
		readers.Go(func() {
			for range 60 {
				method := http.MethodGet
				if pick(30) == 0 {
					method = http.MethodPost
				}
				mu.Lock()
				floor := shown
				mu.Unlock()
				got, ok := fetch(t, client, method)
				mu.Lock()
				if ok && got < floor {
					t.Errorf("it shows %d after %d", got, floor)
				}
				if ok {
					answered++
					shown = max(shown, got)
				}
				mu.Unlock()
				time.Sleep(upTo(5 * time.Millisecond))
			}
		})
	}
	readers.Wait()
	close(done)
	world.Wait()
	if answered < 300 || shown < 100 {
		t.Errorf("%d requests were answered, the last number is %d", answered, shown)
	}
}

// fetch returns the number that a request shows, and false when it was refused.
func fetch(t *testing.T, c *http.Client, method string) (int, bool) {
	req, _ := http.NewRequestWithContext(t.Context(), method, "http://app/", nil)
	resp, err := c.Do(req)
	if err != nil {
		t.Error(err)
		return 0, false
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return 0, false
	}
	n, err := strconv.Atoi(string(body))
	return n, err == nil || len(body) == 0
}
