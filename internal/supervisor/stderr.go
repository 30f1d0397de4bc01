package supervisor

import (
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Bounds of a child's standard error, in bytes.
const (
	// maxKept has room for the stack traces that follow the line in which a Go runtime says
	// why the process ends.
	maxKept  = 64 << 10
	maxTail  = 8 << 10
	maxFatal = 256
	maxLast  = 256
)

// stderr is the saved part of a child's standard error.
type stderr struct {
	// tail is the end of it.
	tail string
	// fatal is the first line in which a Go runtime says why the process ends. Empty if
	// absent.
	fatal string
}

// reason returns the line that best explains why the child ended. Empty if it wrote nothing.
func (s stderr) reason() string {
	if s.fatal != "" {
		return oneLine(s.fatal, maxFatal)
	}
	lines := strings.Split(strings.TrimSpace(s.tail), "\n")
	return oneLine(strings.Join(lines[max(0, len(lines)-3):], " | "), maxLast)
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

func isFatal(line string) bool {
	word, _, ok := strings.Cut(line, ": ")
	return ok && slices.Contains([]string{"panic", "fatal error", "SIGABRT", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGTRAP"}, word)
}

func (t *tail) get() stderr {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := string(t.kept)
	s := stderr{tail: strings.ToValidUTF8(all[max(0, len(all)-maxTail):], "\uFFFD")}
	for line := range strings.Lines(all) {
		if isFatal(line) {
			s.fatal = line[:min(len(line), maxFatal)]
			break
		}
	}
	return s
}

// oneLine returns s cut down to n bytes, at the border of a character, with
// nothing in it that does not print.
func oneLine(s string, n int) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")))
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}
