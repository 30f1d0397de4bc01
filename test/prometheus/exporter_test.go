package prometheus_test

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// exporter is a running exporter.
type exporter struct {
	*process
	// address is where it listens, which is the label instance.
	address string
}

// startExporter starts the exporter on a free port, and waits until it listens.
func startExporter(t testing.TB, name string, args ...string) *exporter {
	t.Helper()
	p := launch(t, name, binary, append([]string{"--web.listen-address=127.0.0.1:0"}, args...)...)
	return &exporter{process: p, address: p.listening(t)}
}

// exposition returns what the exporter serves to a scrape.
func (e *exporter) exposition(t testing.TB) string {
	t.Helper()
	e.running(t)
	client := &http.Client{Timeout: patience}
	response, err := client.Get("http://" + e.address + "/metrics")
	if err != nil {
		t.Fatalf("scrape %s: %v", e.name, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("scrape %s: %s, %v", e.name, response.Status, err)
	}
	return string(text)
}

// checkExposition has promtool judge what the exporter serves.
func (e *exporter) checkExposition(t testing.TB) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), find(t, "promtool"), "check", "metrics")
	text := e.exposition(t)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) != 0 {
		t.Errorf("promtool check metrics, of %s: %v\n%s", e.name, err, out)
	}
}

// find returns the path of a program that comes with Prometheus, without which
// nothing can be proven.
func find(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is needed; make test-tools unpacks it, and puts it into the PATH of the tests that make runs: %v", program, err)
	}
	return path
}
