package admin_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate/admin"
)

func TestIndex(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, nil, func(t *testing.T, w *world) {
		x := w.get("/", http.StatusOK)
		if c, _ := x["clusters"].([]any); len(c) != 1 || c[0] != "main" {
			t.Errorf("clusters %v", x["clusters"])
		}
		// All that is listed is there.
		all, _ := x["pages"].([]any)
		for _, p := range all {
			path := p.(map[string]any)["path"].(string)
			if r := serve(w.h, http.MethodGet, "/"+path+"?class=causal", ""); r.Code == http.StatusNotFound {
				t.Errorf("%s: %s", path, r.Body)
			}
		}
		if len(all) != 4 {
			t.Errorf("%d pages: %v", len(all), all)
		}
	})
}

func TestPathsBelowAPrefix(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, nil, func(t *testing.T, w *world) {
		h := http.StripPrefix("/debug/tidegate", w.h)
		for path, key := range map[string]string{
			"/debug/tidegate": "pages", "/debug/tidegate/": "pages", "/debug/tidegate/table": "clusters", "/debug/tidegate/table/": "clusters",
		} {
			if x := decode(t, serve(h, http.MethodGet, path, ""), http.StatusOK); x[key] == nil {
				t.Errorf("%s: %v", path, x)
			}
		}
		refused(t, decode(t, serve(h, http.MethodGet, "/debug/tidegate/tables", ""), http.StatusNotFound), http.StatusNotFound, "")
	})
}

func TestMethods(t *testing.T) {
	t.Parallel()
	change := func(c *admin.Config) { c.ChangeRollout = true }
	for _, tt := range []struct {
		method, path string
		change       func(*admin.Config)
		status       int
		allow        string
	}{
		{http.MethodHead, "/table", nil, 200, ""},
		{http.MethodPost, "/table", change, 405, "GET, HEAD"},
		{http.MethodDelete, "/", nil, 405, "GET, HEAD"},
		{http.MethodPut, "/rollout?rollout=off", nil, 405, "GET, HEAD"},
		{http.MethodDelete, "/rollout", change, 405, "GET, HEAD, PUT, POST"},
		{http.MethodPut, "/rollout?rollout=off", change, 200, ""},
	} {
		inBubble(t, tt.change, nil, func(t *testing.T, w *world) {
			r := serve(w.h, tt.method, tt.path, "")
			if r.Code != tt.status || r.Header().Get("Allow") != tt.allow {
				t.Errorf("%s %s: status %d, Allow %q", tt.method, tt.path, r.Code, r.Header().Get("Allow"))
			}
			if tt.method == http.MethodHead {
				if r.Body.Len() != 0 || r.Header().Get("Content-Length") == "" {
					t.Errorf("HEAD: %d bytes, Content-Length %q", r.Body.Len(), r.Header().Get("Content-Length"))
				}
				return
			}
			if x := decode(t, r, tt.status); tt.status != 200 {
				refused(t, x, tt.status, "")
			}
		})
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *admin.Config) { c.ChangeRollout = true }, nil, func(t *testing.T, w *world) {
		for _, tt := range []struct {
			target string
			status int
			field  string
		}{
			{"/table?klass=causal", 400, "klass"},
			{"/?x=1", 400, "x"},
			{"/table?cluster=a&cluster=b", 400, "cluster"},
			{"/table?cluster=other", 404, "cluster"},
			{"/table?cluster=%zz", 400, ""},
			{"/explain", 400, "class"},
			{"/explain?class=nobody", 404, "class"},
			{"/explain?class=admin-test-twice", 409, "class"},
			{"/explain?cluster=other&class=causal", 404, "cluster"},
			{"/rollout?rollout=off", 400, "rollout"},
		} {
			refused(t, w.get(tt.target, tt.status), tt.status, tt.field)
		}
		r := serve(w.h, http.MethodPut, "/rollout", "rollout="+strings.Repeat("x", 5000))
		refused(t, decode(t, r, 413), 413, "")
	})
}

func TestWhichCluster(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		sources func(admin.Source) []admin.Source
		status  int
	}{
		{func(admin.Source) []admin.Source { return nil }, 400},
		{func(s admin.Source) []admin.Source { return []admin.Source{s, s} }, 400},
	} {
		inBubble(t, func(c *admin.Config) { c.Sources = tt.sources(c.Sources[0]) }, nil, func(t *testing.T, w *world) {
			refused(t, w.get("/explain?class=causal", tt.status), tt.status, "cluster")
			if all, ok := w.get("/table", 200)["clusters"].([]any); !ok || len(all) != len(tt.sources(nil)) {
				t.Errorf("%v, want a list", all)
			}
		})
	}
	inBubble(t, func(c *admin.Config) { c.Sources = append(c.Sources, c.Sources[0]) }, nil, func(t *testing.T, w *world) {
		refused(t, w.get("/explain?class=causal&cluster=main", 409), 409, "cluster")
	})
}

// keys lists the fields of an object, sorted.
func keys(x map[string]any) string {
	var all []string
	for k := range x {
		all = append(all, k)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// A request made by hand may have no body at all.
func TestNoBody(t *testing.T) {
	t.Parallel()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	admin.Handler(admin.Config{}).ServeHTTP(w, r)
	decode(t, w, 200)
}
