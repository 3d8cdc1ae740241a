package pgcluster

import (
	"strings"
	"testing"
)

func TestConfigRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg  Config
		want string
	}{
		"negative replicas": {Config{Replicas: -1}, "Config.Replicas"},
		"too many replicas": {Config{Replicas: 9}, "Config.Replicas"},
		"own setting":       {Config{Settings: map[string]string{"port": "1"}}, "Config.Settings: port"},
		"setting's name":    {Config{PrimarySettings: map[string]string{"a b": "1"}}, "Config.PrimarySettings"},
		"line break":        {Config{ReplicaSettings: map[string]string{"a": "1\nport=2"}}, "Config.ReplicaSettings"},
		"no parent":         {Config{Install: Install{Major: 15}, Parent: "/nonexistent/folder"}, "Config.Parent"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tc.cfg.withDefaults(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one that says %q", err, tc.want)
			}
		})
	}
}

func TestSettingsOfTheRoleWin(t *testing.T) {
	cfg := Config{Settings: map[string]string{"shared_buffers": "32MB", "work_mem": "1MB"}}
	got := cfg.settings(map[string]string{"shared_buffers": "64MB"})
	if got["shared_buffers"] != "64MB" || got["work_mem"] != "1MB" || got["fsync"] != "off" {
		t.Errorf("settings = %v", got)
	}
	cfg.Fsync = true
	if got := cfg.settings(nil); got["fsync"] != "on" || got["shared_buffers"] != "32MB" {
		t.Errorf("settings = %v", got)
	}
}

func TestRenderSettings(t *testing.T) {
	got := renderSettings(map[string]string{"b": `it's C:\x`, "a": ""})
	if want := "a = ''\nb = 'it''s C:\\\\x'\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParsePIDFile(t *testing.T) {
	starting := "4711\n/tmp/d\n1700000000\n5432\n/tmp\n127.0.0.1\n"
	for name, tc := range map[string]struct {
		text string
		want pidFile
		ok   bool
	}{
		"empty":      {"", pidFile{}, false},
		"dangerous":  {"1\n", pidFile{}, false},
		"first line": {"4711\n", pidFile{pid: 4711}, true},
		"starting":   {starting + " 131085     32793\nstarting\n", pidFile{pid: 4711, shm: "32793"}, true},
		"ready":      {starting + " 131085     32793\nready   \n", pidFile{pid: 4711, shm: "32793", ready: true}, true},
		"standby":    {starting + "\nstandby \n", pidFile{pid: 4711, ready: true}, true},
		"stopping":   {starting + "\nstopping\n", pidFile{pid: 4711}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parsePIDFile(tc.text)
			if got != tc.want || (err == nil) != tc.ok {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestFolderRelease(t *testing.T) {
	for dir, want := range map[string]int{
		"/usr/lib/postgresql/15/bin":                              15,
		"/usr/lib/postgresql/9.6/bin":                             9,
		"/usr/pgsql-17/bin":                                       17,
		"/opt/homebrew/opt/postgresql@18/bin":                     18,
		"/Applications/Postgres.app/Contents/Versions/latest/bin": 0,
	} {
		if got := folderRelease(dir); got != want {
			t.Errorf("%s: %d, want %d", dir, got, want)
		}
	}
}
