package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// judged runs the command verdict and returns its status and its outputs.
func judged(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	status = run(t.Context(), append([]string{"verdict", "--timeout=30s"}, args...), stdio{in: strings.NewReader(""), out: &o, err: &e})
	return status, o.String(), e.String()
}

// TestVerdictAlone verifies what is said without an exporter, that an audit replaces it only with --probe, and never
// replaces an answer.
func TestVerdictAlone(t *testing.T) {
	t.Parallel()
	address := running.Refusing(t)
	status, out, errs := judged(t, "--url="+address)
	if want := "rdma exporter_unreachable: " + address + "; do=exporter\n"; status != 2 || out != want || !strings.Contains(errs, "connection refused") {
		t.Errorf("status %d, %q, %q; want %q", status, out, errs, want)
	}
	none := t.TempDir()
	status, out, _ = judged(t, "--url="+address, "--probe", "--path.sysfs="+none, "--expect-devices=8")
	if status != 1 || out != "rdma no_device: 0 of 8 devices; do=driver\n" {
		t.Errorf("without devices: status %d, %q", status, out)
	}
	asked := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.String()
		w.WriteHeader(http.StatusForbidden)
	}))
	defer s.Close()
	status, out, errs = judged(t, "--url="+s.URL, "--probe", "--for=1m", "--accept=qp_error", "--accept=port_down/port 2", "--expect-active-ports=8")
	if want := "rdma exporter_refused: 403 Forbidden by " + s.Listener.Addr().String() + "; do=exporter\n"; status != 2 || out != want || strings.Count(errs, "\n") != 1 {
		t.Errorf("status %d, %q, %q; want %q", status, out, errs, want)
	}
	close(asked)
	if got, want := <-asked, "/api/v1/verdict?accept=qp_error&accept=port_down%2Fport+2&expect_active_ports=8&for=1m"; got != want {
		t.Errorf("it asked for %s, want %s", got, want)
	}
}

func TestVerdictUsage(t *testing.T) {
	t.Parallel()
	for flag, says := range map[string]string{
		"--for=-1s":                "--for: for is \"-1s\": use a duration from 0s to 24h",
		"--for=x":                  "--for: ",
		"--clear-after=11m":        `--clear-after: clear_after is "11m": use a duration from 0s to 10m`,
		"--fail-on=info":           "--fail-on: ",
		"--accept=port_dwon":       "--accept: ",
		"--expect-devices=1.5":     "--expect-devices: ",
		"--expect-active-ports=-1": "--expect-active-ports: ",
		"--timeout=0s":             "--timeout is 0s: use a duration above 0s",
		"--url=ftp://x":            `--url is "ftp://x": use http://HOST:PORT`,
		"--url=http://alice:b@x":   "--url has a user or a password: put them into --http.config.file",
		"--http.config.file=/none": "--http.config.file: ",
		"--brief":                  "unknown long flag '--brief'",
	} {
		var out, errs bytes.Buffer
		status := run(t.Context(), []string{"verdict", flag}, stdio{in: strings.NewReader(""), out: &out, err: &errs})
		if status != exitUsage || out.Len() > 0 || !strings.Contains(errs.String(), says) || strings.Count(errs.String(), "\n") != 1 {
			t.Error(fmt.Sprint(flag, ": status ", status, ", ", out.String(), ", ", errs.String()))
		}
	}
}

// TestChildrenOfAudits verifies that the children of audit and verdict, for which somebody waits, do not give way to other programs.
func TestChildrenOfAudits(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{commandServe: false, commandAudit: true, commandVerdict: true} {
		o, _, _ := parsed(t, command)
		if got := received(t, o).Audit; got != want {
			t.Errorf("%s: an audit: %v, want %v", command, got, want)
		}
	}
}
