package httpgate

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever a client sends, reading it ends, finds no more than is there, and makes
// nothing that a header cannot hold.
func FuzzRequestHeaders(f *testing.F) {
	for _, s := range []string{
		"", "a", "a, b", ",,;,", "tg1.AAAA;id", "a=b; __Host-tg.0123456789abcdef=\"x\"; c", "=;=,=;", "\x00\xff;,=",
		`public, ext="a, b", max-age=1`, `"`, `a="\",", no-transform`,
	} {
		f.Add(s)
	}
	c := CookieConfig{Prefix: "__Host-tg."}
	f.Fuzz(func(t *testing.T, s string) {
		items, tokens := 0, 0
		eachItem([]string{s, s}, func(item string) bool {
			if items++; item == "" || strings.Contains(item, ",") || !strings.Contains(s, item) {
				t.Errorf("item %q", item)
			}
			return true
		})
		eachToken([]string{s, s}, func(token string) bool {
			if tokens++; strings.ContainsAny(token, ",;") {
				t.Errorf("token %q", token)
			}
			return true
		})
		if items != tokens || items > 2*(strings.Count(s, ",")+1) {
			t.Errorf("%d items, %d tokens", items, tokens)
		}
		c.eachCookie([]string{s}, func(name, _ string) bool {
			if !isName(name) || len(name) != len(c.Prefix)+idLength || !strings.Contains(s, name) {
				t.Errorf("cookie %q", name)
			}
			return true
		})
		for _, d := range others([]string{s}) {
			if !strings.Contains(s, d) || utf8.ValidString(s) && !utf8.ValidString(d) {
				t.Errorf("directive %q", d)
			}
		}
	})
}
