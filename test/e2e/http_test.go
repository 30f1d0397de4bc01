package e2e_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// Without a file of its own, the exporter shows its three simulated devices, and
// says on every page for people that they are simulated.
func TestPages(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated")
	e.ready(t)

	if status, body := e.get(t, "/-/ready"); status != http.StatusOK || body == "" {
		t.Errorf("/-/ready: status %d %q, want 200 and some text", status, body)
	}
	if status, _ := e.get(t, "/-/healthy"); status != http.StatusOK {
		t.Errorf("/-/healthy: status %d, want 200", status)
	}

	status, page, header := e.fetch(t, "/", nil)
	if status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/html") {
		t.Errorf("/: status %d, type %q, want a page", status, header.Get("Content-Type"))
	}
	for _, want := range []string{"Simulated devices", "sim_rxe0", "sim_siw0", "sim_ib0", `href="./metrics"`, `href="./api/v2/status"`, `href="./-/healthy"`, `href="./-/ready"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}

	text, m := e.exposition(t)
	m.want(t, 3, "rdma_devices")
	m.want(t, 1, "rdma_exporter_discovery_success")
	if got := m.values("rdma_device_info", "provider"); len(got) != 1 || got[0] != "simulated" {
		t.Errorf("the devices are those of %q, want simulated", got)
	}
	for _, metric := range []string{"rdma_exporter_build_info", "go_goroutines", "process_open_fds", "promhttp_metric_handler_requests_total"} {
		if len(m[metric]) == 0 {
			t.Errorf("there is no %s", metric)
		}
	}
	checkExposition(t, text)
}

func TestTelemetryPath(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated", "--web.telemetry-path=/of/rdma", "--web.disable-exporter-metrics")
	e.ready(t)
	if status, _ := e.get(t, "/metrics"); status != http.StatusNotFound {
		t.Errorf("/metrics: status %d, want 404", status)
	}
	if _, page := e.get(t, "/"); !strings.Contains(page, `href="./of/rdma"`) {
		t.Error("the page does not lead to /of/rdma")
	}
	status, text := e.get(t, "/of/rdma")
	if status != http.StatusOK {
		t.Errorf("/of/rdma: status %d, want 200", status)
	}
	m := parse(t, text)
	m.want(t, 1, "rdma_exporter_build_info")
	m.want(t, 3, "rdma_devices")
	for metric := range m {
		if regexp.MustCompile(`^(go|process|promhttp)_`).MatchString(metric) {
			t.Errorf("there is %s in spite of --web.disable-exporter-metrics", metric)
		}
	}
	checkExposition(t, text)
}
