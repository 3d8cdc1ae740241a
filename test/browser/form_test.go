package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// rounds is how often a form is sent.
const rounds = 8

// Whoever sends a form sees what it changed on the page that the answer redirects
// to, though another instance answers and no replica has it. The same without
// cookies misses it, every time.
func TestFormPostAndRedirect(t *testing.T) {
	t.Parallel()
	needs(t)
	for _, p := range protocols {
		for _, c := range []struct {
			name   string
			carry  carrier
			missed int
		}{
			{"cookies", carrier{}, 0},
			{"control, without cookies", withoutCookies, rounds},
		} {
			t.Run(p.alpn+" "+c.name, func(t *testing.T) {
				t.Parallel()
				ctx := tab(t)
				b := newBalancer(t, p, startInstances(t, p, false), c.carry)
				note := newNote(t)
				if v := open(ctx, t, b.url+note); v.Body != "old" || !strings.HasPrefix(v.Node, "replica") {
					t.Fatalf("at first it shows %+v", v)
				}
				missed := 0
				for i := range rounds {
					want, before := fmt.Sprint("new", i), b.count()
					v := save(ctx, t, want)
					if v.Body != want {
						missed++
					}
					if v.Protocol != p.alpn {
						t.Errorf("the page came by %q, not %q", v.Protocol, p.alpn)
					}
					trips := b.since(before)
					if len(trips) != 2 || trips[0].method != http.MethodPost || trips[0].status != http.StatusSeeOther || trips[1].method != http.MethodGet {
						t.Fatalf("the form took %+v", trips)
					}
					if trips[0].instance == trips[1].instance {
						t.Errorf("both went to %s", v.Instance)
					}
					// Three requests a round: the roles of the instances change.
					if v := open(ctx, t, fmt.Sprint(b.url, note, "?again=", i)); (v.Body == want) != (c.missed == 0) {
						t.Errorf("opened once more, it shows %+v", v)
					}
				}
				t.Logf("%d of %d writes were missed on the next page", missed, rounds)
				if missed != c.missed {
					t.Errorf("%d of %d writes were missed, not %d", missed, rounds, c.missed)
				}
				if c.missed == 0 && len(tokens(ctx, t)) != 1 {
					t.Errorf("after requests one by one the jar has %d tokens", len(tokens(ctx, t)))
				}
			})
		}
	}
}
