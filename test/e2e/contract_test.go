package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/probe/contract"
	"rdma_exporter/test/running"
)

// contracts are the names of all contracts, in the order of judgement.
func contracts() []string {
	var all []string
	for _, c := range contract.Catalogue() {
		all = append(all, c.Name)
	}
	return all
}

// judged waits until the first contract runs of devices have ended well, and what came out is
// there, too, which is a moment later.
func (e *exporter) judged(t testing.TB, devices ...string) metrics {
	t.Helper()
	running.Eventually(t, "the devices are judged", func() bool {
		m := e.scrape(t, "rdma_contract_runs_total", "rdma_contract_verdicts")
		return !slices.ContainsFunc(devices, func(device string) bool {
			return m.contractRuns(device, "ok") < 1 || m.judged(device) < len(contracts())
		})
	})
	return e.scrape(t)
}

// wantEachJudged makes sure that each contract is violated, kept or skipped on a
// device, and only one of these.
func wantEachJudged(t *testing.T, m metrics, device string) {
	t.Helper()
	if got, want := m.judged(device), len(contracts()); got != want {
		t.Errorf("on %s there are verdicts on %d contracts, and there are %d", device, got, want)
	}
	// What the device does not offer is only counted.
	if got, most := len(m.all("rdma_contract_skipped", "device", device)), m.sum("rdma_contract_verdicts", "device", device, "verdict", "skipped"); float64(got) > most {
		t.Errorf("on %s %d contracts are skipped, and %v are counted", device, got, most)
	}
}

// judged is how many contracts there is a verdict on for a device.
func (m metrics) judged(device string) int {
	return int(m.sum("rdma_contract_verdicts", "device", device))
}

func (m metrics) violated(device string) []string {
	var all []string
	for _, s := range m.all("rdma_contract_violated", "device", device) {
		if s.value == 1 {
			all = append(all, s.labels["contract"])
		}
	}
	slices.Sort(all)
	return all
}

// Without a word in the flags, each device is judged right after it was probed.
func TestContractAtStart(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated")
	devices := []string{"sim_rxe0", "sim_siw0", "sim_ib0"}
	e.judged(t, devices...)
	text, m := e.exposition(t)
	checkExposition(t, text)
	for _, device := range devices {
		wantEachJudged(t, m, device)
		m.want(t, 1, "rdma_contract_runs_total", "device", device, "outcome", "ok")
		for _, outcome := range []string{"failed", "timeout", "crashed"} {
			m.absent(t, "rdma_contract_runs_total", "device", device, "outcome", outcome)
		}
		for _, metric := range []string{"rdma_contract_last_run_timestamp_seconds", "rdma_contract_duration_seconds"} {
			if m.sum(metric, "device", device) <= 0 {
				t.Errorf("there is no %s of %s", metric, device)
			}
		}
		m.absent(t, "rdma_probe_undestroyed_objects", "device", device)
	}
	// The log shows it a moment later than the metrics.
	running.Eventually(t, "the log sums up each contract run", func() bool {
		return strings.Count(e.Log.String(), "Contracts of device checked for the first time") == len(devices)
	})
}

// A contract on which the child of a contract run hangs or crashes is skipped and says
// so; the others are judged, and the probes go on.
func TestContractIsInterrupted(t *testing.T) {
	t.Parallel()
	// Only these contracts arm the limit of a shared receive queue.
	culprits := []string{"srq_limit_event", "srq_limit_disarmed"}
	// This one posts a receive after a destruction that was refused: the 14th of the process,
	// since the two before post 12, and it posts one before.
	const breach = "srq_destroy_busy"
	e := start(t, "--provider=simulated", "--simulated.profile="+running.File(t, "profile.yaml", `devices:
  - {name: hanging, like: sim_ib0, faults: [{verb: ibv_modify_srq, hang: true}]}
  - {name: crashing, like: sim_ib0, faults: [{verb: ibv_modify_srq, crash: true}]}
  - {name: breaking, like: sim_ib0, faults: [{verb: ibv_post_srq_recv, after: 13, crash: true}]}
`), "--probe.interval=5s", "--probe.concurrency=4", "--contract.timeout=10s", "--inventory.interval=0", "--notification.samples=0")
	m := e.judged(t, "hanging", "crashing", "breaking")
	for device, want := range map[string]string{"hanging": "timeout", "crashing": "crashed"} {
		wantEachJudged(t, m, device)
		m.want(t, 2, "rdma_contract_runs_total", "device", device, "outcome", want)
		m.want(t, 1, "rdma_contract_runs_total", "device", device, "outcome", "ok")
		for _, culprit := range culprits {
			m.want(t, 1, "rdma_contract_skipped", "device", device, "contract", culprit, "reason", want)
		}
		if got := m.violated(device); len(got) != 0 {
			t.Errorf("%s violates %q", device, got)
		}
		for _, outcome := range []string{"failed", "timeout", "crashed"} {
			m.absent(t, "rdma_probe_runs_total", "device", device, "outcome", outcome)
		}
	}
	// What the manual has work after a destruction that was refused was the end of
	// the process, which is evidence.
	wantEachJudged(t, m, "breaking")
	m.want(t, 1, "rdma_contract_runs_total", "device", "breaking", "outcome", "crashed")
	if got := m.violated("breaking"); !slices.Equal(got, []string{breach}) {
		t.Errorf("breaking violates %q", got)
	}
	const failed = "Contract run on device failed"
	for text, want := range map[string]int{
		failed: 5, "contract=srq_limit_event verb=ibv_modify_srq": 2, "contract=" + breach + " verb=ibv_post_srq_recv": 1,
	} {
		running.Eventually(t, fmt.Sprintf("the log says %q %d times", text, want), func() bool { return strings.Count(e.Log.String(), text) == want })
	}
}
