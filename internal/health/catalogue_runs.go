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

		cannotUse = "The device is neither probed nor held to its contracts; of the objects on it, what the kernel tracks is still known. "
		// memlock is how a process gets to lock more memory.
		memlock  = "give the exporter a higher limit: LimitMEMLOCK=infinity in its systemd unit, `ulimit -l unlimited` in its shell, `--ulimit memlock=-1` for docker and podman, in Kubernetes LimitMEMLOCK in the unit of the container runtime; or the capability IPC_LOCK, which is exempt. `prlimit --memlock --pid PID` shows what a process has. Jobs on this host may well be started with the same limit: look at theirs, too"
		pingpong = "`ibv_rc_pingpong -d {device}` in one shell and the same with `localhost` at the end in another (on RoCE, both with `-g` and the index of a GID)"
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
			"{remedy} Report it to the vendor if the driver, the firmware and rdma-core are up to date. docs/reference/contracts.md#{contract} has what the manual promises and how it is judged; rdma_contract_violated shows which other devices do the same.")
	}
	port := func(name, found, action string) Entry {
		return Entry{
			Kind: FindingPortDown, Case: name, Severities: []Severity{critical, warning, info}, Harms: []Harm{HarmOutage, HarmDegradation, HarmNote},
			Found: found + " It is critical if the device had an active port and has none any more, a warning if the port was active before, and worth knowing otherwise: many ports are not cabled on purpose. " +
				"The command audit does not know what was before: there it is critical if no port of the host is active, and a warning if none of the device is.",
			Meaning: "Nothing gets through the port: connections by it cannot be set up, and those that were break. What needs an active port, such as the loopback path, is not probed.",
			Action:  action,
		}
	}
	return []Entry{
		unusable(caseForbidden,
			"The last run of the probes was refused the device with EACCES or EPERM. The message has the user that the exporter runs as.",
			"Programs with the same rights are refused it as well; others may use it.",
			"The user needs to read and write the node of the device, /dev/infiniband/uverbsN: `grep -lxF {device} /sys/class/infiniband_verbs/*/ibdev` tells N, and `ls -l /dev/infiniband` owner and mode, which are for everybody with the udev rules of rdma-core. In a container, pass the nodes in and allow them in its device cgroup: `--device=/dev/infiniband` for docker and podman, a device plugin in Kubernetes. If it is EPERM nevertheless, see `rdma system show`: with `netns exclusive`, the device has to be moved into the network namespace of the exporter, `rdma dev set {device} netns NAME`, or the exporter into that of the device."),
		unusable(caseNoNode,
			"The last run of the probes did not find the node of the device (ENOENT), or found nothing behind it (ENXIO).",
			"The kernel has the device, and the exporter has no way to it; nor has any other program that sees the same /dev.",
			"In a container, pass the nodes in: `--device=/dev/infiniband` for docker and podman, a device plugin in Kubernetes; one that was passed in by name only goes stale when the driver is reloaded. On the host, see `ls -l /dev/infiniband` and `rdma link show`; `modprobe ib_uverbs` makes the nodes."),
		unusable(caseNotListed,
			"The kernel has the device, and libibverbs did not list it in the last run of the probes (ENODEV), or found no support for any (ENOSYS).",
			"Every program that uses the same libibverbs fails to find it.",
			"Where the exporter runs, see that `ls /dev/infiniband` has the node of the device (in a container, pass it in), that `rdma system show` does not say `netns exclusive` of a network namespace that the device is not in, and compare `ibv_devices` with `rdma link show`. If the node is there, mostly the library of the provider is missing: install ibverbs-providers (Debian, Ubuntu), rdma-core (Red Hat) or that of the vendor's OFED, in the image of the container if it is one, in a version that fits the driver; `IBV_SHOW_WARNINGS=1 ibv_devices` names the devices without one. Otherwise `modprobe ib_uverbs`, or the device has vanished meanwhile: see `dmesg`."),
		unusable(caseNoRoom,
			"The last run of the probes was refused the device with EAGAIN or ENOMEM.",
			"Other programs may be refused it as well.",
			"EAGAIN says that the cgroup of the exporter may open no more devices: see hca_handle in rdma.max and rdma.current of its cgroup. ENOMEM says that the driver or the kernel is out of memory, or the device of contexts: see `rdma resource show {device}`, `free` and `dmesg`."),
		unusable(caseOther,
			"The last run of the probes could not open the device for any other reason, or not ask it what it is.",
			"Every other program fails in the same way, most likely.",
			"See whether `ibv_devinfo -d {device}` fails, too, and what the driver says in `dmesg`: with EIO or EBUSY the device is being reset or removed. If it stays, reload the driver or reset the device."),
		entry(FindingUnusable, caseVanished, critical, outage,
			"The command audit found the device when it began, and not any more when it ended.",
			"Programs that had it open have lost their connections. What the audit found of it may be due to that.",
			"Look at `dmesg` for why: its driver was unloaded, the device was reset or removed, or moved to another network namespace (`rdma system`). Audit again once it is back."),

		entry(FindingRunAborted, string(state.OutcomeTimeout), critical, outageOrFailure,
			"The last run of the probes, or a process of the last contract run, was killed at its deadline: `--probe.timeout`, `--contract.timeout`. Of the inventory it is told until the contract is judged.",
			"The verb that the message names did not return, or all of them together took too long. A program that calls it waits as long. What was to come after it is not known.",
			"See `dmesg` for what the driver or the firmware waits for, and rdma_verbs_call_duration_seconds for whether verbs became slower before. See whether other programs hang as well: `ibv_devinfo -d {device}`, and "+pingpong+". In ibv_open_device, libibverbs waits 5 seconds for a node that it may not open: see device_unusable. If the host is only busy, raise the timeout. If it stays, "+vendor+"."),
		entry(FindingRunAborted, string(state.OutcomeCrashed), critical, outageOrFailure,
			"The last run of the probes, or a process of the last contract run, ended without a whole report. Of the inventory it is told until the contract is judged.",
			"If the message names a verb, the library of the provider crashed in it, and so will any program that calls it. If it names none, the process was killed from outside, could not be started, or crashed in a measurement, where verbs are not told one by one.",
			"The log of the exporter has what the process wrote last (the command audit keeps none); `dmesg` tells of a crash (segfault) and of the OOM killer. Check that libibverbs, the libraries of the providers and the driver are of one release (`ibv_devinfo -d {device}` crashes as well if it is the provider), then "+vendor+"."),
		entry(FindingRunAborted, string(state.OutcomeFailed), warning, degradation,
			"The last contract run went wrong as a whole, and nothing else says why.",
			"How the device keeps the contracts of the manual is not known, or was judged before.",
			"The message has what failed. See the log of the exporter, and whether `ibv_devinfo -d {device}` works as the user that the exporter runs as."),

		entry(FindingProbeFailed, caseMemlock, critical, failure,
			"In the last run, a probe was refused what pins memory with ENOMEM, or with EPERM where none may be pinned, and RLIMIT_MEMLOCK of the exporter's processes is finite.",
			"Drivers that pin their queues refuse them to a process with so low a limit, although the device has room: it can be neither probed nor used by such a process.",
			"First "+memlock+". If ENOMEM stays with a higher limit, the device itself is out of room: see `rdma resource show {device}`."),
		entry(FindingProbeFailed, caseNoRoom, critical, outageOrFailure,
			"In the last run, a verb of a probe failed with ENOMEM or EAGAIN, and no limit on locked memory can be the cause.",
			"The device, its driver, the kernel or the cgroup of the exporter is out of room: other processes are refused the same, or soon will be.",
			"Compare `rdma resource show {device}` with the limits (rdma_resource_objects, rdma_resource_limit), and see who holds most: rdma_resource_owner_objects. EAGAIN is for rdma.max of the exporter's cgroup. With room left in both, see `free` and `dmesg`: the driver could not get memory."),
		entry(FindingProbeFailed, caseShort, critical, failure,
			"In the last run, a verb of a probe succeeded and gave less than was asked for, though not more than the device allows was.",
			"A program that trusts the size it asked for fails in the middle of its work: posting is refused, or completions are lost.",
			"Have programs read the sizes that are written back. The contracts *_at_least_requested say more (docs/reference/contracts.md): "+vendor+"."),
		entry(FindingProbeFailed, caseOther, critical, outageOrFailure,
			"In the last run, a verb of a probe failed with any other errno. What the device only refused to destroy is told as undestroyed.",
			"A program that calls the verb in this way fails as well.",
			"See what the driver says in `dmesg`, and try the like by hand: `ibv_devinfo -v -d {device}`, and "+pingpong+". EMFILE says that the exporter may open no more files (LimitNOFILE). If it stays, reset the device or reload its driver; then "+vendor+"."),
		entry(FindingProbeFailed, caseEmpty, warning, degradation,
			"In the last run, the process could not register memory for messages, and measured with empty ones.",
			"Notification was measured all the same. But programs that register memory, as all do that transfer data, are refused if they run with the same limit, or the device is out of room.",
			"If the message names a limit, "+memlock+". If it names none, see `rdma resource show {device}` for mr, and `dmesg`."),

		entry(FindingNotification, caseMissed, critical, failure,
			"When a completion vector was last measured, a completion was there, and no event had come for it by the deadline (`--notification.deadline`).",
			"A program that sleeps until the event hangs, or goes on with the next event only.",
			"See in /proc/interrupts, where drivers name theirs by device or PCI address, whether those of the completion vectors are counted at all while programs run. If all missed events are of some vectors, it is their interrupts: reload the driver. Soft-RoCE loses a single event now and then; there, only what repeats matters. Until it is mended, have programs poll with a timeout beside waiting, and "+vendor+"."),
		entry(FindingNotification, caseMisdirected, critical, failure,
			"When a completion vector was last measured, events came on another completion channel, or named another completion queue.",
			"The thread that sleeps for the event hangs, and another one wakes for nothing.",
			"Have programs use one channel for all queues, and poll all of them at each event. See the contracts channel_steering and notify_identifies_cq (docs/reference/contracts.md), and "+vendor+"."),
		entry(FindingNotification, caseMissing, critical, failure,
			"When a completion vector was last measured, a work request was posted, and its completion had not come by the deadline (`--notification.deadline`).",
			"The request or its completion was lost, or is very late: a program that waits for it hangs as long.",
			"See `dmesg`, and the counters of the port: `rdma statistic show link {device}`. Try it by hand: "+pingpong+". If the host is merely busy, raise the deadline; otherwise "+vendor+"."),
		entry(FindingNotification, caseSpurious, warning, degradation,
			"When a completion vector was last measured, events came while the completion queue was empty.",
			"A program is woken for nothing, and one that takes it that each event has a completion goes wrong.",
			"Have programs poll until the queue is empty and then sleep again, whatever they find. If it stays, "+vendor+"."),
		entry(FindingNotification, caseUnsuccessful, warning, degradation,
			"When a completion vector was last measured, completions had another status than they should: success for messages from a port to itself, wr_flush_err for what is posted to a queue pair in the error state.",
			"On the loopback path, messages of the port to itself do not get through, and those to others hardly will. On the flush path, a program cannot tell a request that was given up from one that was done.",
			"The status tells: retry_exc_err and rnr_retry_exc_err say that nothing answers (see the state and the addresses of the port: `rdma link show {device}`, `ibv_devinfo -v -d {device}`; on RoCE, a firewall on UDP port 4791); loc_prot_err and rem_access_err that memory is not accepted. See `dmesg`."),

		contract(critical, failure,
			"By its latest verdict the device breaks a contract of this severity.",
			"A program that relies on this promise of the libibverbs manual hangs or loses data."),
		contract(warning, quirk,
			"By its latest verdict the device breaks a contract of this severity.",
			"A program that relies on this promise of the libibverbs manual is told a size or a state wrongly."),
		contract(info, quirk,
			"By its latest verdict the device breaks a contract of this severity.",
			"The device allows more than the libibverbs manual does: a program that makes use of that fails on other devices."),

		port(caseDown,
			"At the last run of the probes a port was neither active nor about to be.",
			"See `rdma link show`, and `ip link show` for the network device of a RoCE or iWARP port: it has to be up, with a carrier. On InfiniBand, see `ibstat`: the physical state `Polling` says that there is nothing at the other end. Look at cable, module and switch, and at `dmesg`."),
		port(caseNotConfigured,
			"At the last run of the probes a port was in the state init or armed: the link is there, and the port is not active.",
			"On InfiniBand, a subnet manager takes ports from there to active: see `sminfo` for whether the fabric has one, start opensm or that of the switch if it has none, and look at its log for why it leaves out this port (`ibstat` has the GUID). Of a RoCE port, see `ip link show` and `dmesg`."),

		entry(FindingSlowVector, "", info, []Harm{HarmNote},
			"On a completion vector, the median of the time from posting to the event is at least three times, and by 20 µs longer than, the usual one: that in the middle of the vectors which were measured on the same path and port. Each counts as it was measured last; a run need not measure all.",
			"A thread that sleeps on this vector is woken late. Mostly its interrupt goes to a processor that is busy, far from the adapter, or in a deep state of sleep.",
			"See in /proc/interrupts which processor handles the interrupt of the vector, and what else it does; move it with /proc/irq/N/smp_affinity (irqbalance may move it back) to one of the adapter's NUMA node, which `cat /sys/class/infiniband/{device}/device/numa_node` tells. rdma_notification_vector_latency_seconds shows whether it has always been so."),
	}
}
