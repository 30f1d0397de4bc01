package simulated_test

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"syscall"
	"testing"

	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/inventory/simulated"
	"rdma_exporter/internal/owner"
	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
	profile "rdma_exporter/verbs/simulated"
)

var (
	_ inventory.Tables = (*simulated.Host)(nil)
	_ inventory.People = (*simulated.Host)(nil)
)

const index = 1

func host(t *testing.T) *simulated.Host {
	t.Helper()
	return simulated.New(parse(t, `
holders:
  - {kernel: ib_core, objects: {qp: 2}}
  - {pid: 4711, comm: trainer, objects: {ctx: 2, pd: 3, cq: 2, qp: 7, mr: 2, srq: 2, cm_id: 2}, mr_bytes: 4611686018427387904}
  - {dead: true, objects: {mr: 1}}
leak: {objects: {srq: 1}}
`), "sim0", noon(), []state.Context{simulated.Context(5), simulated.Context(4)})
}

// TestTables verifies that the tables agree with each other. Objects that are counted are listed.
// Those that are listed can be asked for, have an id of their own, and belong to a listed object.
func TestTables(t *testing.T) {
	h := host(t)
	devices, err := h.Devices(t.Context())
	if err != nil || len(devices) != 1 || devices[0].Index != index || devices[0].Name != "sim0" {
		t.Fatalf("devices %+v, error %v", devices, err)
	}
	counts, err := h.Summary(t.Context(), index)
	if err != nil || len(counts) != 7 {
		t.Fatalf("counts %+v, error %v", counts, err)
	}
	rows := make(map[restrack.Type]map[uint32]restrack.Object)
	for i, typ := range restrack.Types() {
		rows[typ] = make(map[uint32]restrack.Object)
		if err := h.Dump(t.Context(), index, typ, func(o *restrack.Object) error {
			if _, taken := rows[typ][o.ID]; taken || !o.HasID || o.ID == 0 || o.Type != typ {
				t.Errorf("%s: id %d of %+v is taken: %t", typ, o.ID, o, taken)
			}
			rows[typ][o.ID] = *o
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if c := counts[i]; c.Name != typ.String() || c.Objects != uint64(len(rows[typ])) || c.Objects == 0 {
			t.Errorf("%d %s are counted and %d listed", c.Objects, c.Name, len(rows[typ]))
		}
		for id, want := range rows[typ] {
			got, err := h.Get(t.Context(), index, typ, id)
			if err != nil || got != want {
				t.Errorf("%s %d is %+v, error %v, want %+v", typ, id, got, err, want)
			}
		}
		for _, id := range []uint32{0, 1 << 20, math.MaxUint32} {
			if _, err := h.Get(t.Context(), index, typ, id); !errors.Is(err, syscall.ENOENT) {
				t.Errorf("%s %d: %v, want ENOENT", typ, id, err)
			}
		}
	}
	used := make(map[[2]uint32]bool)
	for typ, objects := range rows {
		for _, o := range objects {
			if o.Thread == 4711 {
				used[[2]uint32{o.Context, o.PD}] = true
			}
			context, domain := rows[restrack.CTX][o.Context], rows[restrack.PD][o.PD]
			switch {
			case o.Kernel && (o.HasContext || o.HasPD || o.Thread != 0):
				t.Errorf("%s of the kernel: %+v", typ, o)
			case o.HasContext && (context.Thread != o.Thread || !context.HasID),
				o.HasPD && (domain.Thread != o.Thread || !domain.HasID):
				t.Errorf("%s %+v in context %+v and domain %+v", typ, o, context, domain)
			case o.Kernel, typ == restrack.CTX, typ == restrack.CMID:
			case o.HasContext == o.HasPD:
				t.Errorf("%s %+v cannot be traced, or in two ways", typ, o)
			}
		}
	}
	// Two contexts and three domains, and what belongs to neither.
	if len(used) != 2+3+1 {
		t.Errorf("used by the process are %v", used)
	}
	if _, ok := rows[restrack.CTX][simulated.Context(5).ID]; !ok {
		t.Errorf("contexts %v, want that of the child 5, too", rows[restrack.CTX])
	}
}

func TestTablesErrors(t *testing.T) {
	h := host(t)
	ignore := func(*restrack.Object) error { return nil }
	_, summary := h.Summary(t.Context(), index+1)
	_, get := h.Get(t.Context(), index+1, restrack.QP, 1)
	dump := h.Dump(t.Context(), index+1, restrack.QP, ignore)
	for _, err := range []error{summary, get, dump} {
		if !errors.Is(err, syscall.ENODEV) {
			t.Errorf("another device: %v, want ENODEV", err)
		}
	}
	visited := 0
	if err := h.Dump(t.Context(), index, restrack.QP, func(*restrack.Object) error {
		visited++
		return fs.SkipAll
	}); err != fs.SkipAll || visited != 1 { //nolint:errorlint // as it is, not wrapped
		t.Errorf("error %v after %d objects", err, visited)
	}
	ctx, cancel := context.WithCancel(t.Context())
	visited = 0
	err := h.Dump(ctx, index, restrack.QP, func(*restrack.Object) error {
		visited++
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || visited != 1 {
		t.Errorf("error %v after %d objects, although there was no more time", err, visited)
	}
	if _, err := h.Summary(ctx, index); !errors.Is(err, context.Canceled) {
		t.Errorf("summary: %v, although there was no more time", err)
	}
}

func TestPeople(t *testing.T) {
	h := host(t)
	if all, err := h.SeesAllPIDs(); !all || err != nil {
		t.Errorf("sees all: %t, %v", all, err)
	}
	if pid, err := h.Process(4711); pid != 4711 || err != nil {
		t.Errorf("process %d, error %v", pid, err)
	}
	// Two regions of half of what can be counted, and a page.
	if m, err := h.Memlock(4711); err != nil || m != (owner.Memlock{Pinned: math.MaxInt64, Limit: -1}) {
		t.Errorf("memory in place %+v, error %v", m, err)
	}
	odd := simulated.New(parse(t, "holders: [{pid: 1, comm: !!binary /w==, cgroup: !!binary L/8=}]"), "sim0", noon(), nil)
	if id, err := odd.Identify(1); err != nil || id != (owner.Identity{PID: 1, Comm: "\uFFFD", Cgroup: "/\uFFFD"}) {
		t.Errorf("identity %+v, error %v", id, err)
	}
	for _, pid := range []int{0, -1, 4712, 1 << 40} {
		_, process := h.Process(pid)
		_, identify := h.Identify(pid)
		_, memlock := h.Memlock(pid)
		for _, err := range []error{process, identify, memlock} {
			if !errors.Is(err, owner.ErrGone) {
				t.Errorf("process %d: %v, want ErrGone", pid, err)
			}
		}
	}
}

func TestRDMAController(t *testing.T) {
	h := simulated.New(parse(t, `
holders:
  - {pid: 1, cgroup: /a, objects: {qp: 1, cm_id: 5}, rdma_max: {hca_handle: 0}}
  - {pid: 2, cgroup: /a, objects: {ctx: 3}}
  - {pid: 3, cgroup: /a/b, objects: {mr: 7}}
  - {pid: 4, cgroup: /ab, objects: {mr: 7}}
  - {dead: true, objects: {mr: 7}}
  - {kernel: ib_core, objects: {mr: 7}}
`), "sim0", noon(), nil)
	for cgroup, want := range map[string][]owner.CgroupUse{
		"/a": {
			{Device: "sim0", Resource: "hca_handle", Current: 1 + 3 + 1, Limit: 0},
			{Device: "sim0", Resource: "hca_object", Current: 3 + 8, Limit: -1},
		},
		"/a/b": nil, "/ab": nil, "/": nil, "": nil, "/nowhere": nil,
	} {
		got, err := h.RDMAController(cgroup)
		if err != nil {
			t.Errorf("%q: %v", cgroup, err)
		}
		wantEqual(t, cgroup, got, want)
	}
}

// TestVanished verifies that a removed device is in no table.
func TestVanished(t *testing.T) {
	gone := parse(t, "leak: {objects: {qp: 1}}")
	gone.Devices[0].Vanish = true
	for device, p := range map[string]*profile.Profile{"sim0": gone, "sim1": parse(t, "")} {
		run := take(t, simulated.New(p, device, noon(), []state.Context{simulated.Context(3)}), device, nil)
		if run.Error != "find the device: no such device" || run.Inventory != nil {
			t.Errorf("%s: error %q, inventory %v", device, run.Error, run.Inventory)
		}
	}
}
