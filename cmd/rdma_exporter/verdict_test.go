package main

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
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

// TestVerdictAnswers verifies that what is no verdict becomes a line with status 2, and that only verdicts are passed on.
func TestVerdictAnswers(t *testing.T) {
	t.Parallel()
	denied := http.StatusText(http.StatusUnauthorized)
	for name, c := range map[string]struct {
		code   int
		body   string
		status int
		line   string // With HOST for the address.
	}{
		"ok":              {200, `{"status":0,"line":"rdma ok: 8 of 8 ports active, 8 devices"}`, 0, "rdma ok: 8 of 8 ports active, 8 devices"},
		"bad":             {200, `{"status":1,"line":"rdma port_down mlx5_3/1: 7 of 8 ports active; do=network","port":1}`, 1, "rdma port_down mlx5_3/1: 7 of 8 ports active; do=network"},
		"unknown":         {200, `{"status":2,"line":"rdma too_new: the exporter has just started; do=none"}`, 2, "rdma too_new: the exporter has just started; do=none"},
		"another status":  {200, `{"status":3,"line":"rdma ok: x"}`, 2, "rdma exporter_refused: no verdict by HOST; do=exporter"},
		"another line":    {200, `{"status":0,"line":"rdma $(reboot)"}`, 2, "rdma exporter_refused: no verdict by HOST; do=exporter"},
		"no line":         {200, `{"status":0}`, 2, "rdma exporter_refused: no verdict by HOST; do=exporter"},
		"two lines":       {200, `{"status":0,"line":"rdma ok: x\nrdma"}`, 2, "rdma exporter_refused: no verdict by HOST; do=exporter"},
		"no JSON":         {200, "rdma_exporter is healthy.\n", 2, "rdma exporter_refused: no verdict by HOST; do=exporter"},
		"endless":         {200, `{"line":"` + strings.Repeat("x", 1<<20), 2, "rdma exporter_refused: no verdict by HOST; do=exporter"},
		"password":        {401, "no\n", 2, "rdma exporter_refused: 401 " + denied + " by HOST; do=exporter"},
		"an old exporter": {404, "404 page not found\n", 2, "rdma exporter_refused: 404 Not Found by HOST; do=exporter"},
		"elsewhere":       {302, "", 2, "rdma exporter_refused: 302 Found by HOST; do=exporter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan string, 1)
			s := serving(t, nil, func(w http.ResponseWriter, r *http.Request) {
				asked <- r.URL.String()
				w.Header().Set("Location", "/elsewhere")
				answering(c.code, c.body)(w, r)
			})
			status, out, errs := judged(t, "--url="+s.URL, "--for=1m", "--accept=qp_error", "--accept=port_down/port 2", "--expect-active-ports=8")
			address := s.Listener.Addr().String()
			if want := strings.ReplaceAll(c.line, "HOST", address) + "\n"; status != c.status || out != want {
				t.Errorf("status %d, %q; want %d, %q", status, out, c.status, want)
			}
			if (errs != "") != strings.Contains(c.line, "exporter_") || strings.Count(errs, "\n") > 1 {
				t.Errorf("standard error: %q", errs)
			}
			if want := "/api/v1/verdict?accept=qp_error&accept=port_down%2Fport+2&expect_active_ports=8&for=1m"; <-asked != want {
				t.Errorf("it did not ask for %s", want)
			}
		})
	}
}

// TestVerdictAlone verifies what is said without an exporter, and that an audit replaces it only with --probe.
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
}

// TestVerdictTLS verifies that the certificate of the exporter is checked against the CA of --http.config.file, and
// that a password is sent only then.
func TestVerdictTLS(t *testing.T) {
	t.Parallel()
	s := serving(t, &tls.Config{}, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "probe" || password != "sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answering(200, `{"status":1,"line":"rdma stuck mlx5_3: x; do=reboot"}`)(w, r)
	})
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	write("password", "sesame")
	const auth = "basic_auth: {username: probe, password_file: password}\n"
	trusting := write("trusting.yml", auth+"tls_config: {ca_file: ca.pem, server_name: example.com}\n")
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"no configuration":  {nil, 2, "rdma exporter_unreachable: "},
		"another CA":        {[]string{"--http.config.file=" + write("auth.yml", auth)}, 2, "rdma exporter_unreachable: "},
		"its CA":            {[]string{"--http.config.file=" + trusting}, 1, "rdma stuck mlx5_3: x; do=reboot\n"},
		"no password":       {[]string{"--http.config.file=" + write("ca.yml", "tls_config: {ca_file: ca.pem, server_name: example.com}\n")}, 2, "rdma exporter_refused: 401 " + http.StatusText(http.StatusUnauthorized) + " by "},
		"no audit instead":  {[]string{"--probe"}, 2, "rdma exporter_unreachable: "},
		"no such CA":        {[]string{"--http.config.file=" + write("none.yml", "tls_config: {ca_file: none.pem}\n")}, 2, "--http.config.file: "},
		"not such a file":   {[]string{"--http.config.file=" + write("odd.yml", "tls_server_config: {}\n")}, 2, "--http.config.file: "},
		"no file":           {[]string{"--http.config.file=" + dir + "/none"}, 2, "--http.config.file: "},
		"a pipe, no file":   {[]string{"--http.config.file=/dev/null"}, 2, "--http.config.file: "},
		"password in a URL": {[]string{"--url=http://a:b@" + s.Listener.Addr().String()}, 2, "put them into --http.config.file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := c.args
			if name != "password in a URL" {
				args = append(args, "--url="+s.URL)
			}
			status, out, errs := judged(t, args...)
			usage := !strings.HasPrefix(c.says, "rdma ")
			if status != c.status || !strings.Contains(out+errs, c.says) || (out == "") != usage || strings.Contains(out+errs, "sesame") {
				t.Errorf("status %d, %q, %q", status, out, errs)
			}
		})
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
