package health_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// flat returns findings with their consequences after them.
func flat(all []health.Finding) []health.Finding {
	var found []health.Finding
	for _, f := range all {
		found = append(append(found, f), f.Consequences...)
	}
	return found
}

// of returns the findings of one kind, the consequences of others among them.
func of(all []health.Finding, kind health.Kind) []health.Finding {
	var found []health.Finding
	for _, f := range flat(all) {
		if f.Kind == kind {
			found = append(found, f)
		}
	}
	return found
}

func assess(s *state.DeviceState) []health.Finding {
	return health.Assess(s, health.Default(), health.History{})
}

func newEvaluator() *health.Evaluator { return health.New(health.Default(), health.History{}) }

// lines returns kind and subject of each finding, with the severity if that matters, and of its consequences.
func lines(all []health.Finding, severity bool) []string {
	found := []string{}
	for _, f := range all {
		line := string(f.Kind) + " " + f.Subject
		if severity {
			line = string(f.Severity) + " " + line
		}
		if len(f.Consequences) > 0 {
			line += ": " + strings.Join(lines(f.Consequences, severity), "; ")
		}
		found = append(found, line)
	}
	return found
}

// want is what a finding is to say: its message and action contain these texts.
type want struct {
	severity        health.Severity
	subject         string
	message, action []string
}

func check(t *testing.T, s *state.DeviceState, thresholds health.Config, kind health.Kind, wanted ...want) {
	t.Helper()
	compare(t, of(health.Assess(s, thresholds, health.History{}), kind), kind, wanted...)
}

func once() health.Config {
	c := health.Default()
	c.Once = true
	return c
}

func compare(t *testing.T, got []health.Finding, kind health.Kind, wanted ...want) {
	t.Helper()
	if len(got) != len(wanted) {
		t.Fatalf("got %d findings %s, want %d: %+v", len(got), kind, len(wanted), got)
	}
	for i, w := range wanted {
		f := got[i]
		if f.Severity != w.severity || f.Subject != w.subject {
			t.Errorf("finding %d: got %s %q, want %s %q", i, f.Severity, f.Subject, w.severity, w.subject)
		}
		for _, text := range w.message {
			if !strings.Contains(f.Message, text) {
				t.Errorf("finding %d: there is no %q in the message %q", i, text, f.Message)
			}
		}
		for _, text := range w.action {
			if !strings.Contains(f.Action, text) {
				t.Errorf("finding %d: there is no %q in the action %q", i, text, f.Action)
			}
		}
	}
}

func TestNothing(t *testing.T) {
	for name, s := range map[string]*state.DeviceState{
		"no device":              nil,
		"a new device":           {Name: "rxe0", Present: true},
		"what a device says":     {Name: "rxe0", Present: true, Info: new(state.Device)},
		"verdicts without a run": {Name: "rxe0", Present: true, Contracts: &state.Contracts{Verdicts: []state.Contract{{}}}},
	} {
		if got := assess(s); got != nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	for name, s := range map[string]*state.DeviceState{
		"probed":          {Present: true, Last: new(state.Run)},
		"judged":          {Present: true, Contracts: &state.Contracts{Last: new(state.Run)}},
		"being looked at": {Present: true, Resources: new(state.Resources)},
		"looked at":       device(state.Inventory{PIDsVisible: true}),
		"stale":           {Last: &state.Run{Undestroyed: []state.Undestroyed{{Type: "cq"}}}, Resources: &state.Resources{Inventory: trouble().Resources.Inventory}},
	} {
		if got := assess(s); got == nil || len(got) != 0 {
			t.Errorf("%s: got %+v, want an empty list", name, got)
		}
	}
}

func TestNearLimit(t *testing.T) {
	const (
		critical = health.SeverityCritical
		warning  = health.SeverityWarning
	)
	users := func(kind string, n int64) state.Inventory {
		return state.Inventory{Objects: []state.ObjectCount{{Type: kind, Owner: state.OwnerUser, Objects: n}}}
	}
	limit := func(name string, n int64) state.Limit { return state.Limit{Name: name, Value: n} }
	owned := users("qp", 90)
	owned.Owners = []state.Owner{
		holder(1, "small", "qp", 20), holder(2, "", "qp", 60),
		{PID: 3, Comm: "other", Objects: []state.TypeCount{{Type: "mr", Objects: 1000}}},
	}
	byKernel := state.Inventory{
		Objects: []state.ObjectCount{{Type: "qp", Owner: state.OwnerUser, Objects: 40}, {Type: "qp", Owner: state.OwnerKernel, Objects: 50}},
		Owners:  []state.Owner{holder(1, "small", "qp", 20)},
	}
	even := users("qp", 40)
	even.Objects = append(even.Objects, state.ObjectCount{Type: "qp", Owner: state.OwnerKernel, Objects: 40})
	even.Owners = []state.Owner{holder(1, "one", "qp", 40), holder(2, "two", "qp", 40)}
	none := users("qp", 90)
	none.Owners = []state.Owner{holder(1, "idle", "qp", 0)}
	pod1 := users("qp", 96)
	pod1.Owners = []state.Owner{{PID: 5, Comm: "job", ContainerID: container, PodUID: pod, Objects: []state.TypeCount{{Type: "qp", Objects: 96}}}}
	for _, tc := range []struct {
		name  string
		state *state.DeviceState
		want  []want
	}{
		{"below", device(users("qp", 79), limit("max_qp", 100)), nil},
		{"at the warning", device(users("qp", 80), limit("max_qp", 100)), []want{{warning, "qp", []string{"80 queue pairs", "100 (max_qp)", "80 %"}, []string{"`rdma resource show qp link rxe0`"}}}},
		{"below critical", device(users("qp", 94), limit("max_qp", 100)), []want{{warning, "qp", []string{"94 %"}, nil}}},
		{"at critical", device(users("qp", 95), limit("max_qp", 100)), []want{{critical, "qp", []string{"95 %"}, nil}}},
		{"nearly all", device(users("qp", 9999999), limit("max_qp", 10000000)), []want{{critical, "qp", []string{": 99.9 %"}, nil}}},
		{"more than there can be", device(users("qp", 200), limit("max_qp", 100)), []want{{critical, "qp", []string{"200 %"}, nil}}},
		{"nearly ten times that", device(users("qp", 999), limit("max_qp", 100)), []want{{critical, "qp", []string{": 999 %"}, nil}}},
		{"ten times that", device(users("qp", 1000), limit("max_qp", 100)), []want{{critical, "qp", []string{">999 %"}, nil}}},
		{"more than an integer holds", device(state.Inventory{Objects: []state.ObjectCount{
			{Type: "qp", Owner: state.OwnerUser, Objects: math.MaxInt64}, {Type: "qp", Owner: state.OwnerKernel, Objects: math.MaxInt64},
		}}, limit("max_qp", 10)), []want{{critical, "qp", []string{"9,223,372,036,854,775,807 queue pairs", ">999 %"}, nil}}},
		{"no limit", device(users("qp", 100), limit("max_qp", 0)), nil},
		{"a limit that is none", device(users("qp", 100), limit("max_qp", -1)), nil},
		{"a limit that is not told", device(users("qp", 100), limit("max_qp_wr", 1)), nil},
		{"nothing there", device(users("qp", 0), limit("max_qp", 1)), nil},
		{"protection domains", device(users("pd", 1), limit("max_pd", 1)), []want{{critical, "pd", []string{"1 protection domain and"}, []string{"`rdma resource show pd dev rxe0`"}}}},
		{"completion queues", device(users("cq", 1), limit("max_cq", 1)), []want{{critical, "cq", []string{"max_cq"}, nil}}},
		{"memory regions", device(users("mr", 1), limit("max_mr", 1)), []want{{critical, "mr", []string{"max_mr"}, nil}}},
		{"shared receive queues", device(users("srq", 1), limit("max_srq", 1)), []want{{critical, "srq", []string{"max_srq"}, nil}}},
		{"types without a limit", device(users("ctx", 1), limit("max_ctx", 1)), nil},
		{"the largest owner", device(owned, limit("max_qp", 100)), []want{{warning, "qp", []string{"has 60: pid 2."}, []string{"`rdma resource show qp link rxe0 pid 2`"}}}},
		{"the kernel", device(byKernel, limit("max_qp", 100)), []want{{warning, "qp", []string{"90 queue pairs", "The kernel itself has most of them: 50"}, []string{"`rdma resource show qp link rxe0`"}}}},
		{"as many of the kernel's, and of the next owner's", device(even, limit("max_qp", 100)), []want{{warning, "qp", []string{"The largest owner has 40: pid 1 (one)."}, []string{"`rdma resource show qp link rxe0 pid 1`"}}}},
		{"an owner of none", device(none, limit("max_qp", 100)), []want{{warning, "qp", nil, []string{"`rdma resource show qp link rxe0`"}}}},
		{"an owner in a pod", device(pod1, limit("max_qp", 100)), []want{{critical, "qp", []string{"pid 5 (job), container 3f2a1b2c3d4e, pod " + pod}, nil}}},
		{"only counted", device(state.Inventory{Objects: []state.ObjectCount{{Type: "qp", Owner: state.OwnerUnknown, Objects: 90}}}, limit("max_qp", 100)), []want{{warning, "qp", []string{"90 queue pairs"}, nil}}},
		{"the worst first", device(state.Inventory{Objects: []state.ObjectCount{
			{Type: "pd", Objects: 81}, {Type: "cq", Objects: 97}, {Type: "qp", Objects: 99}, {Type: "mr", Objects: 90},
		}}, limit("max_pd", 100), limit("max_cq", 100), limit("max_qp", 100), limit("max_mr", 100)), []want{
			{critical, "qp", nil, nil}, {critical, "cq", nil, nil}, {warning, "mr", nil, nil}, {warning, "pd", nil, nil},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check(t, tc.state, health.Default(), health.FindingNearLimit, tc.want...)
		})
	}

	s := device(users("qp", 100))
	s.Info = nil
	check(t, s, health.Default(), health.FindingNearLimit)
}

func TestCgroupNearLimit(t *testing.T) {
	const kind = health.FindingCgroupNearLimit
	use := func(current, limit int64) *state.DeviceState {
		return device(state.Inventory{Cgroups: []state.CgroupUse{{Cgroup: "/a b", Resource: "hca_handle", Current: current, Limit: limit}}})
	}
	for _, tc := range []struct {
		current, limit int64
		severity       health.Severity
		message        string
	}{
		{79, 100, "", ""},
		{80, 100, health.SeverityWarning, "In use by cgroup /a b: 80 of 100 hca_handle allowed (rdma.max), 80 %."},
		{95, 100, health.SeverityCritical, "95 %"},
		{1 << 40, -1, "", ""},
		{0, 0, "", ""}, // Forbidden, and so it is.
		{1, 0, health.SeverityCritical, "In use by cgroup /a b: 1 hca_handle; none is allowed (rdma.max)."},
	} {
		t.Run(fmt.Sprint(tc.current, " of ", tc.limit), func(t *testing.T) {
			if tc.severity == "" {
				check(t, use(tc.current, tc.limit), health.Default(), kind)
				return
			}
			check(t, use(tc.current, tc.limit), health.Default(), kind, want{
				tc.severity, "cgroup /a b hca_handle",
				[]string{tc.message},
				[]string{"`cat /sys/fs/cgroup'/a b'/rdma.current`", "Raise hca_handle of rxe0"},
			})
		})
	}
	t.Run("a path that a shell would misread", func(t *testing.T) {
		s := use(1, 1)
		s.Resources.Inventory.Cgroups[0].Cgroup = "/it's $(reboot)"
		check(t, s, health.Default(), kind, want{
			health.SeverityCritical, "cgroup /it's $(reboot) hca_handle", nil, []string{`cat /sys/fs/cgroup'/it'\''s $(reboot)'/rdma.current`},
		})
	})
	t.Run("a container", func(t *testing.T) {
		check(t, trouble(), health.Default(), kind,
			want{
				health.SeverityCritical, "container 3f2a1b2c3d4e hca_object",
				[]string{"container 3f2a1b2c3d4e, pod " + pod, "4000 of 4096"},
				[]string{"`cat /sys/fs/cgroup" + podCgroup + "/rdma.current`"},
			},
			want{health.SeverityWarning, "cgroup /user.slice/a b hca_handle", []string{"8 of 10"}, nil})
	})
}

func TestMemlock(t *testing.T) {
	for _, tc := range []struct {
		name                  string
		pinned, locked, limit int64
		severity              health.Severity
		message               string
	}{
		{"pins nothing", 0, 0, 64 << 10, "", ""},
		{"may pin nothing", 0, 0, 0, "", ""},
		{"below", 79, 0, 100, "", ""},
		{"at the warning", 80, 0, 100, health.SeverityWarning, "80 bytes are pinned (VmPin) for pid 7 (trainer), of the 100 bytes"},
		{"locked as much as pinned", 90, 90, 100, health.SeverityWarning, "90 bytes are pinned (VmPin) for pid 7"},
		{"locked more than pinned", 10, 90, 100, health.SeverityWarning, "90 bytes are locked (VmLck) by pid 7"},
		// The kernel counts them apart.
		{"both", 60, 60, 100, "", ""},
		{"at critical", 95 << 20, 0, 100 << 20, health.SeverityCritical, "95 MiB are pinned"},
		{"just a unit", 1 << 10, 0, 1 << 10, health.SeverityCritical, "1 KiB are pinned"},
		{"all", 1 << 30, 0, 1 << 30, health.SeverityCritical, "1 GiB are pinned (VmPin) for pid 7 (trainer), of the 1 GiB allowed (RLIMIT_MEMLOCK): 100 %."},
		{"unlimited", 1 << 40, 0, -1, "", ""},
		// It has CAP_IPC_LOCK, or it would not have come this far.
		{"beyond", 101, 0, 100, "", ""},
		{"beyond nothing", 1, 0, 0, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := device(state.Inventory{Owners: []state.Owner{holder(1, "unknown", "qp", 1), pinning(7, tc.pinned, tc.locked, tc.limit)}})
			if tc.severity == "" {
				check(t, s, health.Default(), health.FindingMemlock)
				return
			}
			check(t, s, health.Default(), health.FindingMemlock, want{
				tc.severity, "pid 7 (trainer)", []string{tc.message}, []string{"prlimit --memlock --pid 7", "LimitMEMLOCK", "ulimit -l"},
			})
		})
	}
}

func TestLevels(t *testing.T) {
	s := device(state.Inventory{
		Objects: []state.ObjectCount{{Type: "qp", Owner: state.OwnerUser, Objects: 15}},
		Cgroups: []state.CgroupUse{{Cgroup: "/a", Resource: "hca_handle", Current: 15, Limit: 100}},
		Owners:  []state.Owner{pinning(7, 15, 0, 100)},
	}, state.Limit{Name: "max_qp", Value: 100})
	low := health.Levels{Warning: 0.1, Critical: 0.2}
	for want, change := range map[string]func(*health.Config){
		"warning near_limit qp":                          func(c *health.Config) { c.NearLimit = low },
		"warning cgroup_near_limit cgroup /a hca_handle": func(c *health.Config) { c.CgroupNearLimit = low },
		"warning memlock_near_limit pid 7 (trainer)":     func(c *health.Config) { c.MemlockNearLimit = low },
	} {
		c := health.Default()
		change(&c)
		if got := lines(health.Assess(s, c, health.History{}), true); !reflect.DeepEqual(got, []string{want}) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOrphaned(t *testing.T) {
	dev := func(visible bool, age time.Duration, ownerless ...state.TypeCount) *state.DeviceState {
		s := device(state.Inventory{PIDsVisible: visible, Ownerless: ownerless})
		if age >= 0 {
			s.Resources.OrphanedSince = taken().Add(-age)
		}
		return s
	}
	qps, pds := state.TypeCount{Type: "qp", Objects: 37}, state.TypeCount{Type: "pd", Objects: 2}
	for _, tc := range []struct {
		name     string
		state    *state.DeviceState
		orphaned string
		unseen   string
	}{
		{"none", dev(true, -1), "", ""},
		{"none where PIDs are out of sight", dev(false, -1), "", ""},
		{"none any more", dev(true, time.Hour), "", ""},
		{"of no number", dev(true, time.Hour, state.TypeCount{Type: "qp"}), "", ""},
		{"just found", dev(true, 0, pds, qps), "", ""},
		{"nearly old enough", dev(true, time.Minute-1, pds, qps), "", ""},
		{"old enough", dev(true, time.Minute, pds, qps), "39 objects (37 qp, 2 pd). Inventories have found such objects since 2026-03-01 11:59:00 UTC, for 1 min.", ""},
		{"of unknown age", dev(true, -1, qps), "", ""},
		{"out of sight", dev(false, time.Hour, pds, qps), "", "39 objects (37 qp, 2 pd)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var orphaned, unseen []want
			if tc.orphaned != "" {
				orphaned = []want{{health.SeverityWarning, "user objects", []string{tc.orphaned}, []string{"fuser -v /dev/infiniband", "rdma resource show qp link rxe0"}}}
			}
			if tc.unseen != "" {
				unseen = []want{{health.SeverityInfo, "owners", []string{tc.unseen}, []string{"hostPID: true"}}}
			}
			check(t, tc.state, health.Default(), health.FindingOrphaned, orphaned...)
			check(t, tc.state, health.Default(), health.FindingPIDsInvisible, unseen...)
		})
	}
	t.Run("at once", func(t *testing.T) {
		thresholds := health.Default()
		thresholds.OrphanAge = 0
		if got := of(health.Assess(dev(true, 0, qps), thresholds, health.History{}), health.FindingOrphaned); len(got) != 1 {
			t.Errorf("got %+v", got)
		}
	})
}

// TestOrphanedBesideLeaked verifies that objects leaked by children of the exporter do not count as orphans.
func TestOrphanedBesideLeaked(t *testing.T) {
	s := device(state.Inventory{PIDsVisible: true, Ownerless: []state.TypeCount{{Type: "qp", Objects: 37}, {Type: "pd", Objects: 2}}})
	s.Resources.OrphanedSince = taken().Add(-time.Hour)
	for _, tc := range []struct {
		leaked []state.Leaked
		want   string
	}{
		{[]state.Leaked{{Type: "qp", Objects: 30}}, "9 objects (7 qp, 2 pd)"},
		{[]state.Leaked{{Type: "qp", Objects: 30}, {Type: "pd", Objects: 1}}, "8 objects (7 qp, 1 pd)"},
		{[]state.Leaked{{Type: "cq", Objects: 30}}, "39 objects (37 qp, 2 pd)"},
		{[]state.Leaked{{Type: "qp", Objects: 38}}, "2 objects (2 pd)"},
		{[]state.Leaked{{Type: "qp", Objects: -1}}, "39 objects (37 qp, 2 pd)"},
		{[]state.Leaked{{Type: "qp", Objects: 37}, {Type: "pd", Objects: 2}}, ""},
	} {
		s.Resources.Leaked = tc.leaked
		var wanted []want
		if tc.want != "" {
			wanted = []want{{health.SeverityWarning, "user objects", []string{"Without a living owner: " + tc.want + "."}, nil}}
		}
		check(t, s, health.Default(), health.FindingOrphaned, wanted...)
	}
	// With invisible owners they cannot be distinguished.
	s.Resources.Leaked, s.Resources.Inventory.PIDsVisible = []state.Leaked{{Type: "qp", Objects: 30}}, false
	check(t, s, health.Default(), health.FindingPIDsInvisible, want{health.SeverityInfo, "owners", []string{"39 objects (37 qp, 2 pd)"}, nil})
}

func TestLeaked(t *testing.T) {
	left := func(all ...state.Leaked) *state.DeviceState {
		s := device(state.Inventory{})
		s.Resources.Leaked = all
		return s
	}
	since := func(age time.Duration) time.Time { return taken().Add(-age) }
	const subject = "the exporter's own objects"
	check(t, left(), health.Default(), health.FindingLeaked)
	check(t, left(state.Leaked{Type: "qp", Since: since(time.Hour)}), health.Default(), health.FindingLeaked)
	check(t, left(state.Leaked{Type: "qp", Objects: 1, Since: taken()}), health.Default(), health.FindingLeaked,
		want{health.SeverityWarning, subject, []string{"1 object (1 qp)", "since 2026-03-01 12:00:00 UTC, for 0 s"}, []string{"--device.exclude=rxe0"}})
	check(t, left(state.Leaked{Type: "qp", Objects: 1, Since: since(time.Minute - 1)}), health.Default(), health.FindingLeaked,
		want{health.SeverityWarning, subject, nil, nil})
	check(t, left(state.Leaked{Type: "qp", Objects: 1, Since: since(time.Minute)}), health.Default(), health.FindingLeaked,
		want{health.SeverityCritical, subject, nil, nil})
	check(t, left(
		state.Leaked{Type: "qp", Objects: 1, Since: taken()}, state.Leaked{Type: "mr", Objects: 3, Since: since(time.Hour)},
		state.Leaked{Type: "pd", Objects: 0, Since: since(time.Hour * 9)},
	), health.Default(), health.FindingLeaked,
		want{health.SeverityCritical, subject, []string{"4 objects (3 mr, 1 qp)", "since 2026-03-01 11:00:00 UTC, for 1 h"}, nil})
}

func TestUndestroyed(t *testing.T) {
	cq, pd := state.Undestroyed{Type: "cq", Errno: "EBUSY", Attempts: 3}, state.Undestroyed{Type: "pd", Errno: "EBUSY", Attempts: 7}
	run := func(objects ...state.Undestroyed) *state.Run { return &state.Run{Undestroyed: objects} }
	dev := func(probes, contracts *state.Run) *state.DeviceState {
		return &state.DeviceState{Name: "rxe0", Present: true, Last: probes, Contracts: &state.Contracts{Last: contracts}}
	}
	const (
		kind = health.FindingUndestroyed
		w    = health.SeverityWarning
	)
	check(t, dev(run(), run()), health.Default(), kind)
	check(t, dev(run(cq), nil), health.Default(), kind,
		want{w, "cq EBUSY", []string{"of the probes the device refused to destroy 1 completion queue: EBUSY, tried up to 3 times"}, []string{"uses the cq"}})
	check(t, dev(nil, run(pd)), health.Default(), kind, want{w, "pd EBUSY", []string{"of the contract run the"}, nil})
	check(t, dev(run(pd, cq, state.Undestroyed{Type: "pd", Errno: "EBUSY", Attempts: 2}), run(cq, state.Undestroyed{Type: "cq", Errno: "EIO"}, state.Undestroyed{Type: "comp_channel"})), health.Default(), kind,
		want{w, "pd EBUSY", []string{"2 protection domains", "up to 7 times"}, nil},
		want{w, "cq EBUSY", []string{"of the probes (1) and the contracts (1)", "2 completion queues"}, nil},
		want{w, "cq EIO", nil, nil},
		want{w, "comp_channel no errno", []string{"1 completion channel"}, nil})
	vanished := dev(run(cq), run(pd))
	vanished.Present = false
	check(t, vanished, health.Default(), kind)
}

func TestStuck(t *testing.T) {
	for _, present := range []bool{true, false} {
		s := &state.DeviceState{
			Name: "rxe0", Present: present, Stuck: &state.Stuck{PID: 814, Verb: "ibv_destroy_cq", Since: taken()},
			Resources: &state.Resources{Stuck: &state.Stuck{PID: 815, Since: taken()}},
		}
		check(t, s, health.Default(), health.FindingStuck,
			want{health.SeverityCritical, "pid 814", []string{"(probes or contract run)", "pid 814", "since 2026-03-01 12:00:00 UTC, in ibv_destroy_cq."}, []string{"cat /proc/814/stack", "dmesg"}},
			want{health.SeverityCritical, "pid 815", []string{"(inventory)", "since 2026-03-01 12:00:00 UTC."}, []string{"cat /proc/815/stack"}})
		s.Resources = nil
		check(t, s, health.Default(), health.FindingStuck, want{health.SeverityCritical, "pid 814", nil, nil})
	}
}

func TestQPError(t *testing.T) {
	qps := func(counts ...state.QueuePairCount) *state.DeviceState {
		return device(state.Inventory{QueuePairs: counts})
	}
	count := func(kind, dev string, n int64) state.QueuePairCount {
		return state.QueuePairCount{Type: kind, State: dev, Objects: n}
	}
	const w = health.SeverityWarning
	check(t, qps(), health.Default(), health.FindingQPError)
	check(t, qps(count("rc", "rts", 9), count("rc", "reset", 9), count("rc", "err", 0)), health.Default(), health.FindingQPError)
	check(t, qps(count("rc", "rts", 9), count("rc", "err", 1)), health.Default(), health.FindingQPError,
		want{w, "qp", []string{"In the state err: 1 queue pair; of 10 in all. The inventory does not say"}, []string{"`rdma resource show qp link rxe0 state ERR`"}})
	check(t, qps(count("ud", "sqe", 2)), health.Default(), health.FindingQPError,
		want{w, "qp", []string{"In the state sqe: 2 queue pairs; of 2 in all"}, []string{"state SQE`"}})
	thresholds := health.Default()
	passing := qps(count("rc", "err", 2), count("ud", "sqe", 1))
	passing.Resources.Inventory.TransientErrors = 2
	check(t, passing, health.Default(), health.FindingQPError,
		want{w, "qp", []string{"In the state err: 2 queue pairs; in the state sqe: 1; of 3 in all. 2 of them do not count"}, nil})
	passing.Resources.Inventory.TransientErrors = 3
	check(t, passing, health.Default(), health.FindingQPError)
	thresholds.QPErrors = 0
	check(t, qps(count("rc", "rts", 9)), thresholds, health.FindingQPError)
	thresholds.QPErrors = 5
	check(t, qps(count("rc", "err", 2), count("ud", "sqe", 2)), thresholds, health.FindingQPError)
	check(t, qps(count("rc", "err", 2), count("uc", "err", 2), count("ud", "sqe", 1)), thresholds, health.FindingQPError,
		want{w, "qp", []string{"In the state err: 4 queue pairs; in the state sqe: 1; of 5 in all"}, []string{"state ERR`"}})
}

func TestCQUnfillable(t *testing.T) {
	dev := func(u *state.CQSum) *state.DeviceState {
		return device(state.Inventory{OversizedCQs: u, Owners: []state.Owner{holder(7, "trainer", "cq", 3)}})
	}
	check(t, dev(nil), health.Default(), health.FindingCQUnfillable)
	check(t, dev(&state.CQSum{Objects: 9, Entries: 1<<16 - 1, Largest: 9}), health.Default(), health.FindingCQUnfillable)
	check(t, dev(&state.CQSum{Objects: 9, Entries: 1 << 16, Largest: 8191, PID: 7}), health.Default(), health.FindingCQUnfillable,
		want{
			health.SeverityInfo, "cq",
			[]string{"9 completion queues with 65,536 entries", "largest has 8191, and belongs to pid 7 (trainer)."},
			[]string{"`rdma resource show cq dev rxe0 pid 7`"},
		})
	check(t, dev(&state.CQSum{Objects: 1, Entries: 1 << 20, Largest: 1 << 20, PID: 8}), health.Default(), health.FindingCQUnfillable,
		want{health.SeverityInfo, "cq", []string{"belongs to pid 8."}, nil})
	thresholds := health.Default()
	thresholds.CQEntries = 0
	check(t, dev(&state.CQSum{Objects: 1}), thresholds, health.FindingCQUnfillable)
	check(t, dev(&state.CQSum{Objects: 1, Entries: 1 << 20, Largest: 1 << 20}), health.Default(), health.FindingCQUnfillable,
		want{health.SeverityInfo, "cq", []string{"has 1,048,576."}, []string{"`rdma resource show cq dev rxe0`"}})
}

func TestIncomplete(t *testing.T) {
	const (
		kind = health.FindingIncomplete
		w    = health.SeverityWarning
		i    = health.SeverityInfo
	)
	t.Run("by reason", func(t *testing.T) {
		s := device(state.Inventory{
			Objects: []state.ObjectCount{{Type: "qp", Owner: state.OwnerUnknown, Objects: 120000}, {Type: "mr", Owner: state.OwnerUnknown, Objects: 1}},
			Incomplete: []state.Incomplete{
				{Type: "qp", Reason: state.IncompleteMaxObjects, Detail: "too many"},
				{Type: "srq", Reason: state.IncompleteNotSupported},
				{Type: "mr", Reason: state.IncompleteMaxObjects},
				{Type: "ctx", Reason: state.IncompleteNotSupported},
				{Type: "pd", Reason: state.IncompleteTimeout},
				{Type: "cq", Reason: state.IncompleteInterrupted},
				{Type: "cm_id", Reason: state.IncompleteFailed, Detail: "EPERM"},
			},
		})
		check(t, s, health.Default(), kind,
			want{w, "pd", nil, []string{"Raise `--inventory.timeout`"}},
			want{w, "cq", nil, []string{"`rdma resource show cq dev rxe0`"}},
			want{w, "cm_id", []string{"(cm_id: EPERM)"}, []string{"`rdma resource show cm_id link rxe0`"}},
			want{i, "qp, mr", []string{"120,000 queue pairs, 1 memory region (qp: too many)"}, []string{"`rdma resource show` lists them"}},
			want{i, "srq, ctx", []string{"one by one: srq, ctx."}, []string{"newer kernel"}})
	})
	last := func(outcome state.Outcome) *state.DeviceState {
		s := device(state.Inventory{})
		s.Resources.Last = &state.Run{Started: taken().Add(time.Hour), Outcome: outcome, Error: "killed after 30s"}
		return s
	}
	t.Run("a run that was ok", func(t *testing.T) {
		check(t, last(state.OutcomeOK), health.Default(), kind)
	})
	t.Run("runs that were not", func(t *testing.T) {
		for _, outcome := range []state.Outcome{state.OutcomeFailed, state.OutcomeTimeout, state.OutcomeCrashed} {
			check(t, last(outcome), health.Default(), kind, want{
				w, "the inventory",
				[]string{"2026-03-01 13:00:00 UTC", "outcome " + string(outcome) + ": killed after 30s", "objects shown are from 2026-03-01 12:00:00 UTC"},
				[]string{"`rdma resource show rxe0`"},
			})
		}
	})
	t.Run("no inventory ever", func(t *testing.T) {
		s := last(state.OutcomeTimeout)
		s.Resources.Inventory, s.Resources.Taken = nil, time.Time{}
		check(t, s, health.Default(), kind, want{w, "the inventory", []string{"The objects on the device are not known"}, nil})
	})
	t.Run("only counted", func(t *testing.T) {
		s := last(state.OutcomeTimeout)
		s.Resources.Taken = s.Resources.Last.Started
		for _, typ := range state.ResourceTypes() {
			s.Resources.Inventory.Incomplete = append(s.Resources.Inventory.Incomplete, state.Incomplete{Type: typ, Reason: state.IncompleteTimeout})
		}
		check(t, s, health.Default(), kind, want{w, "the inventory", []string{"It only counted the objects."}, nil})
	})
	t.Run("an inventory nevertheless", func(t *testing.T) {
		s := last(state.OutcomeFailed)
		s.Resources.Taken = s.Resources.Last.Started
		check(t, s, health.Default(), kind, want{w, "the inventory", []string{"still produced an inventory"}, nil})
		s.Resources.Inventory.Incomplete = []state.Incomplete{{Type: "qp", Reason: state.IncompleteTimeout}}
		check(t, s, health.Default(), kind, want{w, "qp", nil, nil})
	})
}

func TestOrder(t *testing.T) {
	want := []string{
		"critical stuck pid 814: critical stuck pid 815", "critical leaked the exporter's own objects",
		"critical near_limit qp", "critical cgroup_near_limit container 3f2a1b2c3d4e hca_object",
		"warning undestroyed cq EBUSY: warning undestroyed pd EBUSY", "warning undestroyed qp EIO", "warning orphaned user objects",
		"warning near_limit pd", "warning cgroup_near_limit cgroup /user.slice/a b hca_handle", "warning memlock_near_limit pid 4711 (trainer)", "warning qp_error qp",
		"info cq_unfillable cq", "info inventory_incomplete mr", "info inventory_incomplete srq",
	}
	if got := lines(assess(trouble()), true); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestBound(t *testing.T) {
	const owners = 100
	s := trouble()
	i := s.Resources.Inventory
	i.Owners = nil
	for n := range owners {
		i.Owners = append(i.Owners, pinning(n+1, 900+int64(n), 0, 1000))
	}
	found := of(assess(s), health.FindingMemlock)
	if len(found) != 12 {
		t.Fatalf("got %d findings, want 12", len(found))
	}
	if f := found[0]; f.Subject != "pid 100 (trainer)" || f.Severity != health.SeverityCritical {
		t.Errorf("the first is %+v, want the one nearest to its limit", f)
	}
	if f := found[11]; f.Subject != "pid 89 (trainer) and 88 more" || !strings.Contains(f.Message, " 88 more, none of them worse") {
		t.Errorf("the last is %+v", f)
	}
	if got := of(assess(s), health.FindingCQUnfillable); len(got) != 1 {
		t.Errorf("many findings of one kind drove out another")
	}

	i.Owners = i.Owners[:12]
	if f := of(assess(s), health.FindingMemlock)[11]; strings.Contains(f.Message, "more") {
		t.Errorf("nothing is left out, and yet: %+v", f)
	}

	s.Contracts.Verdicts = nil
	for i := range 33 {
		s.Contracts.Verdicts = append(s.Contracts.Verdicts, state.Contract{Name: fmt.Sprint("c", i), Severity: state.SeverityInfo, Verdict: state.VerdictViolated})
	}
	found = of(assess(s), health.FindingContract)
	if len(found) != 32 || found[31].Subject != "c31 and 1 more" || !strings.Contains(found[31].Message, " 1 more, none of them worse") {
		t.Errorf("%d of 33 contracts are reported, the last as %+v", len(found), found[len(found)-1])
	}
}

// TestHarmAndSeverity verifies that a less harmful finding is never more severe.
func TestHarmAndSeverity(t *testing.T) {
	least := 0
	for _, harm := range health.Harms() {
		first, last := len(health.Severities()), 0
		for _, e := range health.Catalogue() {
			for i, severity := range e.Severities {
				for j, of := range e.Harms {
					if of == harm && (len(e.Harms) != len(e.Severities) || i == j) {
						n := slices.Index(health.Severities(), severity)
						first, last = min(first, n), max(last, n)
					}
				}
			}
		}
		if first < least {
			t.Errorf("%s can be more severe than what is worse", harm)
		}
		least = last
	}
}

func TestRoots(t *testing.T) {
	run := func(outcome state.Outcome, verb string) *state.Run {
		return &state.Run{Outcome: outcome, Verb: verb, Started: taken()}
	}
	hangs := func() *state.DeviceState {
		s := device(state.Inventory{})
		s.Last = run(state.OutcomeTimeout, "ibv_create_qp")
		s.Last.Probes = []state.Probe{probing("srq", failure("small", "ibv_create_srq", "EIO", "no"))}
		s.Contracts = &state.Contracts{Last: run(state.OutcomeTimeout, "ibv_create_qp"), Verdicts: []state.Contract{
			{Name: "x", Verdict: state.VerdictSkipped, Reason: state.SkipTimeout, CheckedAt: taken().Add(-1)},
		}}
		s.Resources.Last.Outcome = state.OutcomeTimeout
		return s
	}
	change := func(f func(s *state.DeviceState)) *state.DeviceState {
		s := hangs()
		f(s)
		return s
	}
	broken := failure("rc small", "ibv_create_qp", "EIO", "no")
	limit := int64(65536)
	pinned := failure("small", "ibv_create_cq", "ENOMEM", "no")
	pinned.Memlock = &limit
	for _, tc := range []struct {
		name  string
		state *state.DeviceState
		want  []string
	}{
		{"a device that hangs", hangs(), []string{
			"run_aborted the probes, in ibv_create_qp: run_aborted the contract run, in ibv_create_qp; run_aborted the contract run, at x; probe_failed srq; inventory_incomplete the inventory",
		}},
		{"and whose processes cannot be killed", change(func(s *state.DeviceState) {
			s.Stuck, s.Resources.Stuck = &state.Stuck{PID: 1}, &state.Stuck{PID: 2}
		}), []string{"stuck pid 1: stuck pid 2; probe_failed srq; inventory_incomplete the inventory"}},
		{"one that cannot be opened", change(func(s *state.DeviceState) {
			s.Last = &state.Run{Outcome: state.OutcomeFailed, FailedVerb: "ibv_open_device", Errno: "EIO"}
		}), []string{"device_unusable ibv_open_device EIO: run_aborted the contract run, in ibv_create_qp; run_aborted the contract run, at x; inventory_incomplete the inventory"}},
		{"one on which only the contracts hang", change(func(s *state.DeviceState) {
			s.Last, s.Resources.Last.Outcome = run(state.OutcomeOK, ""), state.OutcomeOK
		}), []string{"run_aborted the contract run, in ibv_create_qp: run_aborted the contract run, at x"}},
		{"an inventory that hangs beside probes that fail", change(func(s *state.DeviceState) {
			s.Last.Outcome, s.Contracts, s.Resources.Stuck = state.OutcomeFailed, nil, &state.Stuck{PID: 2}
		}), []string{"stuck pid 2: inventory_incomplete the inventory", "probe_failed srq"}},
		{"an inventory that fails on a device that hangs", change(func(s *state.DeviceState) {
			s.Contracts, s.Last.Probes, s.Resources.Last.Outcome = nil, nil, state.OutcomeFailed
		}), []string{"run_aborted the probes, in ibv_create_qp", "inventory_incomplete the inventory"}},
		{"a contract that was judged by the end of its process", change(func(s *state.DeviceState) {
			s.Stuck, s.Resources.Last.Outcome, s.Last = &state.Stuck{PID: 1}, state.OutcomeOK, run(state.OutcomeOK, "")
			s.Contracts.Last.InProgress = "x"
			s.Contracts.Verdicts = []state.Contract{
				{Name: "x", Severity: state.SeverityCritical, Verdict: state.VerdictViolated, CheckedAt: taken()},
				{Name: "y", Severity: state.SeverityCritical, Verdict: state.VerdictViolated, CheckedAt: taken()},
			}
		}), []string{"stuck pid 1: contract_violated x", "contract_violated y"}},
		{"probes that fail alike", probed(probing("notification", broken), probing("qp", broken), probing("srq", failure("small", "ibv_create_srq", "EIO", "no"))), []string{
			"probe_failed qp: probe_failed notification", "probe_failed srq",
		}},
		{"memory that may not be locked", probed(probing("cq", pinned), probing("srq", pinned, broken)), []string{"probe_failed srq: probe_failed cq"}},
		{"what is in use", change(func(s *state.DeviceState) {
			s.Last, s.Contracts, s.Resources.Last.Outcome = run(state.OutcomeOK, ""), nil, state.OutcomeOK
			s.Last.Undestroyed = []state.Undestroyed{{Type: "cq", Errno: "EBUSY"}, {Type: "pd", Errno: "EBUSY"}, {Type: "qp", Errno: "EIO"}}
		}), []string{"undestroyed cq EBUSY: undestroyed pd EBUSY", "undestroyed qp EIO"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := lines(assess(tc.state), false)
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// hold verifies what is always true: equal states have equal findings, complete, printable, in order and within the
// limits, and the state is not modified.
func hold(t *testing.T, s *state.DeviceState, thresholds health.Config) {
	t.Helper()
	before, err := json.Marshal(s)
	if err != nil {
		t.Skip("a time that JSON does not have")
	}
	got := health.Assess(s, thresholds, health.History{})
	if again := health.Assess(s, thresholds, health.History{}); !reflect.DeepEqual(got, again) {
		t.Fatalf("got %+v and then %+v", got, again)
	}
	if after, _ := json.Marshal(s); string(after) != string(before) {
		t.Fatalf("the state was changed from %s to %s", before, after)
	}
	if got == nil {
		return
	}
	if slices.ContainsFunc(got, func(f health.Finding) bool {
		return len(f.Consequences) > 0 && len(flat(f.Consequences)) > len(f.Consequences)
	}) {
		t.Errorf("consequences of consequences: %+v", got)
	}
	for _, kind := range health.Kinds() {
		if n := len(of(got, kind)); n > 12 && (n > 32 || kind != health.FindingContract) {
			t.Errorf("%d findings %s", n, kind)
		}
	}
	for _, f := range flat(got) {
		whole(t, f)
		for _, text := range []string{f.Subject, f.Message, f.Meaning, f.Action} {
			if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("not printable: %q", text)
			}
		}
	}
	bySeverity := inOrder(health.Severities())
	if !slices.IsSortedFunc(got, func(a, b health.Finding) int { return bySeverity(a.Severity, b.Severity) }) {
		t.Errorf("not in order: %+v", got)
	}
}

func TestOddStates(t *testing.T) {
	hold(t, hostile(), health.Default())
	hold(t, hostile(), health.Config{})
	nan := health.Levels{Warning: math.NaN(), Critical: math.NaN()}
	hold(t, hostile(), health.Config{NearLimit: nan, CgroupNearLimit: nan, MemlockNearLimit: nan, OrphanAge: math.MinInt64, QPErrors: math.MinInt64})
}

func FuzzAssess(f *testing.F) {
	for _, s := range append(ill(), nil, &state.DeviceState{}, device(state.Inventory{}), trouble()) {
		b, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, 0.8)
	}
	f.Fuzz(func(t *testing.T, data []byte, level float64) {
		var s *state.DeviceState
		if json.Unmarshal(data, &s) != nil {
			return
		}
		thresholds := health.Default()
		thresholds.NearLimit.Warning, thresholds.MemlockNearLimit.Critical = level, level
		hold(t, s, thresholds)
	})
}
