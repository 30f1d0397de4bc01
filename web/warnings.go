package web

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// warnings logs what is said about connections, with a bound on how often. It is safe
// for concurrent use.
type warnings struct {
	logger *slog.Logger
	now    func() time.Time

	mu sync.Mutex
	// since is when the present period began; logged and dropped count in it.
	since           time.Time
	logged, dropped int
}

// Write implements io.Writer for the log of a server: one message.
func (l *warnings) Write(message []byte) (int, error) {
	l.warn(strings.TrimSpace(string(message)))
	return len(message), nil
}

// warn logs a message at level warn, unless there were too many.
func (l *warnings) warn(message string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if age := now.Sub(l.since); l.since.IsZero() || age < 0 || age >= warningsPeriod {
		if l.dropped > 0 {
			l.logger.Warn("Messages about connections were left out", "messages", l.dropped, "since", l.since.UTC().Format(time.RFC3339))
		}
		l.since, l.logged, l.dropped = now, 0, 0
	}
	if l.logged == maxWarnings {
		l.dropped++
		return
	}
	l.logged++
	l.logger.Warn(message, args...)
}
