//go:build vm

package softroce

import (
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// With --probe.when=idle a device is left alone while another program holds a queue pair
// on it, and probed in full as long as none does.
func TestLeavesUsedDevicesAlone(t *testing.T) {
	called := func(m metrics, verb string) (n float64) {
		for _, s := range m.find("rdma_verbs_call_latency_seconds", "device", active, "verb", verb) {
			n += float64(s.GetHistogram().GetSampleCount())
		}
		return n
	}
	light := func(m metrics) bool { return m.sum("rdma_probe_light", "device", active) == 1 }
	flags := []string{"--probe.when=idle", "--device.include=" + active, histograms}

	holder := hold(t, nil, "--qps", "1", "--rts", "1")
	t.Run("used", func(t *testing.T) {
		e := start(t, options{flags: append(flags, "--contract.interval=1h")})
		m := e.until("three light runs", func(m metrics) bool { return m.runs(active) >= 3 && light(m) })
		m.allOK(t, active)
		for _, verb := range []string{"ibv_create_srq", "ibv_modify_qp", "ibv_create_comp_channel", "ibv_post_send"} {
			if n := called(m, verb); n > 0 {
				t.Errorf("%s was called %v times", verb, n)
			}
		}
		for _, verb := range []string{"ibv_create_cq", "ibv_create_qp"} {
			if n, runs := called(m, verb), m.runs(active); n != runs {
				t.Errorf("%s was called %v times in %v runs", verb, n, runs)
			}
		}
		if n := m.sum("rdma_contract_runs_total", "device", active); n > 0 {
			t.Errorf("contracts were judged %v times", n)
		}
		page := running.Must(e.get("/"))(t)
		for _, text := range []string{"reduced: holder (process ", "Put off: holder (process "} {
			if !strings.Contains(string(page), text) {
				t.Errorf("the page does not say %q, of process %d", text, holder.PID())
			}
		}
		e.terminate()
	})
	holder.Release()

	t.Run("used for a while", func(t *testing.T) {
		// What has the device open, and no queue pair, is in nobody's way.
		hold(t, nil, "--qps", "0", "--mrs", "2")
		e := start(t, options{flags: flags})
		m := e.until("three runs", func(m metrics) bool { return m.runs(active) >= 3 })
		if light(m) || called(m, "ibv_modify_qp") == 0 {
			t.Errorf("a device on which nobody holds queue pairs is left alone: light %t", light(m))
		}
		again := hold(t, nil, "--qps", "1")
		e.until("a light run", light)
		again.Release()
		m = e.until("a run in full", func(m metrics) bool { return !light(m) })
		before := m.runs(active)
		// Its own children are no others: it stays so.
		m = e.until("more runs", func(m metrics) bool { return m.runs(active) >= before+3 })
		if light(m) {
			t.Error("a device on which nobody holds queue pairs any more is left alone")
		}
		m.allOK(t, active)
		e.terminate()
	})
}
