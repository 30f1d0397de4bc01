package health

import (
	"cmp"
	"slices"

	"rdma_exporter/internal/state"
)

// Entry is all there is to say of one kind of finding, or of one case of it.
type Entry struct {
	Kind Kind
	// Case tells the entries of one kind apart; empty if there is one only.
	Case string
	// Severities are those that a finding can have, the worst first, and Harms what it
	// can do to those who use the device.
	Severities []Severity
	Harms      []Harm
	// Threshold is the key of the configuration file, within findings, that decides;
	// empty if there is none.
	Threshold string
	// Found says when there is a finding.
	Found string
	// Meaning says what it means to those who use the device, and Action what to do.
	// A word in braces stands for what was found; see Placeholders.
	Meaning, Action string
}

// harmOf returns the harm that goes with a severity where there is one for each, or else
// the worst.
func (e *Entry) harmOf(s Severity) Harm {
	if i := slices.Index(e.Severities, s); i >= 0 && len(e.Harms) == len(e.Severities) {
		return e.Harms[i]
	}
	return e.Harms[0]
}

// Placeholders returns what the words in braces of an action stand for.
func Placeholders() map[string]string {
	return map[string]string{
		"{device}":   "name of the device",
		"{show}":     "the command that lists the objects, such as `rdma resource show qp link rxe0 pid 4711`",
		"{type}":     "type of object, as rdma(8) names it",
		"{pid}":      "process, as the exporter sees it",
		"{cgroup}":   "path of the cgroup, quoted for a shell where that is needed",
		"{resource}": "`hca_handle` or `hca_object`",
		"{contract}": "name of the contract",
		"{remedy}":   "what [the catalogue of contracts](contracts.md) says to do",
	}
}

// The cases of FindingIncomplete are the reasons for an incomplete type, and
// this one for an inventory that failed as a whole.
const caseRun = "run"

// Catalogue returns every kind of finding, in the order of Kinds.
func Catalogue() []Entry {
	all, kinds := entries(), Kinds()
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind))
	})
	return all
}

// entries is Catalogue without the order, which who looks for one of them can do
// without.
func entries() []Entry {
	return slices.Concat(resourceEntries(), runEntries(), hardwareEntries(), acceptanceEntries())
}

// resourceEntries are the kinds of finding about resources.
func resourceEntries() []Entry {
	const (
		critical = SeverityCritical
		warning  = SeverityWarning
		info     = SeverityInfo
	)
	degradation := []Harm{HarmDegradation}
	note := []Harm{HarmNote}
	incomplete := func(reason state.IncompleteReason, severity Severity, found, meaning, action string) Entry {
		harms := degradation
		if severity == info {
			harms = note
		}
		return Entry{
			Kind: FindingIncomplete, Case: string(reason), Severities: []Severity{severity}, Harms: harms,
			Found: found, Meaning: meaning, Action: action,
		}
	}
	return []Entry{
		{
			Kind: FindingNearLimit, Severities: []Severity{critical, warning}, Harms: degradation, Threshold: "near_limit",
			Found:   "The objects of a type, those of all processes and of the kernel together, have reached this fraction of what the device allows: `max_pd`, `max_cq`, `max_qp`, `max_mr`, `max_srq`. A limit of 0 is none.",
			Meaning: "At the limit, every process on the host is refused further objects of this type, mostly with ENOMEM: jobs do not start, and connections that broke are not replaced.",
			Action:  "See who holds them: `{show}`, or rdma_resource_owner_objects over time. If an owner has more than it needs, have it close them, or restart it. Otherwise spread the jobs over more devices or hosts, or raise the limit if the driver has a setting for it.",
		},
		{
			Kind: FindingExhausted, Severities: []Severity{critical, warning, info}, Harms: []Harm{HarmFailure, HarmDegradation, HarmNote}, Threshold: "near_limit",
			Found:   "A run of the exporter, which asks for few small objects, was refused one with an errno that says that something is used up (ENOMEM, EAGAIN, ENOSPC, EOVERFLOW), though neither RLIMIT_MEMLOCK, nor a cgroup, nor the memory of the host can be why. It is critical while the last run was refused; a warning while there are as many objects again as the fraction says of those that the kernel counted then; and else worth knowing for a day. It is forgotten with another adapter, by its node GUID, or another firmware, and once the device gives more.",
			Meaning: "That is where the device really ended: drivers and firmware often give less than `max_*` claims, since types share memory of the adapter, or of its driver. With that many objects every process on the host is refused further ones.",
			Action:  "See who holds them: `{show}`, or rdma_resource_owner_objects over time. Plan with rdma_resource_exhausted_objects rather than with rdma_resource_limit. On a node that is drained, `rdma_exporter ceiling --device={device} --type={type} --yes` finds out how many there are to be had. Then spread the jobs over more devices or hosts, or see whether driver or firmware have a setting for it.",
		},
		{
			Kind: FindingCgroupNearLimit, Severities: []Severity{critical, warning}, Harms: degradation, Threshold: "cgroup_near_limit",
			Found:   "What a cgroup uses on the device has reached this fraction of its `rdma.max`: `hca_handle` counts opened devices, `hca_object` everything else. A limit of 0 forbids, and is worth a finding only while something is used nevertheless.",
			Meaning: "At the limit, the processes in the cgroup are refused further objects, mostly with EAGAIN, although the device has room for them.",
			Action:  "Compare `cat /sys/fs/cgroup{cgroup}/rdma.current` with `rdma.max` beside it (with cgroup v1, both are below /sys/fs/cgroup/rdma). Raise {resource} of {device} where the limit is set, or have the application hold fewer objects.",
		},
		{
			Kind: FindingMemlock, Severities: []Severity{critical, warning}, Harms: degradation, Threshold: "memlock_near_limit",
			Found:   "The memory that drivers pinned for an owner (`VmPin`), or that it locked itself (`VmLck`), has reached this fraction of its RLIMIT_MEMLOCK. One that is above the limit may go beyond it (CAP_IPC_LOCK), and is no finding.",
			Meaning: "Registering memory and creating queues pin memory. At the limit the process is refused both with ENOMEM, although the device has room, unless it has CAP_IPC_LOCK.",
			Action:  "Look at `prlimit --memlock --pid {pid}` and `grep -E 'VmPin|VmLck' /proc/{pid}/status`. Raise the limit while it runs with `prlimit --pid {pid} --memlock=BYTES`, and for its next start: `ulimit -l unlimited` in its shell, LimitMEMLOCK=infinity in its systemd unit or in that of the container runtime, `--ulimit memlock=-1` for docker and podman.",
		},
		{
			Kind: FindingGrowing, Severities: []Severity{warning, info}, Harms: []Harm{HarmDegradation, HarmNote}, Threshold: "growing",
			Found:   "By the inventories of the last hour, or of `growing.window` at least, a process creates ever more objects of a type: that time is divided into six parts, and the lowest number of each is above that of the part before, with one exception that is not the last. All together they grow by `growing.objects` or more, by more than they go up and down, and do not slow down. So a job that starts, a pool that fills, and objects that come and go are no finding. If no process explains why all owners together grow, that is one, too. It is a warning if the limit of the device, or where it was seen to end (`resource_exhausted`), is reached within `growing.within` at this pace.",
			Meaning: "Mostly a program that creates objects, for each connection or request, and does not destroy them. At the limit of the device every process on the host is refused further ones, mostly with ENOMEM; at a limit of memory in place or of the cgroup the program itself is before.",
			Action:  "Look at `{show}` again after some minutes: those that stay, with ever higher ids, are what is not destroyed. Restart the program before the limit is reached, and have it repaired. A program that is meant to grow, as one that is connected with ever more peers, can be accepted.",
		},
		{
			Kind: FindingOrphaned, Severities: []Severity{warning}, Harms: degradation, Threshold: "orphan_age",
			Found:   "Every inventory for this long found objects of user programs for which the kernel names no living thread: neither one that created them nor one that created anything else of the same opened device. It is claimed only where the exporter sees the processes of the whole host.",
			Meaning: "Mostly the processes that created them have ended, and the kernel has not destroyed them: a driver does not get done with it, or another process inherited the opened device. A program that lives on looks the same if each of its threads that created anything of the opened device has ended. The objects count towards the limits, and while they are there the device cannot be removed nor its driver unloaded.",
			Action:  "Look for processes that still have a device open: `fuser -v /dev/infiniband/uverbs*`. One that is at work is no reason to worry. If none has, or ending those does not free the objects (`{show}` lists them without pid), look at `dmesg` for what the driver waits for. Reloading the driver frees them; if that does not return, only a restart of the host does.",
		},
		{
			Kind: FindingLeaked, Severities: []Severity{critical, warning}, Harms: degradation, Threshold: "orphan_age",
			Found:   "Objects are left of a child process of the exporter that has ended. It is critical once inventories found some of them for this long: until then the kernel may be cleaning up.",
			Meaning: "The kernel did not take back what the exporter created on the device, as it must when a process ends. Each further run may add to it, and while it is there the device cannot be removed nor its driver unloaded. The same will happen to other programs that end.",
			Action:  "If it does not go away, stop probing the device: `--device.exclude={device}`. Look at `dmesg` and at `{show}`, and report it to the vendor of the driver. Reloading the driver, or a restart of the host, frees the objects.",
		},
		{
			Kind: FindingUndestroyed, Severities: []Severity{warning}, Harms: degradation,
			Found:   "In the last run of the probes, or of the contract run, the device refused to the end to destroy an object, by type and errno.",
			Meaning: "A program that destroys such an object is refused, too, or hangs if it repeats that. The end of the child process freed the object, unless it is told as leaked.",
			Action:  "EBUSY says that the driver thinks something still uses the {type}; any other errno that a command to the device failed. See what the contracts *_destroy_busy say (rdma_contract_violated), look at `dmesg`, and update the driver, the firmware and rdma-core.",
		},
		{
			Kind: FindingStuck, Severities: []Severity{critical}, Harms: []Harm{HarmOutage},
			Found:   "A child process of the exporter was killed, and has not ended.",
			Meaning: "It waits in the kernel for the device or its driver, where no signal ends it. What it was to do on the device does not go on until it ends, so what is told of it is old. Any program that does the same hangs as well.",
			Action:  "See what the kernel waits for, as root: `cat /proc/{pid}/stack`, and `dmesg`. Nothing can kill it: a reset of the device or a reload of its driver may free it; if that waits as well, restart the host.",
		},
		{
			Kind: FindingQPError, Severities: []Severity{warning}, Harms: degradation, Threshold: "qp_errors",
			Found:   "At least as many queue pairs are in the state err, or sqe, which is that of the send queue alone. Those of processes called rdma_exporter, whose probes break some on purpose, and of processes that end during the inventory do not count.",
			Meaning: "They move no data until their owner sets them up anew: their connections broke, or their owners are about to close them. Those that stay belong to a program that has not noticed or does not clean up.",
			Action:  "See whose they are: `{show}`. Whether they went down together tells the port and the fabric (rdma_port_state_id, `rdma link`) from a single peer. Then look at what their owner logged, and restart it if it does not recover.",
		},
		{
			Kind: FindingCQUnfillable, Severities: []Severity{info}, Harms: note, Threshold: "cq_entries",
			Found:   "Completion queues which nothing uses, or which are larger than all work requests of the queue pairs that use them, have at least as many entries, all together.",
			Meaning: "The memory of the entries is pinned, some 64 bytes each, and never used. It counts towards the limits of its owners.",
			Action:  "Have the owner ask for fewer entries (cqe of ibv_create_cq): as many as work requests can be outstanding on all queue pairs that share the queue. `{show}` has the sizes.",
		},
		incomplete(
			state.IncompleteMaxObjects, info,
			"There are more objects of a type than `--inventory.max-objects`.",
			"They were only counted: who owns them, which have no owner and which state they are in is not known.",
			"Raise `--inventory.max-objects`, and `--inventory.timeout` with it: each queue pair costs a query of the device. rdma_inventory_duration_seconds has what the inventory takes now.",
		),
		incomplete(
			state.IncompleteTimeout, warning,
			"The time of the inventory, `--inventory.timeout`, was up before all objects of a type had been looked at.",
			"They were only counted: who owns them, which have no owner and which state they are in is not known.",
			"Raise `--inventory.timeout`, or lower `--inventory.max-objects` so that a type of which there are many does not use up the time of the others.",
		),
		incomplete(
			state.IncompleteInterrupted, warning,
			"The kernel's table of a type changed under each attempt to read it.",
			"They were looked at even so, and some may be missing or counted twice. Objects of this type are created and destroyed all the time, which is slow on most devices.",
			"If it stays, find the program that does so: `{show}`, a few times. Programs should keep their objects, not create them for each transfer.",
		),
		incomplete(
			state.IncompleteNotSupported, info,
			"The kernel has no table of a type.",
			"They could not be looked at: who owns them, and which have no owner, is not known.",
			"Nothing is wrong with the device. A newer kernel has the table.",
		),
		incomplete(
			state.IncompleteFailed, warning,
			"The kernel refused to read out its table of a type, or its answer made no sense.",
			"They could not be looked at: who owns them, and which have no owner, is not known.",
			"See whether `{show}` works on the host, as the user that the exporter runs as, and look at `dmesg`. If it works, the exporter is at fault: please report it, with the message above.",
		),
		{
			Kind: FindingIncomplete, Case: caseRun, Severities: []Severity{warning}, Harms: degradation,
			Found:   "The last inventory of the device was not `ok`.",
			Meaning: "What is told of the objects on the device is old, incomplete, or missing.",
			Action:  "If it ran into its timeout, raise `--inventory.timeout` or lower `--inventory.max-objects`. Otherwise see the log of the exporter, and whether `rdma resource show {device}` works on the host.",
		},
		{
			Kind: FindingPIDsInvisible, Severities: []Severity{info}, Harms: note,
			Found:   "There are objects of user programs of which the kernel names no thread, and the exporter runs in a pid namespace of its own.",
			Meaning: "Whether their owners are dead or only out of sight cannot be told: neither owners nor orphans are reported for them.",
			Action:  "Let the exporter see the processes of the host: `hostPID: true` in the specification of its pod, `--pid=host` for docker and podman.",
		},
	}
}
