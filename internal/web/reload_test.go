package web_test

import (
	"errors"
	"strings"
	"testing"
)

// TestReload: who asks is told whether the configuration was reloaded, and why it was not.
func TestReload(t *testing.T) {
	var failure error
	reloads := 0
	c := config(devices())
	c.Reload = func() error {
		reloads++
		return failure
	}
	h := handler(t, c)
	for _, tt := range []struct {
		method string
		err    error
		code   int
		body   string
	}{
		{"POST", nil, 200, "Configuration reloaded.\n"},
		{"PUT", nil, 200, "Configuration reloaded.\n"},
		{"POST", errors.New("line 1:\nno \x1b[2J"), 500, "Cannot reload the configuration: line 1: no \ufffd[2J\n"},
		{"GET", nil, 405, ""},
		{"HEAD", nil, 405, ""},
	} {
		failure = tt.err
		w := get(h, tt.method, "/-/reload")
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.body) {
			t.Errorf("%s: got %d, %q", tt.method, w.Code, w.Body)
		}
	}
	if reloads != 3 {
		t.Errorf("reloaded %d times", reloads)
	}
}
