package simulated_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/inventory/simulated"
	"rdma_exporter/internal/state"
	profile "rdma_exporter/verbs/simulated"
)

const (
	container = "3f2a1b2c3d4e5f60718293a4b5c6d7e8f90112233445566778899aabbccddeef"
	pod       = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
	podCgroup = "/kubepods/burstable/pod" + pod + "/" + container
)

// TestInventory compares all that an inventory of a device has.
func TestInventory(t *testing.T) {
	look := []state.Context{simulated.Context(11), {Index: 2, ID: 5}, simulated.Context(12), simulated.Context(13)}
	got := inventoryOf(t, `
holders:
  - kernel: ib_core
    objects: {pd: 1, mr: 2}
    queue_pairs: [{type: gsi, state: rts, objects: 1}]
    cq_entries: 512
  - pid: 4711
    comm: trainer
    cgroup: `+podCgroup+`
    objects: {ctx: 2, pd: 2, cq: 3, qp: 4, mr: 5, srq: 1, cm_id: 6}
    queue_pairs: [{type: rc, state: err, objects: 2}, {type: ud, state: init, objects: 1}]
    cq_entries: 1000
    mr_bytes: 4096000
    memlock: {locked: 7, limit: 30000000}
    rdma_max: {hca_object: 100}
  - {pid: 4712, comm: worker, cgroup: `+podCgroup+`/below, objects: {mr: 1}}
  - pid: 815
    comm: idle
    objects: {cq: 2}
    memlock: {pinned: 5}
  - dead: true
    objects: {srq: 1, cm_id: 1}
leak:
  objects: {qp: 2}
  times: 2
incomplete: {cm_id: interrupted}
`, look...)
	counts := func(text string) (all []state.TypeCount) {
		for words := range slices.Chunk(strings.Fields(text), 2) {
			n, err := strconv.ParseInt(words[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, state.TypeCount{Type: words[0], Objects: n})
		}
		return all
	}
	wantList(t, "objects", got.Objects, `
		{cm_id user 7} {cm_id kernel 0} {cq user 7} {cq kernel 1} {ctx user 7} {ctx kernel 0} {mr user 6} {mr kernel 2}
		{pd user 6} {pd kernel 1} {qp user 11} {qp kernel 1} {srq user 2} {srq kernel 0}`)
	wantList(t, "queue pairs", got.QueuePairs, "{gsi rts 1} {rc err 2} {rc rts 8} {ud init 1}")
	left := func(context uint32) string {
		return fmt.Sprintf("{{1 %[1]d} cq 1} {{1 %[1]d} ctx 1} {{1 %[1]d} pd 1} {{1 %[1]d} qp 2} ", context)
	}
	wantList(t, "left", got.Leftover, left(look[0].ID)+left(look[2].ID))
	// Of the dead process, and left by two children.
	wantList(t, "ownerless", got.Ownerless, "{ctx 3} {pd 3} {cq 2} {srq 1} {qp 4}")
	wantList(t, "untraced", got.Untraced, "{cm_id 1}")
	const orphans = "{%d [{ctx 1} {pd 1} {cq 1} {qp 2}]} {%d [{ctx 1} {pd 1} {cq 1} {qp 2}]} {5 [{ctx 1} {pd 1} {srq 1}]}"
	wantList(t, "orphans", got.Orphans, fmt.Sprintf(orphans, look[0].ID, look[2].ID))
	wantList(t, "incomplete", got.Incomplete, "{cm_id interrupted the table of cm_id: the table changed while it was read}")
	want := &state.Inventory{
		Index: 1, PIDsVisible: true,
		CQEntries:    []state.OwnerSum{{Owner: "user", Sum: 3*1000 + 2*256 + 2*256}, {Owner: "kernel", Sum: 512}},
		MRBytes:      []state.OwnerSum{{Owner: "user", Sum: 5*4096000 + 4096}, {Owner: "kernel", Sum: 2 * 4096}},
		OversizedCQs: &state.CQSum{Objects: 2, Entries: 512, Largest: 256, PID: 815},
		Owners: []state.Owner{
			{
				PID: 815, Comm: "idle", Objects: counts("ctx 1 cq 2"),
				Memlock: &state.Memlock{Pinned: 5, Limit: -1}, Contexts: []uint32{4},
			},
			{
				PID: 4711, Comm: "trainer", Cgroup: podCgroup, ContainerID: container, PodUID: pod,
				Objects: counts("ctx 2 pd 2 cq 3 srq 1 mr 5 cm_id 6 qp 7"),
				Memlock: &state.Memlock{Pinned: 5 * 4096000, Locked: 7, Limit: 30000000}, Contexts: []uint32{1, 2},
			},
			{
				PID: 4712, Comm: "worker", Cgroup: podCgroup + "/below", ContainerID: container, PodUID: pod,
				Objects: counts("ctx 1 pd 1 mr 1"), Memlock: &state.Memlock{Pinned: 4096, Limit: -1}, Contexts: []uint32{3},
			},
		},
		Cgroups: []state.CgroupUse{
			{Cgroup: podCgroup, ContainerID: container, PodUID: pod, Resource: "hca_handle", Current: 2 + 1, Limit: -1},
			{Cgroup: podCgroup, ContainerID: container, PodUID: pod, Resource: "hca_object", Current: 20, Limit: 100},
		},
	}
	rest := *got
	rest.Objects, rest.QueuePairs, rest.Leftover, rest.Incomplete = nil, nil, nil, nil
	rest.Ownerless, rest.Untraced, rest.Orphans = nil, nil, nil
	wantEqual(t, "the rest", &rest, want)
}

// TestEmpty verifies that a device without resources has no objects.
func TestEmpty(t *testing.T) {
	i := inventoryOf(t, "", simulated.Context(11))
	for _, o := range i.Objects {
		if o.Objects != 0 {
			t.Errorf("%+v on a device without holders", o)
		}
	}
	if len(i.Objects) != 14 || i.Owners != nil || i.Leftover != nil || i.Ownerless != nil || i.Incomplete != nil ||
		!i.PIDsVisible {
		t.Errorf("inventory %+v", i)
	}
}

// TestBuiltIn verifies that each built-in device has owners, some in containers, and objects of the
// kernel.
func TestBuiltIn(t *testing.T) {
	p := profile.Default()
	contained := 0
	for _, device := range p.Names() {
		i := take(t, simulated.New(p, device, noon(), nil), device, nil).Inventory
		if len(i.Owners) == 0 || len(i.Others) != 0 || i.Ownerless != nil || i.Untraced != nil ||
			i.Incomplete != nil || i.OversizedCQs != nil {
			t.Errorf("%s: inventory %+v", device, i)
		}
		kernel := func(o state.ObjectCount) bool { return o.Owner == state.OwnerKernel && o.Objects > 0 }
		if !slices.ContainsFunc(i.Objects, kernel) {
			t.Errorf("%s: the kernel has nothing", device)
		}
		for _, o := range i.Owners {
			if o.ContainerID != "" && o.PodUID != "" {
				contained++
			}
			if o.Comm == "" || o.Cgroup == "" || o.Memlock == nil {
				t.Errorf("%s: owner %+v", device, o)
			}
		}
	}
	if contained == 0 {
		t.Error("no owner is in a container")
	}
}

// TestSharedCompletionQueues verifies that the queue pairs of an owner use its completion queues.
func TestSharedCompletionQueues(t *testing.T) {
	p := parse(t, "holders:\n  - {pid: 1, objects: {qp: 5, cq: 3}, cq_entries: 100}\n")
	// The queue pairs have ten uses for three CQs: 4, 3 and 3.
	for fill, want := range map[int64]*state.CQSum{
		34: nil,
		33: {Objects: 2, Entries: 200, Largest: 100, PID: 1},
		24: {Objects: 3, Entries: 300, Largest: 100, PID: 1},
	} {
		i := take(t, simulated.New(p, "sim0", noon(), nil), "sim0", func(o *inventory.Options) { o.MaxFill = fill }).Inventory
		wantEqual(t, "unfillable", i.OversizedCQs, want)
	}
}

// TestGrowth verifies that growth restarts each hour, in its shape.
func TestGrowth(t *testing.T) {
	for shape, want := range map[string]map[time.Duration]int64{
		"even": {
			0: 0, 5 * time.Second: 0, 6 * time.Second: 1, 30 * time.Minute: 300, time.Hour - time.Second: 599,
			time.Hour: 0, 90 * time.Minute: 300,
		},
		"step": {0: 0, 210 * time.Second: 0, 630 * time.Second: 600, 30 * time.Minute: 600, time.Hour - time.Second: 600},
		"fill": {0: 0, 210 * time.Second: 105, 630 * time.Second: 315, 30 * time.Minute: 600, time.Hour - time.Second: 600},
		// 10m30s are one round and a half, and 30m four and the first two minutes of another.
		"churn": {0: 0, 210 * time.Second: 600, 630 * time.Second: 600, 30 * time.Minute: 342, time.Hour - time.Second: 517},
	} {
		p := parse(t, "holders:\n  - {pid: 1, objects: {qp: 10}, growth: {qp: 600, srq: 1}, growth_shape: "+shape+"}\n")
		for after, n := range want {
			i := take(t, simulated.New(p, "sim0", noon().Add(after), nil), "sim0", nil).Inventory
			wantList(t, fmt.Sprintf("%s: queue pairs after %v", shape, after), i.QueuePairs, fmt.Sprintf("{rc rts %d}", n+10))
			if n := objects(i, "srq"); n != 0 && shape == "even" {
				t.Errorf("after %v %d SRQs", after, n)
			}
		}
	}
}

// TestLeak verifies that objects are left only for the contexts asked about, as often as the profile
// requires.
func TestLeak(t *testing.T) {
	look := []state.Context{simulated.Context(21), simulated.Context(22), simulated.Context(21), simulated.Context(23)}
	for leak, want := range map[string]int{
		"leak: {objects: {mr: 3}}\n":           3,
		"leak: {objects: {mr: 3}, times: 2}\n": 2,
		"leak: {objects: {mr: 3}, times: 9}\n": 3,
		"leak: {objects: {mr: 0}}\n":           0,
		"leak: {times: 2}\n":                   0,
	} {
		i := inventoryOf(t, "holders: []\n"+leak, look...)
		if got := objects(i, "ctx"); got != int64(want) || objects(i, "mr") != int64(3*want) || len(i.Leftover) != 3*want {
			t.Errorf("%q leaks %d contexts, want %d; left %+v", leak, got, want, i.Leftover)
		}
		// Without contexts nothing is left.
		if i := inventoryOf(t, "holders: []\n"+leak); objects(i, "ctx") != 0 {
			t.Errorf("%q leaks %d contexts that were not asked about", leak, objects(i, "ctx"))
		}
	}
}

// TestIncomplete verifies that tables that cannot be read have the reason in the profile.
func TestIncomplete(t *testing.T) {
	const holders = "holders:\n  - {pid: 1, objects: {qp: 1, srq: 1, mr: 1, cm_id: 1}}\n"
	for _, typ := range []string{"pd", "cq", "qp", "cm_id", "mr", "ctx", "srq"} {
		for _, reason := range []string{"not_supported", "failed", "interrupted", "timeout"} {
			p := parse(t, holders+"incomplete: {"+typ+": "+reason+"}\n")
			run := take(t, simulated.New(p, "sim0", noon(), nil), "sim0", func(o *inventory.Options) {
				if reason == "timeout" {
					o.Budget = 20 * time.Millisecond
				}
			})
			i := run.Inventory
			if i == nil {
				t.Fatalf("%s of %s: error %q", reason, typ, run.Error)
			}
			// Once the time is up, later tables are incomplete, too.
			if len(i.Incomplete) == 0 || i.Incomplete[0].Type != typ || string(i.Incomplete[0].Reason) != reason ||
				len(i.Incomplete) > 1 && reason != "timeout" {
				t.Errorf("%s of %s: incomplete %+v", reason, typ, i.Incomplete)
			}
			if one := objects(i, typ) == 1; one == (reason == "not_supported") {
				t.Errorf("%s of %s: %+v", reason, typ, i.Objects)
			}
		}
	}
}

// TestInvisible verifies that no owner is named in another PID namespace.
func TestInvisible(t *testing.T) {
	i := inventoryOf(t, "holders: [{pid: 1, comm: a, objects: {qp: 2, cm_id: 1}}, {kernel: ib_core, objects: {pd: 1}}]\n"+
		"pids_invisible: true\n")
	if i.PIDsVisible || i.Owners != nil || i.Others != nil {
		t.Errorf("PIDs visible %t, owners %+v, others %+v", i.PIDsVisible, i.Owners, i.Others)
	}
	wantList(t, "ownerless", i.Ownerless, "{ctx 1} {pd 1} {cq 1} {qp 2}")
	wantList(t, "untraced", i.Untraced, "{cm_id 1}")
}

// FuzzInventory verifies that the report of any valid profile can be read.
func FuzzInventory(f *testing.F) {
	f.Add("[{pid: 1, comm: a, cgroup: /a/b, objects: {qp: 3, cm_id: 1}, growth: {mr: 9}, rdma_max: {hca_object: 3}}]",
		"{objects: {qp: 1}}", "{qp: failed, mr: interrupted}", false)
	f.Add("[{dead: true, objects: {srq: 1}}, {kernel: ib_core, queue_pairs: [{type: gsi, state: rts, objects: 1}]}]",
		"{}", "{srq: timeout}", true)
	f.Add("[{pid: 7, comm: !!binary //8=, mr_bytes: 9223372036854775807, objects: {mr: 3}, memlock: {limit: 1}}]",
		"{objects: {ctx: 1}, times: 1}", "{}", false)
	f.Fuzz(func(t *testing.T, holders, leak, incomplete string, invisible bool) {
		text := "devices:\n  - name: sim0\n    like: sim_rxe0\n    resources:\n      holders: " + holders +
			"\n      leak: " + leak + "\n      incomplete: " + incomplete + "\n"
		p, err := profile.ParseProfile("profile", []byte(text))
		if err != nil {
			return
		}
		for _, d := range p.Devices {
			for _, fault := range d.Resources.Incomplete {
				if fault == "hang" {
					return
				}
			}
			d.Resources.PIDsInvisible = d.Resources.PIDsInvisible || invisible
			one := &profile.Profile{Devices: []profile.DeviceProfile{d}}
			look := []state.Context{simulated.Context(1), {Index: 1, ID: 1}}
			h := simulated.New(one, d.Name, noon().Add(17*time.Minute+3*time.Second), look)
			run := take(t, h, d.Name, func(o *inventory.Options) {
				o.MaxObjects, o.LeakCandidates, o.Budget = 100, look, 20*time.Millisecond
			})
			if run.Error == "" && run.Inventory == nil {
				t.Errorf("neither an inventory nor an error of\n%s", text)
			}
		}
	})
}
