package pgcluster

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Config says what Start starts. The zero value is one primary without replicas,
// of the installation that Find("") finds, in the system's temporary folder.
type Config struct {
	// Install is the set of programs to run. Zero: Find("").
	Install Install
	// Replicas is the number of streaming standbys. Zero: none.
	Replicas int
	// Settings are server settings by name, for all servers, over the package's
	// own. Where servers listen is not theirs to say: port, listen_addresses,
	// unix_socket_directories, cluster_name and primary_conninfo are refused.
	Settings map[string]string
	// PrimarySettings and ReplicaSettings are over Settings, for servers that
	// start as the primary and as replicas.
	PrimarySettings, ReplicaSettings map[string]string
	// Fsync makes the servers flush to disk. Off by default: the operating
	// system's cache survives every fault that this package makes, and flushing
	// costs most of the time of a test.
	Fsync bool
	// Links makes each standby replicate through a proxy of its own, by which
	// the link can be cut or stalled: [Server.Link]. Off by default.
	Links bool
	// Parent is the folder that the cluster's own folder is made in. Empty:
	// os.TempDir(). The user that the servers run as must be able to enter it.
	Parent string
	// Log receives a line for each step, never two at a time. Nil: no lines.
	Log func(string)
}

// reserved are the settings that the package needs to find its own servers.
var reserved = []string{"port", "listen_addresses", "unix_socket_directories", "cluster_name", upstreamSetting}

var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// maxReplicas keeps within the default max_wal_senders, with two to spare for
// pg_basebackup's own connections.
const maxReplicas = 8

func (c Config) withDefaults() (Config, error) {
	if c.Replicas < 0 || c.Replicas > maxReplicas {
		return c, fmt.Errorf("pgcluster: Config.Replicas is %d; it must be 0 to %d", c.Replicas, maxReplicas)
	}
	for field, set := range map[string]map[string]string{
		"Settings": c.Settings, "PrimarySettings": c.PrimarySettings, "ReplicaSettings": c.ReplicaSettings,
	} {
		if err := checkSettings(set); err != nil {
			return c, fmt.Errorf("pgcluster: Config.%s: %w", field, err)
		}
		for _, name := range reserved {
			if _, ok := set[name]; ok {
				return c, fmt.Errorf("pgcluster: Config.%s: %s is set by the package; leave it out", field, name)
			}
		}
	}
	if c.Install == (Install{}) {
		inst, err := Find("")
		if err != nil {
			return c, err
		}
		c.Install = inst
	}
	parent, err := realParent(c.Parent)
	if err != nil {
		return c, fmt.Errorf("pgcluster: Config.Parent: %w", err)
	}
	c.Parent = parent
	if c.Log == nil {
		c.Log = func(string) {}
	}
	return c, nil
}

// realParent is the parent folder without symbolic links, because processes are
// recognised by the folder they work in and the kernel names that without links.
func realParent(parent string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(parent)
}

func checkSettings(set map[string]string) error {
	for name, value := range set {
		if !settingName.MatchString(name) {
			return fmt.Errorf("%q is not the name of a setting", name)
		}
		if strings.ContainsAny(value, "\n\r\x00") {
			return fmt.Errorf("the value of %s has a line break or a zero byte", name)
		}
	}
	return nil
}

// settings merges the package's settings with the configured ones for one role.
func (c Config) settings(role map[string]string) map[string]string {
	all := map[string]string{
		"fsync":                        onOff(c.Fsync),
		"shared_buffers":               "16MB",
		"max_connections":              "100",
		"wal_level":                    "replica",
		"max_wal_senders":              "10",
		"wal_keep_size":                "256MB", // a stopped replica finds what it missed
		"wal_log_hints":                "on",    // for pg_rewind
		"hot_standby":                  "on",
		"log_min_messages":             "warning",
		"logging_collector":            "off", // errors quote the tail of the one log file
		"lc_messages":                  "C",   // and are recognised by their English text
		"unix_socket_permissions":      "0700",
		"wal_receiver_status_interval": "1s",
		"wal_retrieve_retry_interval":  "100ms", // reconnect quickly after a fault
		// Segments of this kind are files in the data folder: those of a killed
		// server go with the folder instead of staying in /dev/shm.
		"dynamic_shared_memory_type": "mmap",
	}
	maps.Copy(all, c.Settings)
	maps.Copy(all, role)
	return all
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// renderSettings is the text of a configuration file. Backslashes are doubled
// because the server reads them as escapes inside quotes.
func renderSettings(set map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(set)) {
		value := strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(set[name])
		fmt.Fprintf(&b, "%s = '%s'\n", name, value)
	}
	return b.String()
}
