// Package running is what tests that run programs have in common.
package running

import (
	"bytes"
	"regexp"
	"sync"
)

// Output keeps what a process writes. The zero value is empty and ready for use; it is
// safe for concurrent use.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns all that was written.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Tail returns the last n bytes at most.
func (o *Output) Tail(n int) string {
	s := o.String()
	return s[max(0, len(s)-n):]
}

// Listening returns the host and port at which an exporter or Prometheus says that it listens.
// Empty before it says so.
func (o *Output) Listening() string {
	m := regexp.MustCompile(`msg="Listening on" (?:component=web )?address=(\S+)\s`).FindStringSubmatch(o.String())
	if m == nil {
		return ""
	}
	return m[1]
}
