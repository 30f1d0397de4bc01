package terminal_test

import (
	"fmt"
	"math"
	"slices"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// began is when everything in the fixtures happened.
func began() time.Time { return time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC) }

// of returns the status of these devices, as api.Of sums it up.
func of(devices ...api.Device) *api.Status {
	s := &api.Status{
		Version: api.Version, Generated: began().Add(5 * time.Second), Exporter: "1.2.3", Host: "node17", Provider: "libibverbs",
		Ready: true, Health: api.HealthOK, Devices: devices,
	}
	healths := api.Healths()
	rank := func(h api.Health) (n int) {
		for i, other := range healths {
			if h == other {
				n = i
			}
		}
		return n
	}
	for _, severity := range api.Severities() {
		count := api.SeverityCount{Severity: severity}
		for i := range devices {
			for _, f := range devices[i].Findings {
				if f.Severity == severity {
					count.Count++
				}
			}
		}
		s.FindingCounts = append(s.FindingCounts, count)
	}
	for i := range devices {
		if rank(devices[i].Health) > rank(s.Health) {
			s.Health = devices[i].Health
		}
	}
	judged := judged(devices)
	s.Troubles = judged.Troubles
	slices.SortStableFunc(s.Devices, func(a, b api.Device) int {
		place := func(d api.Device) int {
			return slices.IndexFunc(judged.Devices, func(of api.Device) bool { return of.Name == text.Clean(d.Name) })
		}
		return place(a) - place(b)
	})
	return s
}

// judged returns the status of devices of which no more is known than what was found: the
// order in which they are told, and what is the same on several.
func judged(devices []api.Device) *api.Status {
	found := make(map[string][]health.Finding)
	snapshot := new(state.Snapshot)
	for _, d := range devices {
		snapshot.Devices = append(snapshot.Devices, state.DeviceState{Name: d.Name, Present: true, Last: &state.Run{Outcome: state.OutcomeOK}})
		for _, f := range d.Findings {
			found[d.Name] = append(found[d.Name], findingOf(&f))
		}
	}
	judge := health.Finder(health.Config{}, func(d *state.DeviceState) []health.Finding { return apitest.Harmed(found[d.Name]) })
	return api.Of(judge.Of(snapshot), api.Options{})
}

// findingOf returns a finding as it is judged.
func findingOf(f *api.Finding) health.Finding {
	finding := health.Finding{
		Kind: f.Kind, Severity: f.Severity, Harm: f.Harm, Subject: f.Subject, Message: f.Message, Evidence: f.Evidence, Meaning: f.Meaning, Action: f.Action,
	}
	for i := range f.Consequences {
		finding.Consequences = append(finding.Consequences, findingOf(&f.Consequences[i]))
	}
	return finding
}

// healthy returns a device of which there is all to tell and nothing to complain.
func healthy(name string) api.Device {
	return api.Device{
		Name: name, Present: true, Health: api.HealthOK, Headline: "No action needed.", Findings: []api.Finding{},
		Identity: &api.Identity{
			Transport: "InfiniBand", Firmware: "20.31.1014", VendorID: 0x2c9, VendorPartID: 4123, NodeGUID: "0c42:a103:00de:ad01", CompletionVectors: 8,
		},
		Ports: []api.Port{{Number: 1, State: "active", LinkLayer: "Ethernet", ActiveMTU: 4096}},
		Run:   &api.Run{Started: began(), Duration: 0.4127, Outcome: state.OutcomeOK},
		Probes: []api.Probe{
			{Name: "cq", Status: state.StatusOK},
			{Name: "comp_channel", Status: state.StatusOK},
			{Name: "srq", Status: state.StatusOK},
			{Name: "qp", Status: state.StatusOK, Skips: []api.Skip{{Subject: "raw_packet", Reason: state.SkipNotPermitted, Detail: "ibv_create_qp: EPERM: raw packets need CAP_NET_RAW"}}},
			{Name: "notification", Status: state.StatusOK},
		},
		Sizes: []api.Size{
			{Object: "cq", Profile: "small", Attribute: "entries", Requested: 16, Actual: 31},
			{Object: "cq", Profile: "large", Attribute: "entries", Requested: 4096, Actual: 8191},
			{Object: "srq", Profile: "small", Attribute: "work_requests", Requested: 16, Actual: 16, Queried: new(int64(31))},
			{Object: "srq", Profile: "large", Attribute: "work_requests", Requested: 4096, Actual: 4096, Queried: new(int64(4096))},
			{Object: "qp_rc", Profile: "small", Attribute: "send_work_requests", Requested: 16, Actual: 16},
			{Object: "qp_rc", Profile: "large", Attribute: "send_work_requests", Configured: new(int64(99999)), LimitName: "max_qp_wr", Requested: 32768, Actual: 32768},
			{Object: "qp_ud", Profile: "small", Attribute: "send_work_requests", Requested: 16, Actual: 16},
			{Object: "qp_ud", Profile: "large", Attribute: "send_work_requests", Requested: 32768, Actual: 32768},
			{Object: "qp_rc", Profile: "small", Attribute: "inline_bytes", Requested: 64, Actual: 64},
			{Object: "qp_rc", Profile: "large", Attribute: "inline_bytes", Requested: 220, Actual: 200},
		},
		MaxInline: []api.MaxInline{{Type: "rc", Bytes: 956, Result: state.InlineSent}, {Type: "ud", Bytes: 220, Result: state.InlineUntried}},
		Registrations: []api.Registration{
			{Memory: state.MemoryPage, Bytes: 4 << 10, Result: state.MemoryRegistered, Duration: 9.12e-6},
			{Memory: state.MemoryMany, Bytes: 2 << 20, Result: state.MemoryRefused, By: state.RefusedByDevice, Errno: "ENOMEM", Detail: "ibv_reg_mr on rxe0: ENOMEM"},
			{Memory: state.MemoryDMABuf, Bytes: 2 << 20, Result: state.MemoryNotSupported, Detail: "ibv_reg_dmabuf_mr on rxe0: EOPNOTSUPP"},
		},
		Latencies: []api.Latency{
			{Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Samples: 800, P50: 4.81e-6, P99: 9.12e-6, Distribution: bins(3.2e-6, 20, 180, 420, 160, 19, 0, 0, 1)},
			{Port: 1, Path: state.PathLoopback, Mode: state.ModePoll, Samples: 100, P50: 0.914e-6, P99: 1.2e-6, Distribution: bins(0.7e-6, 30, 60, 10)},
		},
		Vectors: vectors(8, 4.8e-6),
		Contracts: &api.Contracts{
			Run: &api.Run{Started: began(), Duration: 2.31, Outcome: state.OutcomeOK}, Holds: 22, Skipped: 1,
			Verdicts: []api.Contract{{
				Name: "qp_destroy_busy_multicast", Severity: state.SeverityCritical, Verdict: state.VerdictSkipped, Reason: state.SkipNotSupported,
				Observed: "the device says max_mcast_grp 0",
			}, {Name: "notify_any", Severity: state.SeverityCritical, Verdict: state.VerdictHolds}},
		},
		Resources: &api.Resources{
			Run: &api.Run{Started: began(), Duration: 0.0113, Outcome: state.OutcomeOK}, Taken: began(), PIDsVisible: new(true),
			Types: []api.Type{
				{Type: "pd", Objects: 3, User: 2, Kernel: 1, Limit: new(int64(8388608)), Orphaned: new(int64)},
				{Type: "cq", Objects: 66, User: 64, Kernel: 2, Limit: new(int64(16777216)), Orphaned: new(int64)},
				{Type: "qp", Objects: 37, User: 35, Kernel: 2, Limit: new(int64(131072)), Orphaned: new(int64)},
				{Type: "ctx", Objects: 1, User: 1},
			},
			QueuePairs: []api.QueuePairs{{Type: "rc", State: "rts", Objects: 35}, {Type: "gsi", State: "rts", Objects: 2}},
			Owners: []api.Owner{{
				PID: 4711, Comm: "trainer", ContainerID: "b81f6a2e9d3c47058e1f2a3b", PodUID: "7e41b9a8-03cd-4d5f-8a16-c2f9e0d7b354",
				Types:   []api.TypeCount{{Type: "cq", Objects: 64}, {Type: "qp", Objects: 35}, {Type: "pd", Objects: 2}, {Type: "ctx", Objects: 1}},
				Memlock: &api.Memlock{Pinned: 96 << 20, Limit: new(int64(1 << 30))},
			}},
			Cgroups: []api.Cgroup{
				{Cgroup: "/kubepods.slice/pod7e41b9a8", Resource: "hca_handle", Objects: 1, Limit: new(int64(8))},
				{Cgroup: "/kubepods.slice/pod7e41b9a8", Resource: "hca_object", Objects: 101},
			},
		},
		Hardware: hardware(),
	}
}

// hardware returns what the kernel tells of a healthy adapter.
func hardware() *api.Hardware {
	return &api.Hardware{
		Read: began(), Driver: "mlx5_core",
		Adapter: &api.Adapter{
			PCI: "0000:3b:00.0", Slot: "4", NUMANode: new(0), BoardID: "MT_0000000838", DriverVersion: "6.12.9", Role: "pf",
			Link: &api.PCILink{Address: "0000:3b:00.0", Speed: 32e9, MaxSpeed: 32e9, Width: 16, MaxWidth: 16}, AER: &api.AER{Correctable: 3},
		},
		Ports: []api.HardwarePort{{
			Number: 1, LinkLayer: "Ethernet", State: "active", Rate: 400e9, MaxRate: 400e9, Width: 4, Speed: 100e9, Netdev: "eth2", MTU: 9000,
			GIDs: 4, RoCEv2IPv4: new(3), Link: &api.Link{Active: true, Ups: 1, Downs: 1, Recent: []time.Time{began().Add(-26 * time.Hour)}},
			Counters: []api.Counter{
				{Metric: "rdma_port_receive_bytes_total", Counter: "port_rcv_data", Value: 1 << 40},
				{Metric: "rdma_port_receive_packets_total", Counter: "port_rcv_packets", Value: 1 << 30},
				{Metric: "rdma_port_cnps_sent_total", Counter: "np_cnp_sent", Value: 4711},
				{Metric: "rdma_port_symbol_errors_total", Counter: "symbol_error"},
			},
		}},
		Interrupts: []api.Interrupt{{Vector: 0, IRQ: 120, Name: "mlx5_comp0@pci:0000:3b:00.0", CPUs: "0-3", Effective: "0", Count: 99}},
	}
}

// worn returns a device whose hardware is not as it should be.
func worn() api.Device {
	d := ill(healthy("mlx5_0"), api.Finding{
		Kind: health.FindingPortDown, Severity: api.SeverityWarning, Subject: "port 1", Message: "Port 1 flaps.", Action: "Look at the cable.",
	})
	h := d.Hardware
	h.Failures, h.Failure, h.Reading = 2, "timed out after 4s", "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence"
	h.Adapter.Link.Speed, h.Adapter.Link.Width, h.Adapter.AER.Fatal = 16e9, 8, 1
	h.Adapter.Bottleneck = &api.PCILink{Address: "0000:3a:00.0", Speed: 8e9, MaxSpeed: 8e9, Width: 4, MaxWidth: 4}
	p := &h.Ports[0]
	p.Rate, p.Width, p.GIDs, p.RoCEv2IPv4, p.GIDChanges, p.Link.Downs = 100e9, 1, 2, nil, 7, 41
	p.Refused = []api.RefusedCounters{{Group: state.GroupHardware, Errno: "EINVAL", Detail: "refused"}}
	h.Refused = []api.RefusedCounters{{Group: state.GroupHardware, Errno: "EIO", Detail: "refused"}}
	p.Counters = append(p.Counters,
		api.Counter{Metric: "rdma_port_link_downed_total", Counter: "link_downed", Value: 41},
		api.Counter{Metric: "rdma_port_pfc_frames_received_total", Counter: "rx_prio3_pause", Priority: "3", Value: 5})
	p.Saturated = []string{"local_link_integrity_errors"}
	// A second port of which only the kernel tells.
	h.Ports = append(h.Ports, api.HardwarePort{Number: 2, LinkLayer: "InfiniBand", State: "down"})
	return d
}

// knowing returns a device that breaks contracts as its driver is known to, and no
// others.
func knowing() api.Device {
	d := healthy("hns_0")
	d.Identity.Driver = "hns"
	d.Contracts.Holds, d.Contracts.Violated, d.Contracts.KnownViolated = 21, 1, 1
	d.Contracts.Verdicts = append([]api.Contract{{
		Name: "cq_at_least_requested", Severity: state.SeverityCritical, Verdict: state.VerdictViolated, Observed: "asked→given: 256→255",
		Known: true, Fact: "cqe is the index of the last entry: one less than the queue has.", Source: "Linux: set_cq_param in drivers/infiniband/hw/hns/hns_roce_cq.c",
	}}, d.Contracts.Verdicts...)
	d.Known = []api.Known{
		{
			Contract: "cq_at_least_requested", Verdict: state.VerdictViolated, Observed: "asked→given: 256→255",
			Fact: "cqe is the index of the last entry: one less than the queue has.", Source: "Linux: set_cq_param in drivers/infiniband/hw/hns/hns_roce_cq.c",
			Remedy: "Ask for more entries than are needed.",
		},
		{
			Contract: "qp_recv_caps_ignored_with_srq", Verdict: state.VerdictHolds, Observed: "both 0: created",
			Fact: "The sizes of the receive queue are held against the limits.", Source: "rdma-core: verify_qp_create_cap in providers/hns/hns_roce_u_verbs.c",
		},
	}
	return d
}

// bins returns bins that have these samples, from one bound on.
func bins(from float64, samples ...int) []api.Bin {
	const ratio = 1.333521432 // 8 bins to a power of ten
	var all []api.Bin
	for _, n := range samples {
		if n > 0 {
			all = append(all, api.Bin{From: from, To: from * ratio, Samples: n})
		}
		from *= ratio
	}
	return all
}

// vectors returns n vectors that take about as long as each other.
func vectors(n int, p50 float64) []api.Vector {
	var all []api.Vector
	for i := range n {
		all = append(all, api.Vector{
			Number: i, Port: 1, Path: state.PathLoopback, Samples: 100, P50: p50 * (1 + float64(i%3)/10), P99: 2 * p50, Measured: began(),
		})
	}
	return all
}

// ill gives a device a finding, and the health that comes of it.
func ill(d api.Device, f api.Finding) api.Device {
	d.Findings = append(d.Findings, f)
	switch f.Severity {
	case api.SeverityCritical:
		d.Health, d.Headline = api.HealthCritical, f.Message
	case api.SeverityWarning:
		if d.Health != api.HealthCritical {
			d.Health, d.Headline = api.HealthWarning, f.Message
		}
	}
	return d
}

func stuck() api.Device {
	d := ill(healthy("mlx5_0"), api.Finding{
		Kind: health.FindingStuck, Severity: api.SeverityCritical, Subject: "pid 12345",
		Message: "A process of the exporter (probes or contract run), pid 12345, was killed and has not ended since 2026-03-14 15:09:26 UTC, in ibv_destroy_qp.",
		Action:  "See what the kernel waits for, as root: `cat /proc/12345/stack`, and `dmesg`. Nothing can kill it: a reset of the device may free it; if that waits as well, restart the host.",
	})
	d.Stuck = []api.Stuck{{Kind: state.KindProbe, PID: 12345, Verb: "ibv_destroy_qp", Since: began()}}
	d.Run = &api.Run{Started: began(), Duration: 10, Outcome: state.OutcomeTimeout, Error: "timed out after 10s in ibv_destroy_qp; the child cannot be killed", Verb: "ibv_destroy_qp"}
	d.Probes, d.Latencies, d.Vectors, d.Contracts, d.Sizes, d.MaxInline = d.Probes[:2], nil, nil, nil, nil, nil
	return d
}

func violated() api.Device {
	d := ill(healthy("siw0"), api.Finding{
		Kind: health.FindingContract, Severity: api.SeverityCritical, Subject: "notify_any",
		Message: "The device breaks the contract. Asked: a successful completion after ibv_req_notify_cq. Expected: an event. Observed: none within 500ms.",
		Action:  "See docs/reference/contracts.md#notify_any.",
	})
	d.Contracts.Holds, d.Contracts.Violated = 21, 1
	d.Contracts.Verdicts = append([]api.Contract{{
		Name: "notify_any", Severity: state.SeverityCritical, Verdict: state.VerdictViolated,
		Asked: "a successful completion after ibv_req_notify_cq with solicited_only 0", Expected: "an event", Observed: "no event within 500ms; the completion was there",
	}}, d.Contracts.Verdicts...)
	return d
}

func leaking() api.Device {
	d := ill(healthy("rxe0"), api.Finding{
		Kind: health.FindingLeaked, Severity: api.SeverityWarning, Subject: "the exporter's own objects",
		Message: "Left behind by ended children of the exporter: 3 objects (2 qp, 1 cq).",
		Action:  "If it does not go away, stop probing the device: `--device.exclude=rxe0`.",
	})
	d.Resources.Types[1].Leaked, d.Resources.Types[2].Leaked, d.Resources.Types[2].Orphaned = 1, 2, new(int64(5))
	d.Resources.Types[1].Exhausted = &api.Exhausted{Objects: 4012, At: d.Resources.Taken, Verb: "ibv_create_cq", Errno: "ENOMEM"}
	d.Resources.Left = []api.Left{
		{
			Context: 5, PID: 4711, Comm: "trainer", ContainerID: "3f2a1b2c3d4e5f60", PodUID: "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", Types: []api.TypeCount{{Type: "qp", Objects: 5}, {Type: "cq", Objects: 1}},
			FirstSeen: d.Resources.Taken.Add(-2 * time.Hour), LastSeen: d.Resources.Taken.Add(-time.Hour), Since: d.Resources.Taken.Add(-30 * time.Minute), Until: d.Resources.Taken,
		},
		{Context: 9, Run: "probe run, timeout in ibv_destroy_cq", Types: []api.TypeCount{{Type: "cq", Objects: 1}}, Since: d.Resources.Taken.Add(-3 * time.Hour), Until: d.Resources.Taken.Add(-2 * time.Hour)},
	}
	d.Resources.Types[2].Limit = new(int64(38))
	d.Resources.Types[0].Incomplete = state.IncompleteMaxObjects
	grows := api.Growth{From: 20, To: 37, Over: 3480, PerHour: 18, OnlyGrows: true, UntilLimit: new(200.0)}
	d.Resources.Types[2].Growth = &grows
	steady := grows
	steady.To, steady.Steady = 35, true
	d.Resources.Growers = []api.Grower{{PID: 4711, Comm: "trainer", ContainerID: "b81f6a2e9d3c4705", PodUID: "7e41b9a8-03cd-4d5f-8a16-c2f9e0d7b354", Type: "qp", Growth: steady}, {PID: 977, Type: "cm_id", Growth: api.Growth{To: 9, Over: 1200, PerHour: 27}}}
	return d
}

func denied() api.Device {
	d := api.Device{Name: "rxe0", Present: true, Failures: 1}
	d.Run = &api.Run{Started: began(), Duration: 0.012, Outcome: state.OutcomeFailed, Error: "the device cannot be opened: ibv_open_device on rxe0: EACCES (permission denied)"}
	d.Contracts = &api.Contracts{Run: &api.Run{Started: began(), Duration: 0.011, Outcome: state.OutcomeFailed, Error: d.Run.Error}}
	d.Resources = &api.Resources{Run: &api.Run{Started: began(), Duration: 0.01, Outcome: state.OutcomeOK}, Taken: began(), PIDsVisible: new(false), Types: healthy("").Resources.Types[:1]}
	d.Resources.Types[0].Limit = nil // which the device tells, and it could not be asked
	return ill(d, api.Finding{
		Kind: health.FindingUnusable, Severity: api.SeverityCritical, Subject: "the device",
		Message: "The device cannot be opened: ibv_open_device on rxe0: EACCES (permission denied).",
		Action:  "Let the exporter open the device node: `ls -l /dev/infiniband`.",
	})
}

func memlock() api.Device {
	d := healthy("rxe0")
	d.Probes[4].Failures = []api.Failure{{Subject: "loopback any", Verb: "ibv_reg_mr", Errno: "ENOMEM", Message: "no memory region for the messages"}}
	d.Probes[4].Status, d.Run.Outcome, d.Run.Error = state.StatusFailed, state.OutcomeFailed, "notification: loopback any: no memory region"
	return ill(d, api.Finding{
		Kind: health.FindingProbeFailed, Severity: api.SeverityWarning, Subject: "notification",
		Message: "Memory could not be registered: the limit on locked memory, RLIMIT_MEMLOCK, is 0 bytes.",
		Action:  "Raise the limit: LimitMEMLOCK=infinity.",
	})
}

// evil is text that does harm where it is not looked at.
const evil = "\x1b[31m\x1b]0;owned\x07<b>\"'&\n\r\t\x00\x9b2J\u202e\u009b31mé中\xff\xfe\U0001f600\u0301"

// hostile is a device all of whose text is evil, even what never can be.
func hostile() api.Device {
	d := violated()
	d.Name, d.Headline = "mlx"+evil, evil
	d.Findings = append(d.Findings, api.Finding{Kind: evil, Severity: evil, Subject: evil, Message: evil, Meaning: evil, Action: evil})
	for i := range d.Findings {
		f := &d.Findings[i]
		f.Subject, f.Message, f.Action, f.Kind = evil, evil, evil, api.Kind(evil)
	}
	*d.Identity = api.Identity{Transport: evil, Firmware: evil, NodeGUID: evil, CompletionVectors: -1}
	d.Ports = append(d.Ports, api.Port{Number: -7, State: evil, LinkLayer: evil, ActiveMTU: -1})
	d.Run.Outcome, d.Run.Error, d.Run.Verb = evil, evil, evil
	d.Stuck = []api.Stuck{{Kind: evil, PID: -1, Verb: evil}}
	for i := range d.Probes {
		d.Probes[i] = api.Probe{
			Name: evil, Status: evil, Failures: []api.Failure{{Subject: evil, Verb: evil, Errno: evil, Message: evil}},
			Skips: []api.Skip{{Subject: evil, Reason: evil, Detail: evil}},
		}
	}
	for i := range d.Sizes {
		s := &d.Sizes[i]
		s.Object, s.Profile, s.Attribute, s.LimitName = evil, evil, evil, evil
	}
	d.MaxInline[0].Type = evil
	for i := range d.Latencies {
		l := &d.Latencies[i]
		l.Path, l.Mode, l.Missed, l.Spurious, l.Misdirected, l.Missing, l.Unsuccessful = evil, evil, 1, 2, 3, 4, 5
	}
	for i := range d.Vectors {
		d.Vectors[i].Path, d.Vectors[i].Slow, d.Vectors[i].Wrong = evil, true, 3
	}
	d.Contracts.Run.Error = evil
	for i := range d.Contracts.Verdicts {
		v := &d.Contracts.Verdicts[i]
		v.Name, v.Severity, v.Reason, v.Asked, v.Expected, v.Observed = evil, evil, evil, evil, evil, evil
	}
	h := d.Hardware
	h.Failure, h.Reading, h.Driver = evil, evil, evil
	*h.Adapter = api.Adapter{
		PCI: evil, Slot: evil, NUMANode: new(-1), BoardID: evil, Model: evil, DriverVersion: evil, Role: evil, Parent: evil, VFs: -1, NetnsMode: evil,
		Link: &api.PCILink{Address: evil, Speed: -1, Width: -1}, Bottleneck: &api.PCILink{Address: evil}, AER: &api.AER{Fatal: math.MaxInt64, Nonfatal: 1},
	}
	h.Ports = append(h.Ports, api.HardwarePort{
		Number: -1, LinkLayer: evil, State: evil, Rate: math.MaxInt64, MaxRate: -1, Width: -1, Netdev: evil, Bond: evil, GIDs: -1,
		Refused: []api.RefusedCounters{{Group: evil, Errno: evil, Detail: evil}}, Counters: []api.Counter{{Metric: evil, Priority: evil, Value: 1}}, Saturated: []string{evil},
	})
	r := d.Resources
	r.Run.Error = evil
	for i := range r.Types {
		r.Types[i].Type, r.Types[i].Incomplete, r.Types[i].Others = evil, evil, 3
	}
	r.QueuePairs[0] = api.QueuePairs{Type: evil, State: evil, Objects: 1}
	o := &r.Owners[0]
	o.Comm, o.ContainerID, o.PodUID, o.Types[0].Type = evil, evil, evil, evil
	for i := range r.Cgroups {
		r.Cgroups[i] = api.Cgroup{Cgroup: evil, ContainerID: evil, PodUID: evil, Resource: evil}
	}
	return d
}

// fleet is a host with many devices with many vectors, of which some have troubles.
func fleet() *api.Status {
	var devices []api.Device
	for i := range 64 {
		d := healthy(fmt.Sprintf("mlx5_%02d", i))
		d.Vectors, d.Identity.CompletionVectors = vectors(64, 5e-6), 64
		switch {
		case i == 7:
			d.Vectors[33].Slow, d.Vectors[33].P50, d.Vectors[33].P99 = true, 81e-6, 120e-6
			d = ill(d, api.Finding{
				Kind: health.FindingSlowVector, Severity: api.SeverityWarning, Harm: health.HarmDegradation, Subject: "vector 33",
				Message: "vector 33 takes 81µs in the median, where 5µs are usual.", Action: "See /proc/interrupts.",
			})
		case i >= 60:
			d.Ports[0].State = "down"
			d = ill(d, api.Finding{
				Kind: health.FindingProbeFailed, Severity: api.SeverityCritical, Subject: d.Name,
				Message: "ibv_create_qp failed with ENOMEM.", Action: "See `dmesg`.",
			})
			for n := range 1 + 8*(i%2) { // Those of odd number have more than fit.
				d = ill(d, api.Finding{
					Kind: health.FindingPortDown, Severity: api.SeverityInfo, Subject: fmt.Sprintf("port %d", n+1),
					Message: fmt.Sprintf("Port %d is down.", n+1), Action: "See `rdma link show`.",
				})
			}
		case i >= 40 && i < 50:
			d = ill(d, api.Finding{
				Kind: health.FindingMemlock, Severity: api.SeverityWarning, Subject: "pid 4711 (trainer)",
				Message: "It has 96 % of its locked memory.", Action: "Raise the limit.",
			})
		}
		devices = append(devices, d)
	}
	return of(devices...)
}

// nobody is a host without devices.
func nobody() *api.Status {
	s := of()
	s.Health = api.HealthWarning
	s.Problem = &api.Problem{
		Kind: health.ProblemNoDevices, Health: api.HealthWarning, Message: "No RDMA device was found.",
		Action: "See what the host has: `ls /sys/class/infiniband` and `rdma link`.",
	}
	return s
}

// leftAlone is a device that others use, since its contracts were judged or before.
func leftAlone(judged bool) api.Device {
	d := healthy("mlx5_0")
	busy := &api.Light{Reason: state.LightBusy, Detail: "mpirun (process 4711) holds queue pairs"}
	run := *d.Run
	run.Light, d.Run, d.Headline = busy, &run, api.NothingToDo+" Left alone for now: "+busy.Detail+"."
	contracts := api.Contracts{PutOff: busy}
	if judged {
		contracts = *d.Contracts
		contracts.PutOff = busy
	} else {
		d.Name = "mlx5_1"
	}
	d.Contracts = &contracts
	return d
}
