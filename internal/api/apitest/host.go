package apitest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Host is a host in one state.
type Host struct {
	// Name is that of the state, in words that a file may be called by.
	Name     string
	Snapshot *state.Snapshot
	// Found is what is found of devices, by name.
	Found map[string][]health.Finding
	// Accept is what is accepted. Only where something is, it is known since when.
	Accept []health.Accept
}

// Evaluated returns the host as it is judged: for the first time three hours ago, if it is
// known since when.
func (h Host) Evaluated() *health.Host {
	c, at := health.Config{StaleAfter: StaleAfter(), Accept: h.Accept}, Now().Add(-3*time.Hour)
	if h.Accept != nil {
		c.Now = func() time.Time { return at }
	}
	j := health.NewFinder(c, health.History{}, func(d *state.DeviceState) []health.Finding { return Harmed(h.Found[d.Name]) })
	if h.Accept != nil {
		before := *h.Snapshot
		j.Evaluate(&before)
		at = Now()
	}
	return j.Evaluate(h.Snapshot)
}

// Harmed returns findings with the harm that each kind does with its severity, where none
// is said.
func Harmed(all []health.Finding) []health.Finding {
	for i := range all {
		f := &all[i]
		for _, e := range health.Catalogue() {
			if at := slices.Index(e.Severities, f.Severity); f.Harm == "" && e.Kind == f.Kind && at >= 0 {
				f.Harm = e.Harms[min(at, len(e.Harms)-1)]
			}
		}
	}
	return all
}

// Evaluated returns a host of whose devices nothing is found.
func Evaluated(s *state.Snapshot) *health.Host { return Host{Snapshot: s}.Evaluated() }

// Hosts returns a host in each state.
func Hosts() []Host {
	return []Host{
		{Name: "not_listed"},
		{Name: "discovery_failed", Snapshot: &state.Snapshot{
			Provider: "libibverbs", DiscoveryError: "list the RDMA devices: open /sys/class/infiniband: permission denied",
		}},
		{Name: "no_devices", Snapshot: &state.Snapshot{Provider: "libibverbs", Ready: true}},
		hostOf("not_probed", device{DeviceState: state.DeviceState{Name: "mlx5_0", Present: true}}),
		hostOf("healthy", changed(nothing), healthy()),
		hostOf("stuck", changed(hang), healthy()),
		hostOf("contract_violated", changed(violate), healthy()),
		accepting(),
		hostOf("known_of_driver", changed(know)),
		hostOf("leaks", changed(leak), healthy()),
		hostOf("slow_vector", changed(func(d *state.DeviceState) []health.Finding { return slow(d, 13) }), healthy()),
		hostOf("permission_denied", denied()),
		hostOf("memlock_too_small", changed(starve)),
		hostOf("left_alone", changed(leaveAlone), waiting()),
		hostOf("peers", changed(func(d *state.DeviceState) []health.Finding {
			d.Paths, d.Bandwidth = Paths(), Bandwidth()
			return nothing(d)
		})),
		simulated(),
		Hostile(evil),
	}
}

// accepting returns a host of which one finding is accepted, another not any more, and
// something that is not found.
func accepting() Host {
	h := hostOf("accepted", changed(violate), changed(func(d *state.DeviceState) []health.Finding {
		d.Name = "mlx5_1"
		return append(violate(d), health.Finding{
			Kind: health.FindingPortDown, Severity: health.SeverityWarning, Subject: "port 1", Message: "0 of 1 port active: port 1 is down (Ethernet).",
			Meaning: "Nothing gets through the port.", Action: "See `rdma link show`.",
		})
	}))
	h.Accept = []health.Accept{
		{Finding: health.FindingContract, Contract: "notify_any", Reason: "<b>fixed</b> in firmware 29, due in April", Until: "2026-04-30"},
		{Finding: health.FindingPortDown, Device: "mlx5_1", Reason: "not cabled before February", Until: "2026-02-28"},
		{Finding: health.FindingLeaked, Device: "mlx4_.*", Reason: "ticket 4711"},
	}
	return h
}

// device is a device with what is found of it.
type device struct {
	state.DeviceState
	found []health.Finding
}

func hostOf(name string, devices ...device) Host {
	h := Host{Name: name, Snapshot: &state.Snapshot{Provider: "libibverbs", Ready: true}, Found: make(map[string][]health.Finding)}
	for _, d := range devices {
		h.Snapshot.Devices = append(h.Snapshot.Devices, d.DeviceState)
		h.Found[d.Name] = d.found
	}
	return h
}

func healthy() device { return device{DeviceState: Device("mlx5_1", 16)} }

// changed returns a healthy device with one change, which returns what is found then.
func changed(change func(*state.DeviceState) []health.Finding) device {
	d := Device("mlx5_0", 16)
	found := change(&d)
	return device{d, found}
}

func nothing(*state.DeviceState) []health.Finding { return nil }

// leaveAlone makes a device one that others use since its contracts were judged.
func leaveAlone(d *state.DeviceState) []health.Finding {
	run := *d.Last
	run.Depth, run.Reduced = state.DepthReduced, &state.Reduced{Reason: state.ReducedBusy, Detail: "mpirun (process 4711) holds queue pairs"}
	run.Probes = run.Probes[:1]
	d.Last = &run
	contracts := *d.Contracts
	contracts.PutOff = run.Reduced
	d.Contracts = &contracts
	return nil
}

// waiting is a device of which nobody knew who uses it whenever it was probed.
func waiting() device {
	d := Device("mlx5_1", 16)
	run := *d.Last
	run.Depth, run.Reduced = state.DepthReduced, &state.Reduced{Reason: state.ReducedUnknown, Detail: "the kernel does not tell who holds queue pairs: list the devices: operation not permitted"}
	run.Probes = []state.Probe{run.Probes[0]}
	d.Last, d.Full = &run, nil
	d.Contracts = &state.Contracts{Verdicts: []state.Contract{}, PutOff: run.Reduced}
	return device{DeviceState: d}
}

// hang makes the last child of a device one that nothing can kill.
func hang(d *state.DeviceState) []health.Finding {
	started := Now().Add(-2 * time.Hour)
	d.Last = &state.Run{
		Kind: state.KindProbe, Device: d.Name, Started: started, Duration: 10 * time.Second, Outcome: state.OutcomeTimeout,
		Error: "killed at its deadline of 10s, in ibv_destroy_cq, and has not ended since", Verb: "ibv_destroy_cq",
	}
	d.LastSuccess, d.Failures = started.Add(-30*time.Second), 1
	d.Stuck = &state.Stuck{PID: 81433, Verb: "ibv_destroy_cq", Since: started.Add(10 * time.Second)}
	return []health.Finding{{
		Kind: health.FindingStuck, Severity: health.SeverityCritical, Subject: "pid 81433",
		Message: "A process of the exporter (probes or contract run), pid 81433, was killed and has not ended since 2026-03-01 10:00:10 UTC, in ibv_destroy_cq.",
		Meaning: "It waits in the kernel for the device or its driver, where no signal ends it. What it was to do on the device does not go on until it ends, so what is told of it is old. Any program that does the same hangs as well.",
		Action:  "See what the kernel waits for, as root: `cat /proc/81433/stack`, and `dmesg`. Nothing can kill it: a reset of the device or a reload of its driver may free it; if that waits as well, restart the host.",
	}}
}

// violate has a device break contracts.
func violate(d *state.DeviceState) []health.Finding {
	c := *d.Contracts
	c.Verdicts = append([]state.Contract(nil), c.Verdicts...)
	c.Verdicts[4].Verdict, c.Verdicts[4].Observed = state.VerdictViolated, "no event within 2s; the completion was there when the queue was polled"
	c.Verdicts[2].Verdict, c.Verdicts[2].Observed = state.VerdictViolated, "large: created with 1024 work requests, ibv_query_srq tells 1023"
	c.Verdicts[4].Consequence, c.Verdicts[4].Remedy = "A program that sleeps until the next event never wakes.", "Poll with a timeout beside waiting for events; update the driver or firmware."
	c.Verdicts[2].Consequence, c.Verdicts[2].Remedy = "A program that trusts what was written back uses less than it has, or believes to have more.", "Take the sizes from ibv_query_srq."
	d.Contracts = &c
	run := *d.Last
	run.Probes = probes(4)
	run.Probes[2].SRQs[2].Queried.WorkRequests = 1023
	d.Last, d.Full = &run, &run
	return []health.Finding{{
		Kind: health.FindingContract, Severity: health.SeverityCritical, Subject: "notify_any",
		Message:  "The device breaks the contract notify_any: no event within 2s.",
		Evidence: "Observed: no event within 2s; the completion was there when the queue was polled. Expected: an event. Asked: a completion on an armed queue.",
		Meaning:  "A program that relies on this promise of the libibverbs manual hangs or loses data.",
		Action:   "See docs/reference/contracts.md#notify_any: what the manual promises, how it was judged, what it means to programs that rely on it, and how those can do without. Have them do so, and update the driver, the firmware and rdma-core, or report it to the vendor. rdma_contract_violated shows which other devices do the same.",
	}, {
		Kind: health.FindingContract, Severity: health.SeverityWarning, Subject: "srq_reports_actual",
		Message:  "The device breaks the contract srq_reports_actual: large: created with 1024 work requests, ibv_query_srq tells 1023.",
		Evidence: "Observed: large: created with 1024 work requests, ibv_query_srq tells 1023. Expected: ibv_query_srq tells what was written back. Asked: shared receive queues of several sizes.",
		Meaning:  "A program that relies on this promise of the libibverbs manual is told a size or a state wrongly.",
		Action:   "See docs/reference/contracts.md#srq_reports_actual: what the manual promises, how it was judged, what it means to programs that rely on it, and how those can do without. Have them do so, and update the driver, the firmware and rdma-core, or report it to the vendor. rdma_contract_violated shows which other devices do the same.",
	}}
}

// know has a device break and keep contracts that its driver is known to break, and come
// short of sizes as it is known to.
func know(d *state.DeviceState) []health.Finding {
	const source = "Linux: set_cq_param in drivers/infiniband/hw/hns/hns_roce_cq.c"
	info := *d.Info
	info.Driver = "hns"
	d.Info = &info
	c := *d.Contracts
	c.Verdicts = append([]state.Contract(nil), c.Verdicts...)
	for i, v := range []state.Contract{
		{Verdict: state.VerdictViolated, Observed: "asked→given: 256→255", Fact: "cqe is the index of the last entry: one less than the queue has.", Source: source},
		{Verdict: state.VerdictHolds, Observed: "EBUSY", Fact: "A queue in use can be destroyed.", Source: source},
		{Verdict: state.VerdictViolated, Observed: "large: created with 1024 work requests, ibv_query_srq tells 1023", Fact: "The query tells one less.", Remedy: "Take the sizes that ibv_create_srq wrote back.", Source: source},
	} {
		o := &c.Verdicts[i]
		o.Verdict, o.Observed, o.Known, o.Fact, o.Source = v.Verdict, v.Observed, true, v.Fact, v.Source
		o.Remedy = v.Remedy
	}
	d.Contracts = &c
	run := *d.Last
	run.Info, run.Probes = &info, probes(4)
	run.Probes[0].CQs[1].Actual = run.Probes[0].CQs[1].Requested - 1
	run.Probes[0].Known = []state.KnownShortfall{
		{Subject: state.Subject{Object: "cq", Profile: "medium"}, Message: "asked for cqe 256, given 255", Contract: "cq_at_least_requested", Fact: c.Verdicts[0].Fact, Source: source},
	}
	run.Probes[2].SRQs[2].Queried.WorkRequests = 1023
	run.Probes[3].Known = []state.KnownShortfall{
		{Subject: state.Subject{Object: "qp", QPType: "rc", Profile: "large"}, Message: "asked for max_inline_data 64, given 32", Contract: "qp_at_least_requested", Fact: "More inline data than the adapter supports is reduced to that instead of refused.", Source: source},
	}
	d.Last, d.Full = &run, &run
	return nil
}

// leak leaves objects on a device: of the exporter, and of a program that died. It is
// near a limit, too, of the device and of a process.
func leak(d *state.DeviceState) []health.Finding {
	info := *d.Info
	info.Limits = append([]state.Limit(nil), info.Limits...)
	info.Limits[0].Value = 2200
	d.Info = &info
	i := d.Resources.Inventory
	i.Ownerless = []state.TypeCount{{Type: "qp", Objects: 10}, {Type: "pd", Objects: 2}}
	i.Orphans = []state.Orphan{{Context: 7, Objects: i.Ownerless}}
	i.QueuePairs = append(i.QueuePairs, state.QueuePairCount{Type: "rc", State: "err", Objects: 8})
	i.Owners[1].Memlock.Pinned = 8<<20 - 4096
	d.Resources.Leaked = []state.Leaked{{Type: "ctx", Objects: 1, Since: Now().Add(-time.Hour)}, {Type: "cq", Objects: 2, Since: Now().Add(-time.Hour)}}
	d.Resources.LeakedBy = []state.LeakedBy{{
		Context: state.Context{ID: 8}, Kind: state.KindProbe, Started: Now().Add(-time.Hour), Outcome: state.OutcomeTimeout, Verb: "ibv_destroy_cq",
		Objects: []state.TypeCount{{Type: "ctx", Objects: 1}, {Type: "cq", Objects: 2}},
	}}
	d.Resources.OrphanedSince = Now().Add(-10 * time.Minute)
	for minute := range 30 {
		before := *i
		before.Owners = slices.Clone(i.Owners)
		before.Owners[0].Objects = []state.TypeCount{{Type: "qp", Objects: int64(1420 + 20*minute)}, {Type: "mr", Objects: 512}}
		before.Objects = []state.ObjectCount{{Type: "qp", Owner: state.OwnerUser, Objects: int64(1481 + 20*minute)}}
		d.Resources.Samples = state.Sampled(d.Resources.Samples, &before, d.Resources.Taken.Add(time.Duration(2*minute-58)*time.Minute))
	}
	run := *d.Last
	run.Refused = []state.Refused{{Type: "cq", Verb: "ibv_create_cq", Errno: "ENOMEM", Objects: 4012}}
	d.Last, d.Full = &run, &run
	return []health.Finding{{
		Kind: health.FindingMemlock, Severity: health.SeverityCritical, Subject: "pid 977 (ibacm)",
		Message: "7.99 MiB are pinned (VmPin) for pid 977 (ibacm), of the 8 MiB allowed (RLIMIT_MEMLOCK): 99.9 %.",
		Meaning: "Registering memory and creating queues pin memory. At the limit the process is refused both with ENOMEM, although the device has room, unless it has CAP_IPC_LOCK.",
		Action:  "Look at `prlimit --memlock --pid 977` and `grep -E 'VmPin|VmLck' /proc/977/status`. Raise the limit while it runs with `prlimit --pid 977 --memlock=BYTES`, and for its next start: `ulimit -l unlimited` in its shell, LimitMEMLOCK=infinity in its systemd unit or in that of the container runtime, `--ulimit memlock=-1` for docker and podman.",
	}, {
		Kind: health.FindingLeaked, Severity: health.SeverityCritical, Subject: "the exporter's own objects",
		Message: "Left behind by ended children of the exporter: 3 objects (2 cq, 1 ctx). Inventories have found some since 2026-03-01 11:00:00 UTC, for 59 min.",
		Meaning: "The kernel did not take back what the exporter created on the device, as it must when a process ends. Each further run may add to it, and while it is there the device cannot be removed nor its driver unloaded. The same will happen to other programs that end.",
		Action:  "If it does not go away, stop probing the device: `--device.exclude=mlx5_0`. Look at `dmesg` and at `rdma resource show ctx dev mlx5_0`, and report it to the vendor of the driver. Reloading the driver, or a restart of the host, frees the objects.",
	}, {
		Kind: health.FindingNearLimit, Severity: health.SeverityWarning, Subject: "qp",
		Message: "The device has 2061 queue pairs and allows 2200 (max_qp): 93.6 %. The largest owner has 2000: pid 4711 (python3), container 3f2a1b2c3d4e, pod 0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0.",
		Meaning: "At the limit, every process on the host is refused further objects of this type, mostly with ENOMEM: jobs do not start, and connections that broke are not replaced.",
		Action:  "See who holds them: `rdma resource show qp link mlx5_0 pid 4711`, or rdma_resource_owner_objects over time. If an owner has more than it needs, have it close them, or restart it. Otherwise spread the jobs over more devices or hosts, or raise the limit if the driver has a setting for it.",
	}, {
		Kind: health.FindingOrphaned, Severity: health.SeverityWarning, Subject: "user objects",
		Message: "Without a living owner: 12 objects (10 qp, 2 pd). Inventories have found such objects since 2026-03-01 11:50:00 UTC, for 9 min.",
		Meaning: "Mostly the processes that created them have ended, and the kernel has not destroyed them: a driver does not get done with it, or another process inherited the opened device. A program that lives on looks the same if each of its threads that created anything of the opened device has ended. The objects count towards the limits, and while they are there the device cannot be removed nor its driver unloaded.",
		Action:  "Look for processes that still have a device open: `fuser -v /dev/infiniband/uverbs*`. One that is at work is no reason to worry. If none has, or ending those does not free the objects (`rdma resource show qp link mlx5_0` lists them without pid), look at `dmesg` for what the driver waits for. Reloading the driver frees them; if that does not return, only a restart of the host does.",
	}, {
		Kind: health.FindingQPError, Severity: health.SeverityWarning, Subject: "qp",
		Message: "In the state err: 8 queue pairs; of 2069 in all. The inventory does not say which process has them.",
		Meaning: "They move no data until their owner sets them up anew: their connections broke, or their owners are about to close them. Those that stay belong to a program that has not noticed or does not clean up.",
		Action:  "See whose they are: `rdma resource show qp link mlx5_0 state ERR`. Whether they went down together tells the port and the fabric (rdma_port_state, `rdma link`) from a single peer. Then look at what their owner logged, and restart it if it does not recover.",
	}}
}

// slow makes notification on one completion vector take long, on another go wrong,
// and leaves one unmeasured.
func slow(d *state.DeviceState, number int) []health.Finding {
	run := *d.Last
	run.Probes = probes(d.Info.CompletionVectors)
	latencies := run.Probes[4].Latencies
	latencies[number] = latency(state.PathLoopback, state.ModeAny, number, 95*time.Microsecond)
	latencies[3].Missed = 7
	run.Probes[4].Latencies = slices.DeleteFunc(latencies, func(l state.Latency) bool { return l.Mode == state.ModeAny && l.Vector == 1 })
	d.Last, d.Full = &run, &run
	return []health.Finding{{
		Kind: health.FindingNotification, Severity: health.SeverityCritical, Subject: "missed events",
		Message: "7 completions whose event did not come by the deadline. Where: loopback any on port 1, vector 3: 7, while 100 samples went well.",
		Meaning: "A program that sleeps until the event hangs, or goes on with the next event only.",
		Action:  "See in /proc/interrupts, where drivers name theirs by device or PCI address, whether those of the completion vectors are counted at all while programs run. If all missed events are of some vectors, it is their interrupts: reload the driver. Soft-RoCE loses a single event now and then; there, only what repeats matters. Until it is mended, have programs poll with a timeout beside waiting, and update the driver, the firmware and rdma-core, or report it to the vendor.",
	}, {
		Kind: health.FindingSlowVector, Severity: health.SeverityInfo, Subject: fmt.Sprintf("vector %d", number),
		Message: fmt.Sprintf("Of %d completion vectors that were measured, 1 slow: vector %d takes 94.8 µs in the median and 270 µs at the 99th percentile, against the usual 9.4 µs (loopback on port 1, measured at 2026-03-01 11:58:18 UTC).", d.Info.CompletionVectors-1, number),
		Meaning: "A thread that sleeps on this vector is woken late. Mostly its interrupt goes to a processor that is busy, far from the adapter, or in a deep state of sleep.",
		Action:  "See in /proc/interrupts which processor handles the interrupt of the vector, and what else it does; move it with /proc/irq/N/smp_affinity (irqbalance may move it back) to one of the adapter's NUMA node, which `cat /sys/class/infiniband/mlx5_0/device/numa_node` tells. rdma_notification_vector_latency_seconds shows whether it has always been so.",
	}}
}

// denied returns a device that may not be opened.
func denied() device {
	d := state.DeviceState{Name: "mlx5_0", Present: true, Failures: 17, Last: &state.Run{
		Kind: state.KindProbe, Device: "mlx5_0", Started: Now().Add(-4 * time.Minute), Duration: 20 * time.Millisecond, Outcome: state.OutcomeFailed,
		Error: "open the device: ibv_open_device mlx5_0: permission denied", FailedVerb: "ibv_open_device", Errno: "EACCES",
	}}
	return device{d, []health.Finding{{
		Kind: health.FindingUnusable, Severity: health.SeverityCritical, Subject: "ibv_open_device EACCES",
		Message: "The device cannot be used: open the device: ibv_open_device mlx5_0: permission denied. 17 runs in a row have failed.",
		Meaning: "The device is neither probed nor held to its contracts; of the objects on it, what the kernel tracks is still known. Programs with the same rights are refused it as well; others may use it.",
		Action:  "The user needs to read and write the node of the device, /dev/infiniband/uverbsN: `grep -lxF mlx5_0 /sys/class/infiniband_verbs/*/ibdev` tells N, and `ls -l /dev/infiniband` owner and mode, which are for everybody with the udev rules of rdma-core. In a container, pass the nodes in and allow them in its device cgroup: `--device=/dev/infiniband` for docker and podman, a device plugin in Kubernetes. If it is EPERM nevertheless, see `rdma system show`: with `netns exclusive`, the device has to be moved into the network namespace of the exporter, `rdma dev set mlx5_0 netns NAME`, or the exporter into that of the device.",
	}}}
}

// starve gives the exporter too little memory that it may have in place.
func starve(d *state.DeviceState) []health.Finding {
	limit := int64(64 << 10)
	run := *d.Last
	run.Outcome, run.Error = state.OutcomeFailed, "cq: large: ibv_create_cq: ENOMEM (and 3 more)"
	run.Events = []state.Events{{Type: "port_err", Port: 1, Count: 2}, {Type: "device_fatal", Count: 1}}
	run.Probes = probes(4)
	run.Probes[0].Status = state.StatusFailed
	run.Probes[0].CQs = run.Probes[0].CQs[:2]
	run.Probes[0].Failures = []state.Failure{{
		Subject: state.Subject{Object: "cq", Profile: "large"}, Verb: "ibv_create_cq", Errno: "ENOMEM", Message: "ibv_create_cq: cannot allocate memory", Memlock: &limit,
	}}
	run.Probes[4] = state.Probe{
		Name: "notification", Status: state.StatusSkipped,
		Skips: []state.Skip{{Reason: state.SkipNotPermitted, Detail: "ibv_reg_mr: ENOMEM", Memlock: &limit}},
	}
	run.Probes[5].Skips = []state.Skip{{Subject: state.Subject{Object: "2MiB"}, Reason: state.SkipNotPermitted, Detail: "ibv_reg_mr: ENOMEM", Memlock: &limit}}
	run.Probes[5].Registrations[1] = state.Registration{
		Memory: state.MemoryMany, Bytes: 2 << 20, Result: state.MemoryRefused, By: state.RefusedByMemlock, Errno: "ENOMEM", Detail: "ibv_reg_mr: ENOMEM",
	}
	d.Last, d.Full, d.Failures = &run, &run, 3
	return []health.Finding{{
		Kind: health.FindingProbeFailed, Severity: health.SeverityCritical, Subject: "cq",
		Message: "The probe cq failed: large: ENOMEM: ibv_create_cq: cannot allocate memory. The exporter's processes may lock 64 KiB (RLIMIT_MEMLOCK).",
		Meaning: "Drivers that pin their queues refuse them to a process with so low a limit, although the device has room: it can be neither probed nor used by such a process.",
		Action:  "First give the exporter a higher limit: LimitMEMLOCK=infinity in its systemd unit, `ulimit -l unlimited` in its shell, `--ulimit memlock=-1` for docker and podman, in Kubernetes LimitMEMLOCK in the unit of the container runtime; or the capability IPC_LOCK, which is exempt. `prlimit --memlock --pid PID` shows what a process has. Jobs on this host may well be started with the same limit: look at theirs, too. If ENOMEM stays with a higher limit, the device itself is out of room: see `rdma resource show mlx5_0`.",
	}}
}

// simulated is a host with simulated devices, one of them new and one with a run that
// is older than it should be.
func simulated() Host {
	s := &state.Snapshot{Devices: []state.DeviceState{Device("sim_hca0", 8), Device("sim_new", 8), Device("sim_old", 8)}}
	s.Provider, s.Ready = "simulated", false
	s.Devices[1] = state.DeviceState{Name: "sim_new", Present: true}
	old := &s.Devices[2]
	run := *old.Last
	run.Started, run.Probes = Now().Add(-3*time.Hour), run.Probes[:1]
	info := *old.Info
	info.Limits = info.Limits[:1]
	old.Info, old.Last, old.Resources, old.Contracts = &info, &run, nil, nil
	return Host{Name: "simulated", Snapshot: s}
}

// StaleAfter is how old runs may be on the hosts.
func StaleAfter() map[state.Kind]time.Duration {
	return map[state.Kind]time.Duration{
		state.KindProbe: 10 * time.Minute, state.KindContract: 2 * time.Hour, state.KindInventory: 5 * time.Minute,
	}
}

// evil is text that tries to be a tag, an attribute, a template, a command to a
// terminal, and more than one line.
const evil = "<script>alert(1)</script><b onclick=x>\"'`&amp;{{.}}\xff\x00\x1b[31m\u202e\u2028\n\t]]>--></style>javascript:"

// Hostile returns a host whose every text is s.
func Hostile(s string) Host {
	s = text.Clean(s) // as it is on arrival
	d := Device(s, 4)
	d.Info = &state.Device{
		Transport: s, Firmware: s, NodeGUID: s, CompletionVectors: 4,
		Limits: []state.Limit{{Name: s, Value: -1}, {Name: "max_qp", Value: -1 << 63}},
		Ports:  []state.Port{{Number: -1, State: s, LinkLayer: s, ActiveMTU: -1}},
	}
	limit := int64(-1)
	run := *d.Last
	run.Info = d.Info
	run.Outcome, run.Error, run.Verb, run.FailedVerb, run.Errno = state.Outcome(s), s, s, s, s
	run.Started, run.Duration = Now().Add(time.Hour), -time.Hour
	run.Reduced = &state.Reduced{Reason: state.ReducedReason(s), Detail: s}
	run.Probes = append(probes(4), state.Probe{
		Name: s, Status: state.Status(s), Duration: -1,
		Failures:    []state.Failure{{Subject: state.Subject{Object: s}, Verb: s, Errno: s, Message: s, Memlock: &limit}},
		Skips:       []state.Skip{{Subject: state.Subject{Object: s}, Reason: state.SkipReason(s), Detail: s, Memlock: &limit}},
		Clamps:      []state.Clamp{{Subject: state.Subject{Object: "qp", QPType: s, Profile: s}, Attribute: "max_send_wr", Limit: s, Configured: 1 << 62}},
		CQs:         []state.CQSize{{Profile: s, Requested: 1 << 62, Actual: -1 << 62}},
		SRQs:        []state.SRQSize{{Profile: s, Queried: &state.SRQAttr{WorkRequests: -5}}},
		QPs:         []state.QPSize{{Type: s, Profile: s}},
		Inline:      []state.InlineMax{{Type: s, Bytes: -1}},
		InlineSends: []state.InlineSend{{Type: s, Bytes: -1, Result: state.InlineResult(s), Detail: s}},
		Memory:      []state.Memory{{Object: s, Profile: s, Virtual: -1, Locked: 1 << 62}},
		Registrations: []state.Registration{{
			Memory: state.RegisteredMemory(s), Bytes: -1, Result: state.RegistrationResult(s), Duration: -1, By: state.RefusedBy(s), Errno: s, Detail: s,
		}},
		Methods:   []state.Method{{Path: state.LatencyPath(s), By: s, InsteadOf: s, Port: -3}, {Path: state.PathFlush}},
		Latencies: []state.Latency{{Path: state.LatencyPath(s), Mode: state.LatencyMode(s)}, {Path: state.PathFlush, Mode: state.ModeAny, Port: -3, Count: -1, P99: -1}},
	})
	run.Events = []state.Events{{Type: s, Port: -1, Count: -1}}
	d.Last, d.Full = &run, &run
	d.Stuck = &state.Stuck{PID: -1, Verb: s}
	d.Contracts = &state.Contracts{Last: &run, PutOff: run.Reduced, Verdicts: []state.Contract{
		{Name: s, Severity: state.Severity(s), Verdict: state.VerdictViolated, Asked: s, Expected: s, Observed: s, Consequence: s, Remedy: s},
		{Name: s, Severity: state.SeverityInfo, Verdict: state.VerdictSkipped, Reason: state.SkipReason(s), Asked: s, Observed: s},
		{Name: s, Severity: state.SeverityInfo, Verdict: state.VerdictHolds, Asked: s, Expected: s, Observed: s},
		{Name: s, Verdict: state.Verdict(s)},
	}}
	i := d.Resources.Inventory
	i.Owners = append(i.Owners, state.Owner{
		PID: -1, Comm: s, ContainerID: s, PodUID: s, SlurmJobID: s, Objects: []state.TypeCount{{Type: s, Objects: -1}}, Memlock: &state.Memlock{Pinned: 1 << 62},
	})
	i.Cgroups = append(i.Cgroups, state.CgroupUse{Cgroup: s, ContainerID: s, PodUID: s, Resource: s, Current: 1 << 62})
	i.QueuePairs = append(i.QueuePairs, state.QueuePairCount{Type: s, State: s, Objects: -1})
	i.Incomplete = []state.Incomplete{{Type: "qp", Reason: state.IncompleteReason(s), Detail: s}}
	i.Objects = append(i.Objects, state.ObjectCount{Type: "mr", Owner: state.OwnerKind(s), Objects: 1<<63 - 1})
	d.Resources.Leaked = []state.Leaked{{Type: "qp", Objects: 1<<63 - 1}, {Type: s}}
	d.Resources.Stuck = &state.Stuck{PID: 1, Verb: strings.Repeat(s, 3)}
	d.Hardware = &state.HardwareState{Failures: -1, Failure: s, Reading: s, Latest: &state.Hardware{
		Device: s, Driver: s, Table: s,
		Identity: state.Adapter{
			PCI: s, Slot: s, NUMANode: -5, BoardID: s, Model: s, DriverVersion: s, Role: s, Parent: s, VFs: -1, NetnsMode: s,
			Link: &state.PCILink{Address: s, Speed: -1, MaxSpeed: 1e300, Width: -1}, Bottleneck: &state.PCILink{Address: s}, AER: &state.AER{Fatal: 1<<64 - 1},
		},
		Ports: []state.HardwarePort{{
			Number: -1, LinkLayer: s, State: s, PhysState: s, Rate: -1, MaxRate: 1e300, Width: -1, Netdev: s, Bond: s, MTU: -1,
			GIDs: []state.GID{{Index: -1, GID: s, Type: s, Family: s, Netdev: s}, {GID: s}}, RoCEv2IPv4: new(-1),
			Counters: []state.Counter{{Group: state.CounterGroup(s), Name: s, Value: 1<<64 - 1}},
			Refused:  []state.RefusedCounters{{Group: state.CounterGroup(s), Errno: s, Detail: s}},
		}},
		Counters:   []state.Counter{{Name: s}},
		Refused:    []state.RefusedCounters{{Group: state.CounterGroup(s), Errno: s, Detail: s}},
		Interrupts: []state.Interrupt{{Vector: -1, IRQ: -1, Name: s, CPUs: s, Effective: s, Count: 1<<64 - 1}},
	}, Drops: []state.CounterDrop{{Port: -1, Group: state.CounterGroup(s), Name: s, Resets: 1<<64 - 1}}, Links: []state.Link{{Port: -1, Ups: 1<<64 - 1}}}
	d.Paths = []state.PathState{{Path: state.Path{
		Peer: s, PeerDevice: s, Result: state.PathResult(s), Suspect: s, Detail: s, Sent: -1, LostForward: -9, MTU: -1, RTTMedian: 1, RC: s,
	}, At: Now().Add(time.Hour), Failures: -1}}
	found := []health.Finding{{
		Kind: health.Kind(s), Severity: health.SeverityWarning, Subject: s, Message: s, Meaning: s, Action: s,
	}}
	return Host{Name: "hostile", Found: map[string][]health.Finding{s: found}, Snapshot: &state.Snapshot{
		Provider: s, DiscoveryError: s,
		Devices: []state.DeviceState{d, {Name: s + "2", Present: true, Last: &state.Run{Outcome: state.OutcomeFailed, Error: s}}, {Name: "", Stuck: &state.Stuck{}}},
	}}
}
