package health

import "rdma_exporter/internal/state"

// The cases of FindingUnusable.
const (
	caseForbidden = "permission"
	caseNoNode    = "no_node"
	caseNotListed = "not_listed"
	caseNoRoom    = "no_room" // of FindingProbeFailed, too
	caseOther     = "other"   // of FindingProbeFailed, too
	caseVanished  = "vanished"
)

// The further cases of FindingProbeFailed.
const (
	caseMemlock = "memlock"
	caseShort   = "less_than_asked"
	caseEmpty   = "empty_messages"
)

// The cases of FindingNotification.
const (
	caseMissed       = "missed"
	caseMisdirected  = "misdirected"
	caseMissing      = "missing"
	caseSpurious     = "spurious"
	caseUnsuccessful = "unsuccessful"
)

// The cases of FindingPortDown.
const (
	caseDown          = "down"
	caseNotConfigured = "not_configured"
)

// runEntries are the kinds of finding about what the runs of the probes and of the
// contract run met with. The cases of FindingRunAborted are outcomes, those
// of FindingContract severities.
func runEntries() []Entry {
	const (
		critical = SeverityCritical
		warning  = SeverityWarning
		info     = SeverityInfo

		cannotUse = "The device is not probed, and its contracts are not checked; the kernel's tables still show the objects on it. "
		// memlock is how a process gets to lock more memory.
		memlock  = "raise the exporter's limit: LimitMEMLOCK=infinity in its systemd unit, `ulimit -l unlimited` in its shell, `--ulimit memlock=-1` for docker and podman, LimitMEMLOCK in the container runtime's unit for Kubernetes; or give it the capability IPC_LOCK, which is exempt. `prlimit --memlock --pid PID` shows what a process has. Jobs on this host may have the same limit: check theirs too"
		pingpong = "`ibv_rc_pingpong -d {device}` in one shell and the same with `localhost` appended in another (on RoCE, both with `-g` and the index of a GID)"
		vendor   = "update the driver, the firmware and rdma-core, or report it to the vendor"
	)
	var (
		outage          = []Harm{HarmOutage}
		failure         = []Harm{HarmFailure}
		outageOrFailure = []Harm{HarmOutage, HarmFailure}
		degradation     = []Harm{HarmDegradation}
		quirk           = []Harm{HarmQuirk}
	)
	entry := func(kind Kind, name string, severity Severity, harms []Harm, found, meaning, action string) Entry {
		return Entry{Kind: kind, Case: name, Severities: []Severity{severity}, Harms: harms, Found: found, Meaning: meaning, Action: action}
	}
	unusable := func(name, found, meaning, action string) Entry {
		return entry(FindingUnusable, name, critical, outage, found, cannotUse+meaning, action)
	}
	contract := func(severity Severity, harms []Harm, found, meaning string) Entry {
		return entry(FindingContract, string(severity), severity, harms, found, meaning,
			"{remedy} Report it to the vendor if the driver, the firmware and rdma-core are up to date. docs/reference/contracts.md#{contract} says what the manual promises and how it is judged; rdma_contract_violated shows which other devices do the same.")
	}
	port := func(name, found, action string) Entry {
		return Entry{
			Kind: FindingPortDown, Case: name, Severities: []Severity{critical, warning, info}, Harms: []Harm{HarmOutage, HarmDegradation, HarmNote},
			Found: found + " Critical if the device has lost its last active port, a warning if this port was active before, otherwise info: many ports are left uncabled on purpose. " +
				"The audit command does not know the past: there it is critical if no port of the host is active, and a warning if none of the device is.",
			Meaning: "Nothing gets through the port: new connections fail, and existing ones break. What needs an active port, such as the loopback path, is not probed.",
			Action:  action,
		}
	}
	return []Entry{
		unusable(caseForbidden,
			"The last run of the probes could not open the device: EACCES or EPERM. The message names the exporter's user.",
			"Programs with the same rights cannot open it either; others may.",
			"The user needs read and write access to the device's node, /dev/infiniband/uverbsN: `grep -lxF {device} /sys/class/infiniband_verbs/*/ibdev` shows N, and `ls -l /dev/infiniband` its owner and mode. The udev rules of rdma-core allow everybody. In a container, pass the nodes in and allow them in its device cgroup: `--device=/dev/infiniband` for docker and podman, a device plugin in Kubernetes. If it is still EPERM, check `rdma system show`: with `netns exclusive`, move the device into the exporter's network namespace, `rdma dev set {device} netns NAME`, or run the exporter in the device's."),
		unusable(caseNoNode,
			"The last run of the probes did not find the device's node (ENOENT), or found nothing behind it (ENXIO).",
			"The kernel has the device, but no program that sees the same /dev can open it.",
			"In a container, pass the nodes in: `--device=/dev/infiniband` for docker and podman, a device plugin in Kubernetes; a node passed in by name goes stale when the driver is reloaded. On the host, check `ls -l /dev/infiniband` and `rdma link show`; `modprobe ib_uverbs` makes the nodes."),
		unusable(caseNotListed,
			"The kernel has the device, but in the last run of the probes libibverbs did not list it (ENODEV), or found no RDMA support at all (ENOSYS).",
			"No program that uses the same libibverbs can find it.",
			"Where the exporter runs, check that `ls /dev/infiniband` shows the device's node (in a container, pass it in), that `rdma system show` does not say `netns exclusive` while the device is in another network namespace, and compare `ibv_devices` with `rdma link show`. If the node is there, the provider's library is mostly missing: install ibverbs-providers (Debian, Ubuntu), rdma-core (Red Hat) or the vendor's OFED, inside the container image if there is one, in a version that fits the driver; `IBV_SHOW_WARNINGS=1 ibv_devices` names the devices without a library. Otherwise `modprobe ib_uverbs`, or the device has since vanished: see `dmesg`."),
		unusable(caseNoRoom,
			"The last run of the probes could not open the device: EAGAIN or ENOMEM.",
			"Other programs may fail to open it as well.",
			"EAGAIN means the exporter's cgroup may open no more devices: see hca_handle in rdma.max and rdma.current of its cgroup. ENOMEM means the driver or the kernel is out of memory, or the device out of contexts: see `rdma resource show {device}`, `free` and `dmesg`."),
		unusable(caseOther,
			"The last run of the probes could not open or query the device for any other reason.",
			"Every other program most likely fails the same way.",
			"Check whether `ibv_devinfo -d {device}` fails too, and what the driver says in `dmesg`: EIO or EBUSY means the device is being reset or removed. If it persists, reload the driver or reset the device."),
		entry(FindingUnusable, caseVanished, critical, outage,
			"The device was there when the audit command began, and gone when it ended.",
			"Programs that had it open have lost their connections. This may also explain the audit's other findings on it.",
			"Look at `dmesg` for why: its driver was unloaded, the device was reset or removed, or moved to another network namespace (`rdma system`). Audit again once it is back."),

		entry(FindingRunAborted, string(state.OutcomeTimeout), critical, outageOrFailure,
			"The last run of the probes, or a process of the last contract run, was killed at its deadline: `--probe.timeout`, `--contract.timeout`. After a contract run, this stays until the contract is judged.",
			"The verb named in the message did not return, or all of them together took too long. A program that calls it waits just as long. What would have come after it was not checked.",
			"See `dmesg` for what the driver or the firmware waits for, and rdma_verbs_call_duration_seconds for whether verbs had become slower before. Check whether other programs hang too: `ibv_devinfo -d {device}`, and "+pingpong+". In ibv_open_device, libibverbs waits 5 seconds for a node it may not open: see device_unusable. If the host is merely busy, raise the timeout. If it persists, "+vendor+"."),
		entry(FindingRunAborted, string(state.OutcomeCrashed), critical, outageOrFailure,
			"The last run of the probes, or a process of the last contract run, ended without a complete report. After a contract run, this stays until the contract is judged.",
			"If the message names a verb, the provider's library crashed in it, and so will any program that calls it. If not, the process was killed from outside, could not be started, or crashed during a measurement, where verbs are not reported one by one.",
			"The exporter's log has the last lines the process wrote (the audit command keeps none); `dmesg` shows a crash (segfault) or the OOM killer. Check that libibverbs, the provider libraries and the driver are from one release (`ibv_devinfo -d {device}` crashes too if it is the provider), then "+vendor+"."),
		entry(FindingRunAborted, string(state.OutcomeFailed), warning, degradation,
			"The last contract run failed as a whole, and no other finding says why.",
			"Whether the device keeps its contracts is not known, or only from an earlier run.",
			"The message says what failed. Check the exporter's log, and whether `ibv_devinfo -d {device}` works as the exporter's user."),

		entry(FindingProbeFailed, caseMemlock, critical, failure,
			"In the last run, a probe that pins memory failed with ENOMEM, or with EPERM where none may be pinned, and RLIMIT_MEMLOCK of the exporter's processes is finite.",
			"Drivers that pin their queues fail under so low a limit, even though the device has room: such a process can neither probe nor use it.",
			"First "+memlock+". If ENOMEM stays with a higher limit, the device itself is out of room: see `rdma resource show {device}`."),
		entry(FindingProbeFailed, caseNoRoom, critical, outageOrFailure,
			"In the last run, a verb failed with ENOMEM or EAGAIN, and the limit on locked memory is not the cause.",
			"The device, its driver, the kernel or the exporter's cgroup is out of room: other processes fail the same way, or soon will.",
			"Compare `rdma resource show {device}` with the limits (rdma_resource_objects, rdma_resource_limit), and find who holds most: rdma_resource_owner_objects. For EAGAIN, check rdma.max of the exporter's cgroup. If both have room, check `free` and `dmesg`: the driver could not get memory."),
		entry(FindingProbeFailed, caseShort, critical, failure,
			"In the last run, a verb succeeded but gave less than was asked for, although the request was within the device's limits.",
			"A program that trusts the size it asked for fails in the middle of its work: posting fails, or completions are lost.",
			"Have programs read the sizes that are written back. The contracts *_at_least_requested say more (docs/reference/contracts.md): "+vendor+"."),
		entry(FindingProbeFailed, caseOther, critical, outageOrFailure,
			"In the last run, a verb failed with any other errno. Objects that could not be destroyed are reported as undestroyed.",
			"A program that calls the verb this way fails as well.",
			"See what the driver says in `dmesg`, and try it by hand: `ibv_devinfo -v -d {device}`, and "+pingpong+". EMFILE means the exporter may open no more files (LimitNOFILE). If it persists, reset the device or reload its driver; then "+vendor+"."),
		entry(FindingProbeFailed, caseEmpty, warning, degradation,
			"In the last run, the process could not register memory for messages, and measured with empty ones.",
			"Notification was still measured. But programs that transfer data must register memory: they fail under the same limit, or because the device is out of room.",
			"If the message names a limit, "+memlock+". If not, check `rdma resource show {device}` for mr, and `dmesg`."),

		entry(FindingProbeFailed, caseRegistration+string(state.RefusedByMemlock), warning, degradation,
			"In the last run, RLIMIT_MEMLOCK of the exporter's processes did not even allow them to register a page of 4 KiB. If it only refuses more than that, `rdma_memory_registration_refused` shows it, and there is no finding.",
			"Nothing is wrong with the device. How long it takes to register memory is not known, and programs that run with the same limit are refused memory in the same way, with ENOMEM, or EPERM if the limit is 0.",
			"To have it measured, "+memlock+"."),
		entry(FindingProbeFailed, caseRegistration+string(state.RefusedByCgroup), critical, failure,
			"In the last run, the exporter was refused memory that it registers, and a cgroup that it is in has as many objects as rdma.max allows.",
			"The limit is that of the cgroup, not of the device: other programs in it are refused memory regions as well, and programs elsewhere are not.",
			"Raise hca_object for {device} in rdma.max of the cgroup that the message names, or have what is in it give objects back: rdma_cgroup_objects tells what each cgroup has (`--collector.cgroups`)."),
		entry(FindingProbeFailed, caseRegistration+string(state.RefusedByHost), critical, failure,
			"In the last run, the exporter was refused memory that it registers, while the host had hardly any memory available, or the process as many mappings as it may have.",
			"The kernel could not get the memory that registering takes; other programs are refused theirs, too, on every device.",
			"See `free` and `dmesg` for what uses up the memory: what is pinned for RDMA cannot be swapped out, and rdma_owner_locked_bytes tells who has most of it. For mappings, see vm.max_map_count."),
		entry(FindingProbeFailed, caseRegistration+string(state.RefusedByDevice), critical, failure,
			"In the last run, the device refused up to 2 MiB of memory that the exporter registers, and no limit of its process, of its cgroups or of the host accounts for it.",
			"The device, its driver or its library is out of what it maps memory with, or does not work as it should. Programs that register memory, as all do that transfer data, fail in the same way.",
			"Compare `rdma resource show {device}` for mr with max_mr (rdma_resource_objects, rdma_resource_limit), and see who holds most: rdma_resource_owner_objects. With room left, see `dmesg`: with an IOMMU the addresses that the adapter may use can be what is used up. If 4KiB is accepted and 2MiB refused, the firmware lacks the means for long regions: "+vendor+"."),

		entry(FindingNotification, caseMissed, critical, failure,
			"In the last measurement of a completion vector, a completion arrived but its event had not by the deadline (`--notification.deadline`).",
			"A program that sleeps until the event hangs, or wakes only with the next one.",
			"In /proc/interrupts, where drivers name interrupts by device or PCI address, check that those of the completion vectors increase while programs run. If all missed events are on a few vectors, their interrupts are lost: reload the driver. Soft-RoCE loses a single event now and then; there, only repeated misses matter. Until it is fixed, have programs poll with a timeout as well as wait, and "+vendor+"."),
		entry(FindingNotification, caseMisdirected, critical, failure,
			"In the last measurement of a completion vector, events came on another completion channel, or named another completion queue.",
			"The thread that waits for the event hangs, and another one wakes for nothing.",
			"Have programs use one channel for all queues, and poll all of them at each event. See the contracts channel_steering and notify_identifies_cq (docs/reference/contracts.md), and "+vendor+"."),
		entry(FindingNotification, caseMissing, critical, failure,
			"In the last measurement of a completion vector, a posted work request had not completed by the deadline (`--notification.deadline`).",
			"The request or its completion was lost, or is very late: a program that waits for it hangs just as long.",
			"See `dmesg`, and the counters of the port: `rdma statistic show link {device}`. Try it by hand: "+pingpong+". If the host is merely busy, raise the deadline; otherwise "+vendor+"."),
		entry(FindingNotification, caseSpurious, warning, degradation,
			"In the last measurement of a completion vector, events came while the completion queue was empty.",
			"A program wakes for nothing, and fails if it assumes that each event has a completion.",
			"Have programs poll until the queue is empty and then sleep again, whatever they find. If it persists, "+vendor+"."),
		entry(FindingNotification, caseUnsuccessful, warning, degradation,
			"In the last measurement of a completion vector, completions had the wrong status. Expected: success for messages from a port to itself, wr_flush_err for requests posted to a queue pair in the error state.",
			"On the loopback path, messages from the port to itself do not get through, and messages to others hardly will. On the flush path, a program cannot tell a flushed request from a finished one.",
			"Look at the status: retry_exc_err and rnr_retry_exc_err mean nothing answers (check the state and the addresses of the port: `rdma link show {device}`, `ibv_devinfo -v -d {device}`; on RoCE, a firewall on UDP port 4791); loc_prot_err and rem_access_err mean memory is not accepted. See `dmesg`."),

		contract(critical, failure,
			"The device breaks a contract of this severity, by its latest verdict.",
			"A program that relies on this promise of the libibverbs manual hangs or loses data."),
		contract(warning, quirk,
			"The device breaks a contract of this severity, by its latest verdict.",
			"A program that relies on this promise of the libibverbs manual gets a wrong size or state."),
		contract(info, quirk,
			"The device breaks a contract of this severity, by its latest verdict.",
			"The device allows more than the libibverbs manual does: a program that relies on that fails on other devices."),

		port(caseDown,
			"At the last run of the probes a port was neither active nor coming up.",
			"Check `rdma link show`, and `ip link show` for the network device of a RoCE or iWARP port: it must be up, with a carrier. On InfiniBand, check `ibstat`: physical state `Polling` means there is nothing at the other end. Check the cable, module and switch, and `dmesg`."),
		port(caseNotConfigured,
			"At the last run of the probes a port was in state init or armed: it has a link but is not active.",
			"On InfiniBand, a subnet manager must activate the port: run `sminfo` to see whether the fabric has one, start opensm or the switch's if not, and look in its log for why it skips this port (`ibstat` shows the GUID). For a RoCE port, check `ip link show` and `dmesg`."),

		entry(FindingSlowVector, "", info, []Harm{HarmNote},
			"The median time from posting to the event on a completion vector is at least three times the usual one, and at least 20 µs longer. The usual one is the median of all vectors measured on the same path and port. Each vector counts with its last measurement; one run need not measure all.",
			"A thread that sleeps on this vector wakes late. Mostly its interrupt runs on a CPU that is busy, far from the adapter, or in a deep sleep state.",
			"Check in /proc/interrupts which CPU handles the vector's interrupt, and what else that CPU does; move it with /proc/irq/N/smp_affinity (irqbalance may move it back) to a CPU of the adapter's NUMA node, shown by `cat /sys/class/infiniband/{device}/device/numa_node`. rdma_notification_vector_latency_seconds shows whether it was always slow."),
	}
}
