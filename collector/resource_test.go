package collector_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/collector"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
)

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

// TestOwnersSumUp verifies that the objects of all owners add up to the user objects.
func TestOwnersSumUp(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]state.DeviceState{"well": func() state.DeviceState {
		s := stateOf(run("mlx5_0"))
		s.Resources = resourcesOf(inventoryRun("mlx5_0"), inventory(10))
		return s
	}(), "troubled": troubled("mlx5_0")} {
		families := running.Must(pedantic(t, collectorOf(sceneOf("libibverbs", s).snapshot)).Gather())(t)
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

// TestProcessesOnce verifies that a process that owns objects on several devices has one
// series, from the newest inventory.
func TestProcessesOnce(t *testing.T) {
	t.Parallel()
	device := func(name string, taken time.Time, owners ...state.Owner) state.DeviceState {
		return state.DeviceState{Name: name, Present: true, Resources: &state.Resources{Inventory: &state.Inventory{Owners: owners}, Taken: taken}}
	}
	pinning := func(pid int, comm string, bytes int64) state.Owner {
		return state.Owner{PID: pid, Comm: comm, Memlock: &state.Memlock{Pinned: bytes, Limit: -1}}
	}
	pinned := func(pid int, comm string) string {
		return fmt.Sprintf(`rdma_owner_locked_bytes{comm=%q,container_id="",kind="pinned",pid="%d",pod_uid="",slurm_job_id=""}`, comm, pid)
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
		`rdma_owner_locked_limit_bytes{comm="new",container_id="",pid="1",pod_uid="",slurm_job_id=""}`: "+Inf",
	})
	if n := len(with("rdma_owner_locked_bytes", got)); n != 4 {
		t.Errorf("%d series, want 4", n)
	}
}

// TestJobs verifies that the Slurm job of an owner is a label, and adds no series: a command of several jobs
// has one, without a job, unless each process has its own.
func TestJobs(t *testing.T) {
	t.Parallel()
	of := func(pid int, comm, job string) state.Owner {
		return state.Owner{
			PID: pid, Comm: comm, SlurmJobID: job, Objects: []state.TypeCount{{Type: "qp", Objects: int64(pid)}},
			Memlock: &state.Memlock{Pinned: int64(pid), Limit: -1},
		}
	}
	i := &state.Inventory{Owners: []state.Owner{
		of(1, "one", "4711"), of(2, "one", "4711"), of(4, "both", "4711"), of(8, "both", "4712"), of(16, "both", "4712"), of(32, "none", ""),
	}}
	objects := func(comm, job, pid string) string {
		return fmt.Sprintf(`rdma_resource_owner_objects{comm=%q,container_id="",device="rxe0"%s,pod_uid="",slurm_job_id=%q,type="qp"}`, comm, pid, job)
	}
	locked := func(comm, job, pid string) string {
		return fmt.Sprintf(`rdma_owner_locked_bytes{comm=%q,container_id="",kind="pinned"%s,pod_uid="",slurm_job_id=%q}`, comm, pid, job)
	}
	for _, tc := range []struct {
		pids   bool
		series int
		want   map[string]string
	}{
		{false, 3, map[string]string{
			objects("one", "4711", ""): "3", objects("both", "", ""): "28", objects("none", "", ""): "32",
			locked("one", "4711", ""): "2", locked("both", "4712", ""): "16", locked("none", "", ""): "32",
		}},
		{true, 6, map[string]string{
			objects("one", "4711", `,pid="1"`): "1", objects("both", "4711", `,pid="4"`): "4", objects("both", "4712", `,pid="8"`): "8",
			locked("one", "4711", `,pid="1"`): "1", locked("both", "4711", `,pid="4"`): "4", locked("none", "", `,pid="32"`): "32",
		}},
	} {
		s := stateOf(run("rxe0"))
		s.Resources = resourcesOf(inventoryRun("rxe0"), i)
		scene := sceneOf("libibverbs", s).finding()
		scene.on = collector.Defaults()
		scene.on[collector.OwnersPID] = tc.pids
		got := values(t, scene.collector())
		compare(t, got, tc.want)
		if n, all := len(with("rdma_resource_owner_objects", got)), len(with("rdma_owner_locked_bytes", got)); n != tc.series || all != 2*tc.series {
			t.Errorf("pids %t: %d and %d series, want %d and twice as many", tc.pids, n, all, tc.series)
		}
	}
}

// TestResourceBounds verifies that series of owners are bounded, and sums are not dropped.
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
			// The largest owner is shown.
			`rdma_owner_locked_bytes{comm="trainer",container_id="00000000000000000000000000000000000000000000000000000000000007cf",kind="pinned",pid="6710",pod_uid="0f1e2d3c-4b5a-6978-8796-0000000007cf",slurm_job_id=""}`: "2.097152e+09",
			`rdma_owner_locked_bytes{comm="trainer",container_id="0000000000000000000000000000000000000000000000000000000000000000",kind="pinned",pid="4711",pod_uid="0f1e2d3c-4b5a-6978-8796-000000000000",slurm_job_id=""}`: "",
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

// TestCauses verifies that each cause of a device's findings has one series, that what is accepted or a consequence
// has none, and that there are at most 16, those of the worst findings.
func TestCauses(t *testing.T) {
	t.Parallel()
	cause := func(n int) health.Finding {
		return health.Finding{Kind: health.FindingContract, Severity: "warning", Harm: health.HarmQuirk, Reason: fmt.Sprintf("contract %c is broken", 'a'+n)}
	}
	open := health.Finding{
		Kind: health.FindingUnusable, Severity: "critical", Harm: health.HarmOutage,
		Reason: "ibv_open_device fails with EPERM", Verb: "ibv_open_device", Errno: "EPERM", Consequences: []health.Finding{cause(20)},
	}
	again, accepted := open, cause(21)
	again.Subject, accepted.Accepted = "another", &health.Acceptance{Reason: "x"}
	const info = "rdma_finding_info"
	all := []health.Finding{open, again}
	for n := range 18 {
		all = append(all, cause(n))
	}
	for name, tc := range map[string]struct {
		found []health.Finding
		want  int
	}{
		"none":      {[]health.Finding{}, 0},
		"accepted":  {[]health.Finding{accepted}, 0},
		"one cause": {[]health.Finding{open, again, accepted}, 1},
		"many":      {append(all, accepted), 16},
	} {
		got := values(t, sceneOf("libibverbs", stateOf(run("rxe0"))).finding(tc.found...).collector())
		if series := with(info, got); len(series) != tc.want {
			t.Errorf("%s: %d series, want %d: %v", name, len(series), tc.want, series)
		}
		if tc.want > 0 {
			compare(t, got, map[string]string{
				info + `{device="rxe0",errno="EPERM",finding="device_unusable",reason="ibv_open_device fails with EPERM",remedy="",severity="critical",verb="ibv_open_device"}`: "1",
			})
		}
	}
}

// TestOwnerChurn verifies that a program that changes its name all the time gets a bounded number of
// series, that none of its objects is lost, and that the next day it may have new ones.
func TestOwnerChurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const owners = 600
		taken := &state.Inventory{Owners: make([]state.Owner, owners)}
		c := collectorOf(&state.Snapshot{Devices: []state.DeviceState{{Name: "rxe0", Present: true, Resources: &state.Resources{Inventory: taken}}}})
		names := make(map[string]bool)
		rename := func(round int) {
			for n := range taken.Owners {
				taken.Owners[n] = state.Owner{PID: n, Comm: fmt.Sprint(round, "-", n), Objects: []state.TypeCount{{Type: "qp", Objects: 1}}}
			}
			got, objects := values(t, c), 0
			for _, name := range with("rdma_resource_owner_objects", got) {
				n, _ := strconv.Atoi(got[name])
				objects += n
				names[name] = true
			}
			if objects != owners {
				t.Errorf("round %d: %d objects, want %d", round, objects, owners)
			}
		}
		for round := range 8 {
			rename(round)
		}
		if n := len(names); n != 4097 { // with other
			t.Errorf("%d series in a day, want 4097", n)
		}
		time.Sleep(24 * time.Hour)
		rename(8)
		if n := len(names); n != 4097+owners {
			t.Errorf("%d series after a day, want %d", n, 4097+owners)
		}
	})
}
