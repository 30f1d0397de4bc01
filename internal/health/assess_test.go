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
	"rdma_exporter/test/golden"
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

// A record is a golden file with what is found in each state.
type record struct{ *golden.Recorder }

func recording(t *testing.T) record { return record{golden.Record(t)} }

func (r record) add(name string, s *state.DeviceState) { r.found(name, assess(s)) }

func (r record) found(name string, all []health.Finding) { r.Add(name, texts("", all)...) }

func texts(indent string, all []health.Finding) (lines []string) {
	for _, f := range all {
		lines = append(lines, fmt.Sprintf("%s%s %s %s: %s", indent, f.Severity, f.Kind, f.Subject, f.Message))
		lines = append(lines, indent+"  = "+strings.Join(strings.Fields(fmt.Sprintf("%s; %s %s", f.Reason, f.Verb, f.Errno)), " "))
		if f.Evidence != "" {
			lines = append(lines, indent+"  "+f.Evidence)
		}
		lines = append(lines, indent+"  > "+f.Action)
		lines = append(lines, texts(indent+"    ", f.Consequences)...)
	}
	return lines
}

func once() health.Config {
	c := health.Default()
	c.Once = true
	return c
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
		"checked":         {Present: true, Contracts: &state.Contracts{Last: new(state.Run)}},
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
	r := recording(t)
	users := func(kind string, n int64) state.Inventory {
		return state.Inventory{Objects: []state.ObjectCount{{Type: kind, Owner: state.OwnerUser, Objects: n}}}
	}
	limit := func(name string, n int64) state.Limit { return state.Limit{Name: name, Value: n} }
	for _, of := range [][2]int64{
		{79, 100}, {80, 100}, {94, 100}, {95, 100}, {9999999, 10000000}, {200, 100}, {999, 100}, {1000, 100}, {100, 0}, {100, -1}, {0, 1},
	} {
		r.add(fmt.Sprint(of[0], " of ", of[1]), device(users("qp", of[0]), limit("max_qp", of[1])))
	}
	for _, kind := range state.ResourceTypes() {
		r.add("the only "+kind, device(users(kind, 1), limit("max_"+kind, 1)))
	}
	r.add("a limit that is not reported", device(users("qp", 100), limit("max_qp_wr", 1)))
	unqueried := device(users("qp", 100))
	unqueried.Info = nil
	r.add("a device that was not queried", unqueried)
	r.add("more than an integer holds", device(state.Inventory{Objects: []state.ObjectCount{
		{Type: "qp", Owner: state.OwnerUser, Objects: math.MaxInt64}, {Type: "qp", Owner: state.OwnerKernel, Objects: math.MaxInt64},
	}}, limit("max_qp", 10)))
	r.add("only counted", device(state.Inventory{Objects: []state.ObjectCount{{Type: "qp", Owner: state.OwnerUnknown, Objects: 90}}}, limit("max_qp", 100)))
	r.add("the worst first", device(state.Inventory{Objects: []state.ObjectCount{
		{Type: "pd", Objects: 81}, {Type: "cq", Objects: 97}, {Type: "qp", Objects: 99}, {Type: "mr", Objects: 90},
	}}, limit("max_pd", 100), limit("max_cq", 100), limit("max_qp", 100), limit("max_mr", 100)))
	for _, tc := range []struct {
		name         string
		user, kernel int64
		owners       []state.Owner
	}{
		{"the largest owner", 90, 0, []state.Owner{
			holder(1, "small", "qp", 20), holder(2, "", "qp", 60),
			{PID: 3, Comm: "other", Objects: []state.TypeCount{{Type: "mr", Objects: 1000}}},
		}},
		{"the kernel", 40, 50, []state.Owner{holder(1, "small", "qp", 20)}},
		{"as many of the kernel's, and of the next owner's", 40, 40, []state.Owner{holder(1, "one", "qp", 40), holder(2, "two", "qp", 40)}},
		{"an owner of none", 90, 0, []state.Owner{holder(1, "idle", "qp", 0)}},
		{"an owner in a pod", 96, 0, []state.Owner{
			{PID: 5, Comm: "job", ContainerID: container, PodUID: pod, Objects: []state.TypeCount{{Type: "qp", Objects: 96}}},
		}},
	} {
		i := users("qp", tc.user)
		i.Objects = append(i.Objects, state.ObjectCount{Type: "qp", Owner: state.OwnerKernel, Objects: tc.kernel})
		i.Owners = tc.owners
		r.add(tc.name, device(i, limit("max_qp", 100)))
	}
}

func TestCgroupNearLimit(t *testing.T) {
	r := recording(t)
	use := func(current, limit int64) *state.DeviceState {
		return device(state.Inventory{Cgroups: []state.CgroupUse{{Cgroup: "/a b", Resource: "hca_handle", Current: current, Limit: limit}}})
	}
	// Of 0 of 0 all is forbidden, and so it is.
	for _, of := range [][2]int64{{79, 100}, {80, 100}, {95, 100}, {1 << 40, -1}, {0, 0}, {1, 0}} {
		r.add(fmt.Sprint(of[0], " of ", of[1]), use(of[0], of[1]))
	}
	s := use(1, 1)
	s.Resources.Inventory.Cgroups[0].Cgroup = "/it's $(reboot)"
	r.add("a path that a shell would misread", s)
	r.found("a container", of(assess(trouble()), health.FindingCgroupNearLimit))
}

func TestMemlock(t *testing.T) {
	r := recording(t)
	for _, tc := range []struct {
		name                  string
		pinned, locked, limit int64
	}{
		{"pins nothing", 0, 0, 64 << 10},
		{"may pin nothing", 0, 0, 0},
		{"below", 79, 0, 100},
		{"at the warning", 80, 0, 100},
		{"locked as much as pinned", 90, 90, 100},
		{"locked more than pinned", 10, 90, 100},
		{"both, which the kernel counts apart", 60, 60, 100},
		{"at critical", 95 << 20, 0, 100 << 20},
		{"just a unit", 1 << 10, 0, 1 << 10},
		{"all", 1 << 30, 0, 1 << 30},
		{"unlimited", 1 << 40, 0, -1},
		// It has CAP_IPC_LOCK, or it would not have come this far.
		{"beyond", 101, 0, 100},
		{"beyond nothing", 1, 0, 0},
	} {
		owners := []state.Owner{holder(1, "unknown", "qp", 1), pinning(7, tc.pinned, tc.locked, tc.limit)}
		r.add(tc.name, device(state.Inventory{Owners: owners}))
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
	r := recording(t)
	dev := func(visible bool, age time.Duration, ownerless ...state.TypeCount) *state.DeviceState {
		s := device(state.Inventory{PIDsVisible: visible, Ownerless: ownerless})
		if age >= 0 {
			s.Resources.OrphanedSince = taken().Add(-age)
		}
		return s
	}
	qps, pds := state.TypeCount{Type: "qp", Objects: 37}, state.TypeCount{Type: "pd", Objects: 2}
	r.add("none", dev(true, -1))
	r.add("none where PIDs are out of sight", dev(false, -1))
	r.add("none any more", dev(true, time.Hour))
	r.add("of no number", dev(true, time.Hour, state.TypeCount{Type: "qp"}))
	r.add("just found", dev(true, 0, pds, qps))
	r.add("nearly old enough", dev(true, time.Minute-1, pds, qps))
	r.add("old enough", dev(true, time.Minute, pds, qps))
	r.add("of unknown age", dev(true, -1, qps))
	r.add("out of sight", dev(false, time.Hour, pds, qps))
	thresholds := health.Default()
	thresholds.OrphanAge = 0
	r.found("at once", health.Assess(dev(true, 0, qps), thresholds, health.History{}))
}

// TestOrphanedBesideLeaked verifies that objects leaked by children of the exporter do not count as orphans.
func TestOrphanedBesideLeaked(t *testing.T) {
	r := recording(t)
	s := device(state.Inventory{PIDsVisible: true, Ownerless: []state.TypeCount{{Type: "qp", Objects: 37}, {Type: "pd", Objects: 2}}})
	s.Resources.OrphanedSince = taken().Add(-time.Hour)
	for _, leaked := range [][]state.TypeCount{
		{{Type: "qp", Objects: 30}},
		{{Type: "qp", Objects: 30}, {Type: "pd", Objects: 1}},
		{{Type: "cq", Objects: 30}},
		{{Type: "qp", Objects: 38}},
		{{Type: "qp", Objects: -1}},
		{{Type: "qp", Objects: 37}, {Type: "pd", Objects: 2}},
	} {
		s.Resources.Leaked = nil
		for _, l := range leaked {
			s.Resources.Leaked = append(s.Resources.Leaked, state.Leaked{Type: l.Type, Objects: l.Objects})
		}
		r.found(fmt.Sprint("37 qp and 2 pd, and of them leaked ", leaked), of(assess(s), health.FindingOrphaned))
	}
	// With invisible owners they cannot be distinguished.
	s.Resources.Leaked, s.Resources.Inventory.PIDsVisible = []state.Leaked{{Type: "qp", Objects: 30}}, false
	r.found("out of sight", of(assess(s), health.FindingPIDsInvisible))
}

func TestLeaked(t *testing.T) {
	r := recording(t)
	add := func(name string, all ...state.Leaked) {
		s := device(state.Inventory{})
		s.Resources.Leaked = all
		r.add(name, s)
	}
	leaked := func(typ string, objects int64, age time.Duration) state.Leaked {
		return state.Leaked{Type: typ, Objects: objects, Since: taken().Add(-age)}
	}
	add("none")
	add("of no number", leaked("qp", 0, time.Hour))
	add("just found", leaked("qp", 1, 0))
	add("nearly old enough", leaked("qp", 1, time.Minute-1))
	add("old enough", leaked("qp", 1, time.Minute))
	add("several", leaked("qp", 1, 0), leaked("mr", 3, time.Hour), leaked("pd", 0, 9*time.Hour))
}

func TestUndestroyed(t *testing.T) {
	r := recording(t)
	cq, pd := state.Undestroyed{Type: "cq", Errno: "EBUSY", Attempts: 3}, state.Undestroyed{Type: "pd", Errno: "EBUSY", Attempts: 7}
	run := func(objects ...state.Undestroyed) *state.Run { return &state.Run{Undestroyed: objects} }
	dev := func(probes, contracts *state.Run) *state.DeviceState {
		return &state.DeviceState{Name: "rxe0", Present: true, Last: probes, Contracts: &state.Contracts{Last: contracts}}
	}
	r.add("none", dev(run(), run()))
	r.add("by the probes", dev(run(cq), nil))
	r.add("by the contract run", dev(nil, run(pd)))
	r.add("several", dev(
		run(pd, cq, state.Undestroyed{Type: "pd", Errno: "EBUSY", Attempts: 2}),
		run(cq, state.Undestroyed{Type: "cq", Errno: "EIO"}, state.Undestroyed{Type: "comp_channel"}),
	))
	vanished := dev(run(cq), run(pd))
	vanished.Present = false
	r.add("of a device that vanished", vanished)
}

func TestStuck(t *testing.T) {
	r := recording(t)
	for _, present := range []bool{true, false} {
		s := &state.DeviceState{
			Name: "rxe0", Present: present, Stuck: &state.Stuck{PID: 814, Verb: "ibv_destroy_cq", Since: taken()},
			Resources: &state.Resources{Stuck: &state.Stuck{PID: 815, Since: taken()}},
		}
		r.add(fmt.Sprint("two, device present ", present), s)
		s.Resources = nil
		r.add(fmt.Sprint("one, device present ", present), s)
	}
}

func TestQPError(t *testing.T) {
	r := recording(t)
	thresholds := health.Default()
	// Each count is the type, the state and the number of queue pairs.
	add := func(name string, transient int64, counts ...string) {
		var i state.Inventory
		i.TransientErrors = transient
		for _, c := range counts {
			var q state.QueuePairCount
			if _, err := fmt.Sscan(c, &q.Type, &q.State, &q.Objects); err != nil {
				t.Fatal(err)
			}
			i.QueuePairs = append(i.QueuePairs, q)
		}
		r.found(name, health.Assess(device(i), thresholds, health.History{}))
	}
	add("none", 0)
	add("none in error", 0, "rc rts 9", "rc reset 9", "rc err 0")
	add("one of ten", 0, "rc rts 9", "rc err 1")
	add("all in sqe", 0, "ud sqe 2")
	add("some transient", 2, "rc err 2", "ud sqe 1")
	add("all transient", 3, "rc err 2", "ud sqe 1")
	thresholds.QPErrors = 0
	add("none in error, at a threshold of 0", 0, "rc rts 9")
	thresholds.QPErrors = 5
	add("4 at a threshold of 5", 0, "rc err 2", "ud sqe 2")
	add("5 at a threshold of 5", 0, "rc err 2", "uc err 2", "ud sqe 1")
}

func TestCQUnfillable(t *testing.T) {
	r := recording(t)
	dev := func(u *state.CQSum) *state.DeviceState {
		return device(state.Inventory{OversizedCQs: u, Owners: []state.Owner{holder(7, "trainer", "cq", 3)}})
	}
	r.add("none", dev(nil))
	r.add("few entries", dev(&state.CQSum{Objects: 9, Entries: 1<<16 - 1, Largest: 9}))
	r.add("of an owner", dev(&state.CQSum{Objects: 9, Entries: 1 << 16, Largest: 8191, PID: 7}))
	r.add("of a process that is no owner", dev(&state.CQSum{Objects: 1, Entries: 1 << 20, Largest: 1 << 20, PID: 8}))
	r.add("of no process", dev(&state.CQSum{Objects: 1, Entries: 1 << 20, Largest: 1 << 20}))
	thresholds := health.Default()
	thresholds.CQEntries = 0
	r.found("of no entries, at a threshold of 0", health.Assess(dev(&state.CQSum{Objects: 1}), thresholds, health.History{}))
}

func TestIncomplete(t *testing.T) {
	r := recording(t)
	r.add("by reason", device(state.Inventory{
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
	}))
	last := func(outcome state.Outcome) *state.DeviceState {
		s := device(state.Inventory{})
		s.Resources.Last = &state.Run{Started: taken().Add(time.Hour), Outcome: outcome, Error: "killed after 30s"}
		return s
	}
	for _, outcome := range state.Outcomes() {
		r.add("a run that was "+string(outcome), last(outcome))
	}
	s := last(state.OutcomeTimeout)
	s.Resources.Inventory, s.Resources.Taken = nil, time.Time{}
	r.add("no inventory ever", s)
	s = last(state.OutcomeTimeout)
	s.Resources.Taken = s.Resources.Last.Started
	for _, typ := range state.ResourceTypes() {
		s.Resources.Inventory.Incomplete = append(s.Resources.Inventory.Incomplete, state.Incomplete{Type: typ, Reason: state.IncompleteTimeout})
	}
	r.add("only counted", s)
	s = last(state.OutcomeFailed)
	s.Resources.Taken = s.Resources.Last.Started
	r.add("an inventory of a run that failed", s)
	s.Resources.Inventory.Incomplete = []state.Incomplete{{Type: "qp", Reason: state.IncompleteTimeout}}
	r.add("a partial inventory of a run that failed", s)
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
		first, last := len(state.Severities()), 0
		for _, e := range health.Catalogue() {
			for i, severity := range e.Severities {
				for j, of := range e.Harms {
					if of == harm && (len(e.Harms) != len(e.Severities) || i == j) {
						n := slices.Index(state.Severities(), severity)
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
		{"an inventory that hangs, and probes that fail", change(func(s *state.DeviceState) {
			s.Last.Outcome, s.Contracts, s.Resources.Stuck = state.OutcomeFailed, nil, &state.Stuck{PID: 2}
		}), []string{"stuck pid 2: inventory_incomplete the inventory", "probe_failed srq"}},
		{"an inventory that fails on a device that hangs", change(func(s *state.DeviceState) {
			s.Contracts, s.Last.Probes, s.Resources.Last.Outcome = nil, nil, state.OutcomeFailed
		}), []string{"run_aborted the probes, in ibv_create_qp", "inventory_incomplete the inventory"}},
		{"a contract that was checked by the end of its process", change(func(s *state.DeviceState) {
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
	bySeverity := inOrder(state.Severities())
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
