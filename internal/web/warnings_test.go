package web

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestWarnings verifies that clients cannot fill the log, and that messages left out are
// counted.
func TestWarnings(t *testing.T) {
	var text bytes.Buffer
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	logger := bounded(slog.New(slog.NewTextHandler(&text, nil)), func() time.Time { return now })
	server := slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
	lines := func(part string) int { return strings.Count(text.String(), part) }
	for range 1000 {
		server.Println("http: TLS handshake error")
	}
	if got := lines("level=WARN msg=\"http: TLS handshake error\"\n"); got != maxWarnings || lines("\n") != maxWarnings {
		t.Errorf("%d messages: %s", got, text.String())
	}
	now = now.Add(warningsPeriod)
	logger.Warn("cut", "client", "x")
	if lines("left out") != 1 || lines("messages=990") != 1 || lines("msg=cut client=x") != 1 {
		t.Errorf("after a period: %s", text.String())
	}
	// Messages below warn are not limited.
	for range 2 * maxWarnings {
		logger.Info("else")
	}
	if lines("msg=else") != 2*maxWarnings {
		t.Errorf("at level info: %s", text.String())
	}
	now = now.Add(warningsPeriod)
	for range 2 * maxWarnings {
		logger.With("a", "b").WithGroup("c").Error("back")
	}
	if lines("msg=back") != maxWarnings || lines("left out") != 1 {
		t.Errorf("of derived loggers: %s", text.String())
	}
}
