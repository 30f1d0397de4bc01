package inventory_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
)

// TestInUse goes through what can be in the tables, and how reading them can fail.
func TestInUse(t *testing.T) {
	qps := func(threads ...uint32) map[restrack.Type][]restrack.Object {
		objects := []restrack.Object{{Kernel: true}}
		for _, thread := range threads {
			objects = append(objects, user(thread))
		}
		return map[restrack.Type][]restrack.Object{restrack.QP: objects}
	}
	failure := errors.New("no room")
	const (
		idle    = ""
		busy    = "busy: "
		mpi     = busy + "mpi\uFFFDrun (process 30) holds queue pairs"
		unnamed = busy + "a process that the kernel does not name holds queue pairs"
		unknown = "unknown: the kernel does not tell who holds queue pairs: "
		list    = unknown + "list the queue pairs: "
	)
	counted := func(n uint64) tables {
		return tables{objects: qps(), counts: map[restrack.Type]uint64{restrack.QP: n}}
	}
	cqs := func(all ...restrack.Object) tables {
		return tables{objects: map[restrack.Type][]restrack.Object{restrack.CQ: all}}
	}
	for name, tt := range map[string]struct {
		tables tables
		want   string
	}{
		"nothing":                       {tables{}, idle},
		"the kernel's own":              {tables{objects: qps()}, idle},
		"the exporter":                  {tables{objects: qps(2)}, idle},
		"a child":                       {tables{objects: qps(21)}, idle},
		"another thread of a child":     {tables{objects: qps(1021)}, idle},
		"another program":               {tables{objects: qps(30)}, mpi},
		"next to a child":               {tables{objects: qps(21, 30)}, mpi},
		"another child of the exporter": {tables{objects: qps(22)}, busy + "sh (process 22) holds queue pairs"},
		"another exporter":              {tables{objects: qps(31)}, busy + "rdma_exporter (process 31) holds queue pairs"},
		"a process without a name":      {tables{objects: qps(32)}, busy + "process 32 holds queue pairs"},
		"a thread that has ended":       {tables{objects: qps(999)}, busy + "thread 999 holds queue pairs"},
		"of another pid namespace":      {tables{objects: qps(0)}, unnamed},
		"a process that is closed":      {tables{objects: qps(40)}, busy + "thread 40 holds queue pairs"},
		"a completion queue in use":     {cqs(cq(30, 0, 2)), mpi},
		"completion queues that are not": {
			cqs(cq(30, 0, 0), cq(21, 0, 2), restrack.Object{Kernel: true, Users: 9, HasUsers: true}, user(30)), idle,
		},
		"no table of completion queues": {tables{objects: qps(), fails: always(restrack.CQ, failure)}, idle},
		"no list of devices":            {tables{devicesErr: syscall.EPERM}, unknown + "list the devices: operation not permitted"},
		"no count":                      {tables{summaryErr: failure}, unknown + "count the objects: no room"},
		"no table": {
			tables{objects: qps(), fails: always(restrack.QP, restrack.ErrNotSupported)},
			list + "not supported by this kernel",
		},
		"a changing table": {
			tables{objects: qps(), fails: always(restrack.QP, restrack.ErrInterrupted)},
			list + "the table changed while it was read",
		},
		"a table that fails late": {tables{objects: qps(30), fails: always(restrack.QP, failure)}, mpi},
		"a table without an end":  {tables{objects: qps(), blocks: restrack.QP}, list + "context canceled"},
		"fewer than counted":      {counted(2), unknown + "of 2 queue pairs it lists 1"},
		"more than counted":       {counted(0), idle},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if tt.tables.blocks != restrack.Type(0) {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				cancel()
			}
			who := family()
			who.private = map[int]bool{40: true}
			u := inventory.Usage{Tables: &tt.tables, Relatives: who, Device: "rxe0", Exporter: 2, Own: "rdma_exporter"}
			got := ""
			if light := inventory.InUse(ctx, u); light != nil {
				got = string(light.Reason) + ": " + light.Detail
			}
			if got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
	alone := inventory.InUse(t.Context(), inventory.Usage{Tables: &tables{objects: qps(21)}, Device: "rxe0"})
	if alone == nil || alone.Reason != state.ReducedBusy || alone.Detail != "thread 21 holds queue pairs" {
		t.Errorf("processes are unknown: %+v", alone)
	}
	gone := inventory.InUse(t.Context(), inventory.Usage{Tables: new(tables), Device: "rxe9"})
	if gone == nil || gone.Reason != state.ReducedUnknown || !strings.Contains(gone.Detail, "find the device") {
		t.Errorf("a device that there is not: %+v", gone)
	}
}
