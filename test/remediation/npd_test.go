//go:build remediation

package remediation_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// TestDetector breaks and mends simulated devices, and reads the metrics of the detector, and its
// conditions from its log.
func TestDetector(t *testing.T) {
	detector := os.Getenv("RDMA_NPD")
	if !filepath.IsAbs(detector) {
		t.Fatalf("RDMA_NPD is %q: set it to the absolute path of the program, as `make test-npd` does", detector)
	}
	port, own := running.FreePort(t), running.FreePort(t)
	e := startExporter(t, port)

	npd := running.Launch(t, "the detector", detector, "--enable-k8s-exporter=false", "--hostname-override=node", "--port=0", "--prometheus-address=127.0.0.1", "--prometheus-port="+own,
		"--config.custom-plugin-monitor="+monitor(t, "--url=http://127.0.0.1:"+port, "--expect-active-ports=8", "--timeout=1m", "--for=0s", "--clear-after=0s"))
	metrics := func() string {
		text, _ := get(own, "/metrics")
		return text
	}
	// turns waits until the condition has a status and a message. Its gauge is 1 for true, and
	// otherwise 0, even if the status is unknown.
	turns := func(what, status, message string) {
		t.Helper()
		began, reason, want := time.Now(), "RDMAIsHealthy", "0"
		if status == "True" {
			reason, want = "RDMAVerdictBad", "1"
		}
		last := regexp.MustCompile(`(?s).*Type:RDMAUnhealthy Status:` + status + ` [^}]*Reason:` + reason + ` Message:` + regexp.QuoteMeta(message) + `[^\n]*\n`)
		running.Eventually(t, what, func() bool {
			said := npd.Log.String()
			behind := said[len(last.FindString(said)):]
			return len(behind) < len(said) && !strings.Contains(behind, "Type:RDMAUnhealthy") &&
				value(metrics(), `problem_gauge{reason="RDMAVerdictBad",type="RDMAUnhealthy"}`) == want
		})
		t.Logf("%s: %s after %v", what, status, time.Since(began).Round(10*time.Millisecond))
	}
	// events returns how many temporary events there were.
	events := func() string { return value(metrics(), `problem_counter{reason="RDMAWarning"}`) }

	// Healthy, it says nothing: the first status would be the same.
	running.Eventually(t, "the gauge of a healthy node is 0", func() bool {
		return value(metrics(), `problem_gauge{reason="RDMAVerdictBad",type="RDMAUnhealthy"}`) == "0"
	})
	e.change(t, 8, map[int]string{0: "    hardware_faults: [slow_link]\n"})
	running.Eventually(t, "a warning is an event", func() bool { return events() != "0" && events() != "" })
	if strings.Contains(npd.Log.String(), "Status:True") {
		t.Errorf("a warning changes the condition:\n%s", npd.Log.String())
	}
	e.change(t, 8, map[int]string{0: down})
	turns("a port is down", "True", "rdma port_down mlx5_0/1: 7 of 8 ports active; do=network")
	e.change(t, 0, nil)
	turns("all devices are gone", "True", "rdma device_vanished mlx5_0: 0 of 8 devices; do=driver")
	e.change(t, 8, nil)
	turns("mended", "False", "rdma_exporter verdict is good")
	e.Stop(t)
	turns("the exporter is stopped", "Unknown", silent+port+"; do=exporter")
	e.write(t, 0, nil)
	e.start(t)
	turns("there never was a device", "True", "rdma no_device: ")
}

// monitor writes rdma.json for a test: it asks each second, another program with additional
// flags, and has time.
func monitor(t *testing.T, flags ...string) string {
	t.Helper()
	b := running.Must(os.ReadFile("../../deploy/npd/rdma.json"))(t)
	for from, to := range map[string]string{
		`"/usr/bin/rdma_exporter"`: `"` + binary + `"`,
		`"30s"`:                    `"1s"`,
		`"5s"`:                     `"1m"`,
		`["verdict"`:               `["verdict", "` + strings.Join(flags, `", "`) + `"`,
	} {
		if !bytes.Contains(b, []byte(from)) {
			t.Fatalf("rdma.json has no %s", from)
		}
		b = bytes.ReplaceAll(b, []byte(from), []byte(to))
	}
	if !json.Valid(b) {
		t.Fatalf("no JSON: %s", b)
	}
	return running.File(t, "rdma.json", string(b))
}

// value returns the value of a series as it is written, or an empty string.
func value(metrics, series string) string {
	for line := range strings.Lines(metrics) {
		if v, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
