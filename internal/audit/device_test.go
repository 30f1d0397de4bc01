package audit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/audit"
	"rdma_exporter/internal/report"
)

func TestUnusable(t *testing.T) {
	t.Parallel()
	const kind = report.FindingUnusable
	for _, tc := range []struct{ verb, errno, subject, action string }{
		{"ibv_open_device", "EACCES", "ibv_open_device EACCES", "`grep -lxF rxe0 /sys/class/infiniband_verbs/*/ibdev`"},
		{"ibv_open_device", "EPERM", "ibv_open_device EPERM", "`rdma system show`"},
		{"ibv_get_device_list", "EPERM", "ibv_get_device_list EPERM", "`rdma system show`"},
		{"ibv_open_device", "ENOENT", "ibv_open_device ENOENT", "`modprobe ib_uverbs` makes the nodes"},
		{"ibv_open_device", "ENXIO", "ibv_open_device ENXIO", "`modprobe ib_uverbs` makes the nodes"},
		{"ibv_open_device", "ENODEV", "ibv_open_device ENODEV", "ibverbs-providers"},
		{"ibv_get_device_list", "ENOSYS", "ibv_get_device_list ENOSYS", "ibverbs-providers"},
		{"ibv_open_device", "EAGAIN", "ibv_open_device EAGAIN", "hca_handle in rdma.max"},
		{"ibv_open_device", "ENOMEM", "ibv_open_device ENOMEM", "hca_handle in rdma.max"},
		{"ibv_open_device", "EIO", "ibv_open_device EIO", "`ibv_devinfo -d rxe0`"},
		{"ibv_query_device", "EACCES", "ibv_query_device EACCES", "`ibv_devinfo -d rxe0`"},
		{"ibv_query_device", "ENODEV", "ibv_query_device ENODEV", "`ibv_devinfo -d rxe0`"},
		{"", "", "the device", "`ibv_devinfo -d rxe0`"},
	} {
		t.Run(tc.subject, func(t *testing.T) {
			t.Parallel()
			s := failed(report.Run{FailedVerb: tc.verb, Errno: tc.errno, Error: "open the device:\n\tno luck"})
			check(t, s, audit.Default(), kind, want{
				report.SeverityCritical, tc.subject, []string{"The device cannot be used: open the device: no luck."}, []string{tc.action},
			})
			alone(t, s, kind)
		})
	}
	t.Run("for a while", func(t *testing.T) {
		t.Parallel()
		s := failed(report.Run{FailedVerb: "ibv_open_device", Errno: "EIO"})
		s.Failures, s.LastSuccess = 7, taken().Add(-time.Hour)
		check(t, s, audit.Default(), kind, want{
			report.SeverityCritical, "ibv_open_device EIO",
			[]string{"the run does not say why", "run 7 in a row that failed", "ok was started at 2026-03-01T11:00:00Z"},
			nil,
		})
		s.Failures, s.LastSuccess = 1, time.Time{}
		if f := of(audit.Assess(s, audit.Default()), kind)[0]; strings.Contains(f.Message, "row") || strings.Contains(f.Message, "ok was") {
			t.Errorf("the message says %q", f.Message)
		}
	})
	for name, run := range map[string]report.Run{
		"a device that was asked":   {Info: &report.Device{}, FailedVerb: "ibv_query_port", Errno: "EACCES"},
		"a device that was probed":  {Probes: []report.Probe{{Name: "cq"}}},
		"a run that went well":      {Outcome: report.OutcomeOK},
		"a run that was killed":     {Outcome: report.OutcomeTimeout},
		"a run that crashed":        {Outcome: report.OutcomeCrashed},
		"a run of unknown outcomes": {Outcome: "odd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, failed(run), audit.Default(), kind)
		})
	}
	t.Run("a device that vanished", func(t *testing.T) {
		t.Parallel()
		s := failed(report.Run{FailedVerb: "ibv_open_device", Errno: "ENODEV"})
		s.Present = false
		check(t, s, audit.Default(), kind)
	})
}

func TestPortDown(t *testing.T) {
	t.Parallel()
	const (
		kind = report.FindingPortDown
		w    = report.SeverityWarning
		i    = report.SeverityInfo
	)
	state := func(states ...string) *report.DeviceState {
		s := device(report.Inventory{})
		s.Last.Info = new(report.Device)
		for n, state := range states {
			s.Last.Info.Ports = append(s.Last.Info.Ports, report.Port{Number: n + 1, State: state, LinkLayer: "InfiniBand"})
		}
		return s
	}
	for _, tc := range []struct {
		states []string
		want   []want
	}{
		{nil, nil},
		{[]string{"active"}, nil},
		{[]string{"active", "active_defer"}, nil},
		{[]string{"active_defer"}, nil},
		{[]string{"down"}, []want{{w, "port 1", []string{"Of 1 port, 0 active: port 1 is down (InfiniBand)."}, []string{"`ip link show`", "`ibstat`"}}}},
		{[]string{"nop"}, []want{{w, "port 1", []string{"port 1 is nop"}, []string{"`ip link show`"}}}},
		{[]string{""}, []want{{w, "port 1", []string{"port 1 is in no known state"}, nil}}},
		{[]string{"active", "down"}, []want{{i, "port 2", []string{"Of 2 ports, 1 active: port 2 is down (InfiniBand)."}, nil}}},
		{[]string{"init"}, []want{{w, "port 1", []string{"port 1 is init"}, []string{"`sminfo`", "opensm"}}}},
		{[]string{"armed", "active"}, []want{{i, "port 1", []string{"port 1 is armed"}, []string{"`sminfo`"}}}},
		{[]string{"armed", "down", "init"}, []want{{w, "port 2", nil, []string{"`ip link show`"}}, {w, "ports 1, 3", []string{"port 1 is armed (InfiniBand), port 3 is init"}, []string{"`sminfo`"}}}},
		{[]string{"down", "down", "down", "down", "down"}, []want{{w, "ports 1, 2, 3, and 2 more", []string{"Of 5 ports, 0 active: ", "and 2 more."}, nil}}},
	} {
		t.Run(fmt.Sprint(tc.states), func(t *testing.T) {
			t.Parallel()
			check(t, state(tc.states...), audit.Default(), kind, tc.want...)
		})
	}
	t.Run("what an earlier run saw", func(t *testing.T) {
		t.Parallel()
		s := state("down")
		s.Info, s.Last.Info = s.Last.Info, nil
		check(t, s, audit.Default(), kind)
	})
	t.Run("a device that vanished", func(t *testing.T) {
		t.Parallel()
		s := state("down")
		s.Present = false
		check(t, s, audit.Default(), kind)
	})
	t.Run("without a link layer", func(t *testing.T) {
		t.Parallel()
		s := state("down")
		s.Last.Info.Ports[0].LinkLayer = ""
		check(t, s, audit.Default(), kind, want{w, "port 1", []string{"port 1 is down."}, nil})
	})
}

func TestContractViolated(t *testing.T) {
	t.Parallel()
	const kind = report.FindingContract
	verdict := func(name string, severity report.Severity, verdict report.Verdict) report.Contract {
		return report.Contract{
			Name: name, Severity: severity, Verdict: verdict,
			Asked: "an event", Expected: "that it comes.", Observed: "that it\ndoes not",
			Consequence: "It\nhangs.", Remedy: "Clear it\nfirst.",
		}
	}
	state := func(verdicts ...report.Contract) *report.DeviceState {
		s := device(report.Inventory{})
		s.Contracts = &report.Contracts{Last: &report.Run{Outcome: report.OutcomeOK}, Verdicts: verdicts}
		return s
	}
	check(t, state(), audit.Default(), kind)
	check(t, state(
		verdict("notify_any", report.SeverityCritical, report.VerdictHolds),
		verdict("notify_one_shot", report.SeverityWarning, report.VerdictSkipped),
		verdict("cq_destroy_busy", report.SeverityCritical, ""),
	), audit.Default(), kind)
	known := verdict("cq_destroy_busy", report.SeverityCritical, report.VerdictViolated)
	known.Known = true
	check(t, state(known), audit.Default(), kind)
	check(t, state(
		verdict("cq_comp_vector_rejected", report.SeverityInfo, report.VerdictViolated),
		verdict("notify_any", report.SeverityCritical, report.VerdictViolated),
		verdict("notify_one_shot", report.SeverityWarning, report.VerdictViolated),
		verdict("qp_sq_sig_all", report.SeverityCritical, report.VerdictViolated),
		verdict("grave", "grave", report.VerdictViolated),
	), audit.Default(), kind,
		want{
			report.SeverityCritical, "notify_any",
			[]string{"The device breaks the contract notify_any. Observed: that it does not. Expected: that it comes. Asked: an event."},
			[]string{"Clear it first. Report it to the vendor if ", "docs/contracts.md#notify_any has"},
		},
		want{report.SeverityCritical, "qp_sq_sig_all", nil, []string{"docs/contracts.md#qp_sq_sig_all has"}},
		want{report.SeverityWarning, "notify_one_shot", nil, nil},
		want{report.SeverityWarning, "grave", nil, nil},
		want{report.SeverityInfo, "cq_comp_vector_rejected", nil, nil})
	bare := state(report.Contract{Name: "c", Severity: report.SeverityInfo, Verdict: report.VerdictViolated, Observed: strings.Repeat("x", 600)})
	if f := of(audit.Assess(bare, audit.Default()), kind)[0]; f.Message != "The device breaks the contract c. Observed: "+strings.Repeat("x", 500)+"…." {
		t.Errorf("the message is %q", f.Message)
	} else if f.Meaning == "" || !strings.HasPrefix(f.Action, "Have programs do without") {
		t.Errorf("without a remedy the meaning is %q and the action %q", f.Meaning, f.Action)
	}
	told := state(verdict("notify_any", report.SeverityCritical, report.VerdictViolated))
	if f := of(audit.Assess(told, audit.Default()), kind)[0]; f.Meaning != "It hangs." {
		t.Errorf("the meaning is %q", f.Meaning)
	}
	vanished := state(verdict("notify_any", report.SeverityCritical, report.VerdictViolated))
	vanished.Present = false
	check(t, vanished, audit.Default(), kind)
	vanished.Present, vanished.Contracts = true, nil
	check(t, vanished, audit.Default(), kind)
}
