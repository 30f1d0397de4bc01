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

// state is what a supervisor knows of a device when an inventory has found, for as long
// as age, what it finds. Limits are what the device says of itself.
func dev(t *testing.T, p *profile.Profile, device string, look []state.Context, age time.Duration) *state.DeviceState {
	t.Helper()
	i := slices.IndexFunc(p.Devices, func(d profile.DeviceProfile) bool { return d.Name == device })
	l := p.Devices[i].Limits
	run := take(t, simulated.New(p, device, noon(), look), device, func(o *inventory.Options) {
		o.Look, o.MaxFill = look, int64(max(l.MaxQPWR, l.MaxSRQWR))
		for _, fault := range p.Devices[i].Resources.Incomplete {
			if fault == profile.TableTimeout {
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

// TestFindings makes sure that each kind of finding of an inventory can be had
// from a profile, alone.
func TestFindings(t *testing.T) {
	child := []state.Context{simulated.Context(99)}
	for name, test := range map[string]struct {
		resources string
		look      []state.Context
		age       time.Duration
		want      []health.Kind
		severity  health.Severity
		message   string
	}{
		"none": {resources: "holders: [{pid: 1, objects: {qp: 100, mr: 100, srq: 3}}]", look: child},
		"near the limit": {
			resources: "holders: [{pid: 4711, comm: trainer, objects: {mr: 850}}]",
			want:      []health.Kind{health.FindingNearLimit}, severity: health.SeverityWarning,
			message: "850 memory regions and allows 1000",
		},
		"at the limit": {
			resources: "holders: [{pid: 4711, comm: trainer, objects: {mr: 1000}}]",
			want:      []health.Kind{health.FindingNearLimit}, severity: health.SeverityCritical, message: "100 %",
		},
		"near the limit of a cgroup": {
			resources: "holders: [{pid: 1, comm: a, cgroup: " + podCgroup + ", objects: {qp: 84}, rdma_max: {hca_object: 100}}]",
			want:      []health.Kind{health.FindingCgroupNearLimit}, severity: health.SeverityWarning,
			message: "86 of 100 hca_object",
		},
		"near the limit of memory": {
			resources: "holders: [{pid: 4711, comm: trainer, objects: {mr: 60}, mr_bytes: 1048576, memlock: {limit: 67108864}}]",
			want:      []health.Kind{health.FindingMemlock}, severity: health.SeverityWarning,
			message: "60 MiB are pinned (VmPin) for pid 4711 (trainer)",
		},
		"locked up to the limit": {
			resources: "holders: [{pid: 4711, comm: trainer, objects: {pd: 1}, memlock: {locked: 100, limit: 100}}]",
			want:      []health.Kind{health.FindingMemlock}, severity: health.SeverityCritical, message: "locked (VmLck) by",
		},
		"dead": {
			resources: "holders: [{dead: true, objects: {qp: 2}}]", age: time.Hour,
			want: []health.Kind{health.FindingOrphaned}, severity: health.SeverityWarning,
			message: "5 objects (2 qp, 1 cq, 1 ctx, 1 pd)",
		},
		"just dead": {resources: "holders: [{dead: true, objects: {qp: 2}}]"},
		"left": {
			resources: "holders: []\nleak: {objects: {qp: 1}}", look: child,
			want: []health.Kind{health.FindingLeaked}, severity: health.SeverityWarning, message: "4 objects",
		},
		// Nobody owns what is left, either.
		"left for long": {
			resources: "holders: []\nleak: {objects: {qp: 1}}", look: child, age: time.Hour,
			want: []health.Kind{health.FindingLeaked}, severity: health.SeverityCritical, message: "4 objects",
		},
		"queue pairs in error": {
			resources: "holders: [{pid: 1, queue_pairs: [{type: rc, state: err, objects: 3}]}]",
			want:      []health.Kind{health.FindingQPError}, severity: health.SeverityWarning, message: "3 queue pairs",
		},
		"completion queues for nothing": {
			resources: "holders: [{pid: 1, comm: a, objects: {cq: 2}, cq_entries: 32768}]",
			want:      []health.Kind{health.FindingCQUnfillable}, severity: health.SeverityInfo, message: "65,536 entries",
		},
		"no table": {
			resources: "incomplete: {srq: not_supported}",
			want:      []health.Kind{health.FindingIncomplete}, severity: health.SeverityInfo,
		},
		"a table that changes": {
			resources: "incomplete: {qp: interrupted}",
			want:      []health.Kind{health.FindingIncomplete}, severity: health.SeverityWarning,
		},
		"a table that is refused": {
			resources: "incomplete: {qp: failed}",
			want:      []health.Kind{health.FindingIncomplete}, severity: health.SeverityWarning, message: "input/output error",
		},
		"a table without an end": {
			resources: "incomplete: {qp: timeout}",
			want:      []health.Kind{health.FindingIncomplete}, severity: health.SeverityWarning,
		},
		"too many to look at": {
			resources: "holders: [{pid: 1, objects: {cm_id: 20001}}]",
			want:      []health.Kind{health.FindingIncomplete}, severity: health.SeverityInfo,
		},
		"out of sight": {
			resources: "holders: [{pid: 1, objects: {qp: 1}}]\npids_invisible: true", age: time.Hour,
			want: []health.Kind{health.FindingPIDsInvisible}, severity: health.SeverityInfo,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := parse(t, test.resources)
			p.Devices[0].Limits.MaxMR = 1000 // so that they can all be looked at
			found := health.Assess(dev(t, p, "sim0", test.look, test.age), health.Default(), health.History{})
			kinds := []health.Kind{}
			for _, f := range found {
				kinds = append(kinds, f.Kind)
			}
			if !slices.Equal(kinds, append([]health.Kind{}, test.want...)) {
				t.Fatalf("findings %q, want %q: %+v", kinds, test.want, found)
			}
			if len(found) > 0 && (found[0].Severity != test.severity || !strings.Contains(found[0].Message, test.message)) {
				t.Errorf("finding %+v, want %s and %q", found[0], test.severity, test.message)
			}
		})
	}
}

// TestGrowing makes sure that of the shapes that a profile can have the leak is found, once
// it has gone on for half an hour, and until the hour is over and all of it gone.
func TestGrowing(t *testing.T) {
	for shape, want := range map[string][]health.Kind{"even": {health.FindingGrowing}, "step": nil, "fill": nil, "churn": nil} {
		p := parse(t, "holders:\n  - {pid: 4711, comm: leaky, cgroup: "+podCgroup+", objects: {qp: 10}, growth: {qp: 600}, growth_shape: "+shape+"}\n")
		p.Devices[0].Limits.MaxQP = 10000
		var samples []state.Sample
		for minute := time.Duration(0); minute < 2*time.Hour; minute += 2 * time.Minute {
			s := dev(t, p, "sim0", nil, 0)
			run := take(t, simulated.New(p, "sim0", noon().Add(minute), nil), "sim0", nil)
			samples = state.Sampled(samples, run.Inventory, noon().Add(minute))
			s.Resources.Inventory, s.Resources.Samples = run.Inventory, samples
			var kinds []health.Kind
			for _, f := range health.Assess(s, health.Default(), health.History{}) {
				kinds = append(kinds, f.Kind)
			}
			if due := minute >= 30*time.Minute && minute < time.Hour; due && !slices.Equal(kinds, want) || !due && len(kinds) > 0 {
				t.Errorf("%s: after %s findings %q", shape, minute, kinds)
			}
		}
	}
}

// TestBuiltInIsHealthy makes sure that nothing is wrong with the built-in devices,
// at any time.
func TestBuiltInIsHealthy(t *testing.T) {
	p := profile.Default()
	for _, device := range p.Names() {
		s := dev(t, p, device, []state.Context{simulated.Context(1)}, time.Hour)
		if found := health.Assess(s, health.Default(), health.History{}); len(found) > 0 {
			t.Errorf("%s: findings %+v", device, found)
		}
	}
}

// TestVanished makes sure that a device that is gone is gone from the tables, too.
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
