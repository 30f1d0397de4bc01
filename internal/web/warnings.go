package web

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// bounded returns a logger to the same log as another one that limits what clients can
// cause: of messages at level warn and above, it logs no more than maxWarnings in each
// warningsPeriod, and tells afterwards how many it left out. It is safe for concurrent
// use.
func bounded(logger *slog.Logger, now func() time.Time) *slog.Logger {
	return slog.New(bound{Handler: logger.Handler(), warnings: &warnings{now: now}})
}

type bound struct {
	slog.Handler
	warnings *warnings
}

// Handle implements slog.Handler.
func (b bound) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return b.Handler.Handle(ctx, r)
	}
	// The log may block: nothing is locked meanwhile.
	admitted, dropped, since := b.warnings.admit()
	if dropped > 0 {
		logger := slog.New(b.Handler)
		logger.WarnContext(ctx, "Messages were left out", "messages", dropped, "since", since.UTC().Format(time.RFC3339))
	}
	if !admitted {
		return nil
	}
	return b.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler. What comes of it counts with the rest.
func (b bound) WithAttrs(attrs []slog.Attr) slog.Handler {
	return bound{Handler: b.Handler.WithAttrs(attrs), warnings: b.warnings}
}

// WithGroup implements slog.Handler. What comes of it counts with the rest.
func (b bound) WithGroup(name string) slog.Handler {
	return bound{Handler: b.Handler.WithGroup(name), warnings: b.warnings}
}

// warnings counts messages. It is safe for concurrent use.
type warnings struct {
	now func() time.Time

	mu sync.Mutex
	// since is when the present period began; logged and dropped count in it.
	since           time.Time
	logged, dropped int
}

// admit counts one message, and tells whether it may be logged. If it begins a period,
// it also returns how many were dropped in the one before, and when that began.
func (w *warnings) admit() (admitted bool, dropped int, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if age := now.Sub(w.since); w.since.IsZero() || age < 0 || age >= warningsPeriod {
		dropped, since = w.dropped, w.since
		w.since, w.logged, w.dropped = now, 0, 0
	}
	if w.logged == maxWarnings {
		w.dropped++
		return false, dropped, since
	}
	w.logged++
	return true, dropped, since
}
