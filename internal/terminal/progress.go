package terminal

import (
	"fmt"
	"io"
	"sync"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Progress shows the progress of an audit, a line for each finished run. It is safe for
// concurrent use.
type Progress struct {
	w      io.Writer
	screen Screen
	total  func() int

	mu sync.Mutex
	// done are the devices on which a run of each kind has finished.
	done map[state.Kind]map[string]bool
}

// NewProgress returns a Progress that writes to w. The number of devices comes from total.
// Lines that cannot be written are lost.
func NewProgress(w io.Writer, screen Screen, total func() int) *Progress {
	return &Progress{w: w, screen: screen, total: total, done: make(map[state.Kind]map[string]bool)}
}

// Observe shows a finished run.
func (p *Progress) Observe(run *state.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done[run.Kind] == nil {
		p.done[run.Kind] = make(map[string]bool)
	}
	p.done[run.Kind][run.Device] = true
	count := fmt.Sprintf("%d/%d", len(p.done[run.Kind]), p.total())
	line := p.screen.in(faint, fmt.Sprintf("%-15s %7s ", kindName(run.Kind), count)) +
		p.screen.in(strong, fmt.Sprintf("%-16s ", run.Device)) +
		p.screen.in(lookOf(run.Outcome), fmt.Sprintf("%-7s ", run.Outcome)) +
		p.screen.clean(fmt.Sprintf("%8s", text.Duration(run.Duration)))
	if room := p.screen.width() - columns(string(line)) - 5; run.Error != "" && room > 0 {
		line += "  " + p.screen.clean(text.Truncate(run.Error, room))
	}
	_, _ = io.WriteString(p.w, p.screen.lay(string(line)+string(hang))) // A lost line does no harm.
}

// Forget does nothing. What has finished stays so.
func (p *Progress) Forget(string) {}
