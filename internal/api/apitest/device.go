// Package apitest has hosts in every state that people look at, for the tests of
// whatever shows them.
package apitest

import (
	"fmt"
	"math"
	"time"

	"rdma_exporter/internal/state"
)

// Now is the moment at which the hosts are looked at.
func Now() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

// Device returns a healthy device with so many completion vectors.
func Device(name string, vectors int) state.DeviceState {
	started := Now().Add(-12 * time.Second)
	run := &state.Run{
		Kind: state.KindProbe, Device: name, Started: started, Duration: 1234 * time.Millisecond,
		Outcome: state.OutcomeOK, Depth: state.DepthFull,
	}
	info := &state.Device{
		Transport: "InfiniBand", Firmware: "28.39.1002", VendorID: 0x02c9, VendorPartID: 4129, HWVersion: 0,
		NodeGUID: "0c42:a103:0065:bafe", CompletionVectors: vectors,
		Limits: []state.Limit{
			{Name: "max_qp", Value: 131072},
			{Name: "max_qp_wr", Value: 32768},
			{Name: "max_sge", Value: 30},
			{Name: "max_cq", Value: 16777216},
			{Name: "max_cqe", Value: 4194303},
			{Name: "max_srq", Value: 8388608},
			{Name: "max_mr", Value: 16777216},
			{Name: "max_pd", Value: 8388608},
		},
		Extended: []state.Limit{{Name: "hca_core_clock", Value: 1000000}, {Name: "max_cq_period", Value: 4095}},
		Ports:    []state.Port{{Number: 1, State: "active", LinkLayer: "Ethernet", ActiveMTU: 4096}},
	}
	run.Info, run.Probes = info, probes(vectors)
	return state.DeviceState{
		Name: name, Present: true, Info: info, Last: run, Full: run, LastSuccess: started,
		Contracts: contracts(), Resources: resources(name),
		Hardware: hardware(name, vectors),
	}
}

// probes returns what the probes of a healthy device found, whose notification was measured
// on some vectors.
func probes(vectors int) []state.Probe {
	sizes := []struct {
		profile                      string
		wr, sge, inline              int64
		givenWR, givenSGE, givenData int64
	}{
		{"small", 16, 1, 0, 16, 1, 0},
		{"medium", 256, 2, 64, 256, 2, 64},
		{"large", 1000, 4, 220, 1024, 4, 220},
	}
	cq := state.Probe{Name: "cq", Status: state.StatusOK, Duration: 40 * time.Millisecond}
	channel := state.Probe{
		Name: "comp_channel", Status: state.StatusOK, Duration: 3 * time.Millisecond,
		Memory: []state.Memory{{Object: "comp_channel"}},
	}
	srq := state.Probe{Name: "srq", Status: state.StatusOK, Duration: 61 * time.Millisecond}
	qp := state.Probe{
		Name: "qp", Status: state.StatusOK, Duration: 330 * time.Millisecond,
		Inline: []state.InlineMax{{Type: "rc", Bytes: 956}, {Type: "ud", Bytes: 828}},
		Skips:  []state.Skip{{Subject: state.Subject{Object: "qp", QPType: "raw_packet"}, Reason: state.SkipNotPermitted, Detail: "ibv_create_qp: EPERM"}},
	}
	for _, s := range sizes {
		cq.CQs = append(cq.CQs, state.CQSize{Profile: s.profile, Requested: s.wr, Actual: 2*s.givenWR - 1})
		cq.Memory = append(cq.Memory, state.Memory{Object: "cq", Profile: s.profile, Virtual: 64 * s.givenWR, Locked: 64 * s.givenWR})
		srq.SRQs = append(srq.SRQs, state.SRQSize{
			Profile: s.profile, Requested: state.SRQAttr{WorkRequests: s.wr, ScatterGather: s.sge},
			Actual:  state.SRQAttr{WorkRequests: s.givenWR, ScatterGather: s.givenSGE},
			Queried: &state.SRQAttr{WorkRequests: s.givenWR, ScatterGather: s.givenSGE},
		})
		for _, kind := range []string{"rc", "ud"} {
			qp.QPs = append(qp.QPs, state.QPSize{
				Type: kind, Profile: s.profile,
				Requested: state.QPCap{
					SendWorkRequests: s.wr, RecvWorkRequests: s.wr, SendScatterGather: s.sge, RecvScatterGather: s.sge, InlineBytes: s.inline,
				},
				Actual: state.QPCap{
					SendWorkRequests: s.givenWR, RecvWorkRequests: s.givenWR, SendScatterGather: s.givenSGE, RecvScatterGather: s.givenSGE, InlineBytes: s.givenData,
				},
			})
		}
	}
	cq.Clamps = []state.Clamp{{
		Subject: state.Subject{Object: "cq", Profile: "large"}, Attribute: "cqe", Limit: "max_cqe", Configured: 4000, Used: 1000,
	}}
	times := state.Probe{Name: "notification", Status: state.StatusOK, Duration: 700 * time.Millisecond}
	for _, l := range []struct {
		path   state.LatencyPath
		mode   state.LatencyMode
		median time.Duration
	}{
		{state.PathLoopback, state.ModeAny, 9 * time.Microsecond},
		{state.PathLoopback, state.ModeSolicited, 10 * time.Microsecond},
		{state.PathLoopback, state.ModePoll, 2 * time.Microsecond},
		{state.PathFlush, state.ModeAny, 6 * time.Microsecond},
		{state.PathFlush, state.ModePoll, 700 * time.Nanosecond},
	} {
		if l.path == state.PathLoopback && l.mode == state.ModeAny {
			for v := range vectors {
				median := l.median + time.Duration(v*37%11)*80*time.Nanosecond
				times.Latencies = append(times.Latencies, latency(l.path, l.mode, v, median))
			}
			continue
		}
		for vector := range 4 {
			times.Latencies = append(times.Latencies, latency(l.path, l.mode, vector, l.median))
		}
	}
	times.InlineSends = []state.InlineSend{
		{Type: "rc", Bytes: 956, Result: state.InlineSent},
		{Type: "ud", Bytes: 828, Result: state.InlineUntried, Detail: "a datagram of port 1 has no more than 512 bytes"},
	}
	times.Methods = []state.Method{
		{Port: 1, Path: state.PathLoopback, By: "GID 3, ::ffff:192.0.2.1 (RoCE v2)", InsteadOf: "GID 1, ::ffff:198.51.100.1 (RoCE v2): the work request was taken and did not complete"},
		{Port: 1, Path: state.PathFlush, By: "sends posted to a UD QP in the error state"},
	}
	memory := state.Probe{Name: "mr", Status: state.StatusOK, Duration: 2 * time.Millisecond, Registrations: []state.Registration{
		{Memory: state.MemoryPage, Bytes: 4 << 10, Result: state.MemoryRegistered, Duration: 9 * time.Microsecond},
		{Memory: state.MemoryMany, Bytes: 2 << 20, Result: state.MemoryRegistered, Duration: 110 * time.Microsecond},
	}}
	return []state.Probe{cq, channel, srq, qp, times, memory}
}

// latency returns a measurement with samples around a median, as a snapshot keeps it.
func latency(path state.LatencyPath, mode state.LatencyMode, vector int, median time.Duration) state.Latency {
	const samples = 100
	l := state.Latency{Port: 1, Path: path, Mode: mode, Vector: vector}
	for i := range samples {
		// The quantiles of a distribution with a long upper end.
		q := (float64(i) + 0.5) / samples
		spread := math.Log(q/(1-q)) / 8
		if spread > 0 {
			spread *= 2
		}
		l.Samples = append(l.Samples, time.Duration(float64(median)*math.Exp(spread)))
	}
	l.Summarise()
	l.Bins = state.Distribution(l.Samples)
	l.Samples = nil
	return l
}

// contracts returns the verdicts on a healthy device.
func contracts() *state.Contracts {
	judged := Now().Add(-20 * time.Minute)
	c := &state.Contracts{Last: &state.Run{
		Kind: state.KindContract, Started: judged, Duration: 4 * time.Second, Outcome: state.OutcomeOK,
	}}
	for _, v := range []state.Contract{
		{
			Name: "cq_at_least_requested", Severity: state.SeverityCritical, Verdict: state.VerdictHolds,
			Asked: "completion queues of 1, 2, 3, 4, 5, 7, 8, 9 entries", Expected: "at least as many", Observed: "at least as many, for each",
		},
		{
			Name: "cq_destroy_busy", Severity: state.SeverityCritical, Verdict: state.VerdictHolds,
			Asked: "ibv_destroy_cq of a queue that a queue pair uses", Expected: "it fails", Observed: "EBUSY",
		},
		{
			Name: "srq_reports_actual", Severity: state.SeverityWarning, Verdict: state.VerdictHolds,
			Asked: "shared receive queues of several sizes", Expected: "ibv_query_srq tells what was written back", Observed: "it does",
		},
		{
			Name: "cq_resize_at_least_requested", Severity: state.SeverityWarning, Verdict: state.VerdictSkipped,
			Reason: state.SkipNotSupported, Asked: "ibv_resize_cq to several sizes", Observed: "ibv_resize_cq: EOPNOTSUPP",
		},
		{
			Name: "notify_any", Severity: state.SeverityCritical, Verdict: state.VerdictHolds,
			Asked: "a completion on an armed queue", Expected: "an event", Observed: "an event, after each of 3 completions",
		},
	} {
		v.CheckedAt, v.Duration = judged, 15*time.Millisecond
		c.Verdicts = append(c.Verdicts, v)
	}
	return c
}

const (
	container = "3f2a1b2c3d4e5f60718293a4b5c6d7e8f90112233445566778899aabbccddeef"
	pod       = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
	podCgroup = "/kubepods.slice/kubepods-pod0f1e2d3c.slice/cri-containerd-" + container + ".scope"
)

// resources returns what the kernel tracks on a device that a job uses.
func resources(name string) *state.Resources {
	taken := Now().Add(-30 * time.Second)
	i := &state.Inventory{
		PIDsVisible: true,
		QueuePairs: []state.QueuePairCount{
			{Type: "gsi", State: "rts", Objects: 1}, {Type: "rc", State: "rts", Objects: 2048}, {Type: "ud", State: "rts", Objects: 12},
		},
		Owners: []state.Owner{
			{
				PID: 4711, Comm: "python3", Cgroup: podCgroup, ContainerID: container, PodUID: pod,
				Objects: []state.TypeCount{{Type: "pd", Objects: 8}, {Type: "cq", Objects: 64}, {Type: "qp", Objects: 2000}, {Type: "mr", Objects: 512}, {Type: "ctx", Objects: 8}},
				Memlock: &state.Memlock{Pinned: 3 << 30, Locked: 4 << 20, Limit: -1},
			},
			{
				PID: 977, Comm: "ibacm", Objects: []state.TypeCount{{Type: "pd", Objects: 1}, {Type: "cq", Objects: 1}, {Type: "qp", Objects: 12}, {Type: "ctx", Objects: 1}},
				Memlock: &state.Memlock{Pinned: 1 << 20, Limit: 8 << 20},
			},
		},
		Others: []state.TypeCount{{Type: "qp", Objects: 48}},
		Cgroups: []state.CgroupUse{
			{Cgroup: podCgroup, ContainerID: container, PodUID: pod, Resource: "hca_handle", Current: 8, Limit: 100},
			{Cgroup: podCgroup, ContainerID: container, PodUID: pod, Resource: "hca_object", Current: 2584, Limit: -1},
		},
	}
	user := map[string]int64{"pd": 9, "cq": 65, "qp": 2060, "mr": 512, "ctx": 9}
	for _, kind := range state.ResourceTypes() {
		i.Objects = append(i.Objects, state.ObjectCount{Type: kind, Owner: state.OwnerUser, Objects: user[kind]})
		if kind == "pd" || kind == "cq" || kind == "qp" {
			i.Objects = append(i.Objects, state.ObjectCount{Type: kind, Owner: state.OwnerKernel, Objects: 1})
		}
	}
	return &state.Resources{
		Last: &state.Run{
			Kind: state.KindInventory, Device: name, Started: taken, Duration: 85 * time.Millisecond, Outcome: state.OutcomeOK,
		},
		Inventory: i, Taken: taken,
	}
}

// Many returns a host with so many devices, of which some are in trouble.
func Many(devices, vectors int) Host {
	var all []device
	for n := range devices {
		d := device{DeviceState: Device(fmt.Sprintf("mlx5_%02d", n), vectors)}
		switch n {
		case 7:
			d.found = slow(&d.DeviceState, vectors-1)
		case 23:
			d.found = violate(&d.DeviceState)
		case 42:
			d.found = hang(&d.DeviceState)
		}
		all = append(all, d)
	}
	return hostOf("many", all...)
}
