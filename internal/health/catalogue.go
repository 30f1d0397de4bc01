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
		"{pid}":      "process ID, as the exporter sees it",
		"{cgroup}":   "path of the cgroup, quoted for a shell where needed",
		"{resource}": "`hca_handle` or `hca_object`",
		"{contract}": "name of the contract",
		"{remedy}":   "what the [catalogue of contracts](contracts.md) says to do",
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
			Found:   "The objects of a type, held by all processes and the kernel together, have reached this fraction of what the device allows: `max_pd`, `max_cq`, `max_qp`, `max_mr`, `max_srq`. A limit of 0 means no limit.",
			Meaning: "At the limit, no process on the host can create another object of this type, mostly with ENOMEM: jobs do not start, and broken connections are not replaced.",
			Action:  "Find out who holds them: `{show}`, or rdma_resource_owner_objects over time. If an owner has more than it needs, make it close them, or restart it. Otherwise spread the jobs over more devices or hosts, or raise the limit if the driver has a setting for it.",
		},
		{
			Kind: FindingExhausted, Severities: []Severity{critical, warning, info}, Harms: []Harm{HarmFailure, HarmDegradation, HarmNote}, Threshold: "near_limit",
			Found:   "The exporter asks for only a few small objects, and was refused one with an errno that means something has run out (ENOMEM, EAGAIN, ENOSPC, EOVERFLOW). RLIMIT_MEMLOCK, cgroups and the host's memory have been ruled out. Critical while the last run was refused; a warning while the object count is at least this fraction of the count at the refusal; otherwise info, for a day. It is cleared by a change of adapter or firmware, or once the device gives more.",
			Meaning: "This is the device's real limit: drivers and firmware often give less than `max_*` claims, because types share the memory of the adapter or its driver. At this count, no process on the host can create more.",
			Action:  "Find out who holds them: `{show}`, or rdma_resource_owner_objects over time. Plan with rdma_resource_exhausted_objects, not rdma_resource_limit. On a drained node, `rdma_exporter ceiling --device={device} --type={type} --yes` measures how many the device really gives. Then spread the jobs over more devices or hosts, or look for a setting in the driver or firmware.",
		},
		{
			Kind: FindingCgroupNearLimit, Severities: []Severity{critical, warning}, Harms: degradation, Threshold: "cgroup_near_limit",
			Found:   "A cgroup's use of the device has reached this fraction of its `rdma.max`: `hca_handle` counts open devices, `hca_object` everything else. A limit of 0 allows none, and is a finding only while something is in use.",
			Meaning: "At the limit, processes in the cgroup cannot create more objects, mostly with EAGAIN, even though the device has room.",
			Action:  "Compare `cat /sys/fs/cgroup{cgroup}/rdma.current` with `rdma.max` beside it (with cgroup v1, both are below /sys/fs/cgroup/rdma). Raise {resource} of {device} where the limit is set, or make the application hold fewer objects.",
		},
		{
			Kind: FindingMemlock, Severities: []Severity{critical, warning}, Harms: degradation, Threshold: "memlock_near_limit",
			Found:   "The memory that drivers pinned for an owner (`VmPin`), or that it locked itself (`VmLck`), has reached this fraction of its RLIMIT_MEMLOCK. An owner above its limit is exempt (CAP_IPC_LOCK) and is not reported.",
			Meaning: "Registering memory and creating queues pin memory. At the limit both fail with ENOMEM, even though the device has room, unless the process has CAP_IPC_LOCK.",
			Action:  "Check `prlimit --memlock --pid {pid}` and `grep -E 'VmPin|VmLck' /proc/{pid}/status`. Raise the limit of the running process with `prlimit --pid {pid} --memlock=BYTES`. For its next start: `ulimit -l unlimited` in its shell, LimitMEMLOCK=infinity in its systemd unit or that of the container runtime, `--ulimit memlock=-1` for docker and podman.",
		},
		{
			Kind: FindingGrowing, Severities: []Severity{warning, info}, Harms: []Harm{HarmDegradation, HarmNote}, Threshold: "growing",
			Found:   "Over the last hour, or at least `growing.window`, a process holds more and more objects of a type. The time is divided into six parts: the lowest count of each is above that of the part before, with one exception that is not the last. The total growth is at least `growing.objects`, more than the count fluctuates, and is not slowing down, so that a job starting, a pool filling, and objects that come and go are not reported. Growth of all owners together is reported if no single process explains it. A warning if the limit of the device, or where it was seen to end (`resource_exhausted`), is reached within `growing.within` at this pace.",
			Meaning: "Mostly a program that creates objects for each connection or request and does not destroy them. At the limit of the device, no process on the host can create more, mostly with ENOMEM; a limit on locked memory or of the cgroup stops the program itself earlier.",
			Action:  "Look at `{show}` again after a few minutes: objects that stay while new ids keep appearing are the leak. Restart the program before the limit is reached, and have it fixed. A program that is meant to grow, such as one that keeps adding peers, can be accepted.",
		},
		{
			Kind: FindingOrphaned, Severities: []Severity{warning}, Harms: degradation, Threshold: "orphan_age",
			Found:   "For this long, every inventory found objects of user programs for which the kernel names no living thread: neither one that created them nor one that created anything else on the same open device. Reported only where the exporter sees all processes of the host.",
			Meaning: "Mostly their processes have ended and the kernel has not destroyed them, because the driver never finishes or another process inherited the open device. A running program looks the same if every thread that created something on the open device has ended. The objects count towards the limits, and until they are gone the device cannot be removed nor its driver unloaded.",
			Action:  "Look for processes that still have a device open: `fuser -v /dev/infiniband/uverbs*`. If one of them is at work, no action is needed. If there is none, or ending them does not free the objects (`{show}` lists them without pid), look at `dmesg` for what the driver waits for. Reloading the driver frees them; if the reload hangs, restart the host.",
		},
		{
			Kind: FindingLeaked, Severities: []Severity{critical, warning}, Harms: degradation, Threshold: "orphan_age",
			Found:   "A child process of the exporter has ended and its objects are still there. Critical once inventories have found some of them for this long: until then the kernel may still be cleaning up.",
			Meaning: "The kernel must free the exporter's objects when its process ends, and did not. Each further run may leak more, and until they are gone the device cannot be removed nor its driver unloaded. Other programs will leak the same way when they end.",
			Action:  "If it does not clear, stop probing the device: `--device.exclude={device}`. Look at `dmesg` and at `{show}`, and report it to the vendor of the driver. Reloading the driver or restarting the host frees the objects.",
		},
		{
			Kind: FindingUndestroyed, Severities: []Severity{warning}, Harms: degradation,
			Found:   "In the last run of the probes or contracts, the device refused every attempt to destroy an object, by type and errno.",
			Meaning: "A program that destroys such an object fails too, or hangs if it keeps trying. The object was freed when the child process ended, unless it is reported as leaked.",
			Action:  "EBUSY means the driver thinks something still uses the {type}; any other errno means a command to the device failed. Check the contracts *_destroy_busy (rdma_contract_violated) and `dmesg`, and update the driver, the firmware and rdma-core.",
		},
		{
			Kind: FindingStuck, Severities: []Severity{critical}, Harms: []Harm{HarmOutage},
			Found:   "A child process of the exporter was killed and has not ended.",
			Meaning: "It waits in the kernel for the device or its driver, where no signal can end it. Until it ends its work on the device is on hold and what the exporter shows of it is old. Any program that does the same hangs as well.",
			Action:  "Find out what the kernel waits for, as root: `cat /proc/{pid}/stack`, and `dmesg`. Nothing can kill the process: resetting the device or reloading its driver may free it; if that hangs too, restart the host.",
		},
		{
			Kind: FindingQPError, Severities: []Severity{warning}, Harms: degradation, Threshold: "qp_errors",
			Found:   "At least this many queue pairs are in state err, or in sqe (the send queue alone). Not counted: those of processes called rdma_exporter, whose probes break some on purpose, and of processes that end during the inventory.",
			Meaning: "They move no data until their owner resets them: a connection broke, or the owner is about to close them. If they stay, the owner has not noticed or does not clean up.",
			Action:  "Find out whose they are: `{show}`. If they all failed at once, suspect the port or the fabric (rdma_port_state_id, `rdma link`), otherwise a single peer. Then read the owner's log, and restart it if it does not recover.",
		},
		{
			Kind: FindingCQUnfillable, Severities: []Severity{info}, Harms: note, Threshold: "cq_entries",
			Found:   "Completion queues that nothing uses, or that have more entries than all work requests of the queue pairs using them, together have at least this many entries.",
			Meaning: "The memory of the entries, some 64 bytes each, is pinned and never used. It counts towards the limits of its owners.",
			Action:  "Have the owner ask for fewer entries (cqe of ibv_create_cq): as many as there can be outstanding work requests on all queue pairs that share the queue. `{show}` lists the sizes.",
		},
		incomplete(
			state.IncompleteMaxObjects, info,
			"There are more objects of a type than `--inventory.max-objects`.",
			"They were only counted: their owners, states, and which have no owner are not known.",
			"Raise `--inventory.max-objects`, and `--inventory.timeout` with it: each queue pair costs a query of the device. rdma_inventory_duration_seconds shows how long the inventory takes now.",
		),
		incomplete(
			state.IncompleteTimeout, warning,
			"`--inventory.timeout` passed before all objects of a type had been read.",
			"They were only counted: their owners, states, and which have no owner are not known.",
			"Raise `--inventory.timeout`, or lower `--inventory.max-objects` so that one type with many objects does not use up the time of the others.",
		),
		incomplete(
			state.IncompleteInterrupted, warning,
			"The kernel's table of a type changed during every attempt to read it.",
			"The objects were read anyway; some may be missing or counted twice. Objects of this type are created and destroyed all the time, which is slow on most devices.",
			"If it persists, find the program: run `{show}` a few times. Programs should keep their objects, not create them for each transfer.",
		),
		incomplete(
			state.IncompleteNotSupported, info,
			"The kernel has no table of a type.",
			"The objects could not be read: their owners, and which have none, are not known.",
			"Nothing is wrong with the device. A newer kernel has the table.",
		),
		incomplete(
			state.IncompleteFailed, warning,
			"The kernel refused to list its table of a type, or its answer made no sense.",
			"The objects could not be read: their owners, and which have none, are not known.",
			"Try `{show}` on the host as the exporter's user, and look at `dmesg`. If it works, this is a bug in the exporter: please report it with the message above.",
		),
		{
			Kind: FindingIncomplete, Case: caseRun, Severities: []Severity{warning}, Harms: degradation,
			Found:   "The last inventory of the device was not `ok`.",
			Meaning: "What the exporter shows of the objects on the device is old, incomplete or missing.",
			Action:  "If it timed out, raise `--inventory.timeout` or lower `--inventory.max-objects`. Otherwise check the exporter's log, and whether `rdma resource show {device}` works on the host.",
		},
		{
			Kind: FindingPIDsInvisible, Severities: []Severity{info}, Harms: note,
			Found:   "The kernel names no thread for some objects of user programs, and the exporter runs in its own pid namespace.",
			Meaning: "Their owners may be dead, or merely out of sight: neither owners nor orphans are reported for them.",
			Action:  "Let the exporter see the processes of the host: `hostPID: true` in the pod's spec, `--pid=host` for docker and podman.",
		},
	}
}
