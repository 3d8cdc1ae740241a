package report

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// Progress shows one line that changes, on a terminal. It is safe for
// concurrent use; a nil *Progress shows nothing.
type Progress struct {
	w  io.Writer
	mu sync.Mutex
}

// NewProgress returns a Progress on the file if that is a terminal, else nil.
func NewProgress(f *os.File) *Progress {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &Progress{w: f}
}

// Show replaces the line. The terminal cuts it at its edge instead of wrapping
// it, so that the next one replaces all of it.
func (p *Progress) Show(line string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "\r\x1b[K\x1b[?7l%s\x1b[?7h", line)
}

// Say prints a line that stays above the one that changes.
func (p *Progress) Say(format string, args ...any) {
	p.Show(fmt.Sprintf(format, args...))
	p.Keep()
}

// Keep leaves the line as it is and begins a new one.
func (p *Progress) Keep() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.w)
}

// Clear removes the line.
func (p *Progress) Clear() { p.Show("") }

// RunLine is the line for a run: how far it is, what it counted, what is wrong
// with the cluster now.
func RunLine(strategy string, passed, total time.Duration, live *record.Live, trouble string) string {
	reads, replica := live.Reads.Load(), live.Replica.Load()
	head := fmt.Sprintf("%s %d/%d s", strategy, int(passed.Seconds()), int(total.Seconds()))
	if trouble != "" {
		head += ", " + trouble
	}
	parts := []string{
		head,
		fmt.Sprintf("%s reads, %.0f %% on replicas", thousands(int(reads)), 100*share(int(replica), int(reads))),
		fmt.Sprintf("%s stale, %s backward", thousands(int(live.Stale.Load())), thousands(int(live.Backwards.Load()))),
	}
	for _, c := range []struct {
		n    int64
		name string
	}{{live.Waits.Load(), "waited"}, {live.Fallbacks.Load(), "fell back"}, {live.Shed.Load(), "shed"}, {live.Erred.Load(), "failed"}} {
		if c.n > 0 {
			parts = append(parts, thousands(int(c.n))+" "+c.name)
		}
	}
	return strings.Join(parts, " | ")
}
