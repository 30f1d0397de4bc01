package health_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

func TestUnusable(t *testing.T) {
	const kind = health.FindingUnusable
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
			s := failed(state.Run{FailedVerb: tc.verb, Errno: tc.errno, Error: "open the device:\n\tno luck"})
			check(t, s, health.Default(), kind, want{
				health.SeverityCritical, tc.subject, []string{"The device cannot be used: open the device: no luck."}, []string{tc.action},
			})
			alone(t, s, kind)
		})
	}
	t.Run("for a while", func(t *testing.T) {
		s := failed(state.Run{FailedVerb: "ibv_open_device", Errno: "EIO"})
		s.Failures, s.LastSuccess = 7, taken().Add(-time.Hour)
		check(t, s, health.Default(), kind, want{
			health.SeverityCritical, "ibv_open_device EIO",
			[]string{"no reason given", "7 runs in a row have failed.", "good run started at 2026-03-01 11:00:00 UTC"},
			nil,
		})
		s.Failures, s.LastSuccess = 1, time.Time{}
		if f := of(assess(s), kind)[0]; strings.Contains(f.Message, "row") || strings.Contains(f.Message, "ok was") {
			t.Errorf("the message says %q", f.Message)
		}
	})
	for name, run := range map[string]state.Run{
		"a device that was asked":   {Info: &state.Device{}, FailedVerb: "ibv_query_port", Errno: "EACCES"},
		"a device that was probed":  {Probes: []state.Probe{{Name: "cq"}}},
		"a run that went well":      {Outcome: state.OutcomeOK},
		"a run that was killed":     {Outcome: state.OutcomeTimeout},
		"a run that crashed":        {Outcome: state.OutcomeCrashed},
		"a run of unknown outcomes": {Outcome: "odd"},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, failed(run), health.Default(), kind)
		})
	}
	t.Run("a device that vanished", func(t *testing.T) {
		s := failed(state.Run{FailedVerb: "ibv_open_device", Errno: "ENODEV"})
		s.Present = false
		check(t, s, health.Default(), kind)
	})
}

func TestPortDown(t *testing.T) {
	const (
		kind = health.FindingPortDown
		c    = health.SeverityCritical
		w    = health.SeverityWarning
		i    = health.SeverityInfo
	)
	dev := func(states ...string) *state.DeviceState {
		s := device(state.Inventory{})
		s.Last.Info = new(state.Device)
		for n, dev := range states {
			s.Last.Info.Ports = append(s.Last.Info.Ports, state.Port{Number: n + 1, State: dev, LinkLayer: "InfiniBand"})
		}
		return s
	}
	for _, tc := range []struct {
		states []string
		// before are the ports that were active once; nil for an audit, which knows no past.
		before []int
		want   []want
	}{
		{nil, []int{}, nil},
		{[]string{"active"}, []int{}, nil},
		{[]string{"active", "active_defer"}, nil, nil},
		{[]string{"active_defer"}, nil, nil},
		{[]string{"down"}, nil, []want{{w, "port 1", []string{"0 of 1 port active: port 1 is down (InfiniBand)."}, []string{"`ip link show`", "`ibstat`"}}}},
		{[]string{"nop"}, nil, []want{{w, "port 1", []string{"port 1 is nop"}, []string{"`ip link show`"}}}},
		{[]string{""}, nil, []want{{w, "port 1", []string{"port 1 is in an unknown state"}, nil}}},
		{[]string{"active", "down"}, nil, []want{{i, "port 2", []string{"1 of 2 ports active: port 2 is down (InfiniBand)."}, nil}}},
		{[]string{"init"}, nil, []want{{w, "port 1", []string{"port 1 is init"}, []string{"`sminfo`", "opensm"}}}},
		{[]string{"armed", "active"}, nil, []want{{i, "port 1", []string{"port 1 is armed"}, []string{"`sminfo`"}}}},
		{[]string{"armed", "down", "init"}, nil, []want{{w, "port 2", nil, []string{"`ip link show`"}}, {w, "ports 1, 3", []string{"port 1 is armed (InfiniBand), port 3 is init"}, []string{"`sminfo`"}}}},
		{[]string{"down", "down", "down", "down", "down"}, nil, []want{{w, "ports 1, 2, 3, and 2 more", []string{"0 of 5 ports active: ", "and 2 more."}, nil}}},
		{[]string{"down"}, []int{}, []want{{i, "port 1", []string{"0 of 1 port active: port 1 is down (InfiniBand)."}, nil}}},
		{[]string{"down"}, []int{1}, []want{{c, "port 1", []string{"0 of 1 port active: port 1 is down (InfiniBand); it was active before."}, nil}}},
		{[]string{"init"}, []int{1}, []want{{c, "port 1", []string{"port 1 is init (InfiniBand); it was active before."}, []string{"`sminfo`"}}}},
		{[]string{"active", "down"}, []int{1}, []want{{i, "port 2", nil, nil}}},
		{[]string{"active", "down"}, []int{1, 2}, []want{{w, "port 2", []string{"1 of 2 ports active: port 2 is down (InfiniBand); it was active before."}, nil}}},
		{[]string{"down", "down"}, []int{2}, []want{{c, "port 2", nil, nil}, {i, "port 1", nil, nil}}},
		{[]string{"down", "init"}, []int{1, 2}, []want{{c, "port 1", nil, nil}, {c, "port 2", nil, nil}}},
		{[]string{"active", "down", "down"}, []int{1, 2, 3}, []want{{w, "ports 2, 3", []string{"port 3 is down (InfiniBand); they were active before."}, nil}}},
	} {
		t.Run(fmt.Sprint(tc.states, tc.before), func(t *testing.T) {
			config, past := health.Default(), health.History{Ports: map[string][]int{"rxe0": tc.before}}
			if tc.before == nil {
				config, past = once(), health.History{}
			}
			compare(t, of(health.Assess(dev(tc.states...), config, past), kind), kind, tc.want...)
		})
	}
	t.Run("what an earlier run saw", func(t *testing.T) {
		s := dev("down")
		s.Info, s.Last.Info = s.Last.Info, nil
		check(t, s, health.Default(), kind)
	})
	t.Run("a device that vanished", func(t *testing.T) {
		s := dev("down")
		s.Present = false
		check(t, s, health.Default(), kind)
	})
	t.Run("without a link layer", func(t *testing.T) {
		s := dev("down")
		s.Last.Info.Ports[0].LinkLayer = ""
		check(t, s, once(), kind, want{w, "port 1", []string{"port 1 is down."}, nil})
	})
}

func TestContractViolated(t *testing.T) {
	const kind = health.FindingContract
	verdict := func(name string, severity health.Severity, verdict state.Verdict) state.Contract {
		return state.Contract{
			Name: name, Severity: state.Severity(severity), Verdict: verdict,
			Asked: "an event", Expected: "that it comes.", Observed: "that it\ndoes not",
			Consequence: "It\nhangs.", Remedy: "Clear it\nfirst.",
		}
	}
	dev := func(verdicts ...state.Contract) *state.DeviceState {
		s := device(state.Inventory{})
		s.Contracts = &state.Contracts{Last: &state.Run{Outcome: state.OutcomeOK}, Verdicts: verdicts}
		return s
	}
	check(t, dev(), health.Default(), kind)
	check(t, dev(
		verdict("notify_any", health.SeverityCritical, state.VerdictHolds),
		verdict("notify_one_shot", health.SeverityWarning, state.VerdictSkipped),
		verdict("cq_destroy_busy", health.SeverityCritical, ""),
	), health.Default(), kind)
	known := verdict("cq_destroy_busy", health.SeverityCritical, state.VerdictViolated)
	known.Known = true
	check(t, dev(known), health.Default(), kind)
	check(t, dev(
		verdict("cq_comp_vector_rejected", health.SeverityInfo, state.VerdictViolated),
		verdict("notify_any", health.SeverityCritical, state.VerdictViolated),
		verdict("notify_one_shot", health.SeverityWarning, state.VerdictViolated),
		verdict("qp_sq_sig_all", health.SeverityCritical, state.VerdictViolated),
		verdict("grave", "grave", state.VerdictViolated),
	), health.Default(), kind,
		want{
			health.SeverityCritical, "notify_any",
			[]string{"The device breaks the contract notify_any: that it does not."},
			[]string{"Clear it first. Report it to the vendor if ", "docs/reference/contracts.md#notify_any says"},
		},
		want{health.SeverityCritical, "qp_sq_sig_all", nil, []string{"docs/reference/contracts.md#qp_sq_sig_all says"}},
		want{health.SeverityWarning, "notify_one_shot", nil, nil},
		want{health.SeverityWarning, "grave", nil, nil},
		want{health.SeverityInfo, "cq_comp_vector_rejected", nil, nil})
	bare := dev(state.Contract{Name: "c", Severity: state.SeverityInfo, Verdict: state.VerdictViolated, Observed: strings.Repeat("x", 600)})
	if f := of(assess(bare), kind)[0]; f.Message != "The device breaks the contract c: "+strings.Repeat("x", 160)+"…." || f.Evidence != "Observed: "+strings.Repeat("x", 500)+"…." {
		t.Errorf("the message is %q", f.Message)
	} else if f.Meaning == "" || !strings.HasPrefix(f.Action, "Programs should not rely on it.") {
		t.Errorf("without a remedy the meaning is %q and the action %q", f.Meaning, f.Action)
	}
	told := dev(verdict("notify_any", health.SeverityCritical, state.VerdictViolated))
	if f := of(assess(told), kind)[0]; f.Meaning != "It hangs." || f.Evidence != "Observed: that it does not. Expected: that it comes. Asked: an event." {
		t.Errorf("the meaning is %q, the evidence %q", f.Meaning, f.Evidence)
	}
	vanished := dev(verdict("notify_any", health.SeverityCritical, state.VerdictViolated))
	vanished.Present = false
	check(t, vanished, health.Default(), kind)
	vanished.Present, vanished.Contracts = true, nil
	check(t, vanished, health.Default(), kind)
}
