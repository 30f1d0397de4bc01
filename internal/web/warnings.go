package web

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// bounded returns a logger to the same log that limits what clients can cause: of messages at
// level warn and above, it logs maxWarnings at once and as many in each warningsPeriod, and
// counts the others. It is safe for concurrent use.
func bounded(logger *slog.Logger, now func() time.Time) *slog.Logger {
	limiter := rate.NewLimiter(rate.Every(warningsPeriod/maxWarnings), maxWarnings)
	return slog.New(bound{logger.Handler(), now, limiter, new(atomic.Int64)})
}

type bound struct {
	slog.Handler
	now     func() time.Time
	limiter *rate.Limiter
	// dropped counts the messages left out since the last one that was logged.
	dropped *atomic.Int64
}

// Handle implements slog.Handler.
func (b bound) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		if !b.limiter.AllowN(b.now(), 1) {
			b.dropped.Add(1)
			return nil
		}
		if n := b.dropped.Swap(0); n > 0 {
			slog.New(b.Handler).WarnContext(ctx, "Messages were left out", "messages", n)
		}
	}
	return b.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (b bound) WithAttrs(attrs []slog.Attr) slog.Handler {
	b.Handler = b.Handler.WithAttrs(attrs)
	return b
}

// WithGroup implements slog.Handler.
func (b bound) WithGroup(name string) slog.Handler {
	b.Handler = b.Handler.WithGroup(name)
	return b
}
