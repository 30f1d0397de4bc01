package terminal

import (
	"fmt"
	"io"
	"sync"

	"rdma_exporter/internal/state"
)

// Progress shows how an audit gets on: a line for each finished run. Its methods can
// be called by any number of goroutines at once.
type Progress struct {
	w      io.Writer
	screen Screen
	total  func() int

	mu sync.Mutex
	// done are the devices on which a run of each kind has finished.
	done map[state.Kind]map[string]bool
}

// NewProgress returns a Progress that writes to w, which total tells how many devices
// there are. What cannot be written is lost.
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
	l := &page{screen: p.screen}
	count := fmt.Sprintf("%d/%d", len(p.done[run.Kind]), p.total())
	line := []span{
		l.of(faint, fmt.Sprintf("%-15s %7s ", kindName(run.Kind), count)),
		l.of(strong, fmt.Sprintf("%-16s ", run.Device)),
		l.of(outcomeStyle(run.Outcome), fmt.Sprintf("%-7s ", run.Outcome)),
		l.of(plain, fmt.Sprintf("%8s", duration(run.Duration.Seconds()))),
	}
	if run.Error != "" {
		line = append(line, l.cut("  "+run.Error, p.screen.width()-width(line)))
	}
	l.line(line...)
	_, _ = io.WriteString(p.w, l.buf.String()) // There is nobody to tell.
}

// Forget does nothing: what has finished stays so.
func (p *Progress) Forget(string) {}
