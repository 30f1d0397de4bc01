//go:build prometheus

package prometheus_test

import (
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// exporter is a running exporter.
type exporter struct {
	*running.Process
	// address is where it listens, which is the label instance.
	address string
}

// startExporter starts the exporter on a free port, and waits until it listens.
func startExporter(t testing.TB, name string, args ...string) *exporter {
	t.Helper()
	// Each run is a full one, so that what only those see goes on.
	p := running.Launch(t, name, binary, append([]string{"--web.listen-address=127.0.0.1:0", "--probe.full-interval=1s"}, args...)...)
	return &exporter{Process: p, address: p.Listening(t)}
}

// exposition returns what the exporter serves to a scrape. On a busy machine the exporter may
// cut a connection that is slow, so it is asked until it answers.
func (e *exporter) exposition(t testing.TB) (text string) {
	t.Helper()
	client := &http.Client{Timeout: time.Minute}
	running.Eventually(t, e.Name+" answers a scrape", func() bool {
		e.MustRun(t)
		b, err := running.Get(client, "http://"+e.address+"/metrics")
		if err != nil {
			t.Logf("scrape %s: %v", e.Name, err)
		}
		text = string(b)
		return err == nil
	})
	return text
}

// checkExposition has promtool judge what the exporter serves.
func (e *exporter) checkExposition(t testing.TB) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), running.FindPrometheus(t, "promtool"), "check", "metrics")
	// Links are known by their bits a second, and some metrics are about counters.
	odd := regexp.MustCompile(`(?m)^.*(rdma_port_(max_)?rate_bits|rdma_port_(hw_)?counter_).*\n`)
	cmd.Stdin = strings.NewReader(odd.ReplaceAllString(e.exposition(t), ""))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) != 0 {
		t.Errorf("promtool check metrics, of %s: %v\n%s", e.Name, err, out)
	}
}
