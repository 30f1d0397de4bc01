package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHealthcheck verifies the exit statuses, and that only a good answer is on standard output.
func TestHealthcheck(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/-/healthy" {
			http.Error(w, "waiting", http.StatusServiceUnavailable)
		}
	}))
	defer s.Close()
	for _, c := range []struct {
		flag      string
		status    int
		out, errs string
	}{
		{"--url=" + s.URL, exitOK, s.URL + "/-/healthy: 200 OK: \n", ""},
		{"--ready", exitFailed, "", programName + ": error: " + s.URL + "/-/ready: 503 Service Unavailable: waiting\n"},
		{"--url=ftp://x", exitUsage, "", programName + `: error: --url is "ftp://x": use http://HOST:PORT or https://HOST:PORT, try --help` + "\n"},
		{"--url=http://alice:sesame@x", exitUsage, "", programName + ": error: --url has a user or a password: drop them, none is needed, try --help\n"},
		{"--timeout=0s", exitUsage, "", programName + ": error: --timeout is 0s: use a duration above 0s, try --help\n"},
		{"--timeout=x", exitUsage, "", "--timeout: "},
		{"--config.file=x", exitUsage, "", "--config.file"},
	} {
		args := []string{"healthcheck", c.flag}
		if !strings.HasPrefix(c.flag, "--url") {
			args = append(args, "--url="+s.URL)
		}
		if !strings.HasPrefix(c.flag, "--timeout") {
			args = append(args, "--timeout=1m")
		}
		var out, errs bytes.Buffer
		status := run(t.Context(), args, stdio{in: strings.NewReader(""), out: &out, err: &errs})
		if status != c.status || out.String() != c.out || !strings.Contains(errs.String(), c.errs) || strings.Count(errs.String(), "\n") != min(1, status) {
			t.Errorf("%s: status %d, output %q, errors %q; want %d, %q, %q", c.flag, status, &out, &errs, c.status, c.out, c.errs)
		}
	}
}
