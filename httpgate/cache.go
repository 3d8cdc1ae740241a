package httpgate

import (
	"net/http"
	"strings"
)

// shared are the directives that make no sense beside "private, no-store": they
// allow what those forbid, or repeat them.
var shared = map[string]bool{
	"public": true, "private": true, "no-store": true, "max-age": true, "s-maxage": true, "immutable": true,
	"must-understand": true, "proxy-revalidate": true, "stale-while-revalidate": true, "stale-if-error": true,
}

// isTargeted reports whether caches of one kind obey the header instead of
// Cache-Control: those that RFC 9213 describes, and what there was before.
func isTargeted(name string) bool {
	return strings.HasSuffix(name, "-Cache-Control") || name == "Surrogate-Control" || name == "Edge-Control"
}

// forbidCaching keeps a response that carries a token out of every cache: with it,
// a cache would give the token to others, or an old one back to its owner, who
// would replace a newer one by it. What the handler has said besides stays.
func forbidCaching(h http.Header) {
	h.Set("Cache-Control", strings.Join(append([]string{"private", "no-store"}, others(h.Values("Cache-Control"))...), ", "))
	for name := range h {
		if isTargeted(name) {
			h.Set(name, "no-store")
		}
	}
	if h.Get("X-Accel-Expires") != "" { // nginx's, which knows times only: none
		h.Set("X-Accel-Expires", "0")
	}
}

// others returns the directives that may stay.
func others(values []string) []string {
	var kept []string
	for _, v := range values {
		for v != "" {
			var directive string
			directive, v = cutDirective(v)
			name, _, _ := strings.Cut(directive, "=")
			if name = strings.ToLower(strings.TrimSpace(name)); name != "" && !shared[name] {
				kept = append(kept, directive)
			}
		}
	}
	return kept
}

// cutDirective splits the list at the first comma that is not within quotes.
func cutDirective(list string) (first, rest string) {
	quoted := false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '\\' && quoted:
			i++ // whatever it is, it ends nothing
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			return strings.TrimSpace(list[:i]), list[i+1:]
		}
	}
	return strings.TrimSpace(list), ""
}
