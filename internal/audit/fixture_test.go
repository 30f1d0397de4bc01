package audit_test

import (
	"fmt"
	"strings"
	"time"

	"rdma_exporter/internal/report"
)

// taken is when the inventories of the fixtures were taken.
func taken() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

// device returns a device that was audited, with an inventory and limits.
func device(inventory report.Inventory, limits ...report.Limit) *report.DeviceState {
	return &report.DeviceState{
		Name: "rxe0", Present: true,
		Info: &report.Device{Limits: limits},
		Last: &report.Run{Kind: report.KindProbe, Device: "rxe0", Outcome: report.OutcomeOK},
		Resources: &report.Resources{
			Last:      &report.Run{Kind: report.KindInventory, Device: "rxe0", Started: taken(), Outcome: report.OutcomeOK},
			Inventory: &inventory, Taken: taken(),
		},
	}
}

// holder returns an owner of some objects.
func holder(pid int, comm, kind string, objects int64) report.Owner {
	return report.Owner{PID: pid, Comm: comm, Objects: []report.TypeCount{{Type: kind, Objects: objects}}}
}

// pinning returns an owner with so many bytes pinned and locked, of so many allowed.
func pinning(pid int, pinned, locked, limit int64) report.Owner {
	return report.Owner{PID: pid, Comm: "trainer", Memlock: &report.Memlock{Pinned: pinned, Locked: locked, Limit: limit}}
}

const (
	container = "3f2a1b2c3d4e5f60718293a4b5c6d7e8f90112233445566778899aabbccddeef"
	pod       = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
	podCgroup = "/kubepods.slice/kubepods-pod0f1e2d3c.slice/cri-containerd-" + container + ".scope"
)

// trouble returns a device with every kind of finding that can be found together.
func trouble() *report.DeviceState {
	trainer := report.Owner{
		PID: 4711, Comm: "trainer", Cgroup: podCgroup, ContainerID: container, PodUID: pod,
		Objects: []report.TypeCount{{Type: "qp", Objects: 3800}, {Type: "mr", Objects: 20}},
		Memlock: &report.Memlock{Pinned: 60 << 20, Locked: 1 << 20, Limit: 64 << 20},
	}
	s := device(report.Inventory{
		PIDsVisible: true,
		Objects: []report.ObjectCount{
			{Type: "qp", Owner: report.OwnerUser, Objects: 3850},
			{Type: "qp", Owner: report.OwnerKernel, Objects: 50},
			{Type: "pd", Owner: report.OwnerUser, Objects: 85},
			{Type: "mr", Owner: report.OwnerUnknown, Objects: 120000},
		},
		QueuePairs: []report.QueuePairCount{
			{Type: "rc", State: "rts", Objects: 3890}, {Type: "rc", State: "err", Objects: 8}, {Type: "ud", State: "sqe", Objects: 2},
		},
		UnfillableCQs: &report.CQSum{Objects: 3, Entries: 200000, Largest: 131071, PID: 4711},
		Owners:        []report.Owner{trainer, holder(77, "ibv_rc_pingpong", "qp", 40)},
		Ownerless:     []report.TypeCount{{Type: "qp", Objects: 10}, {Type: "pd", Objects: 2}},
		Cgroups: []report.CgroupUse{
			{Cgroup: podCgroup, ContainerID: container, PodUID: pod, Resource: "hca_object", Current: 4000, Limit: 4096},
			{Cgroup: "/user.slice/a b", Resource: "hca_handle", Current: 8, Limit: 10},
		},
		Incomplete: []report.Incomplete{
			{Type: "mr", Reason: report.IncompleteMaxObjects, Detail: "120000 objects, 100000 are allowed"},
			{Type: "srq", Reason: report.IncompleteNotSupported},
		},
	}, report.Limit{Name: "max_qp", Value: 4096}, report.Limit{Name: "max_pd", Value: 100}, report.Limit{Name: "max_mr", Value: 1 << 20})
	s.Resources.OrphanedSince = taken().Add(-10 * time.Minute)
	s.Resources.Leaked = []report.Leaked{{Type: "ctx", Objects: 1, Since: taken().Add(-time.Hour)}, {Type: "cq", Objects: 2, Since: taken()}}
	s.Resources.Stuck = &report.Stuck{PID: 815, Since: taken()}
	s.Stuck = &report.Stuck{PID: 814, Verb: "ibv_destroy_cq", Since: taken().Add(-time.Minute)}
	s.Last.Undestroyed = []report.Undestroyed{
		{Type: "cq", Errno: "EBUSY", Attempts: 3}, {Type: "cq", Errno: "EBUSY", Attempts: 5}, {Type: "pd", Errno: "EBUSY", Attempts: 3},
	}
	s.Contracts = &report.Contracts{Last: &report.Run{Undestroyed: []report.Undestroyed{{Type: "cq", Errno: "EBUSY", Attempts: 4}, {Type: "qp", Errno: "EIO", Attempts: 1}}}}
	return s
}

// ill returns devices with every kind of finding about runs, and every case of it.
func ill() []*report.DeviceState {
	var states []*report.DeviceState
	for _, errno := range []string{"EACCES", "ENOENT", "ENODEV", "EAGAIN", "EIO"} {
		states = append(states, failed(report.Run{FailedVerb: "ibv_open_device", Errno: errno, Error: "open the device: " + errno}))
	}
	for _, outcome := range []report.Outcome{report.OutcomeTimeout, report.OutcomeCrashed} {
		states = append(states, failed(report.Run{Outcome: outcome, Verb: "ibv_create_cq"}))
	}
	sick := probed(
		report.Probe{Name: "cq", Failures: []report.Failure{{Verb: "ibv_create_cq", Errno: "ENOMEM", Memlock: new(int64)}}},
		report.Probe{Name: "srq", Failures: []report.Failure{{Verb: "ibv_create_srq", Errno: "ENOMEM"}}},
		report.Probe{Name: "qp", Failures: []report.Failure{{Verb: "ibv_create_qp", Message: "asked for max_send_wr 16, given 15"}}},
		report.Probe{
			Name: "notification", Failures: []report.Failure{{Verb: "ibv_post_send", Errno: "EIO"}},
			Skips: []report.Skip{{Subject: "message", Reason: report.SkipNotPermitted}},
			Latencies: []report.Latency{{
				Port: 1, Path: report.PathFlush, Mode: report.ModeSolicited,
				Missed: 1, Misdirected: 1, Missing: 1, Spurious: 1, Unsuccessful: []string{"success"},
			}},
		},
	)
	sick.Last.Info.Ports = []report.Port{{Number: 1, State: "down"}, {Number: 2, State: "init"}}
	sick.Contracts = &report.Contracts{Last: &report.Run{Outcome: report.OutcomeFailed, Error: "query the device: EIO"}}
	for _, severity := range report.Severities() {
		sick.Contracts.Verdicts = append(sick.Contracts.Verdicts, report.Contract{Name: "c_" + string(severity), Severity: severity, Verdict: report.VerdictViolated})
	}
	sick.Notification = &report.Notification{Vectors: []report.VectorLatency{
		{Latency: report.Latency{Count: 1, P50: time.Microsecond}}, {Latency: report.Latency{Vector: 1, Count: 1, P50: time.Millisecond}},
	}}
	half := probed()
	half.Last.Outcome, half.Last.Info.Ports = report.OutcomeOK, []report.Port{{Number: 1, State: "active"}, {Number: 2, State: "down"}, {Number: 3, State: "armed"}}
	return append(states, sick, half)
}

// hostile returns a device of which everything is told that no sane host has.
func hostile() *report.DeviceState {
	const evil = "\x1b[2J\u202e'; rm -rf /\n{pid}\xff"
	s := trouble()
	s.Name = evil
	i := s.Resources.Inventory
	var ports []report.Port
	var vectors []report.VectorLatency
	for n := range 200 {
		name := fmt.Sprint(evil, n)
		o := pinning(n, 1<<62, 1<<62, 1<<62)
		o.Comm, o.Cgroup, o.ContainerID, o.PodUID = name, name, name, strings.Repeat(name, 100)
		o.Objects = []report.TypeCount{{Type: name, Objects: 1<<63 - 1}, {Type: "qp", Objects: 1<<63 - 1}, {Type: "qp", Objects: -1 << 63}}
		i.Owners = append(i.Owners, o)
		i.Cgroups = append(i.Cgroups, report.CgroupUse{Cgroup: name, Resource: name, Current: 1<<63 - 1, Limit: int64(n)})
		i.Objects = append(i.Objects, report.ObjectCount{Type: "qp", Owner: report.OwnerKind(name), Objects: 1<<63 - 1})
		i.Ownerless = append(i.Ownerless, report.TypeCount{Type: name, Objects: 1<<63 - 1}, report.TypeCount{Type: name, Objects: -1})
		i.Incomplete = append(i.Incomplete, report.Incomplete{Type: name, Reason: report.IncompleteFailed, Detail: name})
		i.QueuePairs = append(i.QueuePairs, report.QueuePairCount{Type: name, State: "err", Objects: 1<<63 - 1})
		s.Resources.Leaked = append(s.Resources.Leaked, report.Leaked{Type: name, Objects: 1<<63 - 1})
		s.Last.Undestroyed = append(s.Last.Undestroyed, report.Undestroyed{Type: name, Errno: name, Attempts: -n})
		s.Last.Probes = append(s.Last.Probes, report.Probe{
			Name:      name,
			Failures:  []report.Failure{{Subject: name, Verb: name, Errno: name, Message: name}, {Message: strings.Repeat(name, 100)}},
			Skips:     []report.Skip{{Subject: "message", Reason: report.SkipNotPermitted, Detail: name}},
			Latencies: []report.Latency{{Port: n, Path: report.LatencyPath(name), Mode: report.LatencyMode(name), Count: -n, Missed: 1<<63 - 1, Unsuccessful: []string{name, evil}}},
		})
		s.Contracts.Verdicts = append(s.Contracts.Verdicts, report.Contract{
			Name: name, Severity: report.Severity(name), Verdict: report.VerdictViolated, Asked: name, Expected: strings.Repeat(name, 100), Observed: name,
		})
		ports = append(ports, report.Port{Number: n, State: name, LinkLayer: name})
		vectors = append(vectors, report.VectorLatency{Latency: report.Latency{Path: report.LatencyPath(name[:4]), Vector: -n, Count: 1, P50: 1 << (n % 63), P99: -1}})
	}
	s.Last.Info = &report.Device{Ports: ports}
	s.Last.Outcome, s.Last.Error, s.Last.FailedVerb, s.Last.Errno = report.OutcomeFailed, evil, evil, evil
	s.Contracts.Last.Outcome, s.Contracts.Last.Verb, s.Contracts.Last.Judging = report.OutcomeCrashed, evil, evil
	s.Notification = &report.Notification{Vectors: vectors}
	i.UnfillableCQs = &report.CQSum{Objects: -1, Entries: 1<<63 - 1, Largest: -1, PID: 1}
	s.Resources.Last.Outcome, s.Resources.Last.Error = report.Outcome(evil), evil
	s.Stuck.Verb = evil
	return s
}
