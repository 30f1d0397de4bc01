package simulated_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/inventory/simulated"
	"rdma_exporter/internal/state"
	profile "rdma_exporter/verbs/simulated"
)

// dev is the state of a device whose inventories have found the same for age.
func dev(t *testing.T, p *profile.Profile, device string, look []state.Context, age time.Duration) *state.DeviceState {
	t.Helper()
	i := slices.IndexFunc(p.Devices, func(d profile.DeviceProfile) bool { return d.Name == device })
	l := p.Devices[i].Limits
	run := take(t, simulated.New(p, device, noon(), look), device, func(o *inventory.Options) {
		o.LeakCandidates, o.MaxFill = look, int64(max(l.MaxQPWR, l.MaxSRQWR))
		for _, fault := range p.Devices[i].Resources.Incomplete {
			if fault == "timeout" {
				o.Budget = duration(t, "20ms")
			}
		}
	})
	run.Outcome = state.OutcomeOK
	if run.Error != "" {
		run.Outcome = state.OutcomeFailed
	}
	found := cmp.Or(run.Inventory, new(state.Inventory))
	r := &state.Resources{Last: run.Compact(), Inventory: found, Taken: noon()}
	for _, left := range found.Leftover {
		r.Leaked = append(r.Leaked, state.Leaked{Type: left.Type, Objects: left.Objects, Since: noon().Add(-age)})
	}
	if len(found.Ownerless) > 0 && found.PIDsVisible {
		r.OrphanedSince = noon().Add(-age)
	}
	return &state.DeviceState{
		Name: device, Present: true, Resources: r,
		Info: &state.Device{Limits: []state.Limit{
			{Name: "max_pd", Value: int64(l.MaxPD)},
			{Name: "max_cq", Value: int64(l.MaxCQ)},
			{Name: "max_qp", Value: int64(l.MaxQP)},
			{Name: "max_mr", Value: int64(l.MaxMR)},
			{Name: "max_srq", Value: int64(l.MaxSRQ)},
		}},
	}
}

// TestFindings verifies that a profile can cause each kind of finding of an inventory, alone.
func TestFindings(t *testing.T) {
	child := []state.Context{simulated.Context(99)}
	const warning, info = health.SeverityWarning, health.SeverityInfo
	for name, test := range map[string]struct {
		resources string
		look      []state.Context
		age       time.Duration
		want      health.Kind // empty if none
		severity  health.Severity
		message   string
	}{
		"none":           {resources: "holders: [{pid: 1, objects: {qp: 100, mr: 100, srq: 3}}]", look: child},
		"just dead":      {resources: "holders: [{dead: true, objects: {qp: 2}}]"},
		"near the limit": {"holders: [{pid: 4711, comm: trainer, objects: {mr: 850}}]", nil, 0, health.FindingNearLimit, warning, "850 memory regions and allows 1000"},
		"near the limit of a cgroup": {
			"holders: [{pid: 1, comm: a, cgroup: " + podCgroup + ", objects: {qp: 84}, rdma_max: {hca_object: 100}}]", nil, 0,
			health.FindingCgroupNearLimit, warning, "86 of 100 hca_object",
		},
		"near the limit of memory": {
			"holders: [{pid: 4711, comm: trainer, objects: {mr: 60}, mr_bytes: 1048576, memlock: {limit: 67108864}}]", nil, 0,
			health.FindingMemlock, warning, "60 MiB are pinned (VmPin) for pid 4711 (trainer)",
		},
		"dead": {"holders: [{dead: true, objects: {qp: 2}}]", nil, time.Hour, health.FindingOrphaned, warning, "5 objects (2 qp, 1 cq, 1 ctx, 1 pd)"},
		"left": {"holders: []\nleak: {objects: {qp: 1}}", child, 0, health.FindingLeaked, warning, "4 objects"},
		// Leftover objects have no owner, either.
		"left for long":        {"holders: []\nleak: {objects: {qp: 1}}", child, time.Hour, health.FindingLeaked, health.SeverityCritical, "4 objects"},
		"queue pairs in error": {"holders: [{pid: 1, queue_pairs: [{type: rc, state: err, objects: 3}]}]", nil, 0, health.FindingQPError, warning, "3 queue pairs"},
		"oversized completion queues": {
			"holders: [{pid: 1, comm: a, objects: {cq: 2}, cq_entries: 32768}]", nil, 0, health.FindingCQUnfillable, info, "65,536 entries",
		},
		"no table":            {"incomplete: {srq: not_supported}", nil, 0, health.FindingIncomplete, info, ""},
		"a refused table":     {"incomplete: {qp: failed}", nil, 0, health.FindingIncomplete, warning, "input/output error"},
		"a changing table":    {"incomplete: {qp: interrupted}", nil, 0, health.FindingIncomplete, warning, ""},
		"a table without end": {"incomplete: {qp: timeout}", nil, 0, health.FindingIncomplete, warning, ""},
		"hidden processes":    {"holders: [{pid: 1, objects: {qp: 1}}]\npids_invisible: true", nil, time.Hour, health.FindingPIDsInvisible, info, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := parse(t, test.resources)
			p.Devices[0].Limits.MaxMR = 1000 // so that they can all be looked at
			found := health.Assess(dev(t, p, "sim0", test.look, test.age), health.Default(), health.History{})
			if test.want == "" && len(found) > 0 || test.want != "" && (len(found) != 1 || found[0].Kind != test.want) {
				t.Fatalf("findings %+v, want %q", found, test.want)
			}
			if len(found) > 0 && (found[0].Severity != test.severity || !strings.Contains(found[0].Message, test.message)) {
				t.Errorf("finding %+v, want %s and %q", found[0], test.severity, test.message)
			}
		})
	}
}

func TestBuiltInIsHealthy(t *testing.T) {
	p := profile.Default()
	for _, device := range p.Names() {
		s := dev(t, p, device, []state.Context{simulated.Context(1)}, time.Hour)
		if found := health.Assess(s, health.Default(), health.History{}); len(found) > 0 {
			t.Errorf("%s: findings %+v", device, found)
		}
	}
}

// TestVanished verifies that a removed device is in no table.
func TestVanished(t *testing.T) {
	p := parse(t, "holders: [{pid: 1, objects: {qp: 1}}]")
	for name, h := range map[string]*simulated.Host{
		"unknown": simulated.New(p, "sim1", noon(), []state.Context{simulated.Context(3)}),
		"vanished": func() *simulated.Host {
			gone := parse(t, "leak: {objects: {qp: 1}}")
			gone.Devices[0].Vanish = true
			return simulated.New(gone, "sim0", noon(), []state.Context{simulated.Context(3)})
		}(),
	} {
		if run := take(t, h, "sim0", nil); run.Error != "find the device: no such device" || run.Inventory != nil {
			t.Errorf("%s: error %q, inventory %v", name, run.Error, run.Inventory)
		}
	}
}
