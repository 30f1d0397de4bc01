package health

import (
	"cmp"
	"slices"

	"rdma_exporter/internal/state"
)

// Entry describes one kind of finding, or one case of it.
type Entry struct {
	Kind Kind
	// Case distinguishes the entries of one kind: an outcome, a severity, a reason of state, or a word used only here.
	// Empty if there is only one.
	Case string
	grade
	Remedy Remedy
	// Threshold is the key below findings in the configuration file that decides. Empty if none.
	Threshold string
	// Reason is that of the findings, unless a verb is to blame. Words in braces are replaced, in all texts.
	Reason string
	// Found says when there is a finding.
	Found string
	// Meaning explains it to the users of the device, and Action tells them what to do.
	Meaning, Action string
}

// harmOf returns the harm of a severity, or the worst harm if the entry does not pair them.
func (e *Entry) harmOf(s Severity) Harm {
	return e.Harms[max(min(slices.Index(e.Severities, s), len(e.Harms)-1), 0)]
}

func entry(kind Kind, name string, g grade, remedy Remedy, threshold, reason, found, meaning, action string) Entry {
	return Entry{kind, name, g, remedy, threshold, reason, found, meaning, action}
}

// entryOf returns the entry of a kind and case. Empty if none.
func entryOf(kind Kind, name string) *Entry {
	return cmp.Or(find(Catalogue(), func(e *Entry) bool { return e.Kind == kind && e.Case == name }), new(Entry))
}

type grade struct {
	// Severities are those that a finding can have, the worst first.
	Severities []Severity
	// Harms has one harm for each severity, or else all that a finding can have.
	Harms []Harm
}

// Catalogue returns every kind of finding with its cases, in the order in which findings of the same severity
// are listed: what makes the whole device unusable comes first.
func Catalogue() []Entry {
	const (
		cannotUse = "The device is not probed, and its contracts are not checked; the kernel's tables still show the objects on it. "
		memlock   = "raise the exporter's limit: LimitMEMLOCK=infinity in its systemd unit, `ulimit -l unlimited` in its shell, `--ulimit memlock=-1` for docker and podman, LimitMEMLOCK in the container runtime's unit for Kubernetes; or give it the capability IPC_LOCK, which is exempt. `prlimit --memlock --pid PID` shows what a process has."
		jobs      = " Jobs on this host may have the same limit: check theirs too"
		pingpong  = "`ibv_rc_pingpong -d {device}` in one shell and the same with `localhost` appended in another (on RoCE, both with `-g` and the index of a GID)"
		vendor    = "update the driver, the firmware and rdma-core, or report it to the vendor"
		portGrade = " A warning if the port was active before, and critical if no other port of the host is active; otherwise info: many ports are left uncabled on purpose. The audit command does not know the past: there it is a warning if no port of the device is active, and critical if none of the host is. With `active_ports` of `expect` in the configuration file, fewer are critical: unexpected."
		pathGrade = "A warning if the path worked before and failed in two runs in a row, or if other nodes reach the peer and this device other peers; otherwise info."
		pathProof = " Try it by hand: `ib_send_lat -d {device}` at both ends. rdma_path_success shows which other pairs fail."
		lookAgain = "The message ends with the suspected reason. A PCI link below its best: reseat the adapter, or use another slot. MaxReadReq, MaxPayload and relaxed ordering: see `lspci -vv`, and the firmware settings of the host. The IOMMU: `iommu=pt` on the kernel's command line. ACS: switch it off in the firmware settings of a host without virtual machines. To measure again when the device is idle: `rdma_exporter bandwidth --device={device} --yes`."
		expected  = "If it is meant to be so, change `expect` in the configuration file, or accept the finding."
	)
	var (
		severe          = []Severity{SeverityCritical}
		outage          = grade{severe, []Harm{HarmOutage}}
		failure         = grade{severe, []Harm{HarmFailure}}
		outageOrFailure = grade{severe, []Harm{HarmOutage, HarmFailure}}
		exhaustion      = grade{state.Severities(), []Harm{HarmFailure, HarmDegradation, HarmNote}}
		portLoss        = grade{state.Severities(), []Harm{HarmOutage, HarmDegradation, HarmNote}}
		nearing         = grade{[]Severity{SeverityCritical, SeverityWarning}, []Harm{HarmDegradation}}
		degradation     = grade{[]Severity{SeverityWarning}, []Harm{HarmDegradation}}
		mild            = grade{[]Severity{SeverityWarning, SeverityInfo}, []Harm{HarmDegradation, HarmNote}}
		quirk           = grade{[]Severity{SeverityWarning}, []Harm{HarmQuirk}}
		minorQuirk      = grade{[]Severity{SeverityInfo}, []Harm{HarmQuirk}}
		note            = grade{[]Severity{SeverityInfo}, []Harm{HarmNote}}
	)
	broken := func(severity Severity, g grade, meaning string) Entry {
		return entry(FindingContract, string(severity), g, RemedyDriver, "", "contract {contract} is broken",
			"The device breaks a contract of this severity, by its latest verdict.", meaning,
			"{remedy} Report it to the vendor if the driver, the firmware and rdma-core are up to date. docs/reference/contracts.md#{contract} says what the man page requires and how it is checked; rdma_contract_violated shows which other devices do the same.")
	}
	return []Entry{
		entry(FindingVanished, "", outage, RemedyDriver, "", "the device vanished",
			"The kernel no longer has a device that was there since the exporter started, or when the audit command began. This stays until the device returns, it is accepted, or the exporter restarts. Virtual functions (those with `device/physfn` in sysfs) and subfunctions are left out, and so is every device where `rdma system show` says `netns exclusive`: they leave the host for the pods that use them.",
			"Programs that had it open have lost their connections, and those that need it cannot start. This may also explain other findings of an audit on it.",
			"Look at `dmesg` for why: its driver was unloaded, the device was reset or removed, or its slot lost power. If it was removed on purpose, accept the finding or restart the exporter."),
		entry(FindingStuck, "", outage, RemedyReboot, "", "a process hangs{in} and cannot be killed",
			"A child process of the exporter was killed and has not ended.",
			"It is blocked in the kernel on the device or its driver, and no signal can kill it. Until it ends its work on the device is on hold and what the exporter shows of it is old. Any program that does the same hangs as well.",
			"See what the kernel waits for: `cat /proc/{pid}/stack` as root, and `dmesg`. Nothing can kill the process: resetting the device or reloading its driver may free it; if that hangs too, restart the host."),
		entry(FindingUnusable, "permission", outage, RemedyConfiguration, "", "the device may not be opened",
			"The last probe run could not open the device: EACCES or EPERM. The message names the exporter's user.",
			cannotUse+"Programs with the same rights cannot open it either; others may.",
			"The user needs read and write access to the device's node, /dev/infiniband/uverbsN: `grep -lxF {device} /sys/class/infiniband_verbs/*/ibdev` shows N, and `ls -l /dev/infiniband` its owner and mode. The udev rules of rdma-core allow everybody. In a container, pass the nodes in and allow them in its device cgroup: `--device=/dev/infiniband` for docker and podman, a device plugin in Kubernetes. If it is still EPERM, check `rdma system show`: with `netns exclusive`, move the device into the exporter's network namespace, `rdma dev set {device} netns NAME`, or run the exporter in the device's."),
		entry(FindingUnusable, "no_node", outage, RemedyConfiguration, "", "the device has no node",
			"The last probe run did not find the device's node (ENOENT), or found nothing behind it (ENXIO).",
			cannotUse+"The kernel has the device, but no program that sees the same /dev can open it.",
			"In a container, pass the nodes in: `--device=/dev/infiniband` for docker and podman, a device plugin in Kubernetes; a node passed in by name goes stale when the driver is reloaded. On the host, check `ls -l /dev/infiniband` and `rdma link show`; `modprobe ib_uverbs` makes the nodes."),
		entry(FindingUnusable, "not_listed", outage, RemedyDriver, "", "libibverbs does not list the device",
			"The kernel has the device, but in the last probe run libibverbs did not list it (ENODEV), or found no RDMA support at all (ENOSYS).",
			cannotUse+"No program that uses the same libibverbs can find it.",
			"Where the exporter runs, check that `ls /dev/infiniband` shows the device's node (in a container, pass it in), that `rdma system show` does not say `netns exclusive` while the device is in another network namespace, and compare `ibv_devices` with `rdma link show`. If the node exists, the provider library is usually missing: install ibverbs-providers (Debian, Ubuntu), rdma-core (Red Hat) or the vendor's OFED, inside the container image if there is one, in a version that fits the driver; `IBV_SHOW_WARNINGS=1 ibv_devices` names the devices without a library. Otherwise `modprobe ib_uverbs`, or the device has since vanished: see `dmesg`."),
		entry(FindingUnusable, "no_room", outage, RemedyApplication, "", "the device cannot be opened for lack of room",
			"The last probe run could not open the device: EAGAIN or ENOMEM.",
			cannotUse+"Other programs may fail to open it as well.",
			"EAGAIN means the exporter's cgroup may open no more devices: see hca_handle in rdma.max and rdma.current of its cgroup. ENOMEM means the driver or the kernel is out of memory, or the device out of contexts: see `rdma resource show {device}`, `free` and `dmesg`."),
		entry(FindingUnusable, "other", outage, RemedyDriver, "", "the device cannot be opened or queried",
			"The last probe run could not open or query the device for any other reason.",
			cannotUse+"Every other program most likely fails the same way.",
			"Check whether `ibv_devinfo -d {device}` fails too, and what the driver says in `dmesg`: EIO or EBUSY means the device is being reset or removed. If it persists, reload the driver or reset the device."),
		entry(FindingRunAborted, string(state.OutcomeTimeout), outageOrFailure, RemedyDriver, "", "a run is killed at its deadline{in}",
			"The last probe run, or a process of the last contract run, was killed at its deadline: `--probe.timeout`, `--contract.timeout`. After a contract run, this stays until the contract is checked.",
			"The verb named in the message did not return, or all of them together took too long. A program that calls it waits just as long. What would have come after it was not checked.",
			"See `dmesg` for what the driver or the firmware waits for, and rdma_verbs_call_duration_seconds for whether verbs had become slower before. Check whether other programs hang too: `ibv_devinfo -d {device}`, and "+pingpong+". In ibv_open_device, libibverbs waits 5 seconds for a node it may not open: see device_unusable. If the host is merely busy, raise the timeout. If it persists, "+vendor+"."),
		entry(FindingRunAborted, string(state.OutcomeCrashed), outageOrFailure, RemedyDriver, "", "a run crashes{in}",
			"The last probe run, or a process of the last contract run, ended without a complete report. After a contract run, this stays until the contract is checked.",
			"If the message names a verb, the provider's library crashed in it, and so will any program that calls it. If not, the process was killed from outside, could not be started, or crashed during a measurement, where verbs are not reported one by one.",
			"The exporter's log has the last lines the process wrote (the audit command keeps none); `dmesg` shows a crash (segfault) or the OOM killer. Check that libibverbs, the provider libraries and the driver are from one release (`ibv_devinfo -d {device}` crashes too if it is the provider), then "+vendor+"."),
		entry(FindingRunAborted, string(state.OutcomeFailed), degradation, RemedyExporter, "", "the contract run fails",
			"The last contract run failed as a whole, and no other finding says why.",
			"Whether the device keeps its contracts is not known, or only from an earlier run.",
			"The message says what failed. Check the exporter's log, and whether `ibv_devinfo -d {device}` works as the exporter's user."),
		entry(FindingExhausted, "", exhaustion, RemedyApplication, "near_limit", "the device has refused more objects of type {type}",
			"The exporter creates only a few small objects, and one was refused with an errno that means something has run out (ENOMEM, EAGAIN, ENOSPC, EOVERFLOW). RLIMIT_MEMLOCK, cgroups and the host's memory have been ruled out. Critical while the last run was refused; a warning while the object count is at least this fraction of the count at the refusal; otherwise info, for a day. It is cleared by a change of adapter or firmware, or once the device gives more.",
			"This is the device's real limit: drivers and firmware often give less than `max_*` claims, because types share the memory of the adapter or its driver. At this count, no process on the host can create more.",
			"Find out who holds them: `{show}`, or rdma_resource_owner_objects over time. Plan with rdma_resource_exhausted_objects, not rdma_resource_limit. On a drained node, `rdma_exporter ceiling --device={device} --type={type} --yes` measures how many the device really gives. Then spread the jobs over more devices or hosts, or look for a setting in the driver or firmware."),
		entry(FindingMemlockRefused, "", degradation, RemedyConfiguration, "", "RLIMIT_MEMLOCK refuses to register memory",
			"In the last run, RLIMIT_MEMLOCK of the exporter's processes did not allow registering 2 MiB of memory, or not even 4 KiB.",
			"Nothing is wrong with the device. Programs started with this limit cannot register memory, and so cannot transfer data: ENOMEM, or EPERM if the limit is 0. The limit is the exporter's own, from what started it: for the audit command the shell or the job, for the service its unit or container. Programs started in another way may have another.",
			"See what jobs get: `ulimit -l` in one of them. Their limit is LimitMEMLOCK= in the unit of slurmd, sshd (or /etc/security/limits.conf) or the container runtime, and `--ulimit memlock=-1` for docker and podman; restart the unit, then the jobs. If only the exporter has so low a limit, "+memlock),
		entry(FindingProbeFailed, "memlock", failure, RemedyConfiguration, "", "RLIMIT_MEMLOCK of the exporter is too low",
			"In the last run, a probe that pins memory failed with ENOMEM, or with EPERM where none may be pinned, and RLIMIT_MEMLOCK of the exporter's processes is finite.",
			"Drivers that pin their queues fail under so low a limit, even though the device has room: such a process can neither probe nor use it.",
			"First "+memlock+jobs+". If ENOMEM stays with a higher limit, the device itself is out of room: see `rdma resource show {device}`."),
		entry(FindingProbeFailed, "no_room", outageOrFailure, RemedyApplication, "", "there is no room for more objects",
			"In the last run, a verb failed with ENOMEM or EAGAIN, and the limit on locked memory is not the cause.",
			"The device, its driver, the kernel or the exporter's cgroup is out of room: other processes fail the same way, or soon will.",
			"Compare `rdma resource show {device}` with the limits (rdma_resource_objects, rdma_resource_limit), and find who holds most: rdma_resource_owner_objects. For EAGAIN, check rdma.max of the exporter's cgroup. If both have room, check `free` and `dmesg`: the driver could not get memory."),
		entry(FindingProbeFailed, "less_than_asked", failure, RemedyDriver, "", "{verb} gives less than requested",
			"In the last run, a verb succeeded but gave less than requested, although the request was within the device's limits.",
			"A program that trusts the size it requested fails in the middle of its work: posting fails, or completions are lost.",
			"Have programs read the sizes that are written back. The contracts *_at_least_requested say more (docs/reference/contracts.md): "+vendor+"."),
		entry(FindingProbeFailed, "other", outageOrFailure, RemedyDriver, "", "a probe fails",
			"In the last run, a verb failed with any other errno. Objects that could not be destroyed are reported as undestroyed.",
			"A program that calls the verb this way fails as well.",
			"See what the driver says in `dmesg`, and try it by hand: `ibv_devinfo -v -d {device}`, and "+pingpong+". EMFILE means the exporter may open no more files (LimitNOFILE). If it persists, reset the device or reload its driver; then "+vendor+"."),
		entry(FindingProbeFailed, "empty_messages", degradation, RemedyConfiguration, "", "memory for messages cannot be registered",
			"In the last run, the process could not register memory for messages, and measured with empty ones.",
			"Notification was still measured. But programs that transfer data must register memory: they fail under the same limit, or because the device is out of room.",
			"If the message names a limit, "+memlock+jobs+". If not, check `rdma resource show {device}` for mr, and `dmesg`."),
		entry(FindingProbeFailed, "registration_"+string(state.RefusedByCgroup), failure, RemedyConfiguration, "", "a cgroup allows no more memory regions",
			"In the last run, the exporter could not register memory, and a cgroup that it is in has as many objects as rdma.max allows.",
			"The limit is that of the cgroup, not of the device: other programs in it cannot create memory regions either, but programs elsewhere can.",
			"Raise hca_object for {device} in rdma.max of the cgroup that the message names, or let its programs release objects: rdma_cgroup_objects shows what each cgroup has (`--collector.cgroups`)."),
		entry(FindingProbeFailed, "registration_"+string(state.RefusedByHost), failure, RemedyApplication, "", "the host has no memory to register",
			"In the last run, the exporter could not register memory, while the host had almost no memory available, or the process had reached its limit of mappings.",
			"The kernel could not get the memory that registration takes; registrations of other programs fail too, on every device.",
			"See `free` and `dmesg` for what uses up the memory: what is pinned for RDMA cannot be swapped out, and rdma_owner_locked_bytes shows who has most of it. For mappings, see vm.max_map_count."),
		entry(FindingProbeFailed, "registration_"+string(state.RefusedByDevice), failure, RemedyDriver, "", "the device refuses to register memory",
			"In the last run, the device refused to register at most 2 MiB of memory, and no limit of the process, of its cgroups or of the host explains it.",
			"The device, its driver or its library has no mapping resources left, or is broken. Programs that register memory, which includes all that transfer data, fail in the same way.",
			"Compare `rdma resource show {device}` for mr with max_mr (rdma_resource_objects, rdma_resource_limit), and see who holds most: rdma_resource_owner_objects. With room left, see `dmesg`: with an IOMMU, the addresses that the adapter may use can run out. If 4KiB is accepted and 2MiB refused, the firmware cannot map long regions: "+vendor+"."),
		entry(FindingNotification, "missed", failure, RemedyDriver, "", "completion events are lost",
			"In the last measurement of a completion vector, a completion arrived but its event had not by the deadline.",
			"A program that sleeps until the event hangs, or wakes only with the next one.",
			"In /proc/interrupts, where drivers name interrupts by device or PCI address, check that those of the completion vectors increase while programs run. If all missed events are on a few vectors, their interrupts are lost: reload the driver. Soft-RoCE loses a single event now and then; there, only repeated misses matter. Until it is fixed, have programs poll with a timeout as well as wait, and "+vendor+"."),
		entry(FindingNotification, "misdirected", failure, RemedyDriver, "", "completion events are misdirected",
			"In the last measurement of a completion vector, events came on another completion channel, or named another completion queue.",
			"The thread that waits for the event hangs, and another one wakes for nothing.",
			"Have programs use one channel for all queues, and poll all of them at each event. See the contracts channel_steering and notify_identifies_cq (docs/reference/contracts.md), and "+vendor+"."),
		entry(FindingNotification, "missing", failure, RemedyDriver, "", "completions are lost",
			"In the last measurement of a completion vector, a posted work request had not completed by the deadline.",
			"The request or its completion was lost, or is very late: a program that waits for it hangs just as long.",
			"See `dmesg`, and the counters of the port: `rdma statistic show link {device}`. Try it by hand: "+pingpong+". If the host is merely busy, raise `--probe.timeout`, which the deadline follows; otherwise "+vendor+"."),
		entry(FindingNotification, "spurious", degradation, RemedyDriver, "", "events come without a completion",
			"In the last measurement of a completion vector, events came while the completion queue was empty.",
			"A program wakes for nothing, and fails if it assumes that each event has a completion.",
			"Have programs poll until the queue is empty and then sleep again, whatever they find. If it persists, "+vendor+"."),
		entry(FindingNotification, "unsuccessful", degradation, RemedyNetwork, "", "completions have a wrong status",
			"In the last measurement of a completion vector, completions had the wrong status. Expected: success for messages from a port to itself, wr_flush_err for requests posted to a queue pair in the error state.",
			"On the loopback path, messages from the port to itself do not get through, and messages to others hardly will. On the flush path, a program cannot tell a flushed request from a finished one.",
			"Look at the status: retry_exc_err and rnr_retry_exc_err mean nothing answers (check the state and the addresses of the port: `rdma link show {device}`, `ibv_devinfo -v -d {device}`; on RoCE, a firewall on UDP port 4791); loc_prot_err and rem_access_err mean memory is not accepted. See `dmesg`."),
		broken(SeverityCritical, failure, "A program that relies on this promise of the libibverbs man pages hangs or loses data."),
		broken(SeverityWarning, quirk, "A program that relies on this promise of the libibverbs man pages gets a wrong size or state."),
		broken(SeverityInfo, minorQuirk, "The device allows more than the libibverbs man pages do: a program that relies on that fails on other devices."),
		entry(FindingUndestroyed, "", degradation, RemedyDriver, "", "the device refuses to destroy objects of type {type}",
			"In the last probe run or contracts, the device refused every attempt to destroy an object, by type and errno.",
			"A program that destroys such an object fails too, or hangs if it keeps trying. The object was freed when the child process ended, unless it is reported as leaked.",
			"EBUSY means the driver thinks something still uses the {type}; any other errno means a command to the device failed. Check the contracts *_destroy_busy (rdma_contract_violated) and `dmesg`, and update the driver, the firmware and rdma-core."),
		entry(FindingLeaked, "", nearing, RemedyDriver, "orphan_age", "objects of ended processes of the exporter remain",
			"A child process of the exporter has ended and its objects are still there. Critical once inventories have found some of them for this long: until then the kernel may still be cleaning up.",
			"The kernel must free the exporter's objects when its process ends, and did not. Each further run may leak more, and until they are gone the device cannot be removed nor its driver unloaded. Other programs will leak the same way when they end.",
			"If it does not clear, stop probing the device: `--device.exclude={device}`. Look at `dmesg` and at `{show}`, and report it to the vendor of the driver. Reloading the driver or restarting the host frees the objects."),
		entry(FindingOrphaned, "", degradation, RemedyApplication, "orphan_age", "objects have no living owner",
			"For this long, every inventory found objects of user programs for which the kernel names no living thread: neither one that created them nor one that created anything else on the same open device. Reported only where the exporter sees all processes of the host.",
			"Usually their processes have ended and the kernel has not destroyed them, because the driver never finishes or another process inherited the open device. A running program looks the same if every thread that created something on the open device has ended. The objects count towards the limits, and until they are gone the device cannot be removed nor its driver unloaded.",
			"Look for processes that still have the device open: `fuser -v /dev/infiniband/uverbs*`. If one of them is at work, no action is needed. If no process does, or ending them does not free the objects (`{show}` lists them without pid), look at `dmesg` for what the driver waits for. Reloading the driver frees them; if the reload hangs, restart the host."),
		entry(FindingNearLimit, "", nearing, RemedyApplication, "near_limit", "objects of type {type} are near the limit of the device",
			"The objects of a type, held by all processes and the kernel together, have reached this fraction of what the device allows: `max_pd`, `max_cq`, `max_qp`, `max_mr`, `max_srq`. A limit of 0 means no limit.",
			"At the limit, no process on the host can create another object of this type, usually with ENOMEM: jobs do not start, and broken connections are not replaced.",
			"Find out who holds them: `{show}`, or rdma_resource_owner_objects over time. If an owner has more than it needs, make it close them, or restart it. Otherwise spread the jobs over more devices or hosts, or raise the limit if the driver has a setting for it."),
		entry(FindingCgroupNearLimit, "", nearing, RemedyConfiguration, "cgroup_near_limit", "{resource} of a cgroup is near its limit",
			"A cgroup's use of the device has reached this fraction of its `rdma.max`: `hca_handle` counts open devices, `hca_object` everything else. A limit of 0 allows none, and is a finding only while something is in use.",
			"At the limit, processes in the cgroup cannot create more objects, usually with EAGAIN, even though the device has room.",
			"Compare `cat /sys/fs/cgroup{cgroup}/rdma.current` with `rdma.max` next to it (with cgroup v1, both are below /sys/fs/cgroup/rdma). Raise {resource} of {device} where the limit is set, or make the application hold fewer objects."),
		entry(FindingMemlock, "", nearing, RemedyConfiguration, "memlock_near_limit", "a process is near its limit of locked memory",
			"The memory that drivers pinned for an owner (`VmPin`), or that it locked itself (`VmLck`), has reached this fraction of its RLIMIT_MEMLOCK. An owner above its limit is exempt (CAP_IPC_LOCK) and is not reported.",
			"Registering memory and creating queues pin memory. At the limit both fail with ENOMEM, even though the device has room, unless the process has CAP_IPC_LOCK.",
			"Check `prlimit --memlock --pid {pid}` and `grep -E 'VmPin|VmLck' /proc/{pid}/status`. Raise the limit of the running process with `prlimit --pid {pid} --memlock=BYTES`. For its next start: `ulimit -l unlimited` in its shell, LimitMEMLOCK=infinity in its systemd unit or that of the container runtime, `--ulimit memlock=-1` for docker and podman."),
		entry(FindingGrowing, "", mild, RemedyApplication, "growing", "objects of type {type} keep growing",
			"Over the last hour, or at least `growing.window`, a process holds more and more objects of a type. The time is divided into six parts: the lowest count of each is above that of the part before, with one exception that is not the last. The total growth is at least `growing.objects`, more than the count fluctuates, and is not slowing down, so that a job starting, a pool filling, and objects that come and go are not reported. Growth of all owners together is reported if no single process explains it. A warning if the limit of the device, or where it was seen to end (`resource_exhausted`), is reached within `growing.within` at this pace.",
			"Usually a program that creates objects per connection or request and never destroys them. At the limit of the device, no process on the host can create more, usually with ENOMEM; a limit on locked memory or of the cgroup stops the program itself earlier.",
			"Look at `{show}` again after a few minutes: objects that stay while new ids keep appearing are the leak. Restart the program before the limit is reached, and have it fixed. A program that is meant to grow, such as one that keeps adding peers, can be accepted."),
		entry(FindingQPError, "", degradation, RemedyApplication, "qp_errors", "queue pairs are in an error state",
			"At least this many queue pairs are in state err, or in sqe (the send queue alone). Not counted: those of processes called rdma_exporter, whose probes break some on purpose, and of processes that end during the inventory.",
			"They move no data until their owner resets them: a connection broke, or the owner is about to close them. If they stay, the owner has not noticed or does not clean up.",
			"Find out whose they are: `{show}`. If they all failed at once, suspect the port or the fabric (rdma_port_state_id, `rdma link`), otherwise a single peer. Then read the owner's log, and restart it if it does not recover."),
		entry(FindingCQUnfillable, "", note, RemedyApplication, "cq_entries", "completion queues can never be filled",
			"Completion queues that nothing uses, or that have more entries than all work requests of the queue pairs using them, together have at least this many entries.",
			"The memory of the entries, some 64 bytes each, is pinned and never used. It counts towards the limits of its owners.",
			"Have the owner request fewer entries (cqe of ibv_create_cq): as many as there can be outstanding work requests on all queue pairs that share the queue. `{show}` lists the sizes."),
		entry(FindingPortDown, "down", portLoss, RemedyNetwork, "", "{subject} {are} down",
			"At the last probe run, or by the kernel's files if it could not open the device, a port was neither active nor coming up."+portGrade,
			"Nothing gets through the port: new connections fail, and existing ones break. What needs an active port, such as the loopback path, is not probed.",
			"Check `rdma link show`, and `ip link show` for the network device of a RoCE or iWARP port: it must be up, with a carrier. On InfiniBand, check `ibstat`: physical state `Polling` means there is nothing at the other end. Check the cable, module and switch, and `dmesg`."),
		entry(FindingPortDown, "not_configured", portLoss, RemedyNetwork, "", "{subject} {are} linked but not active",
			"At the last probe run a port was in state init or armed: it has a link but is not active."+portGrade,
			"Nothing gets through the port: new connections fail, and existing ones break. What needs an active port, such as the loopback path, is not probed.",
			"On InfiniBand, a subnet manager must activate the port: run `sminfo` to see whether the fabric has one, start opensm or the switch's if not, and look in its log for why it skips this port (`ibstat` shows the GUID). For a RoCE port, check `ip link show` and `dmesg`."),
		entry(FindingFlapping, "", degradation, RemedyNetwork, "port_flapping", "{subject} keeps going down",
			"A port went down at least this often within the window. Changes between two readings count too: the kernel reports or counts them.",
			"Each time, transfers on the port wait or fail: connections break once their retries run out, and a collective operation stalls the whole job. The cause is usually a cable or a module, and seldom fixes itself.",
			"Check whether the other end went down too, and when: the switch's log, and `dmesg`. Clean or replace the cable or the module, then try another switch port. rdma_port_state_changes_total shows the history, rdma_port_symbol_errors_total and rdma_port_fec_uncorrectable_blocks_total the quality of the link. Keep jobs off the host until the link is steady."),
		entry(FindingSlowPort, "", degradation, RemedyNetwork, "", "{subject} runs below its highest rate",
			"An active port runs below the highest rate it has had since the exporter first saw it (kept over restarts with `--state.dir`). A port that was slow from the start is not reported.",
			"Everything through the port is slower than it was, and a collective operation waits for its slowest member.",
			"Check what rate the switch port offers and is set to. If it offers more, clean or replace the cable or the module, which is usually why a port loses lanes or falls back to a lower speed. `rdma link show`, `ibstat {device}` or `ethtool` of its network device show details. If the switch was set to a lower rate on purpose, accept this finding."),
		entry(FindingPathFailed, "device", exhaustion, RemedyNetwork, "", "a path fails at the device",
			"A path to a peer fails because of this device. Critical if paths to at least two peers fail, none works, and one worked before: then this is the only finding about its paths. "+pathGrade,
			"Jobs that use the device with these peers fail or hang, as NCCL does with status 12.", "{remedy}"+pathProof),
		entry(FindingPathFailed, "peer", mild, RemedyNone, "", "a path fails at the peer",
			"A path to a peer fails because of the device of the peer. "+pathGrade,
			"Jobs that use both ends fail or hang. This device may be fine.", "{remedy}"+pathProof),
		entry(FindingPathFailed, "path", mild, RemedyNetwork, "", "a path fails on the way",
			"Packets of the exporter do not reach a peer, or its answers do not come back, and the devices at both ends are fine. "+pathGrade,
			"Jobs that use both ends fail, hang or are slow.", "{remedy}"+pathProof),
		entry(FindingPathFailed, "unasked", note, RemedyExporter, "", "a peer cannot be asked",
			"The exporter of a peer does not answer over HTTP, or refuses to be asked.", "Nothing is known about RDMA to this peer.", "{remedy} rdma_path_probes_total counts the results."),
		entry(FindingPathSlow, "path", degradation, RemedyNetwork, "", "a path is slow",
			"In three runs in a row the median round trip to a peer took more than three times as long as it used to, and at least 20 µs longer.",
			"Jobs that use both ends are as slow as this path.", "{remedy} rdma_path_rtt_seconds shows since when."),
		entry(FindingCongested, "", mild, RemedyNetwork, "", "{subject} is congested",
			"In five minutes or more between two readings, the other side of the link paused a priority of the port by PFC for at least 1 % of the time; a warning from 10 % on. Or the port got at least one congestion notification (CNP) for a thousand packets that it sent, and ten times as many as in about the last day, once it is known for 6 hours. Only where the driver counts it: pauses with bnxt_re and mlx5, CNPs with most RoCE drivers. The past begins again with the exporter.",
			"The port may send more than the network or a receiver takes. What is paused waits, and in a lossless network a pause spreads to ports that have no part in it; CNPs slow senders down. A collective operation waits for its slowest member.",
			"Find the receiver that cannot keep up: rdma_port_pfc_pausing_seconds_total, rdma_port_cnps_sent_total and rdma_port_out_of_buffer_packets_total of the other hosts, and their findings pci_degraded and port_slow. If many send to one at once, spread them. Pauses without CNPs mean that switches mark too late or not at all: check their ECN thresholds, and that the priority is the lossless one. rdma_port_pfc_paused_seconds_total and the dashboards' panels on congestion show since when."),
		entry(FindingBusErrors, "", degradation, RemedyHardware, "", "the PCI bus reports uncorrected errors",
			"In the last 24 hours the PCI bus reported uncorrected errors of the adapter (AER counters).",
			"Transfers between the adapter and memory were lost. The driver may have reset the device, which cuts off the programs using it; such errors usually come back.",
			"Look at `dmesg` for `AER` and for what the driver did. Reseat the adapter and its riser, and update the firmware of the adapter and the host; if it happens again, replace the adapter, then the riser. Keep jobs off the host if the errors are fatal."),
		entry(FindingSlowBus, "adapter", degradation, RemedyHardware, "", "the PCI link of the adapter is degraded",
			"The PCI link of the adapter has fewer lanes, or a lower speed, than the adapter supports.",
			"The PCI link may be slower than the port: the adapter then falls behind, pauses its senders or drops packets, whatever the network does.",
			"Run `lspci -vv` for the address in the message: LnkCap is what it supports, LnkSta what it has. If the slot supports as much, reseat the adapter, and try another slot or riser. If it was always so, the slot or a firmware setting (bifurcation, link speed) is the limit: choose another slot, or accept this finding."),
		entry(FindingSlowBus, "bottleneck", degradation, RemedyHardware, "", "a PCI link is slower than the adapter's own",
			"A PCI link between the adapter and the CPU is slower than the adapter's own.",
			"All devices below that link share it: the adapter cannot move more than the link carries, and less while the others are busy.",
			"See `lspci -tv` for what is below the bridge that the message names, and `lspci -vv` for its LnkCap and LnkSta. If it has less than it supports, reseat the riser or the switch, and check the firmware settings. If it has all it supports, move the adapter to a slot of another root port, or accept this finding."),
		entry(FindingBandwidthLow, "", degradation, RemedyConfiguration, "", "the bandwidth is low",
			"The last scheduled measurement (`--bandwidth.schedule`) found a port that moves less than 80 % of its rate, of what its PCI link can carry, of the median of devices of the same model, or of what it once moved. The finding stays until a measurement finds otherwise, or the schedule is switched off.",
			"Transfers take longer than the hardware allows, and no counter shows it.", lookAgain),
		entry(FindingNUMAAsymmetric, "", degradation, RemedyConfiguration, "", "some memory is slow to reach",
			"The last scheduled measurement found a port that moves less than 70 % with the memory of one NUMA node of what it moves with that of another.",
			"Programs whose buffers are on that node are slow. Which node they get depends on where they run.",
			lookAgain+" Until then, bind programs to the node of the adapter: `numactl --cpunodebind=N --membind=N`."),
		entry(FindingSlowVector, "", note, RemedyConfiguration, "", "completion vectors are slow",
			"The median time from posting to the event on a completion vector is at least three times the usual one, and at least 20 µs longer. The usual one is the median of all vectors measured on the same path and port. Each vector counts with its last measurement; one run need not measure all.",
			"A thread that sleeps on this vector wakes late. Usually its interrupt runs on a CPU that is busy, far from the adapter, or in a deep sleep state.",
			"Check in /proc/interrupts which CPU handles the vector's interrupt, and what else that CPU does; move it with /proc/irq/N/smp_affinity (irqbalance may move it back) to a CPU of the adapter's NUMA node, shown by `cat /sys/class/infiniband/{device}/device/numa_node`. rdma_notification_vector_latency_seconds shows whether it was always slow."),
		entry(FindingGPUUnavailable, "", mild, RemedyDriver, "", "memory of GPUs cannot be registered",
			"The host has a GPU of NVIDIA, the kernel neither nvidia_peermem (nv_peer_mem) nor dma-buf for it, which needs Linux 5.12 and NVIDIA's open kernel module. A warning if the adapter shares a PCI switch with such a GPU. Only with mlx5: other drivers may have a way of their own.",
			"Programs such as NCCL copy what they send from the GPU to memory of the host first: half the bandwidth or less, and more latency.",
			"If programs use GPUs and this adapter together, run `modprobe nvidia_peermem`, which comes with NVIDIA's driver and needs that of DOCA or MLNX_OFED, or install the open kernel module on Linux 5.12 or later. Otherwise accept this finding."),
		entry(FindingGPUSlow, "acs", degradation, RemedyConfiguration, "", "ACS redirects between adapter and GPU",
			"Adapter and GPU share a PCI switch, and a bridge between them redirects requests or completions (access control services, ACS: ReqRedir, CmpltRedir).",
			"What goes between them takes the way through the CPU instead of the switch: slower, and shared with everything else.",
			"On a host without virtual machines, switch ACS off in the firmware settings, or at each boot for the bridges in the message: `setpci -s BRIDGE ECAP_ACS+0x6.w=0`. `lspci -vvs BRIDGE` shows ACSCtl. Where virtual machines use devices of this host, ACS isolates them: accept this finding."),
		entry(FindingGPUSlow, "iommu", note, RemedyConfiguration, "", "the IOMMU translates between adapter and GPU",
			"Adapter and GPU share a PCI switch, and the adapter's IOMMU group is of type DMA or DMA-FQ.",
			"The translation is done at the CPU, so what goes between them may take the way through it instead of the switch.",
			"On a host without virtual machines, boot with `iommu=pt`, or switch the IOMMU off in the firmware settings."),
		entry(FindingGPUSlow, "bar", note, RemedyConfiguration, "", "the BAR of a GPU is small",
			"The largest BAR of a GPU or accelerator is smaller than 1 GiB.",
			"Adapters reach only a part of its memory at a time, so registering larger buffers fails or is avoided.",
			"Allow large BARs in the firmware settings (Above 4G Decoding, Resizable BAR), and see `lspci -vvs` of the GPU. Some GPUs have no larger one."),
		entry(FindingTogether, "", degradation, RemedyConfiguration, "", "one CPU handles most interrupts",
			"One CPU handles more than half of the interrupts of at least four completion vectors.",
			"Spreading completion queues over vectors does not help: one CPU serves them all, has no time for anything else, and notification latency grows with the load.",
			"Check where they may run: `/proc/irq/NUMBER/smp_affinity_list`. Start irqbalance, or spread them over the CPUs of the adapter's NUMA node by writing that file, as some vendors' `set_irq_affinity` scripts do. rdma_vector_interrupt_info with `--collector.interrupts` lists the numbers, and rdma_notification_vector_latency_seconds shows the cost."),
		entry(FindingIsolated, "", mild, RemedyConfiguration, "", "interrupts run on isolated CPUs",
			"Interrupts of completion vectors run on CPUs isolated from the scheduler (`isolcpus`, or an isolated partition). A warning if this affects most vectors.",
			"Isolated CPUs are reserved for programs that must not be disturbed. These interrupts disturb them; and programs that wait for completions on other CPUs are woken from a distance.",
			"If this is not intended, move the interrupts: use `isolcpus=managed_irq,...` on the kernel's command line for drivers whose interrupts the kernel manages; otherwise write other CPUs to `/proc/irq/NUMBER/smp_affinity_list`, or let irqbalance do so. rdma_vector_interrupt_info with `--collector.interrupts` lists the numbers."),
		entry(FindingIncomplete, string(state.IncompleteMaxObjects), note, RemedyNone, "", "there are too many objects to read",
			"There are more than 20,000 objects of a type, and reading all of them would take longer than a fifth of `--inventory.timeout`.",
			"The largest owners are named with what was read; those of queue pairs by the uses of their completion queues. States, and which objects have no owner, are not known.",
			"`rdma resource show` lists them. The exporter reads so large a type only in part, since each queue pair costs a query of the device."),
		entry(FindingIncomplete, string(state.IncompleteTimeout), degradation, RemedyExporter, "", "the inventory takes too long",
			"`--inventory.timeout` passed before all objects of a type had been read.",
			"The owners of those that were read are named. States, and which objects have no owner, are not known.",
			"Raise `--inventory.timeout`."),
		entry(FindingIncomplete, string(state.IncompleteInterrupted), degradation, RemedyApplication, "", "objects change while they are read",
			"The kernel's table of a type changed during every attempt to read it.",
			"The objects were read anyway; some may be missing or counted twice. Objects of this type are created and destroyed all the time, which is slow on most devices.",
			"If it persists, find the program: run `{show}` a few times. Programs should keep their objects, not create them for each transfer."),
		entry(FindingIncomplete, string(state.IncompleteNotSupported), note, RemedyNone, "", "the kernel lacks a table",
			"The kernel has no table of a type.",
			"The objects could not be read: their owners, and which have none, are not known.",
			"Nothing is wrong with the device. A newer kernel has the table."),
		entry(FindingIncomplete, string(state.IncompleteFailed), degradation, RemedyExporter, "", "the kernel refuses a table",
			"The kernel refused to list its table of a type, or its answer made no sense.",
			"The objects could not be read: their owners, and which have none, are not known.",
			"Try `{show}` on the host as the exporter's user, and look at `dmesg`. If it works, this is a bug in the exporter: please report it with the message above."),
		entry(FindingIncomplete, "run", degradation, RemedyExporter, "", "the inventory fails",
			"The last inventory of the device was not `ok`.",
			"What the exporter shows of the objects on the device is old, incomplete or missing.",
			"If it timed out, raise `--inventory.timeout`. Otherwise check the exporter's log, and whether `rdma resource show {device}` works on the host."),
		entry(FindingUnreadable, "hang", degradation, RemedyDriver, "", "reading the adapter hangs",
			"The last reading of the adapter's kernel files and tables timed out, and the file or request that did not return is known.",
			"The driver or the firmware does not answer. Until it does, counters, links and the PCI bus are not reported, and other programs that read the same, such as node_exporter and `ethtool`, wait too. Other devices are still read.",
			"Look at `dmesg` for what the driver waits for, and read the file named in the message by hand: `timeout 5 cat FILE`. If it persists, update the firmware and the driver, and reset the device or reload its driver when no job needs it. If answers are merely slow, raise `--inventory.timeout`."),
		entry(FindingUnreadable, "failed", degradation, RemedyExporter, "", "the adapter cannot be read completely",
			"The last reading of the adapter's kernel files and tables did not finish.",
			"Counters, links and the PCI bus are not reported. Programs that use the device may be fine.",
			"Check that the exporter's user can read the files: `ls -lR /sys/class/infiniband/{device}/`. In a container, mount /sys of the host; if it is mounted elsewhere, set `--path.sysfs`. If a child process of the exporter crashed or was killed, its log says how. If it timed out, the host was too busy: raise `--inventory.timeout`."),
		entry(FindingUnexpected, "devices", outage, RemedyDriver, "", "there are fewer devices than expected",
			"There are fewer devices than `devices` of `expect` in the configuration file. It concerns the host, not a device. Devices that vanished are reported by device_vanished instead.",
			"Jobs that need all devices fail, or run slower on the others.",
			findDevices+expected),
		entry(FindingUnexpected, "active_ports", outage, RemedyNetwork, "", "fewer ports are active than expected",
			"Fewer ports are active than `active_ports` of `expect` or `--expect-active-ports`. It concerns the devices without an active port, or with any inactive one if all ports are expected; else the host.",
			"Jobs that need all ports fail, or run slower on the others.",
			"Check `rdma link show`, and the cable, module and switch of the ports that are not active. "+expected),
		entry(FindingUnexpected, "link", degradation, RemedyNetwork, "", "{subject} is not as expected",
			"An active port differs from `rate`, `mtu` or `roce_v2_ipv4` of `expect` in the configuration file, or its value cannot be read.",
			"Jobs are as slow as their slowest port, and hosts with different settings may not reach each other.",
			"Compare with a host that is as expected: `rdma link show`, `ip link show` and `ibv_devinfo -d {device} -v`. For a lower rate check cable, module and switch port; for the MTU the network device and the switch; for the GID the IPv4 address of the network device. "+expected),
		entry(FindingUnexpected, "version", degradation, RemedyDriver, "", "{subject} is not as expected",
			"The version of the firmware or the driver does not match `firmware` or `driver` of `expect` in the configuration file, or cannot be read.",
			"The host behaves differently from those that it works with.",
			"Install the expected version, and reset the device or reload its driver when no job needs it: `ethtool -i` of its network device, `ibv_devinfo -d {device}`. "+expected),
		entry(FindingUnexpected, "memlock", degradation, RemedyConfiguration, "", "memlock is less than expected",
			"A process that holds objects on the device may lock less memory (RLIMIT_MEMLOCK) than `memlock` of `expect` in the configuration file says. So may the audit command: then it concerns the host, since jobs inherit the limit of what starts them, as a prolog does.",
			"Registering memory fails with ENOMEM when the limit is reached.",
			"Raise the limit of what starts the jobs, and restart it: LimitMEMLOCK=infinity in the unit of slurmd, the container runtime or the kubelet, or memlock in /etc/security/limits.conf for logins. "+expected),
		entry(FindingRefused, "", mild, RemedyDriver, "", "counters of {subject} cannot be read",
			"The kernel refused to read a group of counters of a port, or of the device as a whole (EINVAL or EIO), returned something that is not a number, or has a FIFO or a directory in place of a counter's file. Only info on a virtual function or a subfunction, and with drivers that have no counters of their own.",
			"Errors, discards and congestion that these counters would show go unseen. Programs that use the port may be fine. As some drivers write to the kernel's log at each attempt, the group is read again only after ten minutes.",
			"Try it by hand: `grep . /sys/class/infiniband/{device}/ports/*/*counters/*`, and look at `dmesg`. Virtual and other restricted functions may not be allowed to read their counters: check those of the physical function, and accept this finding. On a physical function, update the firmware and the driver."),
		entry(FindingNetnsBlind, "", degradation, RemedyExporter, "", "the network namespace hides ports",
			"No network device of an Ethernet port is in the exporter's network namespace, or the kernel shows neither `counters/` nor `hw_counters/` of a port of hfi1, mlx4 or mlx5 there. It concerns the host, not a device: health and exit status do not change.",
			"The kernel shows RDMA devices in every network namespace, but their network devices only in their own, and these directories only in the host's. Of RoCE ports, PFC and pause frames, FEC, symbol errors, MTU, the network device's rate and its link events are missing. Without the directories, so are bytes, packets, errors and discards of the port. Nothing is wrong with the devices, but alerts on all this cannot fire.",
			"Run the exporter in the host's network namespace: `hostNetwork: true` in the chart's values or the pod's spec, `--network=host` for docker and podman. It then serves on the addresses of the host: restrict access with a web configuration or a firewall. A sidecar that must share its pod's network cannot see more: run another exporter on the node."),
		entry(FindingPIDsInvisible, "", note, RemedyExporter, "", "owners of objects are not visible",
			"The kernel names no thread for some objects of user programs, and the exporter runs in its own pid namespace.",
			"Their owners may be dead, or merely out of sight: neither owners nor orphans are reported for them.",
			"Let the exporter see the processes of the host: `hostPID: true` in the pod's spec, `--pid=host` for docker and podman."),
		entry(FindingSaturated, "", note, RemedyNone, "", "counters of {subject} are at their maximum",
			"A counter has reached its maximum and stays there until it is reset; or all its 64 bits are set, which means the driver could not read it.",
			"Its value is no longer known: the metric is absent, and alerts on it cannot fire. It says nothing about the port now.",
			"On InfiniBand, reset the counters of the port: `perfquery -R -C {device} -P PORT`. Elsewhere they restart when the driver is reloaded. rdma_port_counter_saturated names them; 64-bit counters return by themselves once the driver can read them."),
		entry(FindingUnaddressed, "", note, RemedyConfiguration, "", "{subject} has no RoCE v2 GID with an IPv4 address",
			"An active RoCE port with a network device has no RoCE v2 GID with an IPv4 address.",
			"Programs that look for such a GID, as NCCL and UCX do by default, fall back to RoCE v1 or an IPv6 address, and reach no host beyond their subnet, or none at all.",
			"Give the port's network device an IPv4 address: `ip -4 address show`, and `rdma link show` for which one it is. If it has one, it may be in another network namespace, or in a bond or VLAN that the driver does not follow. If the network uses IPv6, set the index of that GID in programs (`NCCL_IB_GID_INDEX`), and accept this finding."),
		entry(FindingAcceptanceUnused, "unused", note, RemedyExporter, "", "an acceptance matches no finding",
			"Every device has been checked, and an item of `accept` in the configuration file, or an `--accept` flag, matches no finding; or has not for 10 minutes. It concerns the host, not a device.",
			"The accepted problem is over, or the item does not match what it was meant to. If the problem comes back, there is no alert.",
			"Remove the item and reload the configuration file, or correct its finding, contract or device."),
		entry(FindingAcceptanceUnused, "expired", note, RemedyExporter, "", "an acceptance has expired",
			"An item of `accept` in the configuration file has passed its `until` day. It concerns the host, not a device.",
			"What it accepted counts as a problem again, if it is still there.",
			"Remove the item, or give it a later day if it is still acceptable, and reload the configuration file."),
	}
}
