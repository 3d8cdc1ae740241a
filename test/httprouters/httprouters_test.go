// Package httprouters runs httpgate below and above the routers that applications
// use.
package httprouters

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/labstack/echo/v5"
	echomiddleware "github.com/labstack/echo/v5/middleware"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

// app is what each router is asked to serve: writes and reads of a key, and a
// write that ends in each way in which a handler can end.
type app struct{ db *tidegatetest.Cluster }

func (a app) put(ctx context.Context, key, value string) { _ = a.db.Put(ctx, key, value) }

func (a app) get(ctx context.Context, key string) string {
	value, _, err := a.db.Get(ctx, tidegate.Causal, key)
	if err != nil {
		return err.Error()
	}
	return value
}

// routers build the same application with a router each, the middleware mounted
// as its documentation says.
var routers = map[string]func(a app, m *httpgate.Middleware) http.Handler{
	"net/http": withServeMux,
	"chi":      withChi,
	"gin":      withGin,
	"echo":     withEcho,
}

func withServeMux(a app, m *httpgate.Middleware) http.Handler {
	return recovered(m.Wrap(standardRoutes(a, http.NewServeMux())))
}

// standardRoutes are the routes of an application that knows net/http only.
func standardRoutes(a app, mux *http.ServeMux) http.Handler {
	mux.HandleFunc("GET /k/{key}", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, a.get(r.Context(), r.PathValue("key")))
	})
	mux.HandleFunc("PUT /k/{key}", func(w http.ResponseWriter, r *http.Request) {
		value, _ := io.ReadAll(r.Body)
		a.put(r.Context(), r.PathValue("key"), string(value))
	})
	mux.HandleFunc("POST /204", func(w http.ResponseWriter, r *http.Request) {
		a.put(r.Context(), "k", "v")
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /303", func(w http.ResponseWriter, r *http.Request) {
		a.put(r.Context(), "k", "v")
		http.Redirect(w, r, "/k/k", http.StatusSeeOther)
	})
	mux.HandleFunc("POST /error", func(w http.ResponseWriter, r *http.Request) {
		a.put(r.Context(), "k", "v")
		http.Error(w, "broken", http.StatusConflict)
	})
	mux.HandleFunc("POST /panic", func(w http.ResponseWriter, r *http.Request) {
		a.put(r.Context(), "k", "v")
		panic("broken")
	})
	mux.HandleFunc("POST /stream", func(w http.ResponseWriter, r *http.Request) {
		a.put(r.Context(), "k", "v")
		io.WriteString(w, "one ")
		_ = http.NewResponseController(w).Flush()
		io.WriteString(w, "two")
	})
	return mux
}

func recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func withChi(a app, m *httpgate.Middleware) http.Handler {
	r := chi.NewRouter()
	r.Use(chimiddleware.RequestID, chimiddleware.Recoverer, m.Wrap)
	r.Get("/k/{key}", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, a.get(r.Context(), chi.URLParam(r, "key")))
	})
	r.Mount("/", standardRoutes(a, http.NewServeMux()))
	return r
}

func withGin(a app, m *httpgate.Middleware) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	g.Use(gin.CustomRecoveryWithWriter(io.Discard, func(c *gin.Context, _ any) { c.AbortWithStatus(http.StatusInternalServerError) }))
	g.GET("/k/:key", func(c *gin.Context) { c.String(http.StatusOK, a.get(c.Request.Context(), c.Param("key"))) })
	g.PUT("/k/:key", func(c *gin.Context) {
		value, _ := io.ReadAll(c.Request.Body)
		a.put(c.Request.Context(), c.Param("key"), string(value))
	})
	g.POST("/204", func(c *gin.Context) {
		a.put(c.Request.Context(), "k", "v")
		c.Status(http.StatusNoContent)
	})
	g.POST("/303", func(c *gin.Context) {
		a.put(c.Request.Context(), "k", "v")
		c.Redirect(http.StatusSeeOther, "/k/k")
	})
	g.POST("/error", func(c *gin.Context) {
		a.put(c.Request.Context(), "k", "v")
		c.AbortWithStatusJSON(http.StatusConflict, gin.H{"error": "broken"})
	})
	g.POST("/panic", func(c *gin.Context) {
		a.put(c.Request.Context(), "k", "v")
		panic("broken")
	})
	g.POST("/stream", func(c *gin.Context) {
		a.put(c.Request.Context(), "k", "v")
		words := []string{"one ", "two"}
		c.Stream(func(w io.Writer) bool { // asks the writer for http.CloseNotifier
			io.WriteString(w, words[0])
			words = words[1:]
			return len(words) > 0
		})
	})
	return m.Wrap(g)
}

func withEcho(a app, m *httpgate.Middleware) http.Handler {
	e := echo.New()
	e.Use(echomiddleware.Recover(), echo.WrapMiddleware(m.Wrap))
	e.GET("/k/:key", func(c *echo.Context) error {
		return c.String(http.StatusOK, a.get(c.Request().Context(), c.Param("key")))
	})
	e.PUT("/k/:key", func(c *echo.Context) error {
		value, err := io.ReadAll(c.Request().Body)
		a.put(c.Request().Context(), c.Param("key"), string(value))
		return err
	})
	e.POST("/204", func(c *echo.Context) error {
		a.put(c.Request().Context(), "k", "v")
		return c.NoContent(http.StatusNoContent)
	})
	e.POST("/303", func(c *echo.Context) error {
		a.put(c.Request().Context(), "k", "v")
		return c.Redirect(http.StatusSeeOther, "/k/k")
	})
	e.POST("/error", func(c *echo.Context) error {
		a.put(c.Request().Context(), "k", "v")
		return echo.NewHTTPError(http.StatusConflict, "broken") // written by echo, outside of the middleware
	})
	e.POST("/panic", func(c *echo.Context) error {
		a.put(c.Request().Context(), "k", "v")
		panic("broken")
	})
	e.POST("/stream", func(c *echo.Context) error {
		a.put(c.Request().Context(), "k", "v")
		io.WriteString(c.Response(), "one ")
		if err := http.NewResponseController(c.Response()).Flush(); err != nil {
			return err
		}
		_, err := io.WriteString(c.Response(), "two")
		return err
	})
	return e
}

// world is one application on two instances whose replicas are held.
type world struct {
	db     *tidegatetest.Cluster
	gates  []*httpgate.Middleware
	urls   []string
	client *http.Client
}

func newWorld(t *testing.T, build func(app, *httpgate.Middleware) http.Handler) *world {
	t.Helper()
	w := &world{db: tidegatetest.New(t, tidegatetest.Config{})}
	if err := w.db.Put(t.Context(), "k", "old"); err != nil {
		t.Fatal(err)
	}
	w.db.Probe()
	w.db.Replica(0).Hold()
	w.db.Replica(1).Hold()
	for range 2 {
		keyring, err := tidegate.NewKeyring(tidegate.KeyringConfig{Keys: []tidegate.Key{{ID: "k", Secret: make([]byte, 32)}}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := httpgate.New(httpgate.Config{
			Keyring: keyring, Clusters: []string{"test"},
			Sources: []httpgate.Source{httpgate.Cookie(httpgate.CookieConfig{Insecure: true})},
		})
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(build(app{w.db}, m))
		t.Cleanup(s.Close)
		w.gates, w.urls = append(w.gates, m), append(w.urls, s.URL)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	w.client = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return w
}

func (w *world) send(t *testing.T, instance int, method, path, value string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, w.urls[instance]+path, strings.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// Whatever way the write's handler ends, the next read sees it, on the other
// instance.
func TestReadYourWrites(t *testing.T) {
	t.Parallel()
	for name, build := range routers {
		for _, c := range []struct {
			method, path, value string
			status              int
			body                string
		}{
			{http.MethodPut, "/k/k", "v", 200, ""},
			{http.MethodPost, "/204", "", 204, ""},
			{http.MethodPost, "/303", "", 303, ""},
			{http.MethodPost, "/error", "", 409, ""},
			{http.MethodPost, "/panic", "", 500, ""},
			{http.MethodPost, "/stream", "", 200, "one two"},
		} {
			t.Run(name+c.path, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, build)
				if status, body := w.send(t, 0, c.method, c.path, c.value); status != c.status || c.body != "" && body != c.body {
					t.Errorf("the write answers %d %q", status, body)
				}
				w.db.StaleUnlessRouted("k")
				if status, body := w.send(t, 1, http.MethodGet, "/k/k", ""); status != 200 || body != "v" {
					t.Errorf("the read answers %d %q", status, body)
				}
				if got := w.gates[0].Stats(); got.Emitted != 1 || got.Late != 0 {
					t.Errorf("the writing instance: %+v", got)
				}
			})
		}
	}
}

// Without the token the same read is stale: the test above would notice.
func TestVisitorSeesTheOldState(t *testing.T) {
	t.Parallel()
	for name, build := range routers {
		w := newWorld(t, build)
		w.send(t, 0, http.MethodPut, "/k/k", "v")
		w.client.Jar = nil
		if status, body := w.send(t, 1, http.MethodGet, "/k/k", ""); status != 200 || body != "old" {
			t.Errorf("%s: %d %q", name, status, body)
		}
	}
}
