//go:build vm

package check

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// readings are samples of the finished readings of the hardware of a device.
var readings = regexp.MustCompile(`(?m)^rdma_hardware_runs_total\{device="([^"]+)",outcome="ok"()\} (\d+)$`)

func set(t testing.TB, parameter, value string) {
	t.Helper()
	running.Check(t, os.WriteFile("/sys/module/paper/parameters/"+parameter, []byte(value), 0o200))
}

// TestPFC verifies that the exporter sees the pauses that an adapter of mlx5 counts. The driver
// refreshes its copy of them only when a program reads the statistics of ethtool -S, and no other program
// does so here.
func TestPFC(t *testing.T) {
	list := adapters(t)
	i := slices.IndexFunc(list, func(a adapter) bool { return a.of() == "mlx5" && !a.is("ib") })
	if i < 0 {
		t.Skip("no RoCE port of mlx5")
	}
	const received = `rdma_port_pfc_frames_received_total{device="DEVICE",port="1",priority="`
	frames := strings.ReplaceAll(received, "DEVICE", list[i].name)
	t.Cleanup(func() {
		set(t, "pfc", "8")
		set(t, "global_pause", "N")
	})
	exporter := running.Launch(t, "exporter", exporterFile, running.Unhurried(
		"--web.listen-address=127.0.0.1:0", "--probe.interval=10m", "--contract.interval=0s", "--inventory.interval=0s", "--hardware.interval=2s")...)
	url := "http://" + exporter.Listening(t) + "/metrics"
	for _, step := range []struct {
		what, pfc, global, pauses string
		want                      string
	}{
		{"the first frames of priority 3", "8", "N", "0,0,0,1000,0", `3"} 1000`},
		{"more of them", "8", "N", "0,0,0,2500,0", `3"} 2500`},
		{"PFC of priority 4 instead", "16", "N", "0,0,0,2500,7", `4"} 7`},
		{"PFC of both", "24", "N", "0,0,0,2501,9", `3"} 2501`},
	} {
		set(t, "pfc", step.pfc)
		set(t, "pauses_received", step.pauses)
		running.Eventually(t, step.what, func() bool {
			exporter.MustRun(t)
			return strings.Contains(get(t, url), frames+step.want+"\n")
		})
	}

	// Global pause is counted as priority 0, which is not what it stops.
	set(t, "pfc", "0")
	set(t, "global_pause", "Y")
	set(t, "pauses_received", "99,0,0,2501,9")
	before := numbers(t, readings, get(t, url))[list[i].name+" "]
	running.Eventually(t, "two readings more", func() bool {
		exporter.MustRun(t)
		return numbers(t, readings, get(t, url))[list[i].name+" "] >= before+2
	})
	if page := get(t, url); strings.Contains(page, frames) {
		t.Errorf("without PFC it has frames:\n%s", page)
	}
}
