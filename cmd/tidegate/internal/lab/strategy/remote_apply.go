package strategy

import (
	"fmt"
)

// RemoteApply has the servers keep replicas current: a commit is acknowledged
// when every standby has applied it, and reads go to each replica in turn. It
// pays with the latency of every write, and with all writes while a standby is
// gone. Two standbys apply a commit one after the other, so that a session can
// see what another one wrote on the first and miss it on the second.
type RemoteApply struct{ RoundRobin }

// Name implements Strategy.
func (RemoteApply) Name() string { return "remote-apply" }

// About implements Strategy.
func (RemoteApply) About() string {
	return "commits wait until all standbys have applied them, reads to each replica in turn"
}

// PrimarySettings implements Configurer.
func (RemoteApply) PrimarySettings(standbys int) map[string]string {
	return map[string]string{
		"synchronous_commit":        "remote_apply",
		"synchronous_standby_names": fmt.Sprintf("FIRST %d (*)", standbys),
	}
}
