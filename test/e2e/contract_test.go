package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/probe/contract"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
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

// wantSkipped makes sure that what a device offers and could not be judged is in the metrics
// as it is in the JSON.
func wantSkipped(t *testing.T, e *exporter, m metrics, device string) {
	t.Helper()
	_, body := e.get(t, "/api/v2/status")
	var status api.Status
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	skipped := 0
	for _, d := range status.Devices {
		if d.Name != device || d.Contracts == nil {
			continue
		}
		for _, v := range d.Contracts.Verdicts {
			if v.Verdict != state.VerdictSkipped {
				continue
			}
			if skipped++; v.Reason != state.SkipNotSupported {
				want = append(want, v.Name+" "+string(v.Reason))
			}
		}
	}
	for _, s := range m.all("rdma_contract_skipped", "device", device) {
		got = append(got, s.labels["contract"]+" "+s.labels["reason"])
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("on %s the metrics say that %q are skipped, want %q", device, got, want)
	}
	m.want(t, float64(skipped), "rdma_contract_verdicts", "device", device, "verdict", "skipped")
}

// judged is how many contracts there is a verdict on for a device.
func (m metrics) judged(device string) int {
	return int(m.sum("rdma_contract_verdicts", "device", device))
}

// violated are the contracts that a device violates.
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
		wantSkipped(t, e, m, device)
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

func TestContractRunsFollowTheirInterval(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated", "--device.include=sim_siw0", "--contract.interval=100ms", "--probe.interval=1s", "--notification.samples=0")
	running.Eventually(t, "three contract runs and as many runs of the probes", func() bool {
		m := e.counts(t)
		return m.contractRuns("sim_siw0", "ok") >= 3 && m.runs("sim_siw0", "ok") >= 3
	})
}

func TestContractRunsAreOff(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated", "--contract.interval=0s", "--probe.interval=500ms", "--notification.samples=0")
	running.Eventually(t, "the devices are probed thrice", func() bool { return e.counts(t).runs("sim_siw0", "ok") >= 3 })
	m := e.scrape(t)
	if n := m.sum("rdma_contract_runs_total"); n != 0 {
		t.Errorf("%v runs of contract runs that are switched off", n)
	}
	for _, metric := range []string{"rdma_contract_verdicts", "rdma_contract_violated", "rdma_contract_skipped", "rdma_contract_duration_seconds"} {
		m.absent(t, metric)
	}
	m.absent(t, "rdma_probe_success", "probe", "notification")
}

// Each contract that a device breaks is told as violated, with its severity, and
// the evidence is in the log.
func TestViolations(t *testing.T) {
	t.Parallel()
	var profile strings.Builder
	profile.WriteString("devices:\n  - {name: good, like: sim_ib0}\n")
	devices := []string{"good"}
	for _, c := range contracts() {
		fmt.Fprintf(&profile, "  - {name: %s, like: sim_ib0, violate: [%s]}\n", c, c)
		devices = append(devices, c)
	}
	e := start(t, "--provider=simulated", "--simulated.profile="+running.File(t, "profile.yaml", profile.String()),
		"--probe.interval=1h", "--probe.timeout=1m", "--contract.timeout=2m", "--inventory.interval=0", "--probe.concurrency=8", "--notification.samples=0")
	m := e.judged(t, devices...)
	for _, device := range devices {
		wantEachJudged(t, m, device)
	}
	if got := m.violated("good"); len(got) != 0 {
		t.Errorf("the device that keeps every contract violates %q", got)
	}
	for _, c := range contract.Catalogue() {
		if got := m.violated(c.Name); !slices.Equal(got, []string{c.Name}) {
			t.Errorf("the device that breaks %s violates %q", c.Name, got)
		}
		m.want(t, 1, "rdma_contract_violated", "device", c.Name, "contract", c.Name, "severity", string(c.Severity))
		evidence := []string{
			"level=WARN", fmt.Sprintf(`msg="Device violates a contract" device=%s contract=%s severity=%s`, c.Name, c.Name, c.Severity),
			"asked=", "expected=", "observed=",
		}
		running.Eventually(t, "the log has the evidence about "+c.Name, func() bool {
			return slices.ContainsFunc(strings.Split(e.Log.String(), "\n"), func(line string) bool { return containsAll(line, evidence) })
		})
	}
}

func containsAll(s string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(s, p) })
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
		wantSkipped(t, e, m, device)
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

// By hand, the command contract writes a whole report; a request can name
// contracts to leave out.
func TestContractByHand(t *testing.T) {
	t.Parallel()
	check := func(device, settings string) *state.Run {
		t.Helper()
		r := invokeWith(t, settings, binary, t.TempDir(), "contract", "--device="+device)
		if r.status != 0 || r.stderr != "" {
			t.Errorf("status %d, standard error %q", r.status, r.stderr)
		}
		run := new(state.Run)
		if err := wire.Read(strings.NewReader(r.stdout), run); err != nil {
			t.Errorf("the report: %v", err)
		}
		return run
	}
	names := func(run *state.Run) []string {
		var all []string
		for _, c := range run.Contracts {
			all = append(all, c.Name)
		}
		return all
	}

	run := check("sim_ib0", `{"settings": {"provider": "simulated"}}`)
	if got := names(run); !slices.Equal(got, contracts()) || run.Error != "" || run.InProgress != "" {
		t.Errorf("judged are %q, error %q", got, run.Error)
	}
	left := contracts()[2:]
	run = check("sim_siw0", fmt.Sprintf(`{"settings": {"provider": "simulated"}, "request": {"done": ["%s", "%s"]}}`, contracts()[0], contracts()[1]))
	if got := names(run); !slices.Equal(got, left) {
		t.Errorf("judged are %q, want %q", got, left)
	}
	// This host may have no RDMA at all, and certainly no such device.
	if run = check("nope", ""); run.Error == "" || len(run.Contracts) != 0 {
		t.Errorf("of a device that is not there: %+v", run)
	}
	r := invokeWith(t, `{"settings": {"provider": "simulated", "probe": {"destroy_timeout": -1}}}`, binary, t.TempDir(), "contract", "--device=sim_ib0")
	refused(t, r, 1, "", []string{"probe.destroy_timeout is -1ns"})
}
