package child

import (
	"slices"
	"strings"
	"sync"

	"rdma_exporter/internal/text"
)

// Bounds of a child's standard error, in bytes.
const (
	// maxKept has room for the stack traces that follow the line in which a Go runtime says
	// why the process ends.
	maxKept  = 64 << 10
	MaxTail  = 8 << 10
	maxFatal = 256
	maxLast  = 256
)

// Stderr is the saved part of a child's standard error.
type Stderr struct {
	// Tail is the end of it, the last MaxTail bytes.
	Tail string
	// Fatal is the first line in which a Go runtime says why the process ends. Empty if
	// absent.
	Fatal string
}

// Reason returns the line that best explains why the child ended. Empty if it wrote nothing.
func (s Stderr) Reason() string {
	if s.Fatal != "" {
		return text.OneLine(s.Fatal, maxFatal)
	}
	lines := strings.Split(strings.TrimSpace(s.Tail), "\n")
	return text.OneLine(strings.Join(lines[max(0, len(lines)-3):], " | "), maxLast)
}

// tail is a writer that keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	t.kept = slices.Delete(t.kept, 0, max(0, len(t.kept)-maxKept))
	return len(b), nil
}

func (t *tail) get() Stderr {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := string(t.kept)
	s := Stderr{Tail: strings.ToValidUTF8(all[max(0, len(all)-MaxTail):], "\uFFFD")}
	for line := range strings.Lines(all) {
		word, _, ok := strings.Cut(line, ": ")
		if ok && slices.Contains([]string{"panic", "fatal error", "SIGABRT", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGTRAP"}, word) {
			s.Fatal = line[:min(len(line), maxFatal)]
			break
		}
	}
	return s
}
