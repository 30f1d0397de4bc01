package wire_test

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// inventory is a sane one that says something of everything.
func inventory() state.Inventory {
	return state.Inventory{
		Index: 3, PIDsVisible: true,
		Objects: []state.ObjectCount{
			{Type: "qp", Owner: state.OwnerUser, Objects: 8},
			{Type: "qp", Owner: state.OwnerKernel, Objects: 1},
			{Type: "mr", Owner: state.OwnerUnknown, Objects: 70},
		},
		PassingErrors: 1,
		QueuePairs:    []state.QueuePairCount{{Type: "rc", State: "rts", Objects: 8}, {Type: "gsi", State: "rts", Objects: 1}},
		CQEntries:     []state.OwnerSum{{Owner: state.OwnerUser, Sum: 4096}},
		MRBytes:       []state.OwnerSum{{Owner: state.OwnerUser, Sum: 1 << 60}},
		UnfillableCQs: &state.CQSum{Objects: 1, Entries: 4096, Largest: 4096, PID: 12},
		Owners: []state.Owner{{
			PID: 12, Comm: "tr\"ainer\xff", Cgroup: "/kubepods.slice/x", ContainerID: "abc", PodUID: "def",
			Objects: []state.TypeCount{{Type: "qp", Objects: 8}},
			Memlock: &state.Memlock{Pinned: 4096, Limit: -1},
		}},
		Others:     []state.TypeCount{{Type: "qp", Objects: 2}},
		Ownerless:  []state.TypeCount{{Type: "qp", Objects: 1}},
		Untraced:   []state.TypeCount{{Type: "cm_id", Objects: 3}},
		Left:       []state.Left{{Context: state.Context{Index: 3, ID: 77}, Type: "qp", Objects: 1}},
		Cgroups:    []state.CgroupUse{{Cgroup: "/kubepods.slice/x", Resource: "hca_object", Current: 12, Limit: -1}},
		Incomplete: []state.Incomplete{{Type: "mr", Reason: state.IncompleteMaxObjects, Detail: "70 are more than 50"}},
	}
}

// stream returns what a child writes with write, and an end.
func stream(t *testing.T, write func(*wire.Writer) error) io.Reader {
	t.Helper()
	var sb strings.Builder
	w := wire.NewWriter(&sb)
	if err := write(w); err != nil {
		t.Fatal(err)
	}
	if err := w.End(wire.End{}); err != nil {
		t.Fatal(err)
	}
	return strings.NewReader(sb.String())
}

// TestInventory makes sure that what an inventory writes is what is read.
func TestInventory(t *testing.T) {
	want := inventory()
	var run state.Run
	err := wire.Read(stream(t, func(w *wire.Writer) error {
		return errors.Join(w.Context(state.Context{Index: 3, ID: 77}), w.Inventory(state.Inventory{Index: 9}), w.Inventory(want))
	}), &run)
	if err != nil {
		t.Fatal(err)
	}
	want.Owners[0].Comm = "tr\"ainer\uFFFD" // JSON has nothing but UTF-8
	if !reflect.DeepEqual(*run.Inventory, want) {
		t.Errorf("read %+v, want %+v", *run.Inventory, want)
	}
	if run.Context == nil || *run.Context != (state.Context{Index: 3, ID: 77}) {
		t.Errorf("read the context %+v", run.Context)
	}
	if kept := run.Kept(); kept.Inventory != nil || kept.Context == nil {
		t.Errorf("kept %+v of a run, want all but the inventory", kept)
	}
}

// TestInventoryRefused makes sure that what no inventory in its right mind writes is
// not taken.
func TestInventoryRefused(t *testing.T) {
	for name, spoil := range map[string]func(*state.Inventory){
		"unknown type":         func(i *state.Inventory) { i.Objects[0].Type = "teapot" },
		"unknown kind":         func(i *state.Inventory) { i.Objects[0].Owner = "nobody" },
		"negative count":       func(i *state.Inventory) { i.Objects[0].Objects = -1 },
		"count twice":          func(i *state.Inventory) { i.Objects[1] = i.Objects[0] },
		"huge count":           func(i *state.Inventory) { i.Objects[0].Objects = 1 << 50 },
		"odd state":            func(i *state.Inventory) { i.QueuePairs[0].State = "rts\n" },
		"queue pairs twice":    func(i *state.Inventory) { i.QueuePairs[1] = i.QueuePairs[0] },
		"negative errors":      func(i *state.Inventory) { i.PassingErrors = -1 },
		"unknown sum":          func(i *state.Inventory) { i.CQEntries[0].Owner = "" },
		"negative sum":         func(i *state.Inventory) { i.MRBytes[0].Sum = -1 },
		"negative CQs":         func(i *state.Inventory) { i.UnfillableCQs.Entries = -1 },
		"no pid":               func(i *state.Inventory) { i.Owners[0].PID = 0 },
		"owner twice":          func(i *state.Inventory) { i.Owners = append(i.Owners, i.Owners[0]) },
		"long name":            func(i *state.Inventory) { i.Owners[0].Comm = strings.Repeat("x", 5000) },
		"name with zero":       func(i *state.Inventory) { i.Owners[0].Cgroup = "/a\x00b" },
		"owner's type twice":   func(i *state.Inventory) { i.Owners[0].Objects = append(i.Owners[0].Objects, i.Owners[0].Objects...) },
		"negative memory":      func(i *state.Inventory) { i.Owners[0].Memlock.Pinned = -1 },
		"odd limit":            func(i *state.Inventory) { i.Owners[0].Memlock.Limit = -2 },
		"others of no type":    func(i *state.Inventory) { i.Others[0].Type = "" },
		"others twice":         func(i *state.Inventory) { i.Others = append(i.Others, i.Others[0]) },
		"untraced twice":       func(i *state.Inventory) { i.Untraced = append(i.Untraced, i.Untraced[0]) },
		"ownerless of no type": func(i *state.Inventory) { i.Ownerless[0].Type = "" },
		"left twice":           func(i *state.Inventory) { i.Left = append(i.Left, i.Left[0]) },
		"left of no type":      func(i *state.Inventory) { i.Left[0].Type = "ah" },
		"odd resource":         func(i *state.Inventory) { i.Cgroups[0].Resource = "a\tb" },
		"odd cgroup limit":     func(i *state.Inventory) { i.Cgroups[0].Limit = -2 },
		"cgroup twice":         func(i *state.Inventory) { i.Cgroups = append(i.Cgroups, i.Cgroups[0]) },
		"unknown reason":       func(i *state.Inventory) { i.Incomplete[0].Reason = "tired" },
		"incomplete twice":     func(i *state.Inventory) { i.Incomplete = append(i.Incomplete, i.Incomplete[0]) },
		"too many owners":      func(i *state.Inventory) { i.Owners = make([]state.Owner, 5000) },
	} {
		t.Run(name, func(t *testing.T) {
			i := inventory()
			spoil(&i)
			var run state.Run
			err := wire.Read(stream(t, func(w *wire.Writer) error { return w.Inventory(i) }), &run)
			var line *wire.LineError
			if !errors.As(err, &line) || line.Line != 1 {
				t.Errorf("read with %v, want an error of line 1", err)
			}
			if run.Inventory != nil {
				t.Errorf("took %+v", run.Inventory)
			}
		})
	}
	twice := map[string]func(w *wire.Writer) error{
		"context": func(w *wire.Writer) error { return w.Context(state.Context{}) },
	}
	for name, write := range twice {
		t.Run("two of "+name, func(t *testing.T) {
			var run state.Run
			err := wire.Read(stream(t, func(w *wire.Writer) error { return errors.Join(write(w), write(w)) }), &run)
			var line *wire.LineError
			if !errors.As(err, &line) || line.Line != 2 {
				t.Errorf("read with %v, want an error of line 2", err)
			}
		})
	}
}

// TestLargestInventory makes sure that what an inventory of the largest host can tell is
// read, in however long names.
func TestLargestInventory(t *testing.T) {
	const owners, contexts = 100, 256
	var i state.Inventory
	name := strings.Repeat("\u2028", 256/3) // which takes most room of all
	for pid := range owners * len(state.ResourceTypes()) {
		o := state.Owner{
			PID: pid + 1, Comm: strings.Repeat("\uFFFD", 16), Cgroup: name, ContainerID: strings.Repeat("f", 64), PodUID: strings.Repeat("e", 36),
			Memlock: &state.Memlock{Pinned: 1 << 60, Locked: 1 << 60, Limit: 1 << 60},
		}
		for _, typ := range state.ResourceTypes() {
			o.Objects = append(o.Objects, state.TypeCount{Type: typ, Objects: 1 << 40})
		}
		i.Owners = append(i.Owners, o)
		for _, resource := range []string{"hca_handle", "hca_object"} {
			i.Cgroups = append(i.Cgroups, state.CgroupUse{
				Cgroup: fmt.Sprint(name, pid), ContainerID: o.ContainerID, PodUID: o.PodUID, Resource: resource, Current: 1 << 30, Limit: 1 << 30,
			})
		}
	}
	for id := range contexts {
		for _, typ := range state.ResourceTypes() {
			i.Left = append(i.Left, state.Left{Context: state.Context{Index: 1 << 30, ID: 1<<31 + uint32(id)}, Type: typ, Objects: 1 << 40})
		}
	}
	var run state.Run
	if err := wire.Read(stream(t, func(w *wire.Writer) error { return w.Inventory(i) }), &run); err != nil {
		t.Fatal(err)
	}
	if len(run.Inventory.Owners) != owners*7 || len(run.Inventory.Left) != contexts*7 {
		t.Errorf("%d owners, %d left", len(run.Inventory.Owners), len(run.Inventory.Left))
	}
}
