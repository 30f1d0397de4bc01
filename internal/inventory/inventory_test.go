package inventory_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
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
	"rdma_exporter/test/running"
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
	// slow is the time that reading each table, or the one of slowType, takes before its first row, and rowTime
	// before each row.
	slow, rowTime time.Duration
	slowType      restrack.Type
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
	if k.slowType == 0 || k.slowType == t {
		time.Sleep(k.slow)
	}
	objects := k.objects[t]
	if skip := k.skips[t]; skip != nil {
		objects = objects[skip(k.dumps[t]):]
	}
	for _, o := range objects {
		o.Type = t
		time.Sleep(k.rowTime)
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
	// memlocks and controllers count the questions.
	memlocks, controllers int
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
	p.memlocks++
	if p.private[pid] {
		return owner.Memlock{}, syscall.EACCES
	}
	return owner.Memlock{Pinned: int64(pid), Locked: 1, Limit: -1}, nil
}

func (p *people) RDMAController(cgroup string) ([]owner.CgroupUse, error) {
	p.controllers++
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
		running.Check(t, inventory.Run(t.Context(), o))
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

// wantList compares a list with its items, as fmt prints them.
func wantList(t *testing.T, what string, list any, want string) {
	t.Helper()
	got := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(list), "["), "]")
	if got != strings.Join(strings.Fields(want), " ") {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// counts returns the numbers of types: "ctx 1 pd 2".
func counts(t *testing.T, text string) (all []state.TypeCount) {
	t.Helper()
	for words := range slices.Chunk(strings.Fields(text), 2) {
		n := running.Must(strconv.ParseInt(words[1], 10, 64))(t)
		all = append(all, state.TypeCount{Type: words[0], Objects: n})
	}
	return all
}

// times returns n objects like o.
func times(n int, o restrack.Object) []restrack.Object {
	return slices.Repeat([]restrack.Object{o}, n)
}

// The following return an object with a field set.
func id(n uint32, o restrack.Object) restrack.Object {
	o.ID, o.HasID = n, true
	return o
}

func in(context uint32, o restrack.Object) restrack.Object {
	o.Context, o.HasContext = context, true
	return o
}

func of(domain uint32, o restrack.Object) restrack.Object {
	o.PD, o.HasPD = domain, true
	return o
}

func user(thread uint32) restrack.Object { return restrack.Object{Thread: thread} }

func qp(thread uint32, typ, state string) restrack.Object {
	return restrack.Object{Thread: thread, QPType: typ, QPState: state}
}

func cq(thread, entries uint32, users uint64) restrack.Object {
	return restrack.Object{Thread: thread, Entries: entries, HasEntries: true, Users: users, HasUsers: true}
}

// always fails each reading of a table.
func always(table restrack.Type, err error) map[restrack.Type]func(int) error {
	return map[restrack.Type]func(int) error{table: func(int) error { return err }}
}

// host is a device with objects of the processes 10 (large), 20, 30 and of the kernel.
func host() (*tables, *people) {
	kernel := restrack.Object{Kernel: true}
	mad, kernelCQ := qp(0, "gsi", "rts"), cq(0, 512, 0)
	mad.Kernel, kernelCQ.Kernel = true, true
	k := &tables{objects: map[restrack.Type][]restrack.Object{
		restrack.CTX: {user(10), user(20), user(30)},
		restrack.PD:  {user(10), kernel},
		restrack.CQ:  {cq(10, 64, 2), cq(10, 4096, 1), cq(20, 100, 0), kernelCQ},
		restrack.MR:  {{Thread: 1020, Length: 5}, {Thread: 20, Length: 1 << 62}},
		restrack.QP: slices.Concat(times(5, qp(10, "rc", "rts")), times(3, qp(1010, "ud", "init")), []restrack.Object{
			qp(20, "rc", "err"), qp(2020, "rc", "err"), qp(30, "rc", "rts"), qp(40, "rc", "rts"), mad,
		}),
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
	kernel := qp(0, "rc", "err")
	kernel.Kernel = true
	k.objects[restrack.QP] = append(k.objects[restrack.QP], qp(50, "rc", "err"), qp(1050, "rc", "sqe"),
		qp(2050, "rc", "err"), qp(50, "rc", "rts"), qp(40, "rc", "err"), qp(0, "rc", "err"), kernel)
	for own, want := range map[string]int64{"rdma_exporter": 4, "": 1, "storage": 3, "nobody": 1} {
		run := take(t, k, p, func(o *inventory.Options) { o.Own = own })
		if run.Inventory == nil || run.Inventory.TransientErrors != want {
			t.Errorf("own %q: got %+v, want %d transient errors", own, run.Inventory, want)
		}
	}
}

// TestExporterHoldsFew verifies that no process hides behind the exporter, or behind its name, more
// objects than a probe holds.
func TestExporterHoldsFew(t *testing.T) {
	k, p := host()
	p.all[50], p.parents = owner.Identity{PID: 50, Comm: "rdma_exporter"}, map[int]int{50: 2}
	p.all[60] = owner.Identity{PID: 60, Comm: "rdma_exporter"}
	k.objects[restrack.QP] = nil
	for range 500 {
		k.objects[restrack.QP] = append(k.objects[restrack.QP], qp(50, "rc", "err"), qp(60, "rc", "err"))
	}
	run := take(t, k, p, func(o *inventory.Options) { o.Own, o.Exporter = "rdma_exporter", 2 })
	if run.Inventory == nil {
		t.Fatal(run.Error)
	}
	wantList(t, "queue pairs", run.Inventory.QueuePairs, "{rc err 744}")
	if n := run.Inventory.TransientErrors; n != 0 {
		t.Errorf("%d more are left out", n)
	}
	for _, o := range run.Inventory.Objects {
		if o.Type == "qp" && o.Owner == state.OwnerExporter && o.Objects != 256 {
			t.Errorf("%d queue pairs count as the exporter's, want 256", o.Objects)
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
	wantList(t, "objects", i.Objects, `
		{cm_id user 1} {cm_id kernel 0} {cq user 3} {cq kernel 1} {ctx user 3} {ctx kernel 0}
		{mr user 2} {mr kernel 0} {pd user 1} {pd kernel 1} {qp user 12} {qp kernel 1} {srq user 0} {srq kernel 0}`)
	wantList(t, "queue pairs", i.QueuePairs, "{gsi rts 1} {rc err 2} {rc rts 7} {ud init 3}")
	wantList(t, "entries", i.CQEntries, "{user 4260} {kernel 512}")
	wantEqual(t, "bytes", i.MRBytes, []state.OwnerSum{{Owner: "user", Sum: 1<<40 + 5}, {Owner: "kernel"}})
	// 4096 entries for one use of at most 2048, and 100 for none. The kernel's own do not count.
	wantEqual(t, "unfillable", i.OversizedCQs, &state.CQSum{Objects: 2, Entries: 4196, Largest: 4096, PID: 10})
	pinned := func(n int64) *state.Memlock { return &state.Memlock{Pinned: n, Locked: 1, Limit: -1} }
	wantEqual(t, "owners", i.Owners, []state.Owner{
		{
			PID: 10, Comm: "trainer", Cgroup: "/kubepods/a", ContainerID: "c10", PodUID: "p10",
			Objects: counts(t, "ctx 1 pd 1 cq 2 qp 8"), Memlock: pinned(10),
		},
		{
			PID: 20, Comm: "storage", Cgroup: "/kubepods/a", ContainerID: "c10", PodUID: "p10",
			Objects: counts(t, "ctx 1 cq 1 mr 2 qp 2"), Memlock: pinned(20),
		},
		{PID: 30, Comm: "odd", Cgroup: "/", Objects: counts(t, "cm_id 1"), Memlock: pinned(30)},
	})
	// Process 30 is the third of ctx and of qp, and 40 has ended.
	wantList(t, "others", i.Others, "{ctx 1} {qp 2}")
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
		wantList(t, "ownerless", i.Ownerless, "{ctx 2} {pd 2} {cq 2} {qp 1}")
		wantList(t, "orphans", i.Orphans, "{2 [{ctx 1} {pd 1} {cq 2} {qp 1}]} {3 [{ctx 1} {pd 1}]}")
		wantEqual(t, "owners", i.Owners, []state.Owner{{
			PID: 10, Comm: "worker", Contexts: []uint32{1}, Memlock: &state.Memlock{Pinned: 10, Locked: 1, Limit: -1},
			Objects: counts(t, "ctx 1 pd 1 qp 2"),
		}})
		// Objects that cannot be traced to a context are not ownerless.
		wantList(t, "untraced", i.Untraced, "{cm_id 1} {qp 1}")
		wantList(t, "others", i.Others, "")
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
	theirs := func(thread uint32) restrack.Object { return of(52, qp(thread, "rc", "rts")) }
	kernel := restrack.Object{Kernel: true, QPType: "gsi", QPState: "rts"}
	objects := map[restrack.Type][]restrack.Object{
		restrack.CTX: {id(1, user(21)), id(2, user(30))},
		restrack.PD:  {in(1, id(51, user(21))), in(2, id(52, user(30)))},
		restrack.CQ:  {in(1, cq(21, 4096, 0)), in(2, cq(30, 128, 1))},
		// Of one of them the thread has ended.
		restrack.MR: {of(51, restrack.Object{Length: 1 << 20}), of(52, restrack.Object{Length: 4096, Thread: 30})},
		restrack.QP: slices.Concat(
			[]restrack.Object{kernel, of(51, qp(1021, "rc", "err")), of(51, qp(21, "rc", "err"))},
			times(4000, theirs(30)), []restrack.Object{theirs(22), theirs(31)}),
	}
	options := func(o *inventory.Options) {
		o.Exporter, o.Own, o.MaxObjects, o.Owners, o.MaxFill = 2, "rdma_exporter", 10000, 10, 128
	}
	i := take(t, &tables{objects: objects}, family(), options).Inventory
	wantList(t, "objects", i.Objects, `{cm_id user 0} {cm_id kernel 0}
		{cq user 1} {cq kernel 0} {cq exporter 1} {ctx user 1} {ctx kernel 0} {ctx exporter 1}
		{mr user 1} {mr kernel 0} {mr exporter 1} {pd user 1} {pd kernel 0} {pd exporter 1}
		{qp user 4002} {qp kernel 1} {qp exporter 2} {srq user 0} {srq kernel 0}`)
	wantList(t, "queue pairs", i.QueuePairs, "{gsi rts 1} {rc rts 4002}")
	wantList(t, "entries", i.CQEntries, "{user 128} {kernel 0}")
	wantList(t, "bytes", i.MRBytes, "{user 4096} {kernel 0}")
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
		tables tables
		want   string
	}{
		"time that is over":  {tables{blocks: restrack.QP}, "{qp unknown 4003} {qp exporter 2}"},
		"a table that fails": {tables{fails: always(restrack.QP, syscall.EIO)}, "{qp unknown 4003} {qp exporter 2}"},
		"fewer than were seen": {
			tables{blocks: restrack.QP, counts: map[restrack.Type]uint64{restrack.QP: 1}},
			"{qp unknown 0} {qp exporter 2}",
		},
	} {
		tt.tables.objects = objects
		i = take(t, &tt.tables, family(), options).Inventory
		wantList(t, name, queuePairs(i), tt.want)
	}
}

// TestEndedMeanwhile verifies that objects are not counted if their process ended after the table
// was read. They are counted if the process is hidden, or if only one of its threads ended.
func TestEndedMeanwhile(t *testing.T) {
	const ended, hidden, ending = 999, 998, 21
	k := &tables{
		objects: map[restrack.Type][]restrack.Object{
			restrack.CTX: {id(1, user(ended)), id(2, user(hidden)), id(3, user(ending))},
			restrack.PD:  {id(51, in(1, user(ended))), id(52, in(2, user(hidden)))},
			restrack.QP: slices.Concat(
				times(3, of(51, qp(ended, "rc", "rts"))),
				times(2, of(53, qp(ended, "rc", "rts"))), // The domain was not in its table yet.
				times(1100, of(52, qp(hidden, "rc", "rts"))),
			),
		},
		closed: map[uint32]bool{1: true, 3: true},
	}
	who := family()
	who.ends = map[int]bool{ending: true}
	i := take(t, k, who, func(o *inventory.Options) { o.MaxObjects = 2000 }).Inventory
	wantList(t, "queue pairs", i.QueuePairs, "{rc rts 1100}")
	wantList(t, "others", i.Others, "{ctx 1} {pd 1} {qp 1100}")
	if i.Owners != nil || i.Ownerless != nil || i.Incomplete != nil {
		t.Errorf("owners %v, ownerless %v, incomplete %v", i.Owners, i.Ownerless, i.Incomplete)
	}
}

// TestLeft verifies that objects left in a context are found, also through protection domains.
func TestLeft(t *testing.T) {
	none := restrack.Object{}
	k := &tables{objects: map[restrack.Type][]restrack.Object{
		restrack.CTX: {id(7, none), id(8, user(10))},
		restrack.PD:  {in(7, id(70, none)), in(9, id(90, none))},
		restrack.CQ:  {in(8, none)},
		restrack.MR:  {of(70, none), of(70, none), of(80, none)},
		restrack.QP:  {of(70, none), of(90, restrack.Object{Kernel: true})},
	}}
	p := &people{all: map[int]owner.Identity{10: {}}}
	i := take(t, k, p, func(o *inventory.Options) {
		o.LeakCandidates = []state.Context{
			{Index: index, ID: 7}, {Index: index, ID: 9}, {Index: index, ID: 11}, {Index: index + 1, ID: 8},
		}
	}).Inventory
	wantList(t, "left", i.Leftover, "{{3 7} ctx 1} {{3 7} mr 2} {{3 7} pd 1} {{3 7} qp 1} {{3 9} pd 1}")
}

// TestLeftIsConfirmed verifies that a context that a dump skipped is asked for, and that an error
// of the kernel proves nothing.
func TestLeftIsConfirmed(t *testing.T) {
	look := func(o *inventory.Options) {
		o.LeakCandidates = []state.Context{{Index: index, ID: 7}}
		o.Budget = 20 * time.Millisecond
	}
	for name, tt := range map[string]struct {
		tables           tables
		left, incomplete string
	}{
		"skipped": {
			tables{passedOver: map[restrack.Type][]restrack.Object{restrack.CTX: {{ID: 7, HasID: true}}}}, "{{3 7} ctx 1}", "",
		},
		"an error": {tables{getErr: syscall.EIO}, "", "{ctx failed context 7: input/output error}"},
		// A table is incomplete for one reason.
		"interrupted, too": {
			tables{getErr: syscall.EIO, fails: always(restrack.CTX, restrack.ErrInterrupted)},
			"", "{ctx failed context 7: input/output error}",
		},
		// The time that other tables take does not matter.
		"no time": {tables{blocks: restrack.QP}, "", "{qp timeout of 0 objects 0 were looked at: 20ms were over}"},
	} {
		i := take(t, &tt.tables, new(people), look).Inventory
		wantList(t, name+": left", i.Leftover, tt.left)
		wantList(t, name+": incomplete", i.Incomplete, tt.incomplete)
	}
	run := take(t, &tables{getErr: syscall.ENODEV}, new(people), look)
	if !strings.Contains(run.Error, "context 7: no such device") {
		t.Errorf("error %q", run.Error)
	}
}

// TestBudget verifies that a table that is not read is counted, and that all others are read.
func TestBudget(t *testing.T) {
	type change = func(*tables, *inventory.Options)
	fails := func(err error, attempts int) change {
		return func(k *tables, _ *inventory.Options) {
			k.fails = map[restrack.Type]func(int) error{restrack.QP: func(attempt int) error {
				if attempt > attempts {
					return nil
				}
				return err
			}}
		}
	}
	skips := func(f func(attempt int) int) change {
		return func(k *tables, _ *inventory.Options) { k.skips = map[restrack.Type]func(int) int{restrack.QP: f} }
	}
	const (
		counted = "{qp unknown 13}"
		all     = "{qp user 12} {qp kernel 1}"
	)
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		change  change
		reason  state.IncompleteReason
		detail  string
		objects string // of queue pairs
		dumps   int    // of them
	}{
		"more than allowed, in time": {func(_ *tables, o *inventory.Options) { o.MaxObjects = 12 }, "", "", all, 1},
		"more than allowed, slow": {
			func(k *tables, o *inventory.Options) {
				o.MaxObjects, k.slow, k.slowType = 12, o.Budget/4+1, restrack.QP
			},
			state.IncompleteMaxObjects, "of 13 objects 12 were looked at: beyond 12, reading ends after 15s", counted, 1,
		},
		"as many as allowed, slow": {
			func(k *tables, o *inventory.Options) {
				o.MaxObjects, k.slow, k.slowType = 13, o.Budget/4+1, restrack.QP
			}, "", "", all, 1,
		},
		"more than were counted": {
			func(k *tables, o *inventory.Options) {
				o.MaxObjects, k.slow, k.slowType = 12, o.Budget/4+1, restrack.QP
				k.counts = map[restrack.Type]uint64{}
			},
			state.IncompleteMaxObjects, "of 12 objects 12 were looked at", "", 1,
		},
		"time": {
			func(k *tables, o *inventory.Options) { o.Budget = 20 * time.Millisecond; k.blocks = restrack.QP },
			state.IncompleteTimeout, "of 13 objects 13 were looked at: 20ms were over", counted, 1,
		},
		"no such table": {
			fails(fmt.Errorf("RES_QP_GET: %w", restrack.ErrNotSupported), 9),
			state.IncompleteNotSupported, "RES_QP_GET", counted, 1,
		},
		"refused":            {fails(refused, 9), state.IncompleteFailed, "refused", counted, 3},
		"refused once":       {fails(refused, 1), "", "", all, 2},
		"always interrupted": {fails(restrack.ErrInterrupted, 9), state.IncompleteInterrupted, "changed", all, 3},
		"interrupted once":   {fails(restrack.ErrInterrupted, 1), "", "", all, 2},
		"some skipped once":  {skips(func(attempt int) int { return max(0, 2-attempt) }), "", "", all, 2},
		"some always skipped": {
			skips(func(attempt int) int { return attempt }),
			state.IncompleteInterrupted, "only 10 of some 13 objects", "{qp user 9} {qp kernel 1}", 3,
		},
		"the same never shown": {skips(func(int) int { return 2 }), "", "", "{qp user 10} {qp kernel 1}", 2},
	} {
		t.Run(name, func(t *testing.T) {
			k, p := host()
			run := take(t, k, p, func(o *inventory.Options) { tc.change(k, o) })
			if run.Error != "" || run.Inventory == nil {
				t.Fatalf("error %q, inventory %+v", run.Error, run.Inventory)
			}
			qps := queuePairs(run.Inventory)
			wantList(t, "queue pairs", qps, tc.objects)
			if others := len(run.Inventory.Objects) - len(qps); others != 12 {
				t.Errorf("%d counts of other types, want 12", others)
			}
			wantEqual(t, "readings", k.dumps[restrack.QP], tc.dumps)
			if tc.reason == "" {
				wantEqual(t, "incomplete", run.Inventory.Incomplete, []state.Incomplete(nil))
				return
			}
			l := run.Inventory.Incomplete
			if len(l) != 1 || l[0].Type != "qp" || l[0].Reason != tc.reason || !strings.Contains(l[0].Detail, tc.detail) {
				t.Errorf("incomplete %+v, want qp, %s, %q", l, tc.reason, tc.detail)
			}
		})
	}
}

// TestLargeTable verifies that the largest owners of a table with more objects than are always read are
// named: with their counts if there is time for all, with what their completion queues are used for if
// there is not, and otherwise with what was read.
func TestLargeTable(t *testing.T) {
	const few, leak = 500, 10000
	pair := func(pid, context uint32) restrack.Object { return of(50+context, qp(pid, "rc", "rts")) }
	domains := []restrack.Object{in(1, id(51, user(10))), in(2, id(52, user(20))), in(3, id(53, restrack.Object{}))}
	pairs := slices.Concat(times(few, pair(10, 1)), times(leak, pair(20, 2)), times(3, of(53, qp(0, "rc", "err"))))
	for name, tc := range map[string]struct {
		rowTime                            time.Duration
		queues                             []restrack.Object
		owners, others, ownerless, partial string
	}{
		"in time": {owners: "{10 500} {20 10000}", ownerless: "{pd 1} {qp 3}"},
		"too slow, with completion queues": {
			rowTime: time.Millisecond,
			queues:  []restrack.Object{in(1, cq(10, 64, 2*few)), in(2, cq(20, 64, leak)), in(2, cq(1020, 64, leak)), in(3, cq(0, 64, 6))},
			owners:  "{10 500} {20 10000}", ownerless: "{pd 1} {cq 1} {qp 3}",
			partial: "{qp max_objects of 10503 objects 1000 were looked at: beyond 100, reading ends after 1s}",
		},
		"too slow": {
			rowTime: time.Millisecond, owners: "{10 500} {20 500}", others: "{qp 9503}", ownerless: "{pd 1}",
			partial: "{qp max_objects of 10503 objects 1000 were looked at: beyond 100, reading ends after 1s}",
		},
	} {
		k := &tables{rowTime: tc.rowTime, objects: map[restrack.Type][]restrack.Object{
			restrack.PD: domains, restrack.CQ: tc.queues, restrack.QP: pairs,
		}}
		p := &people{all: map[int]owner.Identity{10: {Comm: "trainer"}, 20: {Comm: "leaker"}}}
		i := take(t, k, p, func(o *inventory.Options) { o.MaxObjects, o.Budget = 100, 4*time.Second }).Inventory
		var owners []string
		for _, o := range i.Owners {
			owners = append(owners, fmt.Sprintf("{%d %d}", o.PID, state.CountOf(o.Objects, "qp")))
		}
		wantList(t, name+": owners", owners, tc.owners)
		wantList(t, name+": others", i.Others, tc.others)
		wantList(t, name+": ownerless", i.Ownerless, tc.ownerless)
		wantList(t, name+": incomplete", i.Incomplete, tc.partial)
		if n := state.CountOf(i.Untraced, "qp"); n != 0 || i.Count("qp") != few+leak+3 {
			t.Errorf("%s: %d queue pairs, %d untraced", name, i.Count("qp"), n)
		}
	}
}

func queuePairs(i *state.Inventory) []state.ObjectCount {
	return slices.DeleteFunc(slices.Clone(i.Objects), func(o state.ObjectCount) bool { return o.Type != "qp" })
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
	err := inventory.Run(ctx, inventory.Options{
		Tables: k, People: p, Device: "rxe0", Config: inventory.Config{Budget: time.Hour, MaxObjects: 1000}, Out: writer,
	})
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
	if len(i.Incomplete) != 7 || len(i.Objects) != 7 || !i.PIDsVisible || queuePairs(i)[0].Objects != 13 {
		t.Errorf("inventory %+v, want the counts", i)
	}
}

type writing func([]byte) (int, error)

func (w writing) Write(b []byte) (int, error) { return w(b) }

// TestErrors verifies that a missing device is an error.
func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		device string
		tables tables
		want   string
	}{
		"devices":  {"rxe0", tables{devicesErr: syscall.EPERM}, "list the devices: operation not permitted"},
		"another":  {"mlx5_9", tables{}, "find the device: no such device"},
		"summary":  {"rxe0", tables{summaryErr: syscall.ENODEV}, "count the objects: no such device"},
		"vanished": {"rxe0", tables{fails: always(restrack.PD, syscall.ENODEV)}, "read the table of pd: no such device"},
	} {
		run := take(t, &tc.tables, new(people), func(o *inventory.Options) { o.Device = tc.device })
		if counted := name == "vanished"; run.Error != tc.want || (run.Inventory != nil) != counted {
			t.Errorf("%s: error %q, want %q; inventory %v", name, run.Error, tc.want, run.Inventory)
		}
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
	wantList(t, "others", i.Others, "{ctx 3} {pd 1} {cq 3} {mr 2} {cm_id 1} {qp 12}")
}

// TestLargestNamedFirst verifies that a spent budget leaves the small owners unnamed, not the large.
func TestLargestNamedFirst(t *testing.T) {
	k := &tables{objects: map[restrack.Type][]restrack.Object{
		restrack.CQ: times(3, user(10)),
		restrack.QP: append(times(2, user(10)), times(4, user(20))...),
		restrack.MR: times(5, user(20)),
	}}
	p := &people{all: map[int]owner.Identity{10: {Comm: "small"}, 20: {Comm: "large"}}, slow: time.Hour}
	names := make(map[int]string)
	for _, o := range take(t, k, p, nil).Inventory.Owners {
		names[o.PID] = o.Comm
	}
	wantEqual(t, "names", names, map[int]string{10: "", 20: "large"})
}

// TestNames verifies that names from outside are printable, and that only long ones are truncated,
// between characters.
func TestNames(t *testing.T) {
	for cgroup, want := range map[string]string{
		strings.Repeat("x", 256):             strings.Repeat("x", 256),
		strings.Repeat("x", 257):             strings.Repeat("x", 253) + "…",
		"/" + strings.Repeat("é", 128):       "/" + strings.Repeat("é", 126) + "…",
		strings.Repeat("é", 129):             strings.Repeat("é", 126) + "…",
		"/a\nb/" + strings.Repeat("é", 3000): "/a\uFFFDb/" + strings.Repeat("é", 123) + "…",
	} {
		k, p := host()
		p.all[10] = owner.Identity{PID: 10, Comm: "two\nlines", Cgroup: cgroup}
		// It is asked for by its real path.
		p.uses = map[string][]owner.CgroupUse{cgroup: {{Device: "rxe0", Resource: "hca_object", Current: 3, Limit: 5}}}
		i := take(t, k, p, nil).Inventory
		if o := i.Owners[0]; o.Comm != "two\uFFFDlines" || o.Cgroup != want {
			t.Errorf("%q: comm %q, cgroup %q", cgroup, o.Comm, o.Cgroup)
		}
		if len(i.Cgroups) != 1 || i.Cgroups[0].Current != 3 || i.Cgroups[0].Cgroup != want {
			t.Errorf("%q: cgroups %+v", cgroup, i.Cgroups)
		}
	}
}

// TestPrivate verifies that an owner that cannot be read is still named by its number.
func TestPrivate(t *testing.T) {
	k, p := host()
	p.private = map[int]bool{10: true, 1010: true}
	i := take(t, k, p, nil).Inventory
	wantEqual(t, "the first owner", i.Owners[0], state.Owner{PID: 10, Objects: counts(t, "ctx 1 pd 1 cq 2 qp 5")})
}

// TestLeftOut verifies that owners and cgroups that are not wanted are not read.
func TestLeftOut(t *testing.T) {
	for name, tc := range map[string]struct {
		config func(*inventory.Config)
		owners bool
	}{
		"cgroups": {func(c *inventory.Config) { c.NoCgroups = true }, true},
		"owners":  {func(c *inventory.Config) { c.NoOwners = true }, false},
	} {
		k, p := host()
		i := take(t, k, p, func(o *inventory.Options) { tc.config(&o.Config) }).Inventory
		if len(i.Owners) > 0 != tc.owners || p.memlocks > 0 != tc.owners {
			t.Errorf("%s left out: %d owners, asked for %d times", name, len(i.Owners), p.memlocks)
		}
		if len(i.Cgroups) > 0 || p.controllers > 0 {
			t.Errorf("%s left out: %d uses of cgroups, asked for %d times", name, len(i.Cgroups), p.controllers)
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

// TestLargest verifies that the first of equally oversized completion queues is named, and that a
// queue that its uses just fill is not oversized.
func TestLargest(t *testing.T) {
	k := &tables{objects: map[restrack.Type][]restrack.Object{
		restrack.CQ: {cq(10, 200, 2), cq(20, 201, 2), cq(30, 201, 2)},
	}}
	p := &people{all: map[int]owner.Identity{10: {}, 20: {}, 30: {}}}
	i := take(t, k, p, func(o *inventory.Options) { o.MaxFill = 100 }).Inventory
	if u := i.OversizedCQs; u == nil || u.PID != 20 || u.Objects != 2 || u.Largest != 201 || u.Entries != 402 {
		t.Errorf("got %+v", u)
	}
}

// TestTooManyThreads verifies that objects of threads beyond maxTracked count as those of others.
func TestTooManyThreads(t *testing.T) {
	const threads = 1<<16 + 3
	k := &tables{objects: make(map[restrack.Type][]restrack.Object)}
	for n := range uint32(threads) {
		k.objects[restrack.CMID] = append(k.objects[restrack.CMID], user(n+1))
	}
	i := take(t, k, new(people), func(o *inventory.Options) { o.MaxObjects = threads }).Inventory
	wantEqual(t, "others", i.Others, []state.TypeCount{{Type: "cm_id", Objects: threads}})
}
