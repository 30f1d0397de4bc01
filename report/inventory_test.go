package report_test

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"rdma_exporter/report"
)

// inventory is a sane one that says something of everything.
func inventory() report.Inventory {
	return report.Inventory{
		Index: 3, PIDsVisible: true,
		Summary: []report.TypeCount{{Type: "qp", Objects: 9}, {Type: "cq", Objects: 4}},
		Objects: []report.ObjectCount{
			{Type: "qp", Owner: report.OwnerUser, Objects: 8},
			{Type: "qp", Owner: report.OwnerKernel, Objects: 1},
			{Type: "mr", Owner: report.OwnerUnknown, Objects: 70},
		},
		QueuePairs:    []report.QueuePairCount{{Type: "rc", State: "rts", Objects: 8}, {Type: "gsi", State: "rts", Objects: 1}},
		CQEntries:     []report.OwnerSum{{Owner: report.OwnerUser, Sum: 4096}},
		MRBytes:       []report.OwnerSum{{Owner: report.OwnerUser, Sum: 1 << 60}},
		UnfillableCQs: &report.CQSum{Objects: 1, Entries: 4096, Largest: 4096, PID: 12},
		Owners: []report.Owner{{
			PID: 12, Comm: "tr\"ainer\xff", Cgroup: "/kubepods.slice/x", ContainerID: "abc", PodUID: "def",
			Objects: []report.TypeCount{{Type: "qp", Objects: 8}},
			Memlock: &report.Memlock{Pinned: 4096, Limit: -1},
		}},
		Others:     []report.OtherOwners{{Type: "qp", Owners: 2, Objects: 2}},
		Ownerless:  []report.TypeCount{{Type: "qp", Objects: 1}},
		Left:       []report.Left{{Context: report.Context{Index: 3, ID: 77}, Type: "qp", Objects: 1}},
		Cgroups:    []report.CgroupUse{{Cgroup: "/kubepods.slice/x", Resource: "hca_object", Current: 12, Limit: -1}},
		Incomplete: []report.Incomplete{{Type: "mr", Reason: report.IncompleteMaxObjects, Detail: "70 are more than 50"}},
	}
}

// stream returns what a child writes with write, and an end.
func stream(t *testing.T, write func(*report.Writer) error) io.Reader {
	t.Helper()
	var sb strings.Builder
	w := report.NewWriter(&sb)
	if err := write(w); err != nil {
		t.Fatal(err)
	}
	if err := w.End(report.End{}); err != nil {
		t.Fatal(err)
	}
	return strings.NewReader(sb.String())
}

// TestInventory makes sure that what a resource audit writes is what is read.
func TestInventory(t *testing.T) {
	want := inventory()
	var run report.Run
	err := report.Read(stream(t, func(w *report.Writer) error {
		return errors.Join(w.Context(report.Context{Index: 3, ID: 77}), w.Summary(want.Summary), w.Inventory(want))
	}), &run)
	if err != nil {
		t.Fatal(err)
	}
	want.Owners[0].Comm = "tr\"ainer\uFFFD" // JSON has nothing but UTF-8
	if !reflect.DeepEqual(*run.Inventory, want) {
		t.Errorf("read %+v, want %+v", *run.Inventory, want)
	}
	if !reflect.DeepEqual(run.Summary, want.Summary) {
		t.Errorf("read the summary %+v, want %+v", run.Summary, want.Summary)
	}
	if run.Context == nil || *run.Context != (report.Context{Index: 3, ID: 77}) {
		t.Errorf("read the context %+v", run.Context)
	}
	if kept := run.Kept(); kept.Inventory != nil || len(kept.Summary) != 2 {
		t.Errorf("kept %+v and %+v of a run, want no inventory and the summary", kept.Inventory, kept.Summary)
	}
}

// TestInventoryRefused makes sure that what no audit in its right mind writes is
// not taken.
func TestInventoryRefused(t *testing.T) {
	for name, spoil := range map[string]func(*report.Inventory){
		"unknown type":         func(i *report.Inventory) { i.Objects[0].Type = "teapot" },
		"unknown kind":         func(i *report.Inventory) { i.Objects[0].Owner = "nobody" },
		"negative count":       func(i *report.Inventory) { i.Objects[0].Objects = -1 },
		"count twice":          func(i *report.Inventory) { i.Objects[1] = i.Objects[0] },
		"huge count":           func(i *report.Inventory) { i.Objects[0].Objects = 1 << 50 },
		"summary twice":        func(i *report.Inventory) { i.Summary[1] = i.Summary[0] },
		"odd state":            func(i *report.Inventory) { i.QueuePairs[0].State = "rts\n" },
		"queue pairs twice":    func(i *report.Inventory) { i.QueuePairs[1] = i.QueuePairs[0] },
		"unknown sum":          func(i *report.Inventory) { i.CQEntries[0].Owner = "" },
		"negative sum":         func(i *report.Inventory) { i.MRBytes[0].Sum = -1 },
		"negative CQs":         func(i *report.Inventory) { i.UnfillableCQs.Entries = -1 },
		"no pid":               func(i *report.Inventory) { i.Owners[0].PID = 0 },
		"owner twice":          func(i *report.Inventory) { i.Owners = append(i.Owners, i.Owners[0]) },
		"long name":            func(i *report.Inventory) { i.Owners[0].Comm = strings.Repeat("x", 5000) },
		"name with zero":       func(i *report.Inventory) { i.Owners[0].Cgroup = "/a\x00b" },
		"owner's type twice":   func(i *report.Inventory) { i.Owners[0].Objects = append(i.Owners[0].Objects, i.Owners[0].Objects...) },
		"negative memory":      func(i *report.Inventory) { i.Owners[0].Memlock.Pinned = -1 },
		"odd limit":            func(i *report.Inventory) { i.Owners[0].Memlock.Limit = -2 },
		"others of no type":    func(i *report.Inventory) { i.Others[0].Type = "" },
		"others twice":         func(i *report.Inventory) { i.Others = append(i.Others, i.Others[0]) },
		"ownerless of no type": func(i *report.Inventory) { i.Ownerless[0].Type = "" },
		"left twice":           func(i *report.Inventory) { i.Left = append(i.Left, i.Left[0]) },
		"left of no type":      func(i *report.Inventory) { i.Left[0].Type = "ah" },
		"odd resource":         func(i *report.Inventory) { i.Cgroups[0].Resource = "a\tb" },
		"odd cgroup limit":     func(i *report.Inventory) { i.Cgroups[0].Limit = -2 },
		"cgroup twice":         func(i *report.Inventory) { i.Cgroups = append(i.Cgroups, i.Cgroups[0]) },
		"unknown reason":       func(i *report.Inventory) { i.Incomplete[0].Reason = "tired" },
		"incomplete twice":     func(i *report.Inventory) { i.Incomplete = append(i.Incomplete, i.Incomplete[0]) },
		"too many owners":      func(i *report.Inventory) { i.Owners = make([]report.Owner, 5000) },
	} {
		t.Run(name, func(t *testing.T) {
			i := inventory()
			spoil(&i)
			var run report.Run
			err := report.Read(stream(t, func(w *report.Writer) error { return w.Inventory(i) }), &run)
			var line *report.LineError
			if !errors.As(err, &line) || line.Line != 1 {
				t.Errorf("read with %v, want an error of line 1", err)
			}
			if run.Inventory != nil {
				t.Errorf("took %+v", run.Inventory)
			}
		})
	}
	twice := map[string]func(w *report.Writer) error{
		"context":   func(w *report.Writer) error { return w.Context(report.Context{}) },
		"summary":   func(w *report.Writer) error { return w.Summary([]report.TypeCount{{Type: "qp"}}) },
		"inventory": func(w *report.Writer) error { return w.Inventory(inventory()) },
	}
	for name, write := range twice {
		t.Run("two of "+name, func(t *testing.T) {
			var run report.Run
			err := report.Read(stream(t, func(w *report.Writer) error { return errors.Join(write(w), write(w)) }), &run)
			var line *report.LineError
			if !errors.As(err, &line) || line.Line != 2 {
				t.Errorf("read with %v, want an error of line 2", err)
			}
		})
	}
}
