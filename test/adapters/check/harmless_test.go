//go:build vm

package check

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

var runs = flag.Int("check.runs", 3, "runs of the probes on each device of TestHarmless")

// mostVectors is the default of --notification.vectors.
const mostVectors = 4

// runsTotal is a sample of the runs of a device.
var runsTotal = regexp.MustCompile(`(?m)^rdma_probe_runs_total\{device="([^"]+)",outcome="([^"]+)"\} (\d+)$`)

// TestHarmless lets the exporter probe at its defaults, but more often, and counts what
// that leaves behind: lines in the kernel's log, objects, and event queues that mlx5
// makes when a completion vector is first used and never gives back.
func TestHarmless(t *testing.T) {
	list := adapters(t)
	before := held(t)
	_, said := kernelLog(t, 0)
	exporter := running.Launch(t, "exporter", exporterFile,
		append([]string{"--web.listen-address=127.0.0.1:0", "--probe.interval=1s"}, running.Unhurried()...)...)
	url := "http://" + exporter.Listening(t) + "/metrics"
	running.Within(t, time.Duration(*runs)*time.Minute+5*time.Minute, fmt.Sprintf("%d runs on each device", *runs), func() bool {
		exporter.MustRun(t)
		done := map[string]int{}
		for _, m := range runsTotal.FindAllStringSubmatch(get(t, url), -1) {
			n, err := strconv.Atoi(m[3])
			if err != nil {
				t.Fatal(err)
			}
			done[m[1]] += n
		}
		for _, a := range list {
			if done[a.name] < *runs {
				return false
			}
		}
		return true
	})
	exporter.Stop(t)
	lines, _ := kernelLog(t, said)
	for _, line := range lines {
		t.Logf("the kernel said: %s", line)
	}
	t.Logf("%d lines in the kernel's log", len(lines))
	for _, a := range list {
		counters := a.counters(t)
		t.Logf("%s, %d runs or more: %s", a.spec, *runs, describe(counters))
		if n := counters["event_queues"]; n == 0 || n > mostVectors {
			t.Errorf("%s: %d completion vectors were used, want %d at most", a.spec, n, mostVectors)
		}
	}
	running.Eventually(t, "what is held is what was held", func() bool { return held(t) == before })
	quiet := true
	for _, a := range list {
		quiet = quiet && a.of() == "mlx5"
	}
	if quiet && len(lines) > 0 {
		t.Errorf("probing mlx5 had the kernel say %d lines", len(lines))
	}
}

func get(t testing.TB, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	return string(body)
}
