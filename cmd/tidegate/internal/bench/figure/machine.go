package figure

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Machine is what the figures were measured on. What the system does not tell
// is empty, or negative.
type Machine struct {
	CPU        string  `json:"cpu"`
	Cores      int     `json:"cores"`
	Kernel     string  `json:"kernel"`
	PostgreSQL string  `json:"postgresql"`
	Go         string  `json:"go"`
	GOMAXPROCS int     `json:"gomaxprocs"`
	Load       float64 `json:"load_average"` // of the last minute, at the start
}

// ThisMachine looks at the machine.
func ThisMachine() Machine {
	m := Machine{
		CPU: runtime.GOARCH, Cores: runtime.NumCPU(), Kernel: runtime.GOOS,
		Go: runtime.Version(), GOMAXPROCS: runtime.GOMAXPROCS(0), Load: -1,
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if name := cpuModel(string(text)); name != "" {
			m.CPU = name
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel += " " + strings.TrimSpace(string(text))
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		if load, err := strconv.ParseFloat(strings.SplitN(string(text), " ", 2)[0], 64); err == nil {
			m.Load = load
		}
	}
	return m
}

func cpuModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// quietLoad is the load average up to which a machine passes as quiet: the
// operations of a comparison themselves keep one core busy.
const quietLoad = 0.3

// Busy reports whether others used the machine when the measurements began.
func (m *Machine) Busy() bool { return m.Load > quietLoad }

// String is one line about the machine.
func (m *Machine) String() string {
	load := "load average unknown"
	if m.Load >= 0 {
		load = fmt.Sprintf("load average %.2f at the start", m.Load)
	}
	return fmt.Sprintf("%s, %d cores, %s; PostgreSQL %s; %s, GOMAXPROCS %d; %s",
		m.CPU, m.Cores, m.Kernel, m.PostgreSQL, m.Go, m.GOMAXPROCS, load)
}
