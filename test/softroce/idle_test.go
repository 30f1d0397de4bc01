//go:build vm

package softroce

import (
	"strings"
	"testing"
)

// With --probe.when=idle a device is left alone while another program holds a queue pair
// on it, and probed in full as soon as none does.
func TestLeavesUsedDevicesAlone(t *testing.T) {
	pid, release := hold(t, nil, "--qps", "1", "--rts", "1")
	e := start(t, options{flags: []string{"--probe.when=idle", "--contract.interval=1h"}})
	called := func(m metrics, verb string) (n float64) {
		for _, s := range m.find("rdma_verbs_call_duration_seconds", "device", active, "verb", verb) {
			n += float64(s.GetHistogram().GetSampleCount())
		}
		return n
	}
	light := func(m metrics) bool { return m.sum("rdma_probe_light", "device", active) == 1 }
	m := e.until("three light runs on "+active+", and the contracts of "+down, func(m metrics) bool {
		return m.runs(active) >= 3 && light(m) && m.sum("rdma_contract_runs_total", "device", down) >= 1
	})
	m.allOK(t, active)
	m.is(t, 0, "rdma_probe_light", "device", down)
	if n := m.sum("rdma_contract_runs_total", "device", active); n > 0 {
		t.Errorf("contracts of %s were judged %v times", active, n)
	}
	for _, verb := range []string{"ibv_create_srq", "ibv_modify_qp", "ibv_create_comp_channel", "ibv_post_send"} {
		if n := called(m, verb); n > 0 {
			t.Errorf("%s was called %v times on %s", verb, n, active)
		}
	}
	for _, verb := range []string{"ibv_create_cq", "ibv_create_qp"} {
		if n, runs := called(m, verb), m.runs(active); n != runs {
			t.Errorf("%s was called %v times in %v runs", verb, n, runs)
		}
	}
	page, err := e.get("/")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "light: holder (process ") {
		t.Errorf("the page does not say that process %d holds queue pairs", pid)
	}

	release()
	m = e.until(active+" to be probed in full, and its contracts to be judged", func(m metrics) bool {
		return !light(m) && m.sum("rdma_contract_runs_total", "device", active) >= 1
	})
	m.allOK(t, active)
	if called(m, "ibv_modify_qp") == 0 {
		t.Error("no queue pair was taken through its states")
	}

	// Its own children are no others: it stays so.
	before := m.runs(active)
	e.until("more runs", func(m metrics) bool { return m.runs(active) >= before+3 && !light(m) })

	// One that holds a device open, and nothing on it, is in nobody's way.
	_, release = hold(t, nil, "--qps", "0", "--mrs", "2")
	defer release()
	before = e.scrape().runs(active)
	e.until("more runs", func(m metrics) bool { return m.runs(active) >= before+3 && !light(m) })
	e.terminate()
}
