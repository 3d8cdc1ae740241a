package admin

import (
	"context"
	"net/http"
	"net/url"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

type explainPage struct {
	Cluster string `json:"cluster"`
	Class   string `json:"class"`
	Need    string `json:"need"`
	// Session tells whether a token's session is explained, or a read without one.
	Session bool `json:"session"`
	// Required is what that session must see, as far as it is known.
	Required *string   `json:"required"`
	Nodes    []verdict `json:"nodes"`
}

type verdict struct {
	Node        string   `json:"node"`
	Role        *string  `json:"role"`
	Eligible    bool     `json:"eligible"`
	Why         string   `json:"why"`
	Applied     *string  `json:"applied"`
	ProbeAgeMS  *float64 `json:"probe_age_ms"`
	StalenessMS *float64 `json:"staleness_ms"`
	ReadsFlying int64    `json:"reads_in_flight"`
}

func (h *handler) explain(r *http.Request, q url.Values) (any, *problem) {
	source, p := h.one(q)
	if p != nil {
		return nil, p
	}
	class, p := classNamed(q.Get("class"))
	if p != nil {
		return nil, p
	}
	ctx, p := h.session(r.Context(), q.Get("token"))
	if p != nil {
		return nil, p
	}
	return explanationOf(source.Explain(ctx, class), tidegate.SessionFrom(ctx) != nil), nil
}

// session returns a context with a session of its own that goes on where the
// token ends, or with none. The request's own session is nobody's concern here.
func (h *handler) session(ctx context.Context, signed string) (context.Context, *problem) {
	if signed == "" {
		return tidegate.WithSession(ctx, nil), nil
	}
	if h.Keyring == nil {
		return nil, &problem{Status: http.StatusForbidden, Message: "tokens are not taken here", Field: "token", Next: "set admin.Config.Keyring to the key ring that signs them"}
	}
	token, err := h.Keyring.Verify(signed)
	if err != nil {
		return nil, &problem{Status: http.StatusBadRequest, Message: err.Error(), Field: "token", Next: "give a token that this key ring accepts, whole and not expired"}
	}
	return tidegate.WithToken(ctx, token), nil
}

func explanationOf(e engine.Explanation, session bool) explainPage {
	x := explainPage{
		Cluster: e.Cluster, Class: e.Class.Name(), Need: e.Class.Need().String(), Session: session,
		Required: known(e.Required.String(), session), Nodes: []verdict{},
	}
	for _, v := range e.Nodes {
		answered := v.ProbeAge >= 0
		x.Nodes = append(x.Nodes, verdict{
			Node: v.Node, Role: known(v.Role.String(), v.Role != 0), Eligible: v.Eligible, Why: v.Why, Applied: known(v.Applied.String(), answered),
			ProbeAgeMS: known(millis(v.ProbeAge), answered), StalenessMS: known(millis(v.Staleness), v.StalenessKnown), ReadsFlying: v.Flying,
		})
	}
	return x
}
