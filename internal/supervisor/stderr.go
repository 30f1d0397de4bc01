package supervisor

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"unicode"
)

// How much is kept of what a child writes to its standard error, in bytes.
const (
	maxTail  = 8 << 10
	maxFatal = 256
	maxLast  = 256
)

// stderr is what is kept of a child's standard error.
type stderr struct {
	// tail is the end of it.
	tail string
	// fatal is the first line in which a Go runtime says why the process ends;
	// empty if there was none. The stack traces that follow such a line can be
	// longer than tail.
	fatal string
}

// reason returns the line that tells best why the child ended: at most some
// hundred bytes, on one line; empty if the child wrote nothing.
func (s stderr) reason() string {
	if s.fatal != "" {
		return oneLine(s.fatal, maxFatal)
	}
	lines := strings.Split(strings.TrimSpace(s.tail), "\n")
	return oneLine(strings.Join(lines[max(0, len(lines)-3):], " | "), maxLast)
}

// tail is a writer that keeps the end of what is written to it.
type tail struct {
	mu    sync.Mutex
	kept  []byte
	line  []byte
	fatal string
}

// Write implements io.Writer. It takes everything.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	t.scan(b)
	if len(b) > maxTail {
		b = b[len(b)-maxTail:]
	}
	if over := len(t.kept) + len(b) - maxTail; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	t.kept = append(t.kept, b...)
	return n, nil
}

// ReadFrom implements io.ReaderFrom. Most children write nothing, and io.Copy would
// have a buffer of 32 KiB for each.
func (t *tail) ReadFrom(r io.Reader) (int64, error) {
	var all int64
	b := make([]byte, 1<<10)
	for {
		n, err := r.Read(b)
		all += int64(n)
		_, _ = t.Write(b[:n]) // which takes everything
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, err
		}
	}
}

// scan looks for the fatal line.
func (t *tail) scan(b []byte) {
	for t.fatal == "" && len(b) > 0 {
		part, rest, whole := bytes.Cut(b, []byte{'\n'})
		b = rest
		t.line = append(t.line, part[:min(len(part), maxFatal-len(t.line))]...)
		if !whole {
			return
		}
		if isFatal(string(t.line)) {
			t.fatal = string(t.line)
		}
		t.line = t.line[:0]
	}
}

func isFatal(line string) bool {
	for _, p := range []string{"panic: ", "fatal error: ", "SIGABRT: ", "SIGSEGV: ", "SIGBUS: ", "SIGFPE: ", "SIGILL: ", "SIGSYS: ", "SIGTRAP: "} {
		if strings.HasPrefix(line, p) {
			return true
		}
	}
	return false
}

func (t *tail) get() stderr {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := stderr{tail: strings.ToValidUTF8(string(t.kept), "\uFFFD"), fatal: t.fatal}
	if s.fatal == "" && isFatal(string(t.line)) {
		s.fatal = string(t.line)
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
