package contract_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/probe/contract"
	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// TestKnown has devices break contracts, as their driver is known to and otherwise.
func TestKnown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, yaml, contract string
		verdict              state.Verdict
		known                bool
	}{
		{"known", "driver: hns, violate: [cq_at_least_requested]", "cq_at_least_requested", state.VerdictViolated, true},
		{"no driver", "driver: '', violate: [cq_at_least_requested]", "cq_at_least_requested", state.VerdictViolated, false},
		{"another driver", "driver: mlx5, violate: [cq_at_least_requested]", "cq_at_least_requested", state.VerdictViolated, false},
		{"another contract", "driver: hns, violate: [srq_at_least_requested]", "srq_at_least_requested", state.VerdictViolated, false},
		{"by more than is known", "driver: hns, faults: [{verb: ibv_create_cq, short: 2}]", "cq_at_least_requested", state.VerdictViolated, false},
		{"a queue resized to less", "faults: [{verb: ibv_resize_cq, short: 1}]", "cq_resize_at_least_requested", state.VerdictViolated, false},
		{"any amount", "driver: mana, faults: [{verb: ibv_create_cq, short: 2000}]", "cq_at_least_requested", state.VerdictViolated, true},
		{"a size among others", "driver: hns, faults: [{verb: ibv_create_qp, short: 1}]", "qp_at_least_requested", state.VerdictViolated, false},
		{"known and kept", "driver: hns", "cq_at_least_requested", state.VerdictHolds, true},
		{"kept, and no erratum", "driver: mlx5", "cq_at_least_requested", state.VerdictHolds, false},
		{"fixed", "driver: rxe, kernel: '6.12', violate: [srq_reports_actual]", "srq_reports_actual", state.VerdictViolated, false},
		{"not yet fixed", "driver: rxe, kernel: '6.1', violate: [srq_reports_actual]", "srq_reports_actual", state.VerdictViolated, true},
		{"refused", "driver: mlx5, violate: [qp_recv_caps_ignored_with_srq]", "qp_recv_caps_ignored_with_srq", state.VerdictViolated, false},
		{"each refused in a known way", "driver: siw, violate: [qp_recv_caps_ignored_with_srq]", "qp_recv_caps_ignored_with_srq", state.VerdictViolated, true},
		{"accepted", "driver: mlx4, violate: [qp_srq_type_restricted]", "qp_srq_type_restricted", state.VerdictViolated, true},
		{"accepted instead of the end", "driver: siw, violate: [cq_destroy_busy]", "cq_destroy_busy", state.VerdictViolated, false},
		{"an event", "driver: siw, violate: [notify_solicited_delivers_errors]", "notify_solicited_delivers_errors", state.VerdictViolated, true},
		{"armed again", "driver: bnxt_re, kernel: '6.17', faults: [{verb: ibv_query_srq, errno: EOPNOTSUPP}], violate: [srq_limit_disarmed]", "srq_limit_disarmed", state.VerdictViolated, true},
		{"still armed", "driver: bnxt_re, kernel: '6.17', violate: [srq_limit_disarmed]", "srq_limit_disarmed", state.VerdictViolated, false},
		{"could not be checked", "driver: siw, limits: {max_srq: 0}", "srq_limit_ignored", state.VerdictSkipped, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := running.Must(simulated.ParseProfile("profile", []byte("devices: [{name: sim0, like: sim_ib0, "+tt.yaml+"}]")))(t)
			r := checked(t, p, allBut(tt.contract)...)
			wantClean(t, r)
			if len(r.Contracts) != 1 {
				t.Fatalf("checked: %s", evidence(r))
			}
			c := r.Contracts[0]
			if c.Verdict != tt.verdict || c.Known != tt.known {
				t.Errorf("%s, known %t; want %s, %t\n%s", c.Verdict, c.Known, tt.verdict, tt.known, evidence(r))
			}
			if c.Known != (c.Fact != "") || c.Known != (c.Source != "") {
				t.Errorf("known %t, fact %q, source %q", c.Known, c.Fact, c.Source)
			}
		})
	}
}

// limitless is a device whose SRQs never reach their limit.
type limitless struct{ verbs.Provider }

func (l limitless) Open(name string) (verbs.Device, error) {
	d, err := l.Provider.Open(name)
	return deaf{d}, err
}

type deaf struct{ verbs.Device }

func (deaf) AsyncEvent(timeout time.Duration) (verbs.AsyncEvent, error) {
	time.Sleep(timeout)
	return verbs.AsyncEvent{}, verbs.ErrTimeout
}

// TestLimitNotArmed verifies that a contract that cannot be checked because the driver does not
// arm the limit names that erratum, unless the kernel has fixed it.
func TestLimitNotArmed(t *testing.T) {
	t.Parallel()
	const needs, fact = "not checked further: used up: no event within 2s", "; known of bnxt_re: ibv_modify_srq only records the limit"
	for kernel, known := range map[string]bool{"6.16": true, "6.17": false} {
		t.Run(kernel, func(t *testing.T) {
			t.Parallel()
			p := device(t, whole+"    driver: bnxt_re\n    kernel: '"+kernel+"'\n")
			r := checkedBy(t, p, func(p verbs.Provider) verbs.Provider { return limitless{p} }, allBut("srq_limit_event", "srq_limit_disarmed")...)
			wantClean(t, r)
			if e := r.Contracts[0]; e.Verdict != state.VerdictViolated || e.Known != known {
				t.Errorf("%s, known %t, want %t\n%s", e.Verdict, e.Known, known, evidence(r))
			}
			d := r.Contracts[1]
			if d.Verdict != state.VerdictSkipped || !strings.Contains(d.Observed, needs) || strings.Contains(d.Observed, needs+fact) != known {
				t.Errorf("%s, want skipped, with the erratum: %t\n%s", d.Verdict, known, evidence(r))
			}
		})
	}
}

// allBut returns the names of all contracts but some.
func allBut(kept ...string) []string {
	var names []string
	for _, c := range contract.Catalogue() {
		if !slices.Contains(kept, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// TestPresumptionIsKnown verifies that a provisional verdict is known only for a driver with
// an erratum that ends the process.
func TestPresumptionIsKnown(t *testing.T) {
	t.Parallel()
	for driver, want := range map[string]bool{"siw": true, "mlx5": false, "": false} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			p := device(t, "    like: sim_ib0\n    driver: '"+driver+"'\n")
			out := &cutOff{after: "completing a work request"}
			err := contract.Run(t.Context(), contract.Options{
				Options: session.Options{
					Provider: func(tr verbs.Tracer) verbs.Provider { return simulated.New(p, tr) },
					Device:   "sim0", Out: wire.NewWriter(out),
				},
				Driver: driverOf(p), Skip: allBut("cq_destroy_busy"),
			})
			if err == nil {
				t.Error("no error of a report that cannot be written")
			}
			var r state.Run
			if err := wire.Read(bytes.NewReader(out.Bytes()), &r); !errors.Is(err, wire.ErrTruncated) {
				t.Fatal(err)
			}
			if r.Provisional == nil || r.Provisional.Proven || r.Provisional.Contract.Known != want || r.Provisional.Contract.Verdict != state.VerdictViolated {
				t.Errorf("presumed: %+v, known should be %t", r.Provisional, want)
			}
		})
	}
}

// TestFactsAreOfContracts verifies that each erratum names a contract, and modes that its check
// distinguishes.
func TestFactsAreOfContracts(t *testing.T) {
	sizes := []string{"max_send_wr", "max_recv_wr", "max_send_sge", "max_recv_sge", "max_inline_data"}
	ways := map[string][]string{
		"cq_at_least_requested": {"cqe"}, "cq_ex_at_least_requested": {"cqe", errata.ModeRefused}, "cq_ex_batch_keeps_completions": {""}, "cq_destroy_busy": {errata.ModeEnd, errata.ModeAccepted},
		"cq_resize_at_least_requested": {"cqe", errata.ModeEnd}, "cq_resize_too_small_refused": {errata.ModeAccepted, errata.ModeEnd},
		"cq_resize_keeps_completions": {errata.ModeEnd},
		"srq_at_least_requested":      {"max_wr", "max_sge"}, "srq_reports_actual": {"max_wr", "max_sge"},
		"srq_limit_ignored": {errata.ModeArmed, errata.ModeRefused}, "srq_limit_disarmed": {errata.ModeArmed},
		"qp_at_least_requested": slices.Concat(sizes, []string{errata.ModeUnsent}), "qp_reports_actual": sizes,
		"qp_srq_type_restricted":        {errata.ModeAccepted},
		"qp_recv_caps_ignored_with_srq": {errata.ModeRefused, "max_recv_wr", "max_recv_sge"},
		// The probes, not the contracts, tell these apart.
		"cq_comp_vector_accepted": {errata.ModeRefused}, "notify_any": {errata.ModeInError},
	}
	for _, f := range errata.All() {
		if !slices.ContainsFunc(contract.Catalogue(), func(c contract.Contract) bool { return c.Name == f.Contract }) {
			t.Errorf("%s: there is no contract %s", f.Driver, f.Contract)
		}
		for _, way := range f.Modes {
			if !slices.Contains(ways[f.Contract], way) {
				t.Errorf("%s: %s is not broken by %q", f.Driver, f.Contract, way)
			}
		}
	}
}
