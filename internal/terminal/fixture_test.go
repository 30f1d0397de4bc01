package terminal_test

import (
	"fmt"
	"time"

	"rdma_exporter/internal/report"
	"rdma_exporter/internal/status"
)

// began is when everything in the fixtures happened.
func began() time.Time { return time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC) }

// of returns the status of these devices, as status.Of sums it up.
func of(devices ...status.Device) *status.Status {
	s := &status.Status{
		Version: status.Version, Generated: began().Add(5 * time.Second), Exporter: "1.2.3", Host: "node17", Provider: "libibverbs",
		Ready: true, Health: status.HealthOK, Devices: devices,
	}
	healths := status.Healths()
	rank := func(h status.Health) (n int) {
		for i, other := range healths {
			if h == other {
				n = i
			}
		}
		return n
	}
	for _, severity := range report.Severities() {
		count := status.SeverityCount{Severity: severity}
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
	return s
}

// healthy returns a device of which there is all to tell and nothing to complain.
func healthy(name string) status.Device {
	return status.Device{
		Name: name, Present: true, Health: status.HealthOK, Headline: "There is nothing to be done.", Findings: []status.Finding{},
		Identity: &status.Identity{
			Transport: "InfiniBand", Firmware: "20.31.1014", VendorID: 0x2c9, VendorPartID: 4123, NodeGUID: "0c42:a103:00de:ad01", CompletionVectors: 8,
		},
		Ports: []status.Port{{Number: 1, State: "active", LinkLayer: "Ethernet", ActiveMTU: 4096}},
		Run:   &status.Run{Started: began(), Duration: 0.4127, Outcome: report.OutcomeOK},
		Probes: []status.Probe{
			{Name: "cq", Status: report.StatusOK},
			{Name: "comp_channel", Status: report.StatusOK},
			{Name: "srq", Status: report.StatusOK},
			{Name: "qp", Status: report.StatusOK, Skips: []status.Skip{{Subject: "raw_packet", Reason: report.SkipNotPermitted, Detail: "ibv_create_qp: EPERM: raw packets need CAP_NET_RAW"}}},
			{Name: "notification", Status: report.StatusOK},
		},
		Sizes: []status.Size{
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
		MaxInline: []status.MaxInline{{Type: "rc", Bytes: 956, Result: report.InlineSent}, {Type: "ud", Bytes: 220, Result: report.InlineUntried}},
		Latencies: []status.Latency{
			{Port: 1, Path: report.PathLoopback, Mode: report.ModeAny, Samples: 800, P50: 4.81e-6, P99: 9.12e-6, Distribution: bins(3.2e-6, 20, 180, 420, 160, 19, 0, 0, 1)},
			{Port: 1, Path: report.PathLoopback, Mode: report.ModePoll, Samples: 100, P50: 0.914e-6, P99: 1.2e-6, Distribution: bins(0.7e-6, 30, 60, 10)},
		},
		Vectors: vectors(8, 4.8e-6),
		Contracts: &status.Contracts{
			Run: &status.Run{Started: began(), Duration: 2.31, Outcome: report.OutcomeOK}, Holds: 22, Skipped: 1,
			Verdicts: []status.Contract{{
				Name: "qp_destroy_busy_multicast", Severity: report.SeverityCritical, Verdict: report.VerdictSkipped, Reason: report.SkipNotSupported,
				Observed: "the device says max_mcast_grp 0",
			}, {Name: "notify_any", Severity: report.SeverityCritical, Verdict: report.VerdictHolds}},
		},
		Resources: &status.Resources{
			Run: &status.Run{Started: began(), Duration: 0.0113, Outcome: report.OutcomeOK}, Taken: began(), PIDsVisible: new(true),
			Types: []status.Type{
				{Type: "pd", Objects: 3, User: 2, Kernel: 1, Limit: new(int64(8388608)), Orphaned: new(int64)},
				{Type: "cq", Objects: 66, User: 64, Kernel: 2, Limit: new(int64(16777216)), Orphaned: new(int64)},
				{Type: "qp", Objects: 37, User: 35, Kernel: 2, Limit: new(int64(131072)), Orphaned: new(int64)},
				{Type: "ctx", Objects: 1, User: 1},
			},
			QueuePairs: []status.QueuePairs{{Type: "rc", State: "rts", Objects: 35}, {Type: "gsi", State: "rts", Objects: 2}},
			Owners: []status.Owner{{
				PID: 4711, Comm: "trainer", ContainerID: "b81f6a2e9d3c47058e1f2a3b", PodUID: "7e41b9a8-03cd-4d5f-8a16-c2f9e0d7b354",
				Types:   []status.TypeCount{{Type: "cq", Objects: 64}, {Type: "qp", Objects: 35}, {Type: "pd", Objects: 2}, {Type: "ctx", Objects: 1}},
				Memlock: &status.Memlock{Pinned: 96 << 20, Limit: new(int64(1 << 30))},
			}},
			Cgroups: []status.Cgroup{
				{Cgroup: "/kubepods.slice/pod7e41b9a8", Resource: "hca_handle", Objects: 1, Limit: new(int64(8))},
				{Cgroup: "/kubepods.slice/pod7e41b9a8", Resource: "hca_object", Objects: 101},
			},
		},
	}
}

// knowing returns a device that breaks contracts as its driver is known to, and no
// others.
func knowing() status.Device {
	d := healthy("hns_0")
	d.Identity.Driver = "hns"
	d.Contracts.Holds, d.Contracts.Violated, d.Contracts.KnownViolated = 21, 1, 1
	d.Contracts.Verdicts = append([]status.Contract{{
		Name: "cq_at_least_requested", Severity: report.SeverityCritical, Verdict: report.VerdictViolated, Observed: "asked→given: 256→255",
		Known: true, Fact: "cqe is the index of the last entry: one less than the queue has.", Source: "Linux: set_cq_param in drivers/infiniband/hw/hns/hns_roce_cq.c",
	}}, d.Contracts.Verdicts...)
	d.Known = []status.Known{
		{
			Contract: "cq_at_least_requested", Verdict: report.VerdictViolated, Observed: "asked→given: 256→255",
			Fact: "cqe is the index of the last entry: one less than the queue has.", Source: "Linux: set_cq_param in drivers/infiniband/hw/hns/hns_roce_cq.c",
			Remedy: "Ask for more entries than are needed.",
		},
		{
			Contract: "qp_recv_caps_ignored_with_srq", Verdict: report.VerdictHolds, Observed: "both 0: created",
			Fact: "The sizes of the receive queue are held against the limits.", Source: "rdma-core: verify_qp_create_cap in providers/hns/hns_roce_u_verbs.c",
		},
	}
	return d
}

// bins returns bins that have these samples, from one bound on.
func bins(from float64, samples ...int) []status.Bin {
	const ratio = 1.333521432 // 8 bins to a power of ten
	var all []status.Bin
	for _, n := range samples {
		if n > 0 {
			all = append(all, status.Bin{From: from, To: from * ratio, Samples: n})
		}
		from *= ratio
	}
	return all
}

// vectors returns n vectors that take about as long as each other.
func vectors(n int, p50 float64) []status.Vector {
	var all []status.Vector
	for i := range n {
		all = append(all, status.Vector{
			Number: i, Port: 1, Path: report.PathLoopback, Samples: 100, P50: p50 * (1 + float64(i%3)/10), P99: 2 * p50, Measured: began(),
		})
	}
	return all
}

// ill gives a device a finding, and the health that comes of it.
func ill(d status.Device, f status.Finding) status.Device {
	d.Findings = append(d.Findings, f)
	switch f.Severity {
	case report.SeverityCritical:
		d.Health, d.Headline = status.HealthCritical, f.Message
	case report.SeverityWarning:
		if d.Health != status.HealthCritical {
			d.Health, d.Headline = status.HealthWarning, f.Message
		}
	}
	return d
}

func stuck() status.Device {
	d := ill(healthy("mlx5_0"), status.Finding{
		Kind: report.FindingStuck, Severity: report.SeverityCritical, Subject: "pid 12345",
		Message: "A child of the probes or the contract audit, pid 12345, was killed and has not ended since 2026-03-14T15:09:26Z, in ibv_destroy_qp.",
		Action:  "See what the kernel waits for, as root: `cat /proc/12345/stack`, and `dmesg`. Nothing can kill it: a reset of the device may free it; if that waits as well, restart the host.",
	})
	d.Stuck = []status.Stuck{{Kind: report.KindProbe, PID: 12345, Verb: "ibv_destroy_qp", Since: began()}}
	d.Run = &status.Run{Started: began(), Duration: 10, Outcome: report.OutcomeTimeout, Error: "no end within 10s in ibv_destroy_qp; the child cannot be killed", Verb: "ibv_destroy_qp"}
	d.Probes, d.Latencies, d.Vectors, d.Contracts, d.Sizes, d.MaxInline = d.Probes[:2], nil, nil, nil, nil, nil
	return d
}

func violated() status.Device {
	d := ill(healthy("siw0"), status.Finding{
		Kind: report.FindingContract, Severity: report.SeverityCritical, Subject: "notify_any",
		Message: "The device breaks the contract. Asked: a successful completion after ibv_req_notify_cq. Expected: an event. Observed: none within 500ms.",
		Action:  "See docs/contracts.md#notify_any.",
	})
	d.Contracts.Holds, d.Contracts.Violated = 21, 1
	d.Contracts.Verdicts = append([]status.Contract{{
		Name: "notify_any", Severity: report.SeverityCritical, Verdict: report.VerdictViolated,
		Asked: "a successful completion after ibv_req_notify_cq with solicited_only 0", Expected: "an event", Observed: "no event within 500ms; the completion was there",
	}}, d.Contracts.Verdicts...)
	return d
}

func leaking() status.Device {
	d := ill(healthy("rxe0"), status.Finding{
		Kind: report.FindingLeaked, Severity: report.SeverityWarning, Subject: "the exporter's own objects",
		Message: "Left of children of the exporter that have ended: 3 objects (2 qp, 1 cq).",
		Action:  "If it does not go away, stop probing the device: `--device.exclude=rxe0`.",
	})
	d.Resources.Types[1].Leaked, d.Resources.Types[2].Leaked, d.Resources.Types[2].Orphaned = 1, 2, new(int64(5))
	d.Resources.Types[2].Limit = new(int64(38))
	d.Resources.Types[0].Incomplete = report.IncompleteMaxObjects
	return d
}

func denied() status.Device {
	d := status.Device{Name: "rxe0", Present: true, Failures: 1}
	d.Run = &status.Run{Started: began(), Duration: 0.012, Outcome: report.OutcomeFailed, Error: "the device cannot be opened: ibv_open_device on rxe0: EACCES (permission denied)"}
	d.Contracts = &status.Contracts{Run: &status.Run{Started: began(), Duration: 0.011, Outcome: report.OutcomeFailed, Error: d.Run.Error}}
	d.Resources = &status.Resources{Run: &status.Run{Started: began(), Duration: 0.01, Outcome: report.OutcomeOK}, Taken: began(), PIDsVisible: new(false), Types: healthy("").Resources.Types[:1]}
	d.Resources.Types[0].Limit = nil // which the device tells, and it could not be asked
	return ill(d, status.Finding{
		Kind: report.FindingUnusable, Severity: report.SeverityCritical, Subject: "the device",
		Message: "The device cannot be opened: ibv_open_device on rxe0: EACCES (permission denied).",
		Action:  "Let the exporter open the device node: `ls -l /dev/infiniband`.",
	})
}

func memlock() status.Device {
	d := healthy("rxe0")
	d.Probes[4].Failures = []status.Failure{{Subject: "loopback any", Verb: "ibv_reg_mr", Errno: "ENOMEM", Message: "no memory region for the messages"}}
	d.Probes[4].Status, d.Run.Outcome, d.Run.Error = report.StatusFailed, report.OutcomeFailed, "notification: loopback any: no memory region"
	return ill(d, status.Finding{
		Kind: report.FindingProbeFailed, Severity: report.SeverityWarning, Subject: "notification",
		Message: "Memory could not be registered: the limit on locked memory, RLIMIT_MEMLOCK, is 0 bytes.",
		Action:  "Raise the limit: LimitMEMLOCK=infinity.",
	})
}

// evil is text that does harm where it is not looked at.
const evil = "\x1b[31m\x1b]0;owned\x07<b>\"'&\n\r\t\x00\x9b2J\u202e\u009b31mé中\xff\xfe\U0001f600\u0301"

// hostile is a device all of whose text is evil, even what never can be.
func hostile() status.Device {
	d := violated()
	d.Name, d.Headline = "mlx"+evil, evil
	d.Findings = append(d.Findings, status.Finding{Kind: evil, Severity: evil, Subject: evil, Message: evil, Meaning: evil, Action: evil})
	for i := range d.Findings {
		f := &d.Findings[i]
		f.Subject, f.Message, f.Action, f.Kind = evil, evil, evil, report.FindingKind(evil)
	}
	*d.Identity = status.Identity{Transport: evil, Firmware: evil, NodeGUID: evil, CompletionVectors: -1}
	d.Ports = append(d.Ports, status.Port{Number: -7, State: evil, LinkLayer: evil, ActiveMTU: -1})
	d.Run.Outcome, d.Run.Error, d.Run.Verb = evil, evil, evil
	d.Stuck = []status.Stuck{{Kind: evil, PID: -1, Verb: evil}}
	for i := range d.Probes {
		d.Probes[i] = status.Probe{
			Name: evil, Status: evil, Failures: []status.Failure{{Subject: evil, Verb: evil, Errno: evil, Message: evil}},
			Skips: []status.Skip{{Subject: evil, Reason: evil, Detail: evil}},
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
	r := d.Resources
	r.Run.Error = evil
	for i := range r.Types {
		r.Types[i].Type, r.Types[i].Incomplete, r.Types[i].Others = evil, evil, 3
	}
	r.QueuePairs[0] = status.QueuePairs{Type: evil, State: evil, Objects: 1}
	o := &r.Owners[0]
	o.Comm, o.ContainerID, o.PodUID, o.Types[0].Type = evil, evil, evil, evil
	for i := range r.Cgroups {
		r.Cgroups[i] = status.Cgroup{Cgroup: evil, ContainerID: evil, PodUID: evil, Resource: evil}
	}
	return d
}

// fleet is a host with many devices with many vectors, of which some have troubles.
func fleet() *status.Status {
	var devices []status.Device
	for i := range 64 {
		d := healthy(fmt.Sprintf("mlx5_%02d", i))
		d.Vectors, d.Identity.CompletionVectors = vectors(64, 5e-6), 64
		switch {
		case i == 7:
			d.Vectors[33].Slow, d.Vectors[33].P50, d.Vectors[33].P99 = true, 81e-6, 120e-6
			d = ill(d, status.Finding{
				Kind: report.FindingSlowVector, Severity: report.SeverityWarning, Subject: "vector 33",
				Message: "vector 33 takes 81µs in the median, where 5µs are usual.", Action: "See /proc/interrupts.",
			})
		case i >= 60:
			d.Ports[0].State = "down"
			for n := range 1 + 8*(i%2) { // Those of odd number have more than fit.
				d = ill(d, status.Finding{
					Kind: report.FindingPortDown, Severity: report.SeverityInfo, Subject: fmt.Sprintf("port %d", n+1),
					Message: fmt.Sprintf("Port %d is down.", n+1), Action: "See `rdma link show`.",
				})
			}
			d = ill(d, status.Finding{
				Kind: report.FindingProbeFailed, Severity: report.SeverityCritical, Subject: d.Name,
				Message: "ibv_create_qp failed with ENOMEM.", Action: "See `dmesg`.",
			})
		case i >= 40 && i < 50:
			d = ill(d, status.Finding{
				Kind: report.FindingMemlock, Severity: report.SeverityWarning, Subject: "pid 4711 (trainer)",
				Message: "It has 96 % of its locked memory.", Action: "Raise the limit.",
			})
		}
		devices = append(devices, d)
	}
	return of(devices...)
}

// nobody is a host without devices.
func nobody() *status.Status {
	s := of()
	s.Health = status.HealthWarning
	s.Problem = &status.Problem{
		Kind: status.ProblemNoDevices, Health: status.HealthWarning, Message: "No RDMA device was found.",
		Action: "See what the host has: `ls /sys/class/infiniband` and `rdma link`.",
	}
	return s
}

// leftAlone is a device that others use, since its contracts were judged or before.
func leftAlone(judged bool) status.Device {
	d := healthy("mlx5_0")
	busy := &status.Light{Reason: report.LightBusy, Detail: "mpirun (process 4711) holds queue pairs"}
	run := *d.Run
	run.Light, d.Run, d.Headline = busy, &run, status.NothingToDo+" Left alone for the time being: "+busy.Detail+"."
	contracts := status.Contracts{PutOff: busy}
	if judged {
		contracts = *d.Contracts
		contracts.PutOff = busy
	} else {
		d.Name = "mlx5_1"
	}
	d.Contracts = &contracts
	return d
}
