package collector_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// looked at returns the series of a device, of which the last inventory took an inventory.
func looked(t *testing.T, i *state.Inventory, change ...func(*state.DeviceState)) map[string]string {
	t.Helper()
	s := stateOf(bare("rxe0"))
	s.Resources = resourcesOf(inventoryRun("rxe0"), i)
	for _, f := range change {
		f(&s)
	}
	of := sceneOf("libibverbs", s).finding()
	if !s.Present && s.Resources.Stuck != nil {
		of = of.finding(hung())
	}
	return values(t, of.collector())
}

// with returns the names of those series that have a prefix.
func with(prefix string, all map[string]string) []string {
	var names []string
	for name := range all {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// What is not known of objects is not told.
func TestResourcesAbsent(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(*state.DeviceState)
		want   map[string]int // prefix to number of series
	}{
		{"all goes well", func(*state.DeviceState) {}, map[string]int{
			"rdma_resource_objects": 14, "rdma_resource_limit": 5, "rdma_resource_queue_pairs": 3, "rdma_resource_cq_entries": 2, "rdma_resource_mr_bytes": 1,
			"rdma_resource_owner_objects": 14, "rdma_resource_orphaned_objects": 0, "rdma_probe_leaked_objects": 0, "rdma_cgroup": 0,
			"rdma_owner_locked_bytes": 2, "rdma_owner_locked_limit_bytes": 1, "rdma_inventory_success": 1, "rdma_inventory_duration_seconds": 1,
			"rdma_inventory_timestamp_seconds": 1, "rdma_inventory_incomplete": 0,
			"rdma_inventory_pid_visibility": 1, "rdma_inventory_stuck": 1, "rdma_findings": 0,
		}},
		{"before the first inventory", func(s *state.DeviceState) { s.Resources = nil }, map[string]int{
			"rdma_resource": 0, "rdma_audit": 0, "rdma_probe_leaked_objects": 0, "rdma_owner": 0, "rdma_cgroup": 0,
		}},
		{"a child that is stuck in the first inventory", func(s *state.DeviceState) {
			s.Resources = &state.Resources{Stuck: new(state.Stuck)}
		}, map[string]int{
			"rdma_resource_objects": 0, "rdma_inventory_success": 0, "rdma_inventory_duration_seconds": 0, "rdma_inventory_timestamp": 0,
			"rdma_inventory_stuck": 1, "rdma_probe_leaked_objects": 0, "rdma_resource_orphaned_objects": 0, "rdma_inventory_pid_visibility": 0,
		}},
		{"inventories that only counted", func(s *state.DeviceState) { s.Resources.Inventory = onlyCounted() }, map[string]int{
			"rdma_resource_objects": 7, "rdma_inventory_success": 1, "rdma_inventory_timestamp": 1, "rdma_probe_leaked_objects": 0,
			"rdma_resource_orphaned_objects": 0, "rdma_resource_owner_objects": 0, "rdma_inventory_pid_visibility": 1, "rdma_inventory_incomplete": 7,
		}},
		{"inventories that found nothing", func(s *state.DeviceState) { s.Resources.Inventory = nil }, map[string]int{
			"rdma_resource_objects": 0, "rdma_resource_limit": 5, "rdma_inventory_success": 1,
		}},
		{"owners out of sight", func(s *state.DeviceState) { s.Resources.Inventory.PIDsVisible = false }, map[string]int{
			"rdma_resource_orphaned_objects": 0, "rdma_inventory_pid_visibility": 1,
		}},
		{"types that were only counted", func(s *state.DeviceState) {
			s.Resources.Inventory.Incomplete = []state.Incomplete{{Type: "qp", Reason: state.IncompleteTimeout}, {Type: "mr", Reason: state.IncompleteFailed}}
			s.Resources.Inventory.Ownerless = []state.TypeCount{{Type: "qp", Objects: 1}}
		}, map[string]int{
			"rdma_resource_orphaned_objects": 0, "rdma_probe_leaked_objects": 0, "rdma_inventory_incomplete": 2,
		}},
		{"a leak of a type that was only counted", func(s *state.DeviceState) {
			s.Resources.Inventory.Incomplete = []state.Incomplete{{Type: "qp", Reason: state.IncompleteTimeout}}
			s.Resources.Leaked = []state.Leaked{{Type: "qp", Objects: 1}}
		}, map[string]int{`rdma_probe_leaked_objects{device="rxe0",type="qp"}`: 1, "rdma_probe_leaked_objects": 1}},
		{"a device that was never asked", func(s *state.DeviceState) { s.Info = nil }, map[string]int{"rdma_resource_limit": 0, "rdma_resource_objects": 14}},
		{"memory that could not be asked for", func(s *state.DeviceState) { s.Resources.Inventory.Owners[0].Memlock = nil }, map[string]int{
			"rdma_owner": 0, "rdma_resource_owner_objects": 14,
		}},
		{"a device that vanished", func(s *state.DeviceState) { s.Present = false }, map[string]int{"rdma_resource": 0, "rdma_audit": 0, "rdma_owner": 0, "rdma_probe_leaked": 0}},
		{"a device that vanished from under an inventory", func(s *state.DeviceState) {
			s.Present, s.Resources.Stuck = false, new(state.Stuck)
		}, map[string]int{"rdma_resource": 0, "rdma_inventory_stuck": 1, "rdma_findings": 3, "rdma_inventory_success": 0, "rdma_owner": 0, "rdma_probe_stuck": 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := looked(t, inventory(1), tc.change)
			for prefix, want := range tc.want {
				if names := with(prefix, got); len(names) != want {
					t.Errorf("%d series %s, want %d: %v", len(names), prefix, want, names)
				}
			}
		})
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	i := inventory(2)
	i.Ownerless = []state.TypeCount{{Type: "qp", Objects: 3}}
	i.Cgroups = []state.CgroupUse{
		{Cgroup: "/a", ContainerID: "c", PodUID: "p", Resource: "hca_handle", Current: 1, Limit: 2},
		{Cgroup: "/a", ContainerID: "c", PodUID: "p", Resource: "hca_object", Current: 7, Limit: -1},
		{Cgroup: "/b", Resource: "hca_object", Current: 0, Limit: 0},
	}
	i.Owners[0].Memlock = &state.Memlock{Pinned: 5, Locked: 6, Limit: 7}
	i.Incomplete = []state.Incomplete{{Type: "cm_id", Reason: state.IncompleteNotSupported}}
	const first = `comm="trainer",container_id="0000000000000000000000000000000000000000000000000000000000000000"`
	compare(t, looked(t, i, func(s *state.DeviceState) {
		s.Info.Limits = []state.Limit{{Name: "max_qp", Value: 100}, {Name: "max_qp_wr", Value: 5}, {Name: "max_srq", Value: 0}, {Name: "max_cq", Value: -1}}
		s.Resources.Leaked = []state.Leaked{{Type: "mr", Objects: 2}}
		s.Resources.Last.Outcome = state.OutcomeFailed
		s.Resources.Last.Started = time.Unix(1e9, 0)
	}), map[string]string{
		`rdma_resource_objects{device="rxe0",owner="user",type="qp"}`:                  "21",
		`rdma_resource_objects{device="rxe0",owner="kernel",type="qp"}`:                "1",
		`rdma_resource_limit{device="rxe0",type="qp"}`:                                 "100",
		`rdma_resource_limit{device="rxe0",type="srq"}`:                                "",
		`rdma_resource_limit{device="rxe0",type="cq"}`:                                 "",
		`rdma_resource_limit{device="rxe0",type="qp_wr"}`:                              "",
		`rdma_resource_queue_pairs{device="rxe0",qp_type="rc",state="rts"}`:            "18",
		`rdma_resource_cq_entries{device="rxe0",owner="user"}`:                         "8192",
		`rdma_resource_mr_bytes{device="rxe0",owner="user"}`:                           "2.147483648e+09",
		`rdma_resource_orphaned_objects{device="rxe0",type="qp"}`:                      "3",
		`rdma_resource_orphaned_objects{device="rxe0",type="pd"}`:                      "",
		`rdma_resource_orphaned_objects{device="rxe0",type="cm_id"}`:                   "",
		`rdma_probe_leaked_objects{device="rxe0",type="mr"}`:                           "2",
		`rdma_probe_leaked_objects{device="rxe0",type="qp"}`:                           "",
		`rdma_resource_mr_bytes{device="rxe0",owner="kernel"}`:                         "",
		`rdma_inventory_incomplete{device="rxe0",reason="not_supported",type="cm_id"}`: "1",
		`rdma_inventory_success{device="rxe0"}`:                                        "0",
		`rdma_inventory_timestamp_seconds{device="rxe0"}`:                              "1.77236652025e+09",
		`rdma_inventory_stuck{device="rxe0"}`:                                          "0",

		`rdma_resource_owner_objects{` + first + `,device="rxe0",pid="4711",pod_uid="0f1e2d3c-4b5a-6978-8796-000000000000",type="qp"}`: "8",
		`rdma_resource_owner_objects{comm="other",container_id="",device="rxe0",pid="",pod_uid="",type="qp"}`:                          "5",
		`rdma_resource_owner_objects{comm="unknown",container_id="",device="rxe0",pid="",pod_uid="",type="qp"}`:                        "3",
		`rdma_owner_locked_bytes{` + first + `,kind="pinned",pid="4711",pod_uid="0f1e2d3c-4b5a-6978-8796-000000000000"}`:               "5",
		`rdma_owner_locked_bytes{` + first + `,kind="locked",pid="4711",pod_uid="0f1e2d3c-4b5a-6978-8796-000000000000"}`:               "6",
		`rdma_owner_locked_limit_bytes{` + first + `,pid="4711",pod_uid="0f1e2d3c-4b5a-6978-8796-000000000000"}`:                       "7",
		`rdma_cgroup_objects{cgroup="/a",container_id="c",device="rxe0",pod_uid="p",resource="hca_handle"}`:                            "1",
		`rdma_cgroup_limit{cgroup="/a",container_id="c",device="rxe0",pod_uid="p",resource="hca_handle"}`:                              "2",
		`rdma_cgroup_limit{cgroup="/a",container_id="c",device="rxe0",pod_uid="p",resource="hca_object"}`:                              "+Inf",
		`rdma_cgroup_limit{cgroup="/b",container_id="",device="rxe0",pod_uid="",resource="hca_object"}`:                                "0",
	})
}

// The owners' objects sum up to the user objects, type by type, whoever the owners
// are.
func TestOwnersSumUp(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]state.DeviceState{"well": func() state.DeviceState {
		s := stateOf(run("mlx5_0"))
		s.Resources = resourcesOf(inventoryRun("mlx5_0"), inventory(10))
		return s
	}(), "troubled": troubled("mlx5_0")} {
		families, err := pedantic(t, collectorOf(sceneOf("libibverbs", s).snapshot)).Gather()
		if err != nil {
			t.Fatal(err)
		}
		user, owners := make(map[string]float64), make(map[string]float64)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				switch {
				case f.GetName() == "rdma_resource_objects" && label(m, "owner") == "user":
					user[label(m, "type")] += m.GetGauge().GetValue()
				case f.GetName() == "rdma_resource_owner_objects":
					owners[label(m, "type")] += m.GetGauge().GetValue()
				}
			}
		}
		if len(user) == 0 || !maps.Equal(user, owners) {
			t.Errorf("%s: the owners have %v, and there are %v", name, owners, user)
		}
	}
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// Findings are counted by severity, those of which there are none, too.
func TestFindings(t *testing.T) {
	t.Parallel()
	judge := func(findings ...health.Finding) map[string]string {
		s := stateOf(bare("rxe0"))
		s.Resources = resourcesOf(inventoryRun("rxe0"), inventory(0))
		return values(t, sceneOf("libibverbs", s).finding(append([]health.Finding{}, findings...)...).collector())
	}
	earlier, later := time.Unix(1e9, 0), time.Unix(1e9+1, 0)
	compare(t, judge(
		health.Finding{Kind: "x", Severity: "info", Harm: "note", Since: later}, health.Finding{Kind: "x", Severity: "info", Harm: "note", Since: earlier},
		health.Finding{Kind: "x", Severity: "warning", Harm: "note", Since: later}, hung(),
	), map[string]string{
		`rdma_finding_first_seen_timestamp_seconds{accepted="false",device="rxe0",finding="x",harm="note",severity="info"}`:     "1e+09",
		`rdma_finding_first_seen_timestamp_seconds{accepted="false",device="rxe0",finding="x",harm="note",severity="warning"}`:  "1.000000001e+09",
		`rdma_finding_first_seen_timestamp_seconds{accepted="false",device="rxe0",finding="stuck",harm="",severity="critical"}`: "0",
		`rdma_finding_first_seen_timestamp_seconds{accepted="false",device="rxe0",finding="leaked",harm="",severity="warning"}`: "",
	})
	const series = `rdma_findings{accepted="false",device="rxe0",severity=%q}`
	for _, tc := range []struct {
		findings []health.Finding
		want     map[health.Severity]string
	}{
		{nil, map[health.Severity]string{"critical": "0", "warning": "0", "info": "0"}},
		{
			[]health.Finding{{Kind: health.FindingNearLimit, Severity: "warning"}, {Kind: health.FindingOrphaned, Severity: "warning"}, hung()},
			map[health.Severity]string{"critical": "1", "warning": "2", "info": "0"},
		},
		{[]health.Finding{{Kind: "unforeseen", Severity: "unforeseen"}}, map[health.Severity]string{"critical": "0", "unforeseen": ""}},
	} {
		got := judge(tc.findings...)
		for severity, want := range tc.want {
			compare(t, got, map[string]string{fmt.Sprintf(series, severity): want})
		}
	}
}

// What changed is told at the next scrape.
func TestResourcesChange(t *testing.T) {
	t.Parallel()
	snapshot, _ := host(2)
	found := make(map[string][]health.Finding)
	c := scene{snapshot: snapshot, found: found}.collector()
	const (
		objects  = `rdma_resource_objects{device="sim00",owner="user",type="qp"}`
		findings = `rdma_findings{accepted="false",device="sim00",severity="critical"}`
		stuck    = `rdma_inventory_stuck{device="sim00"}`
		visible  = `rdma_inventory_pid_visibility`
		pinned   = `rdma_owner_locked_bytes{comm="trainer",container_id="0000000000000000000000000000000000000000000000000000000000000000",kind="pinned",pid="4711",pod_uid="0f1e2d3c-4b5a-6978-8796-000000000000"}`
	)
	compare(t, values(t, c), map[string]string{objects: "85", findings: "0", stuck: "0", visible: "1", pinned: "1.048576e+06"})

	same := *snapshot.Devices[0].Resources
	snapshot.Devices[0].Resources, found["sim00"] = &same, []health.Finding{hung()}
	compare(t, values(t, c), map[string]string{objects: "85", findings: "1", stuck: "0"})

	next := same
	next.Stuck = new(state.Stuck)
	snapshot.Devices[0].Resources = &next
	compare(t, values(t, c), map[string]string{objects: "85", stuck: "1"})

	later := next
	later.Inventory, later.Taken, later.Stuck = inventory(1), next.Taken.Add(time.Minute), nil
	later.Inventory.PIDsVisible = false
	later.Inventory.Owners[0].Memlock = &state.Memlock{Pinned: 42}
	snapshot.Devices[0].Resources = &later
	compare(t, values(t, c), map[string]string{objects: "13", stuck: "0", visible: "0", pinned: "42"})

	// Without the device the other one's inventory is the newest.
	snapshot.Devices = snapshot.Devices[1:]
	compare(t, values(t, c), map[string]string{objects: "", visible: "1", pinned: "1.048576e+06"})
}

// A process that owns objects on several devices is told once, as the newest inventory
// has it.
func TestProcessesOnce(t *testing.T) {
	t.Parallel()
	device := func(name string, taken time.Time, owners ...state.Owner) state.DeviceState {
		return state.DeviceState{Name: name, Present: true, Resources: &state.Resources{Inventory: &state.Inventory{Owners: owners}, Taken: taken}}
	}
	pinning := func(pid int, comm string, bytes int64) state.Owner {
		return state.Owner{PID: pid, Comm: comm, Memlock: &state.Memlock{Pinned: bytes, Limit: -1}}
	}
	pinned := func(pid int, comm string) string {
		return fmt.Sprintf(`rdma_owner_locked_bytes{comm=%q,container_id="",kind="pinned",pid="%d",pod_uid=""}`, comm, pid)
	}
	at := started()
	gone := device("rxe3", at.Add(time.Hour), pinning(9, "gone", 1))
	gone.Present = false
	snapshot := &state.Snapshot{Devices: []state.DeviceState{
		device("rxe0", at, pinning(1, "old", 10), pinning(2, "only", 20), pinning(3, "asked", 30)),
		device("rxe1", at.Add(time.Minute), pinning(1, "new", 11), state.Owner{PID: 3, Comm: "asked"}),
		device("rxe2", at.Add(-time.Minute), pinning(1, "older", 9)),
		gone,
	}}
	got := values(t, collectorOf(snapshot))
	compare(t, got, map[string]string{
		pinned(1, "new"): "11", pinned(1, "old"): "", pinned(1, "older"): "", pinned(2, "only"): "20",
		// It is dead by now, or may not be asked any more.
		pinned(3, "asked"): "", pinned(9, "gone"): "",
		`rdma_owner_locked_limit_bytes{comm="new",container_id="",pid="1",pod_uid=""}`: "+Inf",
	})
	if n := len(with("rdma_owner_locked_bytes", got)); n != 4 {
		t.Errorf("%d series, want 4", n)
	}
}

// A host with more owners than anybody wants to see does not fill the server, and what
// sums up is there all the same.
func TestResourceBounds(t *testing.T) {
	t.Parallel()
	i := inventory(2000)
	for n := range i.Owners {
		o := &i.Owners[n]
		i.Cgroups = append(i.Cgroups, state.CgroupUse{Cgroup: o.Cgroup, Resource: "hca_object", Limit: -1})
	}
	r := run("rxe0")
	for n := range 5000 {
		r.Probes[0].CQs = append(r.Probes[0].CQs, state.CQSize{Profile: fmt.Sprint("x", n)})
	}
	for name, s := range map[string]state.DeviceState{"owners": stateOf(run("rxe0")), "a child gone mad": stateOf(r)} {
		s.Resources = resourcesOf(inventoryRun("rxe0"), i)
		got := values(t, sceneOf("libibverbs", s).finding(hung()).collector())
		if n := len(got); n > 4096+3*256+40 {
			t.Errorf("%s: %d series of one device", name, n)
		}
		want := map[string]string{
			`rdma_findings{accepted="false",device="rxe0",severity="critical"}`: "1",
			`rdma_inventory_success{device="rxe0"}`:                             "1",
			// Who holds most is told.
			`rdma_owner_locked_bytes{comm="trainer",container_id="00000000000000000000000000000000000000000000000000000000000007cf",kind="pinned",pid="6710",pod_uid="0f1e2d3c-4b5a-6978-8796-0000000007cf"}`: "2.097152e+09",
			`rdma_owner_locked_bytes{comm="trainer",container_id="0000000000000000000000000000000000000000000000000000000000000000",kind="pinned",pid="4711",pod_uid="0f1e2d3c-4b5a-6978-8796-000000000000"}`: "",
		}
		if name == "owners" {
			want[`rdma_resource_objects{device="rxe0",owner="user",type="qp"}`] = "16005"
			want[`rdma_resource_queue_pairs{device="rxe0",qp_type="rc",state="rts"}`] = "16002"
		}
		compare(t, got, want)
		if n := len(with("rdma_owner_locked_bytes", got)); n != 2*256 {
			t.Errorf("%s: %d series of memory in place, want %d", name, n, 2*256)
		}
		if got[`rdma_exporter_dropped_series{device="rxe0"}`] == "0" {
			t.Errorf("%s: dropped series are not told", name)
		}
	}
}
