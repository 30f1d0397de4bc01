package healthcheck_test

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/internal/healthcheck"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/test/running"
)

// verdictOf returns what an exporter answers to a client with the file of --http.config.file.
func verdictOf(t *testing.T, given, file string, query url.Values) (verdict.Verdict, error) {
	t.Helper()
	client, err := healthcheck.Client("--http.config.file", file)
	if err != nil {
		return verdict.Verdict{}, err
	}
	u := running.Must(healthcheck.Target(given, patience, ""))(t)
	return healthcheck.Verdict(t.Context(), client, u, query, patience)
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
			asked := make(chan string, 20) // A client follows 10 redirects at most.
			s := serving(t, nil, func(w http.ResponseWriter, r *http.Request) {
				asked <- r.URL.String()
				w.Header().Set("Location", "/elsewhere")
				answering(c.code, c.body)(w, r)
			})
			found, err := verdictOf(t, s.URL, "", url.Values{"for": {"1m"}, "accept": {"qp_error", "port_down/port 2"}})
			if want := strings.ReplaceAll(c.line, "HOST", s.Listener.Addr().String()); found.Status != c.status || found.Line != want {
				t.Errorf("status %d, %q; want %d, %q", found.Status, found.Line, c.status, want)
			}
			if (err != nil) != strings.Contains(c.line, "exporter_") || err != nil && !strings.HasPrefix(err.Error(), s.URL+"/api/v1/verdict?") {
				t.Errorf("error: %v", err)
			}
			close(asked)
			if want, got := "/api/v1/verdict?accept=qp_error&accept=port_down%2Fport+2&for=1m", <-asked; got != want {
				t.Errorf("it asked for %q, want %q", got, want)
			}
		})
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
		running.Check(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	write("password", "sesame")
	const auth = "basic_auth: {username: probe, password_file: password}\n"
	trusting := write("trusting.yml", auth+"tls_config: {ca_file: ca.pem, server_name: example.com}\n")
	for name, c := range map[string]struct {
		file   string
		status int
		says   string
	}{
		"no configuration": {"", 2, "rdma exporter_unreachable: "},
		"another CA":       {write("auth.yml", auth), 2, "rdma exporter_unreachable: "},
		"its CA":           {trusting, 1, "rdma stuck mlx5_3: x; do=reboot"},
		"no password":      {write("ca.yml", "tls_config: {ca_file: ca.pem, server_name: example.com}\n"), 2, "rdma exporter_refused: 401 " + http.StatusText(http.StatusUnauthorized) + " by "},
		"no such CA":       {write("none.yml", "tls_config: {ca_file: none.pem}\n"), 0, "--http.config.file: "},
		"not such a file":  {write("odd.yml", "tls_server_config: {}\n"), 0, "--http.config.file: "},
		"no file":          {dir + "/none", 0, "--http.config.file: "},
		"a pipe, no file":  {"/dev/null", 0, "--http.config.file: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := verdictOf(t, s.URL, c.file, nil)
			said := found.Line
			if c.status == 0 && err != nil {
				said = err.Error()
			}
			if found.Status != c.status || !strings.HasPrefix(said, c.says) || (err == nil) != (c.status == 1) || strings.Contains(fmt.Sprint(said, err), "sesame") {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}
