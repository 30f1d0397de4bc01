package health_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/health/expect"
	"rdma_exporter/internal/state"
)

// taken is when the inventories of the fixtures were taken.
func taken() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

func device(inventory state.Inventory, limits ...state.Limit) *state.DeviceState {
	return &state.DeviceState{
		Name: "rxe0", Present: true,
		Info: &state.Device{Limits: limits},
		Last: &state.Run{Kind: state.KindProbe, Device: "rxe0", Outcome: state.OutcomeOK},
		Resources: &state.Resources{
			Last:      &state.Run{Kind: state.KindInventory, Device: "rxe0", Started: taken(), Outcome: state.OutcomeOK},
			Inventory: &inventory, Taken: taken(),
		},
	}
}

func holder(pid int, comm, kind string, objects int64) state.Owner {
	return state.Owner{PID: pid, Comm: comm, Objects: []state.TypeCount{{Type: kind, Objects: objects}}}
}

// pinning returns an owner with pinned and locked memory and its limit, in bytes.
func pinning(pid int, pinned, locked, limit int64) state.Owner {
	return state.Owner{PID: pid, Comm: "trainer", Memlock: &state.Memlock{Pinned: pinned, Locked: locked, Limit: limit}}
}

const (
	container = "3f2a1b2c3d4e5f60718293a4b5c6d7e8f90112233445566778899aabbccddeef"
	pod       = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
	podCgroup = "/kubepods.slice/kubepods-pod0f1e2d3c.slice/cri-containerd-" + container + ".scope"
)

// trouble returns a device with every kind of finding that can be found together.
func trouble() *state.DeviceState {
	trainer := state.Owner{
		PID: 4711, Comm: "trainer", Cgroup: podCgroup, ContainerID: container, PodUID: pod,
		Objects: []state.TypeCount{{Type: "qp", Objects: 3800}, {Type: "mr", Objects: 20}},
		Memlock: &state.Memlock{Pinned: 60 << 20, Locked: 1 << 20, Limit: 64 << 20},
	}
	s := device(state.Inventory{
		PIDsVisible: true,
		Objects: []state.ObjectCount{
			{Type: "qp", Owner: state.OwnerUser, Objects: 3850},
			{Type: "qp", Owner: state.OwnerKernel, Objects: 50},
			{Type: "pd", Owner: state.OwnerUser, Objects: 85},
			{Type: "mr", Owner: state.OwnerUnknown, Objects: 120000},
		},
		QueuePairs: []state.QueuePairCount{
			{Type: "rc", State: "rts", Objects: 3890}, {Type: "rc", State: "err", Objects: 8}, {Type: "ud", State: "sqe", Objects: 2},
		},
		OversizedCQs: &state.CQSum{Objects: 3, Entries: 200000, Largest: 131071, PID: 4711},
		Owners:       []state.Owner{trainer, holder(77, "ibv_rc_pingpong", "qp", 40)},
		Ownerless:    []state.TypeCount{{Type: "qp", Objects: 10}, {Type: "pd", Objects: 2}},
		Cgroups: []state.CgroupUse{
			{Cgroup: podCgroup, ContainerID: container, PodUID: pod, Resource: "hca_object", Current: 4000, Limit: 4096},
			{Cgroup: "/user.slice/a b", Resource: "hca_handle", Current: 8, Limit: 10},
		},
		Incomplete: []state.Incomplete{
			{Type: "mr", Reason: state.IncompleteMaxObjects, Detail: "120000 objects, 100000 are allowed"},
			{Type: "srq", Reason: state.IncompleteNotSupported},
		},
	}, state.Limit{Name: "max_qp", Value: 4096}, state.Limit{Name: "max_pd", Value: 100}, state.Limit{Name: "max_mr", Value: 1 << 20})
	s.Resources.OrphanedSince = taken().Add(-10 * time.Minute)
	s.Resources.Leaked = []state.Leaked{{Type: "ctx", Objects: 1, Since: taken().Add(-time.Hour)}, {Type: "cq", Objects: 2, Since: taken()}}
	s.Resources.Stuck = &state.Stuck{PID: 815, Since: taken()}
	s.Stuck = &state.Stuck{PID: 814, Verb: "ibv_destroy_cq", Since: taken().Add(-time.Minute)}
	s.Last.Undestroyed = []state.Undestroyed{
		{Type: "cq", Errno: "EBUSY", Attempts: 3}, {Type: "cq", Errno: "EBUSY", Attempts: 5}, {Type: "pd", Errno: "EBUSY", Attempts: 3},
	}
	s.Contracts = &state.Contracts{Last: &state.Run{Undestroyed: []state.Undestroyed{{Type: "cq", Errno: "EBUSY", Attempts: 4}, {Type: "qp", Errno: "EIO", Attempts: 1}}}}
	return s
}

// ill returns devices with every kind of finding about runs, and every case of it.
func ill() []*state.DeviceState {
	var states []*state.DeviceState
	for _, errno := range []string{"EACCES", "ENOENT", "ENODEV", "EAGAIN", "EIO"} {
		states = append(states, failed(state.Run{FailedVerb: "ibv_open_device", Errno: errno, Error: "open the device: " + errno}))
	}
	for _, outcome := range []state.Outcome{state.OutcomeTimeout, state.OutcomeCrashed} {
		states = append(states, failed(state.Run{Outcome: outcome, Verb: "ibv_create_cq"}))
	}
	sick := probed(
		state.Probe{Name: "cq", Failures: []state.Failure{{Verb: "ibv_create_cq", Errno: "ENOMEM", Memlock: new(int64)}}},
		state.Probe{Name: "srq", Failures: []state.Failure{{Verb: "ibv_create_srq", Errno: "ENOMEM"}}},
		state.Probe{Name: "qp", Failures: []state.Failure{{Verb: "ibv_create_qp", Message: "asked for max_send_wr 16, given 15"}}},
		state.Probe{
			Name: "notification", Failures: []state.Failure{{Verb: "ibv_post_send", Errno: "EIO"}},
			Skips: []state.Skip{{Subject: state.Subject{Object: "message"}, Reason: state.SkipNotPermitted}},
			Latencies: []state.Latency{{
				Port: 1, Path: state.PathFlush, Mode: state.ModeSolicited,
				Missed: 1, Misdirected: 1, Missing: 1, Spurious: 1, Unsuccessful: []string{"success"},
			}},
		},
	)
	sick.Last.Info.Ports = []state.Port{{Number: 1, State: "down"}, {Number: 2, State: "init"}}
	sick.Contracts = &state.Contracts{Last: &state.Run{Outcome: state.OutcomeFailed, Error: "query the device: EIO"}}
	for _, severity := range state.Severities() {
		sick.Contracts.Verdicts = append(sick.Contracts.Verdicts, state.Contract{Name: "c_" + string(severity), Severity: severity, Verdict: state.VerdictViolated})
	}
	sick.Full = fullRun(time.Microsecond, time.Millisecond)
	for _, outcome := range []state.Outcome{state.OutcomeTimeout, state.OutcomeCrashed} {
		s := probed()
		s.Last.Outcome, s.Contracts = state.OutcomeOK, &state.Contracts{Last: &state.Run{Outcome: outcome}}
		states = append(states, s)
	}
	states = append(states,
		probed(state.Probe{Name: "cq", Failures: []state.Failure{{Verb: "ibv_create_cq", Errno: "ENOMEM"}}}),
		probed(state.Probe{Name: "qp", Failures: []state.Failure{{Verb: "ibv_create_qp", Errno: "EIO"}}}),
	)
	half := probed()
	half.Last.Outcome, half.Last.Info.Ports = state.OutcomeOK, []state.Port{{Number: 1, State: "active"}, {Number: 2, State: "down"}, {Number: 3, State: "armed"}}
	refused := state.Probe{Name: "mr"}
	for i, by := range state.AllRefusedBy() {
		refused.Registrations = append(refused.Registrations, state.Registration{
			Memory: state.RegisteredMemories()[i%2], Bytes: 4096, Result: state.MemoryRefused, By: by, Errno: "E" + string(by), Detail: "no",
		})
	}
	return append(states, sick, half, probed(refused))
}

func adapter(change func(*state.HardwareState)) *state.DeviceState {
	s := probed()
	s.Name, s.Last.Outcome, s.Info = "rxe0", state.OutcomeOK, &state.Device{Transport: "InfiniBand"}
	link := state.PCILink{Address: "0000:3b:00.0", Speed: 32e9, MaxSpeed: 32e9, Width: 16, MaxWidth: 16}
	port := state.HardwarePort{
		Number: 1, LinkLayer: "Ethernet", State: "active", Rate: 400e9, MaxRate: 400e9, Width: 4, Netdev: "eth2", Ifindex: 4, RoCEv2IPv4: new(1),
		GIDs:     []state.GID{{GID: "fe80::1", Type: "roce_v1", Family: "ipv6", Netdev: "eth2"}, {Index: 1, GID: "::ffff:10.1.2.3", Type: "roce_v2", Family: "ipv4", Netdev: "eth2"}},
		Counters: []state.Counter{{Group: state.GroupPort, Name: "symbol_error", Value: 12}},
	}
	h := &state.HardwareState{
		Read: taken(), Links: []state.Link{{Port: 1, Active: true}},
		Latest: &state.Hardware{Device: "rxe0", Table: "mlx5", Identity: state.Adapter{PCI: link.Address, Link: &link, AER: &state.AER{Correctable: 7}}, Ports: []state.HardwarePort{port}},
	}
	for n := range 8 {
		h.Latest.Interrupts = append(h.Latest.Interrupts, state.Interrupt{Vector: n, IRQ: 100 + n, CPUs: "0-63", Effective: fmt.Sprint(n)})
	}
	change(h)
	s.Hardware = h
	return s
}

// flaps returns times within the last hour, and one more that is older.
func flaps(n int) []time.Time {
	at := []time.Time{taken().Add(-2 * time.Hour)}
	for i := range n {
		at = append(at, taken().Add(time.Duration(i-30)*time.Minute))
	}
	return at
}

// worn returns devices with every kind of finding about adapters, and every case of it.
func worn() []*state.DeviceState {
	return []*state.DeviceState{
		adapter(func(h *state.HardwareState) {
			p, i := &h.Latest.Ports[0], &h.Latest.Identity
			h.Links[0].Recent = flaps(4)
			p.Refused = []state.RefusedCounters{{Group: state.GroupHardware, Errno: "EINVAL"}, {Group: state.GroupPort, Detail: "\"x\" is no number"}}
			p.Counters[0].Value = 1<<16 - 1
			p.Rate, p.Width = 100e9, 1
			p.RoCEv2IPv4 = nil
			i.Link.Width = 8
			i.Bottleneck = &state.PCILink{Address: "0000:3a:00.0", Speed: 8e9, MaxSpeed: 32e9, Width: 8, MaxWidth: 16}
			i.AER.Nonfatal, i.AER.Fatal = 3, 1
			for n := range h.Latest.Interrupts {
				h.Latest.Interrupts[n].Effective, h.Latest.Interrupts[n].Isolated = "5", true
			}
		}),
		adapter(func(h *state.HardwareState) {
			h.Latest.Interrupts[3].Isolated = true
			h.Latest.Identity.Role, h.Latest.Ports[0].Refused = "sf", []state.RefusedCounters{{Group: state.GroupPort, Errno: "EINVAL"}}
		}),
		adapter(func(h *state.HardwareState) { h.Failures, h.Failure = 2, "permission denied" }),
		adapter(func(h *state.HardwareState) {
			h.Failures, h.Failure, h.Reading = 1, "killed after 5s", "ports/1/counters/symbol_error"
			h.Stuck = &state.Stuck{PID: 816, Since: taken()}
		}),
		adapter(func(h *state.HardwareState) {
			h.Latest.IOMMU = "DMA"
			h.Latest.GPUs = []state.GPU{{PCI: "0000:1b:00.0", BAR: 256 << 20, Memory: "none", Distance: "PXB", ACS: "redirect", Redirecting: []string{"0000:17:00.0"}}}
		}),
		adapter(func(h *state.HardwareState) {
			h.Latest.GPUs = []state.GPU{{PCI: "0000:1b:00.0", Memory: "none", Distance: "SYS"}}
		}),
	}
}

// hostile returns a device with impossible values in each field.
func hostile() *state.DeviceState {
	const evil = "\x1b[2J\u202e'; rm -rf /\n{pid}\xff"
	s := trouble()
	s.Name = evil
	i := s.Resources.Inventory
	var ports []state.Port
	var vectors []state.Latency
	for n := range 200 {
		name := fmt.Sprint(evil, n)
		o := pinning(n, 1<<62, 1<<62, 1<<62)
		o.Comm, o.Cgroup, o.ContainerID, o.PodUID = name, name, name, strings.Repeat(name, 100)
		o.Objects = []state.TypeCount{{Type: name, Objects: 1<<63 - 1}, {Type: "qp", Objects: 1<<63 - 1}, {Type: "qp", Objects: -1 << 63}}
		i.Owners = append(i.Owners, o)
		i.Cgroups = append(i.Cgroups, state.CgroupUse{Cgroup: name, Resource: name, Current: 1<<63 - 1, Limit: int64(n)})
		i.Objects = append(i.Objects, state.ObjectCount{Type: "qp", Owner: state.OwnerKind(name), Objects: 1<<63 - 1})
		i.Ownerless = append(i.Ownerless, state.TypeCount{Type: name, Objects: 1<<63 - 1}, state.TypeCount{Type: name, Objects: -1})
		i.Incomplete = append(i.Incomplete, state.Incomplete{Type: name, Reason: state.IncompleteFailed, Detail: name})
		i.QueuePairs = append(i.QueuePairs, state.QueuePairCount{Type: name, State: "err", Objects: 1<<63 - 1})
		s.Resources.Leaked = append(s.Resources.Leaked, state.Leaked{Type: name, Objects: 1<<63 - 1})
		s.Last.Undestroyed = append(s.Last.Undestroyed, state.Undestroyed{Type: name, Errno: name, Attempts: -n})
		s.Last.Probes = append(s.Last.Probes, state.Probe{
			Name:      name,
			Failures:  []state.Failure{{Subject: state.Subject{Object: name}, Verb: name, Errno: name, Message: name}, {Message: strings.Repeat(name, 100)}},
			Skips:     []state.Skip{{Subject: state.Subject{Object: "message"}, Reason: state.SkipNotPermitted, Detail: name}},
			Latencies: []state.Latency{{Port: n, Path: state.LatencyPath(name), Mode: state.LatencyMode(name), Count: -n, Missed: 1<<63 - 1, Unsuccessful: []string{name, evil}}},
		})
		s.Contracts.Verdicts = append(s.Contracts.Verdicts, state.Contract{
			Name: name, Severity: state.Severity(name), Verdict: state.VerdictViolated, Asked: name, Expected: strings.Repeat(name, 100), Observed: name,
		})
		ports = append(ports, state.Port{Number: n, State: name, LinkLayer: name})
		vectors = append(vectors, state.Latency{Path: state.LatencyPath(name[:4]), Mode: state.ModeAny, Vector: -n, Count: 1, P50: 1 << (n % 63), P99: -1})
	}
	s.Last.Info = &state.Device{Ports: ports}
	s.Last.Outcome, s.Last.Error, s.Last.FailedVerb, s.Last.Errno = state.OutcomeFailed, evil, evil, evil
	s.Contracts.Last.Outcome, s.Contracts.Last.Verb, s.Contracts.Last.InProgress = state.OutcomeCrashed, evil, evil
	s.Full = &state.Run{Probes: []state.Probe{{Name: "notification", Latencies: vectors}}}
	i.OversizedCQs = &state.CQSum{Objects: -1, Entries: 1<<63 - 1, Largest: -1, PID: 1}
	s.Resources.Last.Outcome, s.Resources.Last.Error = state.Outcome(evil), evil
	s.Stuck.Verb = evil
	s.Hardware = &state.HardwareState{Failures: 1, Failure: evil, Reading: evil, Latest: &state.Hardware{Failure: evil, Identity: state.Adapter{
		PCI: evil, Link: &state.PCILink{Address: evil, Width: -1, MaxWidth: 1 << 62, Speed: -1, MaxSpeed: 1e300}, Bottleneck: &state.PCILink{Address: evil},
	}}}
	for n := range 200 {
		name := fmt.Sprint(evil, n)
		s.Hardware.Links = append(s.Hardware.Links, state.Link{Port: n, Recent: []time.Time{{}, taken(), taken(), taken()}})
		s.Hardware.Latest.Ports = append(s.Hardware.Latest.Ports, state.HardwarePort{
			Number: -n, State: "active", Rate: 1e-300, MaxRate: 1e300, Width: 1 << 62, Netdev: name,
			GIDs:     []state.GID{{GID: name, Type: "roce_" + name}},
			Counters: []state.Counter{{Group: state.GroupPort, Name: name, Value: 1<<64 - 1}},
			Refused:  []state.RefusedCounters{{Group: state.CounterGroup(name), Errno: name, Detail: name}},
		})
		s.Hardware.Latest.GPUs = append(s.Hardware.Latest.GPUs, state.GPU{PCI: name, BAR: -1, Memory: "none", Distance: "PXB", ACS: "redirect", Redirecting: []string{evil}})
		s.Hardware.Latest.Interrupts = append(s.Hardware.Latest.Interrupts, state.Interrupt{Vector: -n, Effective: "7", Isolated: true, CPUs: name})
	}
	return s
}

// unexpected returns findings of every case about what is expected.
func unexpected() (all []health.Finding) {
	c := once()
	c.Memlock = new(int64(64 << 10))
	c.Expect = expect.Rules{
		{Devices: new(2), ActivePorts: new(2), Rate: "800Gb/s", MTU: new(4096), RoCEv2IPv4: new(true), Memlock: "unlimited", Firmware: "28.*", Driver: "24.10.*"},
		{Device: "rxe0", ActivePorts: new(3)},
	}
	s := adapter(func(h *state.HardwareState) { h.Latest.Ports[0].RoCEv2IPv4 = nil })
	s.Last.Info.Ports = []state.Port{{Number: 1, State: "active", ActiveMTU: 1024}, {Number: 2, State: "down"}}
	s.Info.Firmware = "22.1"
	s.Resources = &state.Resources{Inventory: &state.Inventory{Owners: []state.Owner{pinning(7, 1, 1, 4096)}}}
	h := health.New(c, health.History{}).Evaluate(&state.Snapshot{Devices: []state.DeviceState{*s}})
	return append(slices.Clone(h.Findings), h.Devices[0].Findings...)
}

// asking returns devices with every kind of finding about paths to peers.
func asking() (all []*state.DeviceState) {
	add := func(suspect string, failures int, results ...state.PathResult) {
		s := probed()
		for i, r := range results {
			s.Paths = append(s.Paths, state.PathState{Failures: failures, Path: state.Path{
				Peer: fmt.Sprint("node", i, ":10879"), PeerDevice: "rxe0", Result: r, Suspect: suspect, Detail: "{pid} no answer",
			}})
			if failures > 0 || r == state.PathSlow {
				s.Paths[i].Worked = taken()
			}
		}
		s.Last.Outcome = state.OutcomeOK
		all = append(all, s)
	}
	add(state.SuspectDevice, 2, state.PathSource, state.PathSource)
	for _, suspect := range []string{state.SuspectDevice, state.SuspectPeer, state.SuspectPath} {
		add(suspect, 2, state.PathForward, state.PathOK)
		add(suspect, 0, state.PathForward, state.PathSlow)
	}
	add("", 0, state.PathControl, "no such result")
	return all
}

// slow returns a device whose measurement found everything that one can find, since its PCI link is degraded.
func slow() *state.DeviceState {
	s := adapter(func(*state.HardwareState) {})
	b := &state.Bandwidth{Time: taken(), Hardware: s.Hardware.Latest}
	for node, rate := range []float64{2e9, 1e9} {
		b.Cells = append(b.Cells, state.BandwidthCell{Port: 1, Node: node, Operation: "read", Size: state.LargeMessage, BytesPerSecond: rate})
	}
	s.Bandwidth = &state.BandwidthState{Measured: b, Large: b.Cells}
	return s
}
