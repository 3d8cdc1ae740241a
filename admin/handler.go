package admin

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

type handler struct {
	Config
	origin *http.CrossOriginProtection
}

// page is what one path answers.
type page struct {
	path string
	what string
	// params are the parameters that it takes.
	params []string
	get    func(h *handler, r *http.Request, q url.Values) (any, *problem)
	// put changes something, nil where nothing can be changed.
	put func(h *handler, r *http.Request, q url.Values) (any, *problem)
}

var pages = []page{
	{path: "table", what: "the freshness table of each cluster", params: []string{"cluster"}, get: (*handler).table},
	{path: "explain", what: "why a read of a class may or may not go to each node now", params: []string{"cluster", "class", "token"}, get: (*handler).explain},
	{path: "classes", what: "the classes that this process has declared, and how old the answers to relaxed ones could be", get: (*handler).classes},
	{
		path: "rollout", what: "which reads are routed", params: []string{"cluster", "rollout"},
		get: (*handler).rollout, put: (*handler).setRollout,
	},
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, p := h.answer(w, r)
	if p != nil {
		p.write(w, r)
		return
	}
	write(w, r, http.StatusOK, body)
}

func (h *handler) answer(w http.ResponseWriter, r *http.Request) (any, *problem) {
	// Below http.StripPrefix the path can be empty.
	pg := page{params: []string{}, get: (*handler).index}
	if path := strings.Trim(r.URL.Path, "/"); path != "" {
		i := slices.IndexFunc(pages, func(p page) bool { return p.path == path })
		if i < 0 {
			return nil, &problem{Status: http.StatusNotFound, Message: "there is no such page", Next: "the page above lists what is there"}
		}
		pg = pages[i]
	}
	do, p := h.method(w, r, &pg)
	if p != nil {
		return nil, p
	}
	q, p := parameters(w, r, pg.params)
	if p != nil {
		return nil, p
	}
	return do(h, r, q)
}

// method returns what the request's method does with the page.
func (h *handler) method(w http.ResponseWriter, r *http.Request, pg *page) (func(*handler, *http.Request, url.Values) (any, *problem), *problem) {
	allowed := "GET, HEAD"
	changes := pg.put != nil && h.ChangeRollout
	if changes {
		allowed += ", PUT, POST"
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return pg.get, nil
	case http.MethodPut, http.MethodPost:
		if !changes {
			break
		}
		if err := h.origin.Check(r); err != nil {
			return nil, &problem{Status: http.StatusForbidden, Message: "the request comes from a page of another origin", Next: "send it from the same origin, or not from a browser"}
		}
		return pg.put, nil
	}
	w.Header().Set("Allow", allowed)
	next := "use one of " + allowed
	if pg.put != nil && !h.ChangeRollout {
		next += "; changes need admin.Config.ChangeRollout"
	}
	return nil, &problem{Status: http.StatusMethodNotAllowed, Message: r.Method + " is not allowed here", Next: next}
}

// maxBody bounds what a form may hold.
const maxBody = 4 << 10

// parameters returns those of the URL and, for a change, of a form. One that is
// not known or given twice is more likely a mistake than meant.
func parameters(w http.ResponseWriter, r *http.Request, known []string) (url.Values, *problem) {
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	}
	err := r.ParseForm()
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &problem{Status: http.StatusRequestEntityTooLarge, Message: "the form is too large", Next: fmt.Sprintf("send at most %d bytes", maxBody)}
	case err != nil:
		return nil, &problem{Status: http.StatusBadRequest, Message: "the parameters cannot be read: " + err.Error(), Next: "escape them as in a URL: % is %25"}
	}
	for name, values := range r.Form {
		switch {
		case !slices.Contains(known, name):
			next := "this page takes no parameters"
			if len(known) > 0 {
				next = "use " + strings.Join(known, ", ")
			}
			return nil, &problem{Status: http.StatusBadRequest, Message: "there is no such parameter", Field: name, Next: next}
		case len(values) > 1:
			return nil, &problem{Status: http.StatusBadRequest, Message: fmt.Sprintf("it is given %d times", len(values)), Field: name, Next: "give it once"}
		}
	}
	return r.Form, nil
}

type indexPage struct {
	Clusters []string    `json:"clusters"`
	Pages    []indexItem `json:"pages"`
}

type indexItem struct {
	// Path is relative to the page's own.
	Path       string   `json:"path"`
	What       string   `json:"what"`
	Parameters []string `json:"parameters"`
	Methods    []string `json:"methods"`
}

func (h *handler) index(*http.Request, url.Values) (any, *problem) {
	x := indexPage{Clusters: []string{}}
	for _, s := range h.Sources {
		x.Clusters = append(x.Clusters, s.Status().Cluster)
	}
	for _, p := range pages {
		item := indexItem{Path: p.path, What: p.what, Parameters: append([]string{}, p.params...), Methods: []string{http.MethodGet, http.MethodHead}}
		if p.put != nil && h.ChangeRollout {
			item.Methods = append(item.Methods, http.MethodPut, http.MethodPost)
		}
		x.Pages = append(x.Pages, item)
	}
	return x, nil
}
