package collector_test

import (
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// Verdicts become gauges, each by its kind.
func TestContracts(t *testing.T) {
	t.Parallel()
	verdicts := []state.Contract{
		{Name: "notify_any", Severity: state.SeverityCritical, Verdict: state.VerdictHolds},
		{Name: "qp_reports_actual", Severity: state.SeverityWarning, Verdict: state.VerdictViolated},
		{Name: "srq_limit_ignored", Severity: state.SeverityWarning, Verdict: state.VerdictViolated, Known: true},
		{Name: "channel_steering", Severity: state.SeverityCritical, Verdict: state.VerdictSkipped, Reason: state.SkipPortDown},
	}
	const (
		holds    = `rdma_contract_violated{contract="notify_any",device="rxe0",known="false",severity="critical"}`
		violated = `rdma_contract_violated{contract="qp_reports_actual",device="rxe0",known="false",severity="warning"}`
		known    = `rdma_contract_violated{contract="srq_limit_ignored",device="rxe0",known="true",severity="warning"}`
		skipped  = `rdma_contract_skipped{contract="channel_steering",device="rxe0",reason="port_down"}`
		unjudged = `rdma_contract_violated{contract="channel_steering",device="rxe0",known="false",severity="critical"}`
		lastRun  = `rdma_contract_last_run_timestamp_seconds{device="rxe0"}`
		kept     = `rdma_contract_verdicts{device="rxe0",verdict="kept"}`
		broken   = `rdma_contract_verdicts{device="rxe0",verdict="violated"}`
		usual    = `rdma_contract_verdicts{device="rxe0",verdict="known"}`
		open     = `rdma_contract_verdicts{device="rxe0",verdict="skipped"}`
		duration = `rdma_contract_duration_seconds{device="rxe0"}`
	)
	last := &state.Run{Kind: state.KindContract, Started: time.Unix(1e9, 0), Duration: 2 * time.Second}
	for _, tc := range []struct {
		name  string
		state state.DeviceState
		want  map[string]string
	}{
		{
			"before the first contract run",
			state.DeviceState{Present: true},
			map[string]string{holds: "", violated: "", known: "", skipped: "", lastRun: "", duration: "", kept: ""},
		},
		{
			"after it",
			state.DeviceState{Present: true, Contracts: &state.Contracts{Last: last, Verdicts: verdicts}},
			map[string]string{holds: "", violated: "1", known: "1", kept: "1", broken: "1", usual: "1", open: "1", skipped: "1", unjudged: "", lastRun: "1e+09", duration: "2"},
		},
		{
			"verdicts before the contract run is finished",
			state.DeviceState{Present: true, Contracts: &state.Contracts{Verdicts: verdicts}},
			map[string]string{holds: "", violated: "1", known: "1", kept: "1", broken: "1", usual: "1", open: "1", skipped: "1", lastRun: "", duration: ""},
		},
		{
			"no verdict that there is",
			state.DeviceState{Present: true, Contracts: &state.Contracts{Last: last, Verdicts: []state.Contract{
				{Name: "notify_any", Severity: state.SeverityCritical, Verdict: "perhaps"},
			}}},
			map[string]string{holds: "", lastRun: "1e+09"},
		},
		{
			"a device that vanished",
			state.DeviceState{Contracts: &state.Contracts{Last: last, Verdicts: verdicts}, Stuck: &state.Stuck{}},
			map[string]string{holds: "", violated: "", known: "", skipped: "", lastRun: "", duration: "", kept: ""},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.state.Name = "rxe0"
			compare(t, values(t, collectorOf(sceneOf("simulated", tc.state).snapshot)), tc.want)
		})
	}
}

// What is accepted counts as known.
func TestContractAccepted(t *testing.T) {
	t.Parallel()
	s := sceneOf("simulated", state.DeviceState{Name: "rxe0", Present: true, Resources: new(state.Resources), Contracts: &state.Contracts{Verdicts: []state.Contract{
		{Name: "notify_any", Severity: state.SeverityCritical, Verdict: state.VerdictViolated},
		{Name: "qp_reports_actual", Severity: state.SeverityWarning, Verdict: state.VerdictViolated},
	}}}).finding(
		health.Finding{Kind: health.FindingContract, Severity: health.SeverityCritical, Subject: "notify_any"},
		health.Finding{Kind: health.FindingContract, Severity: health.SeverityWarning, Subject: "qp_reports_actual"},
	)
	s.accept = []health.Accept{{Finding: health.FindingContract, Subject: "qp_reports_actual"}}
	compare(t, values(t, s.collector()), map[string]string{
		`rdma_contract_violated{contract="notify_any",device="rxe0",known="false",severity="critical"}`:       "1",
		`rdma_contract_violated{contract="notify_any",device="rxe0",known="true",severity="critical"}`:        "",
		`rdma_contract_violated{contract="qp_reports_actual",device="rxe0",known="true",severity="warning"}`:  "1",
		`rdma_contract_violated{contract="qp_reports_actual",device="rxe0",known="false",severity="warning"}`: "",
		`rdma_contract_verdicts{device="rxe0",verdict="known"}`:                                               "1",
	})
}

// A verdict that changed is told at the next scrape.
func TestContractsChange(t *testing.T) {
	t.Parallel()
	const series = `rdma_contract_violated{contract="notify_any",device="sim00",known="false",severity="critical"}`
	snapshot, _ := host(1)
	c := collectorOf(snapshot)
	compare(t, values(t, c), map[string]string{series: ""})

	judging := contractRun("sim00")
	for i := range judging.Contracts {
		judging.Contracts[i].Verdict = state.VerdictViolated
	}
	snapshot.Devices[0].Contracts = contractsOf(judging)
	compare(t, values(t, c), map[string]string{series: "1"})

	// What was violated once is told when it is kept again, until it is not known.
	snapshot.Devices[0].Contracts = contractsOf(contractRun("sim00"))
	compare(t, values(t, c), map[string]string{series: "0"})
	for i := range judging.Contracts {
		judging.Contracts[i].Verdict, judging.Contracts[i].Known = state.VerdictViolated, true
	}
	snapshot.Devices[0].Contracts = contractsOf(judging)
	compare(t, values(t, c), map[string]string{series: "0", strings.Replace(series, `known="false"`, `known="true"`, 1): "1"})
	snapshot.Devices[0].Contracts = nil
	compare(t, values(t, c), map[string]string{series: ""})

	// A device that comes back has no past.
	snapshot.Devices[0].Contracts = contractsOf(contractRun("sim00"))
	c.Forget("sim00")
	compare(t, values(t, c), map[string]string{series: ""})
}

// The runs of each kind are counted apart, and their calls together.
func TestKinds(t *testing.T) {
	t.Parallel()
	const (
		probeOK          = `rdma_probe_runs_total{device="rxe0",outcome="ok"}`
		probeTimeout     = `rdma_probe_runs_total{device="rxe0",outcome="timeout"}`
		probeAbort       = `rdma_probe_aborts_total{device="rxe0",outcome="timeout",verb="ibv_poll_cq"}`
		contractOK       = `rdma_contract_runs_total{device="rxe0",outcome="ok"}`
		contractTimeout  = `rdma_contract_runs_total{device="rxe0",outcome="timeout"}`
		contractFailed   = `rdma_contract_runs_total{device="rxe0",outcome="failed"}`
		contractCrashed  = `rdma_contract_runs_total{device="rxe0",outcome="crashed"}`
		contractAbort    = `rdma_contract_aborts_total{device="rxe0",outcome="timeout",verb="ibv_poll_cq"}`
		inventoryOK      = `rdma_inventory_runs_total{device="rxe0",outcome="ok"}`
		inventoryTimeout = `rdma_inventory_runs_total{device="rxe0",outcome="timeout"}`
		inventoryFailed  = `rdma_inventory_runs_total{device="rxe0",outcome="failed"}`
		inventoryCrashed = `rdma_inventory_runs_total{device="rxe0",outcome="crashed"}`
		calls            = `rdma_verbs_call_duration_seconds_count{device="rxe0",verb="ibv_create_cq"}`
		failures         = `rdma_verbs_errors_total{device="rxe0",errno="EIO",verb="ibv_create_cq"}`
		expected         = `rdma_verbs_errors_total{device="rxe0",errno="EINVAL",verb="ibv_create_cq"}`
		samples          = `rdma_notification_latency_seconds_count{device="rxe0",path="flush",port="1"}`
	)
	of := func(kind state.Kind, outcome state.Outcome) *state.Run {
		r := measured(latency(1, state.PathFlush, state.ModeAny, 0))
		r.Kind, r.Outcome = kind, outcome
		r.Calls = []state.Call{{Verb: "ibv_create_cq", Errno: "EIO"}, {Verb: "ibv_create_cq", Errno: "EINVAL", Expected: true}}
		if outcome == state.OutcomeTimeout {
			r.Verb = "ibv_poll_cq"
		}
		return r
	}
	for _, tc := range []struct {
		name string
		runs []*state.Run
		want map[string]string
	}{
		{
			"probes",
			[]*state.Run{of(state.KindProbe, state.OutcomeOK), of(state.KindProbe, state.OutcomeTimeout)},
			map[string]string{
				probeOK: "1", probeTimeout: "1", probeAbort: "1",
				contractOK: "0", contractTimeout: "", contractFailed: "", contractCrashed: "", contractAbort: "",
			},
		},
		{
			"a run that does not say its kind",
			[]*state.Run{of("", state.OutcomeTimeout)},
			map[string]string{probeTimeout: "1", probeAbort: "1", contractTimeout: "", contractAbort: ""},
		},
		{
			"the contract run",
			[]*state.Run{of(state.KindContract, state.OutcomeOK), of(state.KindContract, state.OutcomeTimeout)},
			map[string]string{
				probeOK: "0", probeTimeout: "", probeAbort: "",
				contractOK: "1", contractTimeout: "1", contractFailed: "", contractCrashed: "", contractAbort: "1",
			},
		},
		{
			"both",
			[]*state.Run{of(state.KindContract, state.OutcomeOK), of(state.KindProbe, state.OutcomeOK)},
			map[string]string{probeOK: "1", contractOK: "1", calls: "4", failures: "2", expected: "", samples: "200"},
		},
		{
			"the inventory",
			[]*state.Run{of(state.KindInventory, state.OutcomeOK), of(state.KindInventory, state.OutcomeTimeout), of(state.KindInventory, state.OutcomeOK)},
			map[string]string{
				inventoryOK: "2", inventoryTimeout: "1", inventoryFailed: "", inventoryCrashed: "",
				probeOK: "0", probeTimeout: "", probeAbort: "", contractOK: "0", contractTimeout: "", contractAbort: "", calls: "", samples: "",
			},
		},
		{
			"a kind that there is not",
			[]*state.Run{of("census", state.OutcomeOK), of("census", state.OutcomeTimeout), of(state.KindProbe, state.OutcomeOK)},
			map[string]string{probeOK: "1", probeTimeout: "", probeAbort: "", contractOK: "0", inventoryOK: "0", calls: "2"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			compare(t, values(t, collectorOf(nil, tc.runs...)), tc.want)
		})
	}
}

// What the last run of each kind could not destroy is added up.
func TestUndestroyed(t *testing.T) {
	t.Parallel()
	const (
		cqBusy = `rdma_probe_undestroyed_objects{device="rxe0",errno="EBUSY",type="cq"}`
		cqIO   = `rdma_probe_undestroyed_objects{device="rxe0",errno="EIO",type="cq"}`
		qpBusy = `rdma_probe_undestroyed_objects{device="rxe0",errno="EBUSY",type="qp"}`
	)
	cq, qp := state.Undestroyed{Type: "cq", Errno: "EBUSY", Attempts: 3}, state.Undestroyed{Type: "qp", Errno: "EBUSY", Attempts: 3}
	left := func(objects ...state.Undestroyed) *state.Run { return &state.Run{Undestroyed: objects} }
	for _, tc := range []struct {
		name  string
		state state.DeviceState
		want  map[string]string
	}{
		{"no run", state.DeviceState{}, map[string]string{cqBusy: ""}},
		{"nothing left", state.DeviceState{Last: left(), Contracts: &state.Contracts{Last: left()}}, map[string]string{cqBusy: ""}},
		{"by the probes", state.DeviceState{Last: left(cq, cq)}, map[string]string{cqBusy: "2"}},
		{"by the contract run", state.DeviceState{Contracts: &state.Contracts{Last: left(qp)}}, map[string]string{qpBusy: "1"}},
		{
			"by both",
			state.DeviceState{Last: left(cq, cq), Contracts: &state.Contracts{Last: left(qp, cq, state.Undestroyed{Type: "cq", Errno: "EIO"})}},
			map[string]string{cqBusy: "3", qpBusy: "1", cqIO: "1"},
		},
		{"verdicts without a run", state.DeviceState{Last: left(cq), Contracts: &state.Contracts{}}, map[string]string{cqBusy: "1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.state.Name, tc.state.Present = "rxe0", true
			compare(t, values(t, collectorOf(sceneOf("simulated", tc.state).snapshot)), tc.want)
		})
	}
}
