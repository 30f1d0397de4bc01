package collector_test

import (
	"fmt"
	"testing"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// TestContractAccepted verifies that an accepted violation counts as known.
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

// TestContractsChange verifies that a contract that was violated has a series until its
// verdict is unknown or the device vanishes.
func TestContractsChange(t *testing.T) {
	t.Parallel()
	const violated = `rdma_contract_violated{contract="notify_any",device="sim0",known="false",severity="critical"}`
	const known = `rdma_contract_violated{contract="notify_any",device="sim0",known="true",severity="critical"}`
	contracts := func(verdict state.Verdict, known bool) *state.Contracts {
		r := contractRun("sim0")
		for i := range r.Contracts {
			r.Contracts[i].Verdict, r.Contracts[i].Known = verdict, known
		}
		return contractsOf(r)
	}
	snapshot := sceneOf("simulated", stateOf(bare("sim0"))).snapshot
	c := collectorOf(snapshot)
	for _, step := range []struct {
		contracts       *state.Contracts
		violated, known string
	}{
		{nil, "", ""},
		{contracts(state.VerdictHolds, false), "", ""},
		{contracts(state.VerdictViolated, false), "1", ""},
		{contracts(state.VerdictHolds, false), "0", ""},
		{contracts(state.VerdictViolated, true), "0", "1"},
		{nil, "", ""},
	} {
		snapshot.Devices[0].Contracts = step.contracts
		compare(t, values(t, c), map[string]string{violated: step.violated, known: step.known})
	}
	snapshot.Devices[0].Contracts = contracts(state.VerdictHolds, false)
	c.Forget("sim0")
	compare(t, values(t, c), map[string]string{violated: ""})
}

// TestKinds verifies that the runs of each kind have counters of their own, while their
// calls and measurements add up.
func TestKinds(t *testing.T) {
	t.Parallel()
	of := func(kind state.Kind, outcome state.Outcome) *state.Run {
		r := measured(latency(1, state.PathFlush, state.ModeAny, 0))
		r.Kind, r.Outcome = kind, outcome
		r.Calls = []state.Call{{Verb: "ibv_create_cq", Errno: "EIO"}, {Verb: "ibv_create_cq", Errno: "EINVAL", Expected: true}}
		if outcome == state.OutcomeTimeout {
			r.Verb = "ibv_poll_cq"
		}
		return r
	}
	want := map[string]string{
		`rdma_probe_aborts_total{device="rxe0",outcome="timeout",verb="ibv_poll_cq"}`:    "2",
		`rdma_contract_aborts_total{device="rxe0",outcome="timeout",verb="ibv_poll_cq"}`: "1",
		`rdma_verbs_call_duration_seconds_count{device="rxe0",verb="ibv_create_cq"}`:     "10",
		`rdma_verbs_errors_total{device="rxe0",errno="EIO",verb="ibv_create_cq"}`:        "5",
		`rdma_verbs_errors_total{device="rxe0",errno="EINVAL",verb="ibv_create_cq"}`:     "",
		`rdma_notification_latency_seconds_count{device="rxe0",path="flush",port="1"}`:   "500",
	}
	for kind, n := range map[state.Kind][2]string{
		state.KindProbe: {"1", "2"}, state.KindContract: {"1", "1"}, state.KindInventory: {"1", "1"}, state.KindHardware: {"1", "1"},
	} {
		want[fmt.Sprintf(`rdma_%s_runs_total{device="rxe0",outcome="ok"}`, kind)] = n[0]
		want[fmt.Sprintf(`rdma_%s_runs_total{device="rxe0",outcome="timeout"}`, kind)] = n[1]
		want[fmt.Sprintf(`rdma_%s_runs_total{device="rxe0",outcome="failed"}`, kind)] = ""
	}
	// A run without a kind is a probe run; one of an unknown kind is none, nor is a contract run that was put off.
	runs := []*state.Run{of("", state.OutcomeTimeout), of("census", state.OutcomeOK), {
		Kind: state.KindContract, Device: "rxe0", Outcome: state.OutcomeOK, Reduced: &state.Reduced{Reason: state.ReducedBusy, Detail: "x"},
	}}
	for _, kind := range []state.Kind{state.KindProbe, state.KindContract, state.KindInventory, state.KindHardware} {
		runs = append(runs, of(kind, state.OutcomeOK), of(kind, state.OutcomeTimeout))
	}
	compare(t, values(t, collectorOf(nil, runs...)), want)
}
