package inventory_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/owner"
	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// tables are the kernel's tables of one device, rxe0, and how reading them fails.
type tables struct {
	objects map[restrack.Type][]restrack.Object
	// counts, if not nil, replaces the kernel's count.
	counts map[restrack.Type]uint64
	// fails is the error of reading a table, after all of its objects.
	fails map[restrack.Type]func(attempt int) error
	// blocks is a table whose reading ends only with the context.
	blocks restrack.Type
	// slow is the time that reading a table takes.
	slow time.Duration
	// passedOver are objects that no dump shows.
	passedOver map[restrack.Type][]restrack.Object
	getErr     error
	// closed are contexts that are removed before they are asked for.
	closed map[uint32]bool
	// skips is the number of objects that a dump does not show.
	skips map[restrack.Type]func(attempt int) int
	// devicesErr and summaryErr fail what comes first.
	devicesErr, summaryErr error

	dumps map[restrack.Type]int
}

const index = 3

func (k *tables) Devices(context.Context) ([]restrack.Device, error) {
	return []restrack.Device{{Index: 1, Name: "rxe1"}, {Index: index, Name: "rxe0"}}, k.devicesErr
}

func (k *tables) Summary(_ context.Context, i uint32) ([]restrack.Count, error) {
	if i != index {
		return nil, fmt.Errorf("asked of device %d", i)
	}
	var counts []restrack.Count
	for _, t := range restrack.Types() {
		n := uint64(len(k.objects[t]))
		if k.counts != nil {
			var known bool
			if n, known = k.counts[t]; !known {
				continue
			}
		}
		counts = append(counts, restrack.Count{Name: t.String(), Objects: n})
	}
	return counts, k.summaryErr
}

func (k *tables) Dump(ctx context.Context, i uint32, t restrack.Type, visit func(*restrack.Object) error) error {
	if i != index {
		return fmt.Errorf("asked of device %d", i)
	}
	if k.dumps == nil {
		k.dumps = make(map[restrack.Type]int)
	}
	k.dumps[t]++
	time.Sleep(k.slow)
	objects := k.objects[t]
	if skip := k.skips[t]; skip != nil {
		objects = objects[skip(k.dumps[t]):]
	}
	for _, o := range objects {
		o.Type = t
		if err := visit(&o); err != nil {
			return err
		}
	}
	if k.blocks == t {
		<-ctx.Done()
		return ctx.Err()
	}
	if f := k.fails[t]; f != nil {
		return f(k.dumps[t])
	}
	return nil
}

func (k *tables) Get(ctx context.Context, i uint32, t restrack.Type, id uint32) (restrack.Object, error) {
	if err := ctx.Err(); err != nil {
		return restrack.Object{}, err
	}
	if i != index {
		return restrack.Object{}, fmt.Errorf("asked of device %d", i)
	}
	for _, o := range slices.Concat(k.objects[t], k.passedOver[t]) {
		if o.HasID && o.ID == id && !k.closed[id] {
			return o, nil
		}
	}
	return restrack.Object{}, cmp.Or(k.getErr, error(syscall.ENOENT))
}

// people are processes by number. A thread of process p is p, p+1000 or p+2000.
type people struct {
	all     map[int]owner.Identity
	blind   bool
	private map[int]bool
	// parents of processes. All others have process 1.
	parents map[int]int
	// ends are processes that end once Process returned them.
	ends map[int]bool
	uses map[string][]owner.CgroupUse
	// slow is the time that Identify takes.
	slow time.Duration
}

func (p *people) SeesAllPIDs() (bool, error) { return !p.blind, nil }

func (p *people) Process(thread int) (int, error) {
	if p.private[thread] {
		return 0, syscall.EACCES
	}
	pid := thread % 1000
	if _, ok := p.all[pid]; !ok {
		return 0, owner.ErrGone
	}
	return pid, nil
}

func (p *people) Parent(pid int) (int, error) {
	if _, err := p.Process(pid); err != nil {
		return 0, err
	}
	if p.ends[pid] {
		return 0, owner.ErrGone
	}
	return cmp.Or(p.parents[pid], 1), nil
}

func (p *people) Identify(pid int) (owner.Identity, error) {
	time.Sleep(p.slow)
	id, ok := p.all[pid]
	if !ok || p.private[pid] {
		return owner.Identity{}, owner.ErrGone
	}
	return id, nil
}

func (p *people) Memlock(pid int) (owner.Memlock, error) {
	if p.private[pid] {
		return owner.Memlock{}, syscall.EACCES
	}
	return owner.Memlock{Pinned: int64(pid), Locked: 1, Limit: -1}, nil
}

func (p *people) RDMAController(cgroup string) ([]owner.CgroupUse, error) {
	return p.uses[cgroup], nil
}

// take returns the run that an inventory reports. Only waits spend its budget.
func take(t *testing.T, k *tables, p *people, change func(*inventory.Options)) *state.Run {
	t.Helper()
	var out strings.Builder
	o := inventory.Options{
		Tables: k, People: p, Device: "rxe0", Config: inventory.Config{Budget: time.Minute, MaxObjects: 1000, Owners: 2},
		Out: wire.NewWriter(&out),
	}
	if change != nil {
		change(&o)
	}
	synctest.Test(t, func(t *testing.T) {
		if err := inventory.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	})
	run := new(state.Run)
	if err := wire.Read(strings.NewReader(out.String()), run); err != nil {
		t.Fatalf("the report cannot be read: %v\n%s", err, out.String())
	}
	return run
}

func wantEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

// times returns n objects like o.
func times(n int, o restrack.Object) []restrack.Object {
	all := make([]restrack.Object, n)
	for i := range all {
		all[i] = o
	}
	return all
}

// host is a device with objects of the processes 10 (large), 20, 30 and of the kernel.
func host() (*tables, *people) {
	user := func(thread uint32) restrack.Object { return restrack.Object{Thread: thread} }
	qp := func(thread uint32, typ, dev string) restrack.Object {
		return restrack.Object{Thread: thread, QPType: typ, QPState: dev}
	}
	cq := func(thread, entries uint32, users uint64) restrack.Object {
		return restrack.Object{Thread: thread, Entries: entries, HasEntries: true, Users: users, HasUsers: true}
	}
	kernel := restrack.Object{Kernel: true}
	mad := kernel
	mad.QPType, mad.QPState = "gsi", "rts"
	kernelCQ := kernel
	kernelCQ.Entries, kernelCQ.HasEntries, kernelCQ.HasUsers = 512, true, true
	k := &tables{objects: map[restrack.Type][]restrack.Object{
		restrack.CTX: {user(10), user(20), user(30)},
		restrack.PD:  {user(10), kernel},
		restrack.CQ:  {cq(10, 64, 2), cq(10, 4096, 1), cq(20, 100, 0), kernelCQ},
		restrack.MR:  {{Thread: 1020, Length: 5}, {Thread: 20, Length: 1 << 62}},
		restrack.QP: append(append(times(5, qp(10, "rc", "rts")), times(3, qp(1010, "ud", "init"))...),
			qp(20, "rc", "err"), qp(2020, "rc", "err"), qp(30, "rc", "rts"), qp(40, "rc", "rts"), mad),
		restrack.CMID: {user(30)},
	}}
	p := &people{all: map[int]owner.Identity{
		10: {PID: 10, Comm: "trainer", Cgroup: "/kubepods/a", ContainerID: "c10", PodUID: "p10"},
		20: {PID: 20, Comm: "storage", Cgroup: "/kubepods/a", ContainerID: "c10", PodUID: "p10"},
		30: {PID: 30, Comm: "odd", Cgroup: "/"},
	}}
	p.uses = map[string][]owner.CgroupUse{"/kubepods/a": {
		{Device: "rxe0", Resource: "hca_object", Current: 12, Limit: 100},
		{Device: "rxe1", Resource: "hca_object", Current: 1, Limit: -1},
	}}
	return k, p
}

// TestTransientErrors verifies that queue pairs that an exporter broke itself, or whose owner is
// ending, are counted apart.
func TestTransientErrors(t *testing.T) {
	k, p := host()
	p.all[50] = owner.Identity{PID: 50, Comm: "rdma_exporter"}
	broken := func(thread uint32, dev string) restrack.Object {
		return restrack.Object{Thread: thread, QPType: "rc", QPState: dev}
	}
	kernel := restrack.Object{Kernel: true, QPType: "rc", QPState: "err"}
	k.objects[restrack.QP] = append(k.objects[restrack.QP],
		broken(50, "err"), broken(1050, "sqe"), broken(2050, "err"), broken(50, "rts"), broken(40, "err"), broken(0, "err"), kernel)
	for own, want := range map[string]int64{"rdma_exporter": 4, "": 1, "storage": 3, "nobody": 1} {
		run := take(t, k, p, func(o *inventory.Options) { o.Own = own })
		if run.Inventory == nil || run.Inventory.TransientErrors != want {
			t.Errorf("own %q: got %+v, want %d transient errors", own, run.Inventory, want)
		}
	}
}

func TestInventory(t *testing.T) {
	k, p := host()
	run := take(t, k, p, func(o *inventory.Options) { o.MaxFill = 2048 })
	if run.Error != "" || run.Inventory == nil {
		t.Fatalf("error %q, inventory %+v", run.Error, run.Inventory)
	}
	i := run.Inventory
	if i.Index != index || !i.PIDsVisible {
		t.Errorf("index %d, PIDs visible %t", i.Index, i.PIDsVisible)
	}
	wantEqual(t, "objects", i.Objects, []state.ObjectCount{
		{Type: "cm_id", Owner: "user", Objects: 1},
		{Type: "cm_id", Owner: "kernel"},
		{Type: "cq", Owner: "user", Objects: 3},
		{Type: "cq", Owner: "kernel", Objects: 1},
		{Type: "ctx", Owner: "user", Objects: 3},
		{Type: "ctx", Owner: "kernel"},
		{Type: "mr", Owner: "user", Objects: 2},
		{Type: "mr", Owner: "kernel"},
		{Type: "pd", Owner: "user", Objects: 1},
		{Type: "pd", Owner: "kernel", Objects: 1},
		{Type: "qp", Owner: "user", Objects: 12},
		{Type: "qp", Owner: "kernel", Objects: 1},
		{Type: "srq", Owner: "user"},
		{Type: "srq", Owner: "kernel"},
	})
	wantEqual(t, "queue pairs", i.QueuePairs, []state.QueuePairCount{
		{Type: "gsi", State: "rts", Objects: 1},
		{Type: "rc", State: "err", Objects: 2},
		{Type: "rc", State: "rts", Objects: 7},
		{Type: "ud", State: "init", Objects: 3},
	})
	wantEqual(t, "entries", i.CQEntries, []state.OwnerSum{{Owner: "user", Sum: 4260}, {Owner: "kernel", Sum: 512}})
	wantEqual(t, "bytes", i.MRBytes, []state.OwnerSum{{Owner: "user", Sum: 1<<40 + 5}, {Owner: "kernel"}})
	// 4096 entries for one use of at most 2048, and 100 for none; the kernel's own
	// are its own business.
	wantEqual(t, "unfillable", i.OversizedCQs, &state.CQSum{Objects: 2, Entries: 4196, Largest: 4096, PID: 10})
	types := func(list ...state.TypeCount) []state.TypeCount { return list }
	wantEqual(t, "owners", i.Owners, []state.Owner{
		{
			PID: 10, Comm: "trainer", Cgroup: "/kubepods/a", ContainerID: "c10", PodUID: "p10",
			Objects: types(state.TypeCount{Type: "ctx", Objects: 1}, state.TypeCount{Type: "pd", Objects: 1},
				state.TypeCount{Type: "cq", Objects: 2}, state.TypeCount{Type: "qp", Objects: 8}),
			Memlock: &state.Memlock{Pinned: 10, Locked: 1, Limit: -1},
		},
		{
			PID: 20, Comm: "storage", Cgroup: "/kubepods/a", ContainerID: "c10", PodUID: "p10",
			Objects: types(state.TypeCount{Type: "ctx", Objects: 1}, state.TypeCount{Type: "cq", Objects: 1},
				state.TypeCount{Type: "mr", Objects: 2}, state.TypeCount{Type: "qp", Objects: 2}),
			Memlock: &state.Memlock{Pinned: 20, Locked: 1, Limit: -1},
		},
		{
			PID: 30, Comm: "odd", Cgroup: "/", Objects: types(state.TypeCount{Type: "cm_id", Objects: 1}),
			Memlock: &state.Memlock{Pinned: 30, Locked: 1, Limit: -1},
		},
	})
	// Process 30 is the third of ctx and of qp, and 40 has ended.
	wantEqual(t, "others", i.Others, []state.TypeCount{{Type: "ctx", Objects: 1}, {Type: "qp", Objects: 2}})
	wantEqual(t, "cgroups", i.Cgroups, []state.CgroupUse{
		{Cgroup: "/kubepods/a", ContainerID: "c10", PodUID: "p10", Resource: "hca_object", Current: 12, Limit: 100},
	})
	if i.Ownerless != nil || i.Leftover != nil || i.Incomplete != nil {
		t.Errorf("ownerless %v, left %v, incomplete %v", i.Ownerless, i.Leftover, i.Incomplete)
	}
}

// TestOwnerless verifies that an object whose thread has ended belongs to its process, if another
// object of the same context names it. Otherwise it has no owner.
func TestOwnerless(t *testing.T) {
	in := func(context uint32, o restrack.Object) restrack.Object {
		o.Context, o.HasContext = context, true
		return o
	}
	of := func(domain uint32, o restrack.Object) restrack.Object {
		o.PD, o.HasPD = domain, true
		return o
	}
	id := func(n uint32, o restrack.Object) restrack.Object {
		o.ID, o.HasID = n, true
		return o
	}
	none, ten := restrack.Object{}, restrack.Object{Thread: 10}
	k := &tables{objects: map[restrack.Type][]restrack.Object{
		restrack.CTX:  {id(1, none), id(2, none), id(3, none)},
		restrack.PD:   {id(51, in(1, none)), id(52, in(2, none)), in(3, none)},
		restrack.CQ:   {in(2, none), in(2, none)},
		restrack.QP:   {of(51, none), of(51, ten), of(52, none), of(99, none)},
		restrack.CMID: {none},
	}}
	p := &people{all: map[int]owner.Identity{10: {PID: 10, Comm: "worker"}}}
	for _, blind := range []bool{false, true} {
		p.blind = blind
		i := take(t, k, p, nil).Inventory
		// Context 1 belongs to process 10. Contexts 2 and 3 have no known owner.
		wantEqual(t, "ownerless", i.Ownerless, []state.TypeCount{
			{Type: "ctx", Objects: 2}, {Type: "pd", Objects: 2}, {Type: "cq", Objects: 2}, {Type: "qp", Objects: 1},
		})
		wantEqual(t, "orphans", i.Orphans, []state.Orphan{
			{Context: 2, Objects: []state.TypeCount{{Type: "ctx", Objects: 1}, {Type: "pd", Objects: 1}, {Type: "cq", Objects: 2}, {Type: "qp", Objects: 1}}},
			{Context: 3, Objects: []state.TypeCount{{Type: "ctx", Objects: 1}, {Type: "pd", Objects: 1}}},
		})
		wantEqual(t, "owners", i.Owners, []state.Owner{{
			PID: 10, Comm: "worker", Contexts: []uint32{1}, Memlock: &state.Memlock{Pinned: 10, Locked: 1, Limit: -1},
			Objects: []state.TypeCount{{Type: "ctx", Objects: 1}, {Type: "pd", Objects: 1}, {Type: "qp", Objects: 2}},
		}})
		// Objects that cannot be traced to a context are not ownerless.
		wantEqual(t, "untraced", i.Untraced, []state.TypeCount{{Type: "cm_id", Objects: 1}, {Type: "qp", Objects: 1}})
		wantEqual(t, "others", i.Others, []state.TypeCount(nil))
		if i.PIDsVisible == blind {
			t.Errorf("PIDs visible %t, blind %t", i.PIDsVisible, blind)
		}
	}
}

// family has the exporter 2, its child 21, its child 22 with another name, and 31, a child of
// another exporter.
func family() *people {
	return &people{
		all: map[int]owner.Identity{
			2: {Comm: "rdma_exporter"}, 21: {Comm: "rdma_exporter"}, 22: {Comm: "sh"},
			30: {Comm: "mpi\nrun"}, 31: {Comm: "rdma_exporter"}, 32: {},
		},
		parents: map[int]int{21: 2, 22: 2},
	}
}

// TestOwnChildren verifies that objects of the exporter's children, of any of their threads, are
// counted apart and not as those of users and owners. They are subtracted from the kernel's own
// count, as far as they were seen. No other process is taken for a child.
func TestOwnChildren(t *testing.T) {
	in := func(context uint32, o restrack.Object) restrack.Object {
		o.Context, o.HasContext = context, true
		return o
	}
	broken := restrack.Object{PD: 51, HasPD: true, QPType: "rc", QPState: "err"}
	by := func(thread uint32, o restrack.Object) restrack.Object {
		o.Thread = thread
		return o
	}
	theirs := restrack.Object{PD: 52, HasPD: true, QPType: "rc", QPState: "rts"}
	kernel := restrack.Object{Kernel: true, QPType: "gsi", QPState: "rts"}
	objects := map[restrack.Type][]restrack.Object{
		restrack.CTX: {{ID: 1, HasID: true, Thread: 21}, {ID: 2, HasID: true, Thread: 30}},
		restrack.PD: {
			in(1, restrack.Object{ID: 51, HasID: true, Thread: 21}),
			in(2, restrack.Object{ID: 52, HasID: true, Thread: 30}),
		},
		restrack.CQ: {
			in(1, restrack.Object{Thread: 21, Entries: 4096, HasEntries: true, HasUsers: true}),
			in(2, restrack.Object{Thread: 30, Entries: 128, HasEntries: true, HasUsers: true, Users: 1}),
		},
		// Of one of them the thread has ended.
		restrack.MR: {{PD: 51, HasPD: true, Length: 1 << 20}, {PD: 52, HasPD: true, Length: 4096, Thread: 30}},
		restrack.QP: slices.Concat([]restrack.Object{kernel, by(1021, broken), by(21, broken)}, times(4000, by(30, theirs)),
			[]restrack.Object{by(22, theirs), by(31, theirs)}),
	}
	options := func(o *inventory.Options) {
		o.Exporter, o.Own, o.MaxObjects, o.Owners, o.MaxFill = 2, "rdma_exporter", 10000, 10, 128
	}
	i := take(t, &tables{objects: objects}, family(), options).Inventory
	count := func(typ string, kind state.OwnerKind) (n int64) {
		for _, o := range i.Objects {
			if o.Type == typ && o.Owner == kind {
				n += o.Objects
			}
		}
		return n
	}
	for _, want := range []struct {
		typ                 string
		user, kernel, child int64
	}{{"ctx", 1, 0, 1}, {"pd", 1, 0, 1}, {"cq", 1, 0, 1}, {"mr", 1, 0, 1}, {"qp", 4002, 1, 2}} {
		got := [3]int64{count(want.typ, state.OwnerUser), count(want.typ, state.OwnerKernel), count(want.typ, state.OwnerExporter)}
		wantEqual(t, want.typ+" of users, the kernel, the exporter", got, [3]int64{want.user, want.kernel, want.child})
	}
	wantEqual(t, "queue pairs", i.QueuePairs, []state.QueuePairCount{
		{Type: "gsi", State: "rts", Objects: 1}, {Type: "rc", State: "rts", Objects: 4002},
	})
	wantEqual(t, "entries", i.CQEntries, []state.OwnerSum{{Owner: "user", Sum: 128}, {Owner: "kernel"}})
	wantEqual(t, "bytes", i.MRBytes, []state.OwnerSum{{Owner: "user", Sum: 4096}, {Owner: "kernel"}})
	var pids []int
	for _, o := range i.Owners {
		pids = append(pids, o.PID)
	}
	wantEqual(t, "owners", pids, []int{22, 30, 31})
	if i.TransientErrors != 0 || i.OversizedCQs != nil || i.Others != nil || i.Ownerless != nil || i.Untraced != nil {
		t.Errorf("%d transient errors, oversized %v, others %v, ownerless %v, untraced %v",
			i.TransientErrors, i.OversizedCQs, i.Others, i.Ownerless, i.Untraced)
	}

	for name, tt := range map[string]struct {
		tables  tables
		unknown int64
		child   int64
	}{
		"time that is over":    {tables{blocks: restrack.QP}, 4003, 2},
		"a table that fails":   {tables{fails: map[restrack.Type]func(int) error{restrack.QP: func(int) error { return syscall.EIO }}}, 4003, 2},
		"fewer than were seen": {tables{blocks: restrack.QP, counts: map[restrack.Type]uint64{restrack.QP: 1}}, 0, 2},
		"more than are read":   {tables{counts: map[restrack.Type]uint64{restrack.QP: 20000}}, 20000, 0},
	} {
		k := tt.tables
		k.objects = objects
		i = take(t, &k, family(), options).Inventory
		got := [2]int64{count("qp", state.OwnerUnknown), count("qp", state.OwnerExporter)}
		wantEqual(t, name+": queue pairs of unknown owners, and of the exporter", got, [2]int64{tt.unknown, tt.child})
	}
}

// TestEndedMeanwhile verifies that objects are not counted if their process ended after the table
// was read. They are counted if the process is hidden, or if only one of its threads ended.
func TestEndedMeanwhile(t *testing.T) {
	const ended, hidden, ending = 999, 998, 21
	k := &tables{
		objects: map[restrack.Type][]restrack.Object{
			restrack.CTX: {
				{ID: 1, HasID: true, Thread: ended},
				{ID: 2, HasID: true, Thread: hidden},
				{ID: 3, HasID: true, Thread: ending},
			},
			restrack.PD: {
				{ID: 51, HasID: true, Context: 1, HasContext: true, Thread: ended},
				{ID: 52, HasID: true, Context: 2, HasContext: true, Thread: hidden},
			},
			restrack.QP: slices.Concat(
				times(3, restrack.Object{PD: 51, HasPD: true, Thread: ended, QPType: "rc", QPState: "rts"}),
				// Of these the domain was not in its table yet.
				times(2, restrack.Object{PD: 53, HasPD: true, Thread: ended, QPType: "rc", QPState: "rts"}),
				times(1100, restrack.Object{PD: 52, HasPD: true, Thread: hidden, QPType: "rc", QPState: "rts"}),
			),
		},
		closed: map[uint32]bool{1: true, 3: true},
	}
	who := family()
	who.ends = map[int]bool{ending: true}
	i := take(t, k, who, func(o *inventory.Options) { o.MaxObjects = 2000 }).Inventory
	wantEqual(t, "queue pairs", i.QueuePairs, []state.QueuePairCount{{Type: "rc", State: "rts", Objects: 1100}})
	wantEqual(t, "others", i.Others, []state.TypeCount{
		{Type: "ctx", Objects: 1}, {Type: "pd", Objects: 1}, {Type: "qp", Objects: 1100},
	})
	if i.Owners != nil || i.Ownerless != nil || i.Incomplete != nil {
		t.Errorf("owners %v, ownerless %v, incomplete %v", i.Owners, i.Ownerless, i.Incomplete)
	}
}

// TestLeft verifies that objects left in a context are found, also through protection domains.
func TestLeft(t *testing.T) {
	k := &tables{objects: map[restrack.Type][]restrack.Object{
		restrack.CTX: {{ID: 7, HasID: true}, {ID: 8, HasID: true, Thread: 10}},
		restrack.PD:  {{ID: 70, HasID: true, Context: 7, HasContext: true}, {ID: 90, HasID: true, Context: 9, HasContext: true}},
		restrack.CQ:  {{Context: 8, HasContext: true}},
		restrack.MR:  {{PD: 70, HasPD: true}, {PD: 70, HasPD: true}, {PD: 80, HasPD: true}},
		restrack.QP:  {{PD: 70, HasPD: true}, {PD: 90, HasPD: true, Kernel: true}},
	}}
	p := &people{all: map[int]owner.Identity{10: {}}}
	seven, nine := state.Context{Index: index, ID: 7}, state.Context{Index: index, ID: 9}
	i := take(t, k, p, func(o *inventory.Options) {
		o.LeakCandidates = []state.Context{seven, nine, {Index: index, ID: 11}, {Index: index + 1, ID: 8}}
	}).Inventory
	wantEqual(t, "left", i.Leftover, []state.Leftover{
		{Context: seven, Type: "ctx", Objects: 1},
		{Context: seven, Type: "mr", Objects: 2},
		{Context: seven, Type: "pd", Objects: 1},
		{Context: seven, Type: "qp", Objects: 1},
		{Context: nine, Type: "pd", Objects: 1},
	})
}

// TestLeftIsConfirmed verifies that a context that a dump skipped is asked for, and that an error
// of the kernel proves nothing.
func TestLeftIsConfirmed(t *testing.T) {
	seven := state.Context{Index: index, ID: 7}
	look := func(o *inventory.Options) { o.LeakCandidates = []state.Context{seven} }
	k := &tables{passedOver: map[restrack.Type][]restrack.Object{restrack.CTX: {{ID: 7, HasID: true}}}}
	i := take(t, k, new(people), look).Inventory
	wantEqual(t, "left", i.Leftover, []state.Leftover{{Context: seven, Type: "ctx", Objects: 1}})

	i = take(t, &tables{getErr: syscall.EIO}, new(people), look).Inventory
	if len(i.Incomplete) != 1 || i.Incomplete[0].Type != "ctx" || i.Incomplete[0].Reason != state.IncompleteFailed {
		t.Errorf("incomplete %+v, want the contexts", i.Incomplete)
	}
	// A table is incomplete for one reason.
	interrupted := map[restrack.Type]func(int) error{restrack.CTX: func(int) error { return restrack.ErrInterrupted }}
	i = take(t, &tables{getErr: syscall.EIO, fails: interrupted}, new(people), look).Inventory
	if len(i.Incomplete) != 1 || i.Incomplete[0].Reason != state.IncompleteFailed {
		t.Errorf("incomplete %+v of a table that was interrupted, too", i.Incomplete)
	}
	// The time that other tables take does not matter.
	i = take(t, &tables{blocks: restrack.QP}, new(people), func(o *inventory.Options) {
		look(o)
		o.Budget = 20 * time.Millisecond
	}).Inventory
	if len(i.Incomplete) != 1 || i.Incomplete[0].Type != "qp" {
		t.Errorf("incomplete %+v, want the queue pairs alone", i.Incomplete)
	}
	if run := take(t, &tables{getErr: syscall.ENODEV}, new(people), look); !strings.Contains(run.Error, "context 7: no such device") {
		t.Errorf("error %q", run.Error)
	}
}

// TestBudget verifies that a table that is not read is counted, and that all others are read.
func TestBudget(t *testing.T) {
	type change = func(*tables, *inventory.Options)
	fails := func(f func(attempt int) error) change {
		return func(k *tables, _ *inventory.Options) { k.fails = map[restrack.Type]func(int) error{restrack.QP: f} }
	}
	always := func(err error) change { return fails(func(int) error { return err }) }
	once := func(err error) change {
		return fails(func(attempt int) error {
			if attempt == 1 {
				return err
			}
			return nil
		})
	}
	skips := func(f func(attempt int) int) change {
		return func(k *tables, _ *inventory.Options) { k.skips = map[restrack.Type]func(int) int{restrack.QP: f} }
	}
	counted := []state.ObjectCount{{Type: "qp", Owner: state.OwnerUnknown, Objects: 13}}
	seen := func(user int64) []state.ObjectCount {
		return []state.ObjectCount{{Type: "qp", Owner: "user", Objects: user}, {Type: "qp", Owner: "kernel", Objects: 1}}
	}
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		change  change
		reason  state.IncompleteReason
		detail  string
		objects []state.ObjectCount // of queue pairs
		dumps   int                 // of them
	}{
		"more than allowed": {
			func(_ *tables, o *inventory.Options) { o.MaxObjects = 12 },
			state.IncompleteMaxObjects, "13 objects are more than 12", counted, 0,
		},
		"more than were counted": {
			func(k *tables, o *inventory.Options) { o.MaxObjects = 12; k.counts = map[restrack.Type]uint64{} },
			state.IncompleteMaxObjects, "more than 12", nil, 1,
		},
		"time": {
			func(k *tables, o *inventory.Options) { o.Budget = 20 * time.Millisecond; k.blocks = restrack.QP },
			state.IncompleteTimeout, "20ms were over after 13 objects", counted, 1,
		},
		"no such table":        {always(fmt.Errorf("RES_QP_GET: %w", restrack.ErrNotSupported)), state.IncompleteNotSupported, "RES_QP_GET", counted, 1},
		"refused":              {always(refused), state.IncompleteFailed, "refused", counted, 3},
		"refused once":         {once(refused), "", "", seen(12), 2},
		"always interrupted":   {always(restrack.ErrInterrupted), state.IncompleteInterrupted, "changed", seen(12), 3},
		"interrupted once":     {once(restrack.ErrInterrupted), "", "", seen(12), 2},
		"some skipped once":    {skips(func(attempt int) int { return max(0, 2-attempt) }), "", "", seen(12), 2},
		"some always skipped":  {skips(func(attempt int) int { return attempt }), state.IncompleteInterrupted, "only 10 of some 13 objects", seen(9), 3},
		"the same never shown": {skips(func(int) int { return 2 }), "", "", seen(10), 2},
	} {
		t.Run(name, func(t *testing.T) {
			k, p := host()
			run := take(t, k, p, func(o *inventory.Options) { tc.change(k, o) })
			if run.Error != "" || run.Inventory == nil {
				t.Fatalf("error %q, inventory %+v", run.Error, run.Inventory)
			}
			var qps []state.ObjectCount
			others := 0
			for _, o := range run.Inventory.Objects {
				if o.Type == "qp" {
					qps = append(qps, o)
				} else {
					others++
				}
			}
			wantEqual(t, "queue pairs", qps, tc.objects)
			if others != 12 {
				t.Errorf("%d counts of other types, want 12", others)
			}
			wantEqual(t, "readings", k.dumps[restrack.QP], tc.dumps)
			if tc.reason == "" {
				wantEqual(t, "incomplete", run.Inventory.Incomplete, []state.Incomplete(nil))
				return
			}
			if l := run.Inventory.Incomplete; len(l) != 1 || l[0].Type != "qp" || l[0].Reason != tc.reason || !strings.Contains(l[0].Detail, tc.detail) {
				t.Errorf("incomplete %+v, want qp, %s, %q", l, tc.reason, tc.detail)
			}
		})
	}
}

// TestCountFirst verifies that the kernel's count is reported before any table, which may hang.
func TestCountFirst(t *testing.T) {
	k, p := host()
	k.blocks = restrack.CTX
	ctx, cancel := context.WithCancel(t.Context())
	out := new(strings.Builder)
	writer := wire.NewWriter(writing(func(b []byte) (int, error) {
		cancel() // as soon as anything is reported
		return out.Write(b)
	}))
	err := inventory.Run(ctx, inventory.Options{Tables: k, People: p, Device: "rxe0", Config: inventory.Config{Budget: time.Hour, MaxObjects: 1000}, Out: writer})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "rxe0") {
		t.Errorf("error %v", err)
	}
	run := new(state.Run)
	first, _, _ := strings.Cut(out.String(), "\n")
	first += "\n"
	if err := wire.Read(strings.NewReader(first), run); !errors.Is(err, wire.ErrTruncated) || run.Inventory == nil {
		t.Fatalf("read with %v the inventory %v", err, run.Inventory)
	}
	i := run.Inventory
	if len(i.Incomplete) != 7 || len(i.Objects) != 7 || !i.PIDsVisible || !slices.Contains(i.Objects, state.ObjectCount{Type: "qp", Owner: "unknown", Objects: 13}) {
		t.Errorf("inventory %+v, want the counts", i)
	}
}

type writing func([]byte) (int, error)

func (w writing) Write(b []byte) (int, error) { return w(b) }

// TestErrors verifies that a missing device is an error.
func TestErrors(t *testing.T) {
	gone := func(int) error { return fmt.Errorf("RES_PD_GET: %w", syscall.ENODEV) }
	for name, tc := range map[string]struct {
		change func(*tables, *inventory.Options)
		want   string
	}{
		"no such device": {func(_ *tables, o *inventory.Options) { o.Device = "mlx5_9" }, "find the device: no such device"},
		"devices":        {func(k *tables, _ *inventory.Options) { k.devicesErr = syscall.EPERM }, "list the devices: operation not permitted"},
		"summary":        {func(k *tables, _ *inventory.Options) { k.summaryErr = syscall.ENODEV }, "count the objects: no such device"},
		"vanished": {
			func(k *tables, _ *inventory.Options) { k.fails = map[restrack.Type]func(int) error{restrack.PD: gone} },
			"read the table of pd: RES_PD_GET: no such device",
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, p := host()
			run := take(t, k, p, func(o *inventory.Options) { tc.change(k, o) })
			if counted := name == "vanished"; run.Error != tc.want || (run.Inventory != nil) != counted {
				t.Errorf("error %q, want %q; inventory %v", run.Error, tc.want, run.Inventory)
			}
		})
	}
}

// TestSlowOwners verifies that a spent budget only leaves owners unnamed.
func TestSlowOwners(t *testing.T) {
	k, p := host()
	k.slow = time.Hour
	i := take(t, k, p, nil).Inventory
	if len(i.Owners) != 0 {
		t.Errorf("owners %+v although the time was up", i.Owners)
	}
	wantEqual(t, "others", i.Others, []state.TypeCount{
		{Type: "ctx", Objects: 3},
		{Type: "pd", Objects: 1},
		{Type: "cq", Objects: 3},
		{Type: "mr", Objects: 2},
		{Type: "cm_id", Objects: 1},
		{Type: "qp", Objects: 12},
	})
}

// TestLargestNamedFirst verifies that a spent budget leaves the small owners unnamed, not the large.
func TestLargestNamedFirst(t *testing.T) {
	k := &tables{objects: map[restrack.Type][]restrack.Object{
		restrack.CQ: times(3, restrack.Object{Thread: 10}),
		restrack.QP: append(times(2, restrack.Object{Thread: 10}), times(4, restrack.Object{Thread: 20})...),
		restrack.MR: times(5, restrack.Object{Thread: 20}),
	}}
	p := &people{all: map[int]owner.Identity{10: {Comm: "small"}, 20: {Comm: "large"}}, slow: time.Hour}
	names := make(map[int]string)
	for _, o := range take(t, k, p, nil).Inventory.Owners {
		names[o.PID] = o.Comm
	}
	wantEqual(t, "names", names, map[int]string{10: "", 20: "large"})
}

// TestNames verifies that names from outside are short and printable.
func TestNames(t *testing.T) {
	k, p := host()
	path := "/a\nb/" + strings.Repeat("é", 3000)
	p.all[10] = owner.Identity{PID: 10, Comm: "two\nlines", Cgroup: path}
	p.uses = map[string][]owner.CgroupUse{path: {{Device: "rxe0", Resource: "hca_object", Current: 3, Limit: 5}}}
	i := take(t, k, p, nil).Inventory
	o := i.Owners[0]
	if o.Comm != "two\uFFFDlines" || len(o.Cgroup) > 256 || !strings.HasPrefix(o.Cgroup, "/a\uFFFDb/éé") || !strings.HasSuffix(o.Cgroup, "é…") {
		t.Errorf("comm %q, cgroup %q", o.Comm, o.Cgroup)
	}
	// It is asked for by its real path.
	if len(i.Cgroups) != 1 || i.Cgroups[0].Current != 3 || i.Cgroups[0].Cgroup != o.Cgroup {
		t.Errorf("cgroups %+v", i.Cgroups)
	}
}

// TestPrivate verifies that an owner that cannot be read is still named by its number.
func TestPrivate(t *testing.T) {
	k, p := host()
	p.private = map[int]bool{10: true, 1010: true}
	i := take(t, k, p, nil).Inventory
	wantEqual(t, "the first owner", i.Owners[0], state.Owner{PID: 10, Objects: []state.TypeCount{
		{Type: "ctx", Objects: 1}, {Type: "pd", Objects: 1}, {Type: "cq", Objects: 2}, {Type: "qp", Objects: 5},
	}})
}

// TestLeftOut verifies that owners and cgroups that are not wanted are not read.
func TestLeftOut(t *testing.T) {
	for name, tc := range map[string]struct {
		config         func(*inventory.Config)
		owners, groups bool
	}{
		"nothing": {func(*inventory.Config) {}, true, true},
		"cgroups": {func(c *inventory.Config) { c.NoCgroups = true }, true, false},
		"owners":  {func(c *inventory.Config) { c.NoOwners = true }, false, false},
	} {
		k, p := host()
		asked := &counting{people: p}
		run := take(t, k, p, func(o *inventory.Options) {
			o.People = asked
			tc.config(&o.Config)
		})
		i := run.Inventory
		if got := len(i.Owners) > 0; got != tc.owners || asked.owners > 0 != tc.owners {
			t.Errorf("%s left out: %d owners, asked for %d times", name, len(i.Owners), asked.owners)
		}
		if got := len(i.Cgroups) > 0; got != tc.groups || asked.groups > 0 != tc.groups {
			t.Errorf("%s left out: %d uses of cgroups, asked for %d times", name, len(i.Cgroups), asked.groups)
		}
		var qps int64
		for _, o := range slices.Concat(i.Others, i.Ownerless, i.Untraced) {
			if o.Type == "qp" {
				qps += o.Objects
			}
		}
		if !tc.owners && qps != 12 {
			t.Errorf("%s left out: %d queue pairs of others, want all 12", name, qps)
		}
	}
}

// counting counts the questions about owners and cgroups.
type counting struct {
	*people
	owners, groups int
}

func (c *counting) Memlock(pid int) (owner.Memlock, error) {
	c.owners++
	return c.people.Memlock(pid)
}

func (c *counting) RDMAController(cgroup string) ([]owner.CgroupUse, error) {
	c.groups++
	return c.people.RDMAController(cgroup)
}

// TestBudgetHolds verifies that a table of MaxObjects objects is read.
func TestBudgetHolds(t *testing.T) {
	for _, counts := range []map[restrack.Type]uint64{nil, {}} {
		k, p := host()
		k.counts = counts
		i := take(t, k, p, func(o *inventory.Options) { o.MaxObjects = 13 }).Inventory
		if want := (state.ObjectCount{Type: "qp", Owner: state.OwnerUser, Objects: 12}); !slices.Contains(i.Objects, want) || i.Incomplete != nil {
			t.Errorf("with counts %v: objects %+v, incomplete %+v", counts, i.Objects, i.Incomplete)
		}
	}
}

// TestLargest verifies that the first of equally oversized completion queues is named, and that a
// queue that its uses just fill is not oversized.
func TestLargest(t *testing.T) {
	cq := func(thread, entries uint32) restrack.Object {
		return restrack.Object{Thread: thread, Entries: entries, HasEntries: true, Users: 2, HasUsers: true}
	}
	k := &tables{objects: map[restrack.Type][]restrack.Object{restrack.CQ: {cq(10, 200), cq(20, 201), cq(30, 201)}}}
	p := &people{all: map[int]owner.Identity{10: {}, 20: {}, 30: {}}}
	i := take(t, k, p, func(o *inventory.Options) { o.MaxFill = 100 }).Inventory
	if u := i.OversizedCQs; u == nil || u.PID != 20 || u.Objects != 2 || u.Largest != 201 || u.Entries != 402 {
		t.Errorf("got %+v", u)
	}
}

// TestTooManyThreads verifies that objects of threads beyond maxTracked count as those of others.
func TestTooManyThreads(t *testing.T) {
	const threads = 1<<16 + 3
	var all []restrack.Object
	for n := range uint32(threads) {
		all = append(all, restrack.Object{Thread: n + 1})
	}
	i := take(t, &tables{objects: map[restrack.Type][]restrack.Object{restrack.CMID: all}}, new(people), func(o *inventory.Options) { o.MaxObjects = threads }).Inventory
	wantEqual(t, "others", i.Others, []state.TypeCount{{Type: "cm_id", Objects: threads}})
}

// TestLongNames verifies that only long names are truncated, and between characters.
func TestLongNames(t *testing.T) {
	for name, want := range map[string]string{
		strings.Repeat("x", 256):       strings.Repeat("x", 256),
		strings.Repeat("x", 257):       strings.Repeat("x", 253) + "…",
		"/" + strings.Repeat("é", 128): "/" + strings.Repeat("é", 126) + "…",
		strings.Repeat("é", 129):       strings.Repeat("é", 126) + "…",
	} {
		k, p := host()
		p.all[10] = owner.Identity{PID: 10, Cgroup: name}
		if got := take(t, k, p, nil).Inventory.Owners[0].Cgroup; got != want {
			t.Errorf("%q: got %q", name, got)
		}
	}
}

func TestConfig(t *testing.T) {
	for want, change := range map[string]func(*inventory.Config){
		"":                              func(c *inventory.Config) { c.MaxObjects, c.Owners = 0, 0 },
		"--inventory.max-objects is -1": func(c *inventory.Config) { c.MaxObjects = -1 },
		"--inventory.owners is -1":      func(c *inventory.Config) { c.Owners = -1 },
		"--inventory.owners is 101":     func(c *inventory.Config) { c.Owners = 101 },
	} {
		c := inventory.DefaultConfig()
		c.Owners = 100
		change(&c)
		if err := c.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
