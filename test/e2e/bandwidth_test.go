package e2e_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/path"
	"rdma_exporter/test/running"
)

func TestBandwidth(t *testing.T) {
	t.Parallel()
	const rate = "    bandwidth_bytes_per_second: 12e9\n"
	for _, c := range []struct {
		name, like, keys string
		args             []string
		status           int
		want             string // in the output, or for status 2 in the errors
	}{
		{"all is well", "sim_ib0", idle + rate, []string{"--yes"}, 0, "sim0     1     0"},
		{"JSON", "sim_ib0", idle + rate, []string{"--yes", "--json", "--device=sim0"}, 0, `"bytes_per_second": 12000000000`},
		{"slow", "sim_ib0", idle + strings.Replace(rate, "12e9", "5e9", 1), []string{"--yes"}, 1, "sim0: bandwidth_low: port 1 moves 40 Gb/s of 100 Gb/s, its rate; "},
		{"used anyway", "sim_ib0", used + rate, []string{"--yes", "--anyway"}, 0, "sim0     1     0"},
		{"without loopback", "sim_siw0", idle, []string{"--yes"}, 0, "sim0: not measured: iWARP"},
		{"crashing", "sim_ib0", idle + rate + "    faults: [{verb: ibv_create_qp, crash: true}]\n", []string{"--yes"}, 1, "sim0: failed: "},
		{"unconfirmed", "sim_ib0", idle + rate, nil, 2, "--yes"},
		{"used", "sim_ib0", used + rate, []string{"--yes"}, 2, "trainer (process 4711) holds queue pairs"},
		{"no such device", "sim_ib0", idle + rate, []string{"--yes", "--device=sim"}, 2, "0 devices"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			profile := running.File(t, "profile.yaml", "devices:\n  - name: sim0\n    like: "+c.like+"\n"+c.keys)
			r := invoke(t, binary, t.TempDir(), append([]string{"bandwidth", "--provider=simulated", "--simulated.profile=" + profile}, c.args...)...)
			if r.status != c.status || !strings.Contains(r.stdout+r.stderr, c.want) || (r.stderr != "") != (c.status == 2) {
				t.Errorf("status %d, want %d and %q: %s%s", r.status, c.status, c.want, r.stdout, r.stderr)
			}
		})
	}
}

// soon returns the name of a device whose slot is so long after a moment.
func soon(t *testing.T, kind string, at time.Time) string {
	t.Helper()
	host := running.Must(os.Hostname())(t)
	for i := 0; ; i++ {
		name := fmt.Sprint(kind, i)
		if d := path.NextSlot(host+" "+name, bandwidthInterval, time.Now()).Sub(at); d >= 0 && d < 2*time.Second {
			return name
		}
	}
}

const bandwidthInterval = 4 * time.Hour

// TestSchedule verifies that scheduled measurements make metrics and findings, which outlive a restart
// but not the schedule, and that a device in use has none, and the reason.
func TestSchedule(t *testing.T) {
	t.Parallel()
	// A device whose slot has passed before the exporter runs has a later twin.
	profile, names := "devices:\n", make(map[string][]string)
	for after := 5 * time.Second; after < running.Patience; after *= 2 {
		for i, keys := range []string{idle + "    bandwidth_bytes_per_second: 12e9\n", used + "    bandwidth_bytes_per_second: 12e9\n", idle + "    bandwidth_bytes_per_second: 5e9\n"} {
			kind := []string{"fast", "used", "slow"}[i]
			name := soon(t, kind, time.Now().Add(after+time.Duration(i)*2*time.Second))
			names[kind] = append(names[kind], name)
			profile += "  - name: " + name + "\n    like: sim_ib0\n" + keys
		}
	}
	dir := t.TempDir()
	args := []string{"--provider=simulated", "--simulated.profile=" + running.File(t, "profile.yaml", profile), "--state.dir=" + dir, "--contract.interval=0", "--probe.interval=1h"}
	measures := slices.Concat(args, []string{"--bandwidth.schedule=" + bandwidthInterval.String()})
	e := start(t, measures...)
	find := func(kind, result string) (device string) {
		running.Eventually(t, kind+" is "+result, func() bool {
			m := e.scrape(t, "rdma_bandwidth_runs_total")
			i := slices.IndexFunc(names[kind], func(name string) bool {
				return m.sum("rdma_bandwidth_runs_total", "device", name, "result", result) > 0
			})
			if i >= 0 {
				device = names[kind][i]
			}
			return i >= 0
		})
		return device
	}
	fast, busy, slow := find("fast", "ok"), find("used", "in_use"), find("slow", "ok")
	look := func() (measured float64) {
		m := e.scrape(t)
		for _, operation := range []string{"write", "read"} {
			if all := m.all("rdma_bandwidth_bytes_per_second", "device", fast, "port", "1", "operation", operation); len(all) == 0 || math.Abs(all[0].value-12e9) > 1e6 {
				t.Errorf("%s is %v", operation, all)
			}
		}
		m.want(t, 0, "rdma_findings", "device", fast, "severity", "warning", "accepted", "false")
		m.want(t, 1, "rdma_finding_info", "device", slow, "finding", "bandwidth_low", "reason", "the bandwidth is low")
		if all := m.all("rdma_bandwidth_bytes_per_second", "device", busy); len(all) > 0 {
			t.Errorf("a device in use has %v", all)
		}
		return m.sum("rdma_bandwidth_timestamp_seconds", "device", fast)
	}
	first := look()
	if _, page := e.get(t, "/"); !strings.Contains(page, "in_use (trainer (process 4711) holds queue pairs)") || !strings.Contains(page, "<td>96 Gb/s</td>") {
		t.Errorf("the page does not say what was measured: %s", page)
	}
	e.stop(t)
	report := invoke(t, binary, t.TempDir(), append([]string{"audit", "--device=" + slow}, args[:3]...)...)
	if !strings.Contains(report.stdout, "Bandwidth of "+slow+": measured ") || !strings.Contains(report.stdout, "bandwidth (bandwidth_low), for ") {
		t.Errorf("the report: %s", report.stdout)
	}
	e = start(t, measures...)
	e.ready(t)
	if again := look(); again != first {
		t.Errorf("measured at %f, and after a restart at %f", first, again)
	}
	e.stop(t)
	e = start(t, args...)
	e.ready(t)
	m := e.scrape(t)
	m.want(t, 0, "rdma_findings", "device", slow, "severity", "warning", "accepted", "false")
	if all := m.all("rdma_bandwidth_bytes_per_second"); len(all) > 0 {
		t.Errorf("without a schedule there is %v", all)
	}
	often := invoke(t, binary, t.TempDir(), "--provider=simulated", "--bandwidth.schedule=1h")
	if often.status != 2 || !strings.Contains(often.stderr, "--bandwidth.schedule is 1h0m0s: use a duration from 4h0m0s, or 0s for none") || strings.Count(often.stderr, "\n") != 1 {
		t.Errorf("status %d: %s", often.status, often.stderr)
	}
}
