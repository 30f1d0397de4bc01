package collector_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

func started() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 250e6, time.UTC) }

// info returns a device with two ports, and limits of counted objects only.
func info() *state.Device {
	d := &state.Device{
		Transport: "InfiniBand", Firmware: "16.35.4030",
		VendorID: 0x2c9, VendorPartID: 4119, HWVersion: 0,
		NodeGUID: "b83f:d203:0012:3456", CompletionVectors: 8,
		Ports: []state.Port{
			{Number: 1, State: "active", LinkLayer: "Ethernet", ActiveMTU: 4096},
			{Number: 2, State: "down", LinkLayer: "Ethernet", ActiveMTU: 1024},
		},
	}
	for i, name := range []string{"max_qp", "max_cq", "max_mr", "max_pd", "max_srq"} {
		d.Limits = append(d.Limits, state.Limit{Name: name, Value: 16 << i})
	}
	return d
}

// whole is info with all limits.
func whole() *state.Device {
	d := info()
	d.Limits = nil
	for i, name := range []string{
		"max_qp", "max_qp_wr", "max_sge", "max_sge_rd", "max_cq", "max_cqe", "max_mr", "max_mr_size",
		"max_pd", "max_qp_rd_atom", "max_ee_rd_atom", "max_res_rd_atom", "max_qp_init_rd_atom",
		"max_ee_init_rd_atom", "max_ee", "max_rdd", "max_mw", "max_raw_ipv6_qp", "max_raw_ethy_qp",
		"max_mcast_grp", "max_ah", "max_srq", "max_srq_wr", "max_srq_sge",
	} {
		d.Limits = append(d.Limits, state.Limit{Name: name, Value: 1 << i})
	}
	return d
}

// run is a successful probe run: three profiles, three QP types, all verbs, four of eight
// completion vectors.
func run(device string) *state.Run {
	cq := state.Probe{Name: "cq", Status: state.StatusOK, Duration: 3 * time.Millisecond}
	channel := state.Probe{
		Name: "comp_channel", Status: state.StatusOK, Duration: time.Millisecond,
		Memory: []state.Memory{{Object: "comp_channel"}},
	}
	srq := state.Probe{Name: "srq", Status: state.StatusOK, Duration: 2 * time.Millisecond}
	qp := state.Probe{Name: "qp", Status: state.StatusOK, Duration: 9 * time.Millisecond}
	for i, profile := range []string{"small", "medium", "large"} {
		n := int64(16) << (2 * i)
		cq.CQs = append(cq.CQs, state.CQSize{Profile: profile, Requested: n, Actual: 2*n - 1})
		cq.Memory = append(cq.Memory, state.Memory{Object: "cq", Profile: profile, Virtual: n * 64, Locked: n * 64})
		srq.SRQs = append(srq.SRQs, state.SRQSize{
			Profile:   profile,
			Requested: state.SRQAttr{WorkRequests: n, ScatterGather: 1},
			Actual:    state.SRQAttr{WorkRequests: 2*n - 1, ScatterGather: 3},
			Queried:   &state.SRQAttr{WorkRequests: 2*n - 1, ScatterGather: 3},
		})
		srq.Memory = append(srq.Memory, state.Memory{Object: "srq", Profile: profile, Virtual: n * 96, Locked: n * 96})
		for _, kind := range []string{"rc", "uc", "ud"} {
			qp.QPs = append(qp.QPs, state.QPSize{
				Type: kind, Profile: profile,
				Requested: state.QPCap{SendWorkRequests: n, RecvWorkRequests: n, SendScatterGather: 1, RecvScatterGather: 1, InlineBytes: 64},
				Actual:    state.QPCap{SendWorkRequests: n + 1, RecvWorkRequests: n, SendScatterGather: 2, RecvScatterGather: 1, InlineBytes: 96},
			})
			qp.Memory = append(qp.Memory, state.Memory{Object: "qp_" + kind, Profile: profile, Virtual: n * 256, Locked: n * 256})
		}
	}
	for _, kind := range []string{"rc", "uc", "ud"} {
		qp.Inline = append(qp.Inline, state.InlineMax{Type: kind, Bytes: 928})
	}
	return &state.Run{
		Kind: state.KindProbe, Device: device, Started: started(), Duration: 42 * time.Millisecond,
		Outcome: state.OutcomeOK, Info: whole(),
		Probes: []state.Probe{cq, channel, srq, qp, notification(), registrations()}, Calls: calls(),
		CPU: 7 * time.Millisecond, MaxRSS: 9 << 20,
	}
}

// short is run with few limits and calls.
func short(device string) *state.Run {
	r := run(device)
	r.Info, r.Calls = info(), r.Calls[:9]
	return r
}

func registrations() state.Probe {
	p := state.Probe{Name: "mr", Status: state.StatusOK, Duration: time.Millisecond}
	for i, m := range state.RegisteredMemories() {
		p.Registrations = append(p.Registrations, state.Registration{
			Memory: m, Bytes: 2 << 20, Result: state.MemoryRegistered, Duration: time.Duration(i+1) * 10 * time.Microsecond,
		})
	}
	return p
}

// asked returns the requested sizes of run.
func asked() state.Probe {
	p := run("").Probes
	qps := slices.DeleteFunc(p[3].QPs, func(q state.QPSize) bool { return q.Type != "rc" })
	return state.Probe{CQs: p[0].CQs, SRQs: p[2].SRQs, QPs: qps}
}

// notification measures vectors 0 to 3 of port 1. Port 2 is down.
func notification() state.Probe {
	p := state.Probe{
		Name: "notification", Status: state.StatusOK, Duration: 20 * time.Millisecond,
		Skips: []state.Skip{{Subject: state.Subject{Object: "port 2"}, Reason: state.SkipPortDown, Detail: "port 2 is down"}},
	}
	for _, path := range state.LatencyPaths() {
		for _, mode := range state.LatencyModes() {
			for vector := range 4 {
				p.Latencies = append(p.Latencies, latency(1, path, mode, vector))
			}
		}
	}
	return p
}

// latency has 100 samples from 2 µs, or 1 µs with polling.
func latency(port int, path state.LatencyPath, mode state.LatencyMode, vector int) state.Latency {
	l := state.Latency{Port: port, Path: path, Mode: mode, Vector: vector}
	for i := range 100 {
		sample := time.Duration(1000 + 1000*vector + 50*i)
		if mode != state.ModePoll {
			sample += time.Microsecond
			l.Arms = append(l.Arms, time.Duration(200+10*i))
		}
		l.Samples = append(l.Samples, sample)
	}
	l.Summarise()
	return l
}

func contractRun(device string) *state.Run {
	r := &state.Run{
		Kind: state.KindContract, Device: device, Started: started().Add(time.Minute),
		Duration: 1500 * time.Millisecond, Outcome: state.OutcomeOK, Info: info(), Calls: calls(),
	}
	names := map[state.Severity][]string{
		state.SeverityCritical: {
			"cq_at_least_requested", "cq_comp_vector_accepted", "cq_destroy_busy", "channel_destroy_busy", "channel_steering",
			"srq_at_least_requested", "srq_destroy_busy", "qp_at_least_requested", "qp_sq_sig_all", "cq_resize_at_least_requested",
			"notify_any", "notify_solicited_delivers_solicited", "notify_solicited_delivers_errors", "notify_identifies_cq",
		},
		state.SeverityWarning: {"srq_reports_actual", "srq_limit_ignored", "qp_reports_actual", "qp_recv_caps_ignored_with_srq"},
		state.SeverityInfo: {
			"cq_comp_vector_rejected", "qp_srq_type_restricted", "notify_one_shot", "notify_requires_arming",
			"notify_solicited_skips_unsolicited",
		},
	}
	for _, severity := range state.Severities() {
		for _, name := range names[severity] {
			r.Contracts = append(r.Contracts, state.Contract{Name: name, Severity: severity, Verdict: state.VerdictHolds})
		}
	}
	return r
}

func contractsOf(r *state.Run) *state.Contracts {
	last := r.Compact()
	last.Contracts = nil
	return &state.Contracts{Last: last, Verdicts: r.Contracts}
}

// calls returns 9 calls of each of 22 verbs.
func calls() []state.Call {
	var calls []state.Call
	for i, verb := range []string{
		"ibv_get_device_list", "ibv_open_device", "ibv_query_device", "ibv_query_port",
		"ibv_query_gid", "ibv_alloc_pd", "ibv_reg_mr", "ibv_create_cq", "ibv_resize_cq", "ibv_create_comp_channel",
		"ibv_create_srq", "ibv_query_srq", "ibv_modify_srq", "ibv_create_qp", "ibv_modify_qp", "ibv_query_qp",
		"ibv_destroy_qp", "ibv_destroy_srq", "ibv_destroy_comp_channel", "ibv_destroy_cq",
		"ibv_dealloc_pd", "ibv_close_device",
	} {
		for n := range 9 {
			calls = append(calls, state.Call{Verb: verb, Duration: time.Duration(i+1) * time.Duration(n+1) * 3 * time.Microsecond})
		}
	}
	return calls
}

func stateOf(r *state.Run) state.DeviceState {
	s := state.DeviceState{Name: r.Device, Present: true, Info: r.Info, Last: r.Compact()}
	s.Full = s.Last
	if r.Outcome == state.OutcomeOK {
		s.LastSuccess = r.Started
	}
	return s
}

// bare is a probe run that only queried the device.
func bare(device string) *state.Run {
	return &state.Run{Kind: state.KindProbe, Device: device, Started: started(), Outcome: state.OutcomeOK, Info: info()}
}

func inventoryRun(device string) *state.Run {
	return &state.Run{
		Kind: state.KindInventory, Device: device, Started: started().Add(2 * time.Minute),
		Duration: 15 * time.Millisecond, Outcome: state.OutcomeOK,
	}
}

func resourcesOf(r *state.Run, i *state.Inventory) *state.Resources {
	return &state.Resources{Last: r.Compact(), Inventory: i, Taken: r.Started}
}

// inventory has owners in a container each, with objects of every type, and other owners.
func inventory(owners int) *state.Inventory {
	i := &state.Inventory{
		Index: 1, PIDsVisible: true,
		CQEntries: []state.OwnerSum{{Owner: state.OwnerUser, Sum: int64(owners) * 4096}, {Owner: state.OwnerKernel, Sum: 1024}},
		MRBytes:   []state.OwnerSum{{Owner: state.OwnerUser, Sum: int64(owners) << 30}, {Owner: state.OwnerKernel}},
		QueuePairs: []state.QueuePairCount{
			{Type: "gsi", State: "rts", Objects: 1}, {Type: "rc", State: "reset", Objects: 3}, {Type: "rc", State: "rts", Objects: 8*int64(owners) + 2},
		},
	}
	for _, kind := range state.ResourceTypes() {
		i.Objects = append(i.Objects,
			state.ObjectCount{Type: kind, Owner: state.OwnerUser, Objects: 8*int64(owners) + 5},
			state.ObjectCount{Type: kind, Owner: state.OwnerKernel, Objects: 1})
		i.Others = append(i.Others, state.TypeCount{Type: kind, Objects: 5})
	}
	for n := range owners {
		o := state.Owner{
			PID: 4711 + n, Comm: "trainer", ContainerID: fmt.Sprintf("%064x", n), PodUID: fmt.Sprintf("0f1e2d3c-4b5a-6978-8796-%012x", n),
			Memlock: &state.Memlock{Pinned: int64(n+1) << 20, Locked: 4096, Limit: -1},
		}
		o.Cgroup = "/kubepods.slice/kubepods-pod" + o.PodUID + ".slice/cri-containerd-" + o.ContainerID + ".scope"
		for _, kind := range state.ResourceTypes() {
			o.Objects = append(o.Objects, state.TypeCount{Type: kind, Objects: 8})
		}
		i.Owners = append(i.Owners, o)
	}
	return i
}

// troubled is a device whose inventories found every problem.
func troubled(name string) state.DeviceState {
	i := inventory(2)
	i.Ownerless = []state.TypeCount{{Type: "qp", Objects: 3}, {Type: "pd", Objects: 1}}
	for n := range i.Objects {
		o := &i.Objects[n]
		switch {
		case o.Owner != state.OwnerUser:
		case o.Type == "qp": // Three without an owner, and one of pid 77.
			o.Objects += 4
		case o.Type == "pd", o.Type == "cq": // One without an owner, and one of pid 78.
			o.Objects++
		}
	}
	// Memory regions were only counted.
	i.Objects = slices.DeleteFunc(i.Objects, func(o state.ObjectCount) bool { return o.Type == "mr" })
	i.Objects = append(i.Objects, state.ObjectCount{Type: "mr", Owner: state.OwnerUnknown, Objects: 120000})
	i.Others = slices.DeleteFunc(i.Others, func(o state.TypeCount) bool { return o.Type == "mr" })
	i.MRBytes = nil
	for n := range i.Owners {
		o := &i.Owners[n]
		o.Objects = slices.DeleteFunc(o.Objects, func(c state.TypeCount) bool { return c.Type == "mr" })
		i.Cgroups = append(i.Cgroups,
			state.CgroupUse{Cgroup: o.Cgroup, ContainerID: o.ContainerID, PodUID: o.PodUID, Resource: "hca_handle", Current: 1, Limit: int64(n)},
			state.CgroupUse{Cgroup: o.Cgroup, ContainerID: o.ContainerID, PodUID: o.PodUID, Resource: "hca_object", Current: 38, Limit: -1})
	}
	i.Owners = append(i.Owners,
		// It ended before it could be asked.
		state.Owner{PID: 77, Objects: []state.TypeCount{{Type: "qp", Objects: 1}}},
		state.Owner{PID: 78, Comm: "caf\xe9 \"x\"", Objects: []state.TypeCount{{Type: "cq", Objects: 1}}, Memlock: &state.Memlock{Pinned: 1 << 16, Limit: 1 << 16}})
	i.Incomplete = []state.Incomplete{{Type: "mr", Reason: state.IncompleteMaxObjects, Detail: "120000 objects"}}
	i.QueuePairs = append(i.QueuePairs, state.QueuePairCount{Type: "rc", State: "err", Objects: 2})
	i.OversizedCQs = &state.CQSum{Objects: 1, Entries: 1 << 20, Largest: 1 << 20, PID: 78}

	last := inventoryRun(name)
	last.Outcome, last.Started, last.Duration = state.OutcomeTimeout, last.Started.Add(time.Hour), 30*time.Second
	s := stateOf(bare(name))
	s.Resources = resourcesOf(inventoryRun(name), i)
	s.Resources.Last = last.Compact()
	s.Resources.OrphanedSince = started()
	s.Last.Refused = []state.Refused{{Type: "mr", Verb: "ibv_reg_mr", Errno: "ENOMEM", Objects: 130000}}
	s.Resources.Leaked = []state.Leaked{{Type: "cq", Objects: 2, Since: started()}, {Type: "mr", Objects: 1, Since: started()}}
	s.Resources.Stuck = &state.Stuck{PID: 815, Since: started()}
	return s
}

// troubles has findings of every kind.
func troubles() []health.Finding {
	var all []health.Finding
	for _, kind := range health.Kinds() {
		all = append(all, health.Finding{Kind: kind, Severity: health.SeverityWarning})
	}
	return append(all,
		health.Finding{Kind: health.FindingNearLimit, Severity: health.SeverityCritical}, health.Finding{Kind: health.FindingNearLimit, Severity: health.SeverityWarning},
		hung())
}

func hung() health.Finding {
	return health.Finding{Kind: health.FindingStuck, Severity: health.SeverityCritical}
}

// onlyCounted is an inventory without lists of objects.
func onlyCounted() *state.Inventory {
	i := &state.Inventory{Index: 1, PIDsVisible: true}
	for n, kind := range state.ResourceTypes() {
		i.Objects = append(i.Objects, state.ObjectCount{Type: kind, Owner: state.OwnerUnknown, Objects: int64(10 + n)})
		i.Incomplete = append(i.Incomplete, state.Incomplete{Type: kind, Reason: state.IncompleteTimeout})
	}
	return i
}

// hardwareOf is a healthy ConnectX-7 with one port, all counters of its driver, and
// interrupts.
func hardwareOf(name string, interrupts int) *state.HardwareState {
	port := state.HardwarePort{
		Number: 1, LinkLayer: "Ethernet", State: "active", PhysState: "link_up",
		Rate: 400e9, MaxRate: 400e9, Width: 4, Speed: 100e9, Netdev: "eth2", Bond: "bond0", Ifindex: 4, MTU: 9000,
		RoCEv2IPv4: new(3), TemperatureCelsius: new(46.25),
	}
	for i, of := range []state.GID{
		{GID: "fe80:0000:0000:0000:0e42:a1ff:fe65:bafe", Type: "roce_v1", Family: "ipv6"},
		{GID: "fe80:0000:0000:0000:0e42:a1ff:fe65:bafe", Type: "roce_v2", Family: "ipv6"},
		{GID: "0000:0000:0000:0000:0000:ffff:0a01:0203", Type: "roce_v1", Family: "ipv4"},
		{GID: "0000:0000:0000:0000:0000:ffff:0a01:0203", Type: "roce_v2", Family: "ipv4"},
	} {
		of.Index, of.Netdev = i, "eth2"
		port.GIDs = append(port.GIDs, of)
	}
	all := func(group state.CounterGroup, value uint64, names string) {
		for n, name := range strings.Fields(names) {
			if value > 0 {
				value += uint64(n)
			}
			port.Counters = append(port.Counters, state.Counter{Group: group, Name: name, Value: value})
		}
	}
	all(state.GroupPort, 1<<40, `port_rcv_data port_xmit_data port_rcv_packets port_xmit_packets
		unicast_rcv_packets unicast_xmit_packets multicast_rcv_packets multicast_xmit_packets port_xmit_wait`)
	all(state.GroupPort, 0, `VL15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery local_link_integrity_errors
		port_rcv_constraint_errors port_rcv_errors port_rcv_remote_physical_errors port_rcv_switch_relay_errors
		port_xmit_constraint_errors port_xmit_discards symbol_error`)
	all(state.GroupHardware, 0, `implied_nak_seq_err roce_adp_retrans rx_icrc_encapsulated`)
	all(state.GroupHardware, 1000, `duplicate_request local_ack_timeout_err np_cnp_sent np_ecn_marked_roce_packets
		out_of_buffer out_of_sequence packet_seq_err req_cqe_error req_cqe_flush_error req_remote_access_errors req_remote_invalid_request
		resp_cqe_error resp_cqe_flush_error resp_local_length_error resp_remote_access_errors rnr_nak_retry_err
		roce_adp_retrans_to roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans
		rp_cnp_handled rp_cnp_ignored rx_atomic_requests rx_dct_connect rx_read_requests rx_write_requests
		req_rnr_retries_exceeded req_transport_retries_exceeded`)
	for _, name := range ethtoolCounters() {
		all(state.GroupEthtool, 0, name)
	}
	h := &state.Hardware{
		Device: name, Driver: "mlx5_core", Table: "mlx5", Ports: []state.HardwarePort{port},
		Identity: state.Adapter{
			PCI: "0000:3b:00.0", Slot: "4", NUMANode: 0, BoardID: "MT_0000000838", Model: "MT4129", DriverVersion: "6.12.9",
			Role: "pf", VFs: 2, NetnsMode: "shared", AER: new(state.AER),
			Link: &state.PCILink{Address: "0000:3b:00.0", Speed: 32e9, MaxSpeed: 32e9, Width: 16, MaxWidth: 16},
		},
	}
	for n := range interrupts {
		h.Interrupts = append(h.Interrupts, state.Interrupt{Vector: n, IRQ: 120 + n, Name: fmt.Sprint("mlx5_comp", n), CPUs: "0-63", Effective: fmt.Sprint(n), Count: uint64(1000 + n)})
	}
	return &state.HardwareState{
		Latest: h, Read: started().Add(3 * time.Minute),
		Links: []state.Link{{Port: 1, Active: true, Since: started().Add(-time.Hour), Ups: 2, Downs: 2, GIDChanges: 1}},
	}
}

// ethtoolCounters returns the names of the counters that the network device of a port of mlx5 has.
func ethtoolCounters() []string {
	var names []string
	for _, t := range counters.Tables() {
		for _, r := range t.Rows {
			if r.Group != state.GroupEthtool || t.Name != "" && t.Name != "mlx5" || slices.Contains(names, r.Name) {
				continue
			}
			if !strings.Contains(r.Name, "N") {
				names = append(names, r.Name)
				continue
			}
			for priority := range 8 {
				names = append(names, strings.Replace(r.Name, "N", fmt.Sprint(priority), 1))
			}
		}
	}
	return names
}

func hardwareRun(device string) *state.Run {
	return &state.Run{Kind: state.KindHardware, Device: device, Started: started().Add(3 * time.Minute), Duration: 15 * time.Millisecond, Outcome: state.OutcomeOK}
}

// drivers has a device of each known driver with all its counters, and one of an unknown
// driver. Raw counters are off: they have the names of the drivers.
func drivers() scene {
	s := scene{snapshot: &state.Snapshot{Provider: "libibverbs", Ready: true, Hardware: hardwareRun("")}, on: collector.Everything()}
	s.on[collector.RawCounters] = false
	for i, t := range counters.Tables() {
		port := state.HardwarePort{Number: 1}
		for n, r := range t.Rows {
			port.Counters = append(port.Counters, state.Counter{
				Group: r.Group, Name: r.Name, Value: uint64(100 + n),
			})
			if c := &port.Counters[n]; c.Group == state.GroupEthtool {
				c.Name = strings.Replace(c.Name, "N", "3", 1)
			}
		}
		h := &state.Hardware{Device: fmt.Sprintf("%s_%d", cmp.Or(t.Name, "unknown"), i), Table: t.Name, Ports: []state.HardwarePort{port}}
		s.snapshot.Devices = append(s.snapshot.Devices, state.DeviceState{Name: h.Device, Present: true, Hardware: &state.HardwareState{Latest: h}})
	}
	return s
}

// hardware has devices with all results of readings.
func hardware() scene {
	s := scene{snapshot: &state.Snapshot{Provider: "libibverbs", Ready: true, Hardware: hardwareRun("")}}
	add := func(name string, change func(*state.HardwareState)) {
		h := hardwareOf(name, 2)
		change(h)
		s.snapshot.Devices = append(s.snapshot.Devices, state.DeviceState{Name: name, Present: name != "gone", Hardware: h})
		run := hardwareRun(name)
		if h.Failures > 0 {
			run.Outcome = state.OutcomeFailed
		}
		s.runs = append(s.runs, run)
	}
	// few leaves a device three counters.
	few := func(h *state.HardwareState) {
		p := &h.Latest.Ports[0]
		p.Counters = slices.DeleteFunc(p.Counters, func(c state.Counter) bool {
			return c.Name != "symbol_error" && c.Name != "rp_cnp_handled" && c.Name != "link_down_events"
		})
	}
	stuck := &state.Stuck{PID: 815, Since: started()}
	add("well", func(*state.HardwareState) {})
	add("old", func(h *state.HardwareState) {
		h.Failures, h.Failure, h.Reading, h.Stuck = 2, "killed", "counters/symbol_error", stuck
		few(h)
	})
	add("half", func(h *state.HardwareState) {
		h.Failures, h.Failure, h.Latest.Failure = 1, "half of it", "half of it"
		few(h)
		h.Latest.Ports[0].Refused = []state.RefusedCounters{{Group: state.GroupHardware, Errno: "EINVAL"}}
	})
	add("never", func(h *state.HardwareState) { *h = state.HardwareState{Failures: 1, Failure: "x"} })
	add("waiting", func(h *state.HardwareState) { *h = state.HardwareState{} })
	add("gone", func(h *state.HardwareState) { h.Stuck = stuck })
	add("worn", func(h *state.HardwareState) {
		few(h)
		of := h.Latest.Ports[0].Counters
		for i := range of {
			switch of[i].Name {
			case "symbol_error":
				of[i].Value = 1<<16 - 1
			case "rp_cnp_handled":
				of[i].Value = 1<<64 - 1
			case "link_down_events":
				of[i].Value = 3
			}
		}
		h.Latest.Ports[0].LinkDownReason, h.Latest.Ports[0].LinkDownDetail = new(0), new(1)
		h.Latest.Counters = []state.Counter{{Group: state.GroupHardware, Name: "of_the_device", Value: 7}}
		h.Latest.Identity.Link.Speed, h.Latest.Identity.Link.Width = 16e9, 8
		h.Latest.Identity.Bottleneck = &state.PCILink{Address: "0000:3a:00.0", Speed: 8e9, MaxSpeed: 32e9, Width: 8, MaxWidth: 16}
		h.Latest.Identity.AER = &state.AER{Correctable: 3, Nonfatal: 2, Fatal: 1}
		h.Latest.Identity.NUMANode, h.Latest.Identity.Role, h.Latest.Identity.Parent = -1, "vf", "0000:3b:00.0"
		h.Drops = []state.CounterDrop{{Port: 1, Group: state.GroupHardware, Name: "out_of_sequence", Resets: 2, Wraps: 1}, {Group: state.GroupHardware, Name: "of_the_device", Wraps: 3}}
	})
	return s
}
