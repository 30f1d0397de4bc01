package web

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestFailedRendering makes sure that what cannot be made is logged, answered with an
// error alone, and tried again, though no sooner than what can be made.
func TestFailedRendering(t *testing.T) {
	var log bytes.Buffer
	broken, tries := true, 0
	clock := time.Unix(1e9, 0)
	r := &rendering{
		contentType: "text/html; charset=utf-8",
		render: func(w io.Writer, _ time.Time) error {
			tries++
			clock = clock.Add(time.Minute)
			if _, err := io.WriteString(w, "text"); err != nil {
				return err
			}
			if broken {
				return errors.New("out of ink")
			}
			return nil
		},
		now: func() time.Time { return clock }, logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/x", nil))
	if w.Code != 500 || w.Body.String() != "Internal Server Error\n" || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("got %d, %v: %s", w.Code, w.Header(), w.Body)
	}
	if !strings.Contains(log.String(), "out of ink") || !strings.Contains(log.String(), "path=/x") {
		t.Errorf("log: %s", log.String())
	}
	broken = false
	w = httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/x", nil))
	if w.Code != 500 || tries != 1 {
		t.Errorf("at once after that got %d: %s, tried %d times", w.Code, w.Body, tries)
	}
	clock = clock.Add(time.Second)
	w = httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/x", nil))
	if w.Code != 200 || w.Body.String() != "text" {
		t.Errorf("then got %d: %s", w.Code, w.Body)
	}
}
