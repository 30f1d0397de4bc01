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
	qp := func(threads ...uint32) map[restrack.Type][]restrack.Object {
		objects := map[restrack.Type][]restrack.Object{restrack.QP: {{Kernel: true}}}
		for _, thread := range threads {
			objects[restrack.QP] = append(objects[restrack.QP], restrack.Object{Thread: thread})
		}
		return objects
	}
	fails := func(t restrack.Type, err error) map[restrack.Type]func(int) error {
		return map[restrack.Type]func(int) error{t: func(int) error { return err }}
	}
	failure := errors.New("no room")
	const (
		idle    = ""
		busy    = "busy: "
		unknown = "unknown: the kernel does not tell who holds queue pairs: "
	)
	for name, tt := range map[string]struct {
		tables tables
		alone  bool // processes are unknown
		want   string
	}{
		"nothing":                       {tables{}, false, idle},
		"the kernel's own":              {tables{objects: qp()}, false, idle},
		"the exporter":                  {tables{objects: qp(2)}, false, idle},
		"a child":                       {tables{objects: qp(21)}, false, idle},
		"another thread of a child":     {tables{objects: qp(1021)}, false, idle},
		"another program":               {tables{objects: qp(30)}, false, busy + "mpi\uFFFDrun (process 30) holds queue pairs"},
		"next to a child":               {tables{objects: qp(21, 30)}, false, busy + "mpi\uFFFDrun (process 30) holds queue pairs"},
		"another child of the exporter": {tables{objects: qp(22)}, false, busy + "sh (process 22) holds queue pairs"},
		"another exporter":              {tables{objects: qp(31)}, false, busy + "rdma_exporter (process 31) holds queue pairs"},
		"a process without a name":      {tables{objects: qp(32)}, false, busy + "process 32 holds queue pairs"},
		"a thread that has ended":       {tables{objects: qp(999)}, false, busy + "thread 999 holds queue pairs"},
		"of another pid namespace":      {tables{objects: qp(0)}, false, busy + "a process that the kernel does not name holds queue pairs"},
		"a child, but no processes":     {tables{objects: qp(21)}, true, busy + "thread 21 holds queue pairs"},
		"a process that is closed":      {tables{objects: qp(40)}, false, busy + "thread 40 holds queue pairs"},
		"a completion queue in use": {
			tables{objects: map[restrack.Type][]restrack.Object{restrack.CQ: {{Thread: 30, Users: 2, HasUsers: true}}}},
			false, busy + "mpi\uFFFDrun (process 30) holds queue pairs",
		},
		"completion queues that are not": {
			tables{objects: map[restrack.Type][]restrack.Object{restrack.CQ: {
				{Thread: 30, HasUsers: true}, {Thread: 21, Users: 2, HasUsers: true}, {Kernel: true, Users: 9, HasUsers: true}, {Thread: 30},
			}}},
			false, idle,
		},
		"no table of completion queues": {tables{objects: qp(), fails: fails(restrack.CQ, failure)}, false, idle},
		"no list of devices":            {tables{devicesErr: syscall.EPERM}, false, unknown + "list the devices: operation not permitted"},
		"no count":                      {tables{summaryErr: failure}, false, unknown + "count the objects: no room"},
		"no table":                      {tables{objects: qp(), fails: fails(restrack.QP, restrack.ErrNotSupported)}, false, unknown + "list the queue pairs: not supported by this kernel"},
		"a changing table":              {tables{objects: qp(), fails: fails(restrack.QP, restrack.ErrInterrupted)}, false, unknown + "list the queue pairs: the table changed while it was read"},
		"a table that fails late":       {tables{objects: qp(30), fails: fails(restrack.QP, failure)}, false, busy + "mpi\uFFFDrun (process 30) holds queue pairs"},
		"a table without an end":        {tables{objects: qp(), blocks: restrack.QP}, false, unknown + "list the queue pairs: context canceled"},
		"fewer than counted":            {tables{objects: qp(), counts: map[restrack.Type]uint64{restrack.QP: 2}}, false, unknown + "of 2 queue pairs it lists 1"},
		"more than counted":             {tables{objects: qp(), counts: map[restrack.Type]uint64{restrack.QP: 0}}, false, idle},
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
			if tt.alone {
				u.Relatives = nil
			}
			got := ""
			if light := inventory.InUse(ctx, u); light != nil {
				got = string(light.Reason) + ": " + light.Detail
			}
			if got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
	gone := inventory.InUse(t.Context(), inventory.Usage{Tables: new(tables), Device: "rxe9"})
	if gone == nil || gone.Reason != state.ReducedUnknown || !strings.Contains(gone.Detail, "find the device") {
		t.Errorf("a device that there is not: %+v", gone)
	}
}
