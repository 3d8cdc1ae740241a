package admin

import (
	"net/http"
	"net/url"

	"github.com/tidegatedb/tidegate"
)

type rolloutPage struct {
	Clusters []rollout `json:"clusters"`
}

type rollout struct {
	Cluster string `json:"cluster"`
	// Rollout is "on", "off", "shadow" or the share.
	Rollout string `json:"rollout"`
	// Share is the part of the sessions that is routed.
	Share  float64 `json:"share_ratio"`
	Shadow bool    `json:"shadow"`
	// Changeable tells that a PUT can change it.
	Changeable bool `json:"changeable"`
}

func (h *handler) rollout(_ *http.Request, q url.Values) (any, *problem) {
	if q.Has("rollout") {
		return nil, &problem{Status: http.StatusBadRequest, Message: "a GET changes nothing", Field: "rollout", Next: "use PUT or POST, or leave it out"}
	}
	sources, p := h.named(q)
	if p != nil {
		return nil, p
	}
	x := rolloutPage{Clusters: []rollout{}}
	for _, s := range sources {
		x.Clusters = append(x.Clusters, h.rolloutOf(s))
	}
	return x, nil
}

func (h *handler) rolloutOf(s Source) rollout {
	_, changeable := s.(RolloutSource)
	st := s.Status()
	return rollout{
		Cluster: st.Cluster, Rollout: st.Rollout.String(), Share: st.Rollout.Share(), Shadow: st.Rollout.Shadow(),
		Changeable: changeable && h.ChangeRollout,
	}
}

func (h *handler) setRollout(_ *http.Request, q url.Values) (any, *problem) {
	s, p := h.one(q)
	if p != nil {
		return nil, p
	}
	target, ok := s.(RolloutSource)
	if !ok {
		return nil, &problem{Status: http.StatusConflict, Message: "this database cannot change its rollout while it runs", Field: "cluster", Next: "the source needs a method SetRollout"}
	}
	if !q.Has("rollout") {
		return nil, &problem{
			Status: http.StatusBadRequest, Message: "no rollout is given", Field: "rollout",
			Next: "give on, off, shadow or a share such as 0.05, in the URL or as a form",
		}
	}
	r, err := tidegate.ParseRollout(q.Get("rollout"))
	if err != nil {
		return nil, &problem{Status: http.StatusBadRequest, Message: err.Error(), Field: "rollout", Next: "give on, off, shadow or a share such as 0.05"}
	}
	target.SetRollout(r)
	return rolloutPage{Clusters: []rollout{h.rolloutOf(s)}}, nil
}
