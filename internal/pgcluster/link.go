package pgcluster

import (
	"net"
	"strconv"

	"github.com/tidegatedb/tidegate/internal/netfault"
)

// Link is the proxy through which this standby replicates. It is nil without
// Config.Links, and for a server that has never been a standby: the primary gets
// its link when it first follows another server. A link outlives restarts,
// [Server.Follow] and [Server.Rewind], which turn it to the new upstream and
// leave a fault in force. Only replication goes through it: copies and rewinds
// take the direct way.
//
// A stalled link ends nobody's wait: a [Fast] stop of the upstream waits for the
// standby behind it, and both sides notice by wal_sender_timeout and
// wal_receiver_timeout only. The cluster closes its links when it stops.
func (s *Server) Link() *netfault.Proxy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link
}

// linkTo turns the server's link to an upstream, under op. Open connections are
// reset: they lead to the old one.
func (s *Server) linkTo(upstream *Server) (*netfault.Proxy, error) {
	if s.cluster.life.Err() != nil {
		return nil, ErrStopped // nobody would close it
	}
	target := net.JoinHostPort("127.0.0.1", strconv.Itoa(upstream.Port))
	if link := s.Link(); link != nil {
		return link, link.Retarget(target)
	}
	link, err := netfault.Listen(target)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link = link
	return link, nil
}

// closeLink ends the link, if there is one.
func (s *Server) closeLink() {
	if link := s.Link(); link != nil {
		link.Close()
	}
}
