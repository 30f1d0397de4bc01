package health

// The cases of FindingUnreadable.
const (
	caseHang   = "hang"
	caseFailed = "failed"
)

// The cases of FindingSlowBus.
const (
	caseOwnLink    = "adapter"
	caseBottleneck = "bottleneck"
)

// hardwareEntries are the kinds of finding about what the kernel tells of an adapter
// without opening it.
func hardwareEntries() []Entry {
	entry := func(kind Kind, of string, severity Severity, found, meaning, action string) Entry {
		harm := HarmDegradation
		if severity == SeverityInfo {
			harm = HarmNote
		}
		return Entry{Kind: kind, Case: of, Severities: []Severity{severity}, Harms: []Harm{harm}, Found: found, Meaning: meaning, Action: action}
	}
	flapping := entry(FindingFlapping, "", SeverityWarning,
		"A port went down at least this often within the window. Changes between two readings count too: the kernel reports or counts them.",
		"Each time, transfers on the port wait or fail: connections break once their retries run out, and a collective operation stalls the whole job. The cause is mostly a cable or a module, and seldom fixes itself.",
		"Check whether the other end went down too, and when: the switch's log, and `dmesg`. Clean or replace the cable or the module, then try another switch port. rdma_port_state_changes_total shows the history, rdma_port_symbol_errors_total and rdma_port_fec_uncorrectable_blocks_total the quality of the link. Keep jobs off the host until the link is steady.")
	flapping.Threshold = "port_flapping"
	isolated := entry(FindingIsolated, "", SeverityWarning,
		"Interrupts of completion vectors run on CPUs isolated from the scheduler (`isolcpus`, or an isolated partition). A warning if this affects most vectors.",
		"Isolated CPUs are reserved for programs that must not be disturbed. These interrupts disturb them; and programs that wait for completions on other CPUs are woken from a distance.",
		"If this is not intended, move the interrupts: use `isolcpus=managed_irq,...` on the kernel's command line for drivers whose interrupts the kernel manages; otherwise write other CPUs to `/proc/irq/NUMBER/smp_affinity_list`, or let irqbalance do so. rdma_vector_interrupt_info with `--collector.interrupts` lists the numbers.")
	isolated.Severities, isolated.Harms = []Severity{SeverityWarning, SeverityInfo}, []Harm{HarmDegradation, HarmNote}
	refused := entry(FindingRefused, "", SeverityWarning,
		"The kernel refused to read a group of counters of a port, or of the device as a whole (EINVAL or EIO), returned something that is not a number, or has a FIFO or a directory in place of a counter's file. Only info on a virtual function or a subfunction, and with drivers that have no counters of their own.",
		"Errors, discards and congestion that these counters would show go unseen. Programs that use the port may be fine. As some drivers write to the kernel's log at each attempt, the group is read again only after ten minutes.",
		"Try it by hand: `grep . /sys/class/infiniband/{device}/ports/*/*counters/*`, and look at `dmesg`. Virtual and other restricted functions may not be allowed to read their counters: check those of the physical function, and accept this finding. On a physical function, update the firmware and the driver.")
	refused.Severities, refused.Harms = []Severity{SeverityWarning, SeverityInfo}, []Harm{HarmDegradation, HarmNote}
	return []Entry{
		entry(FindingUnreadable, caseHang, SeverityWarning,
			"The last reading of the adapter's kernel files and tables timed out, and the file or request that did not return is known.",
			"The driver or the firmware does not answer. Until it does, counters, links and the PCI bus are not reported, and other programs that read the same, such as node_exporter and `ethtool`, wait too. Other devices are still read.",
			"Look at `dmesg` for what the driver waits for, and read the file named in the message by hand: `timeout 5 cat FILE`. If it persists, update the firmware and the driver, and reset the device or reload its driver when no job needs it. If answers are merely slow, raise `--hardware.timeout`."),
		entry(FindingUnreadable, caseFailed, SeverityWarning,
			"The last reading of the adapter's kernel files and tables did not finish.",
			"Counters, links and the PCI bus are not reported. Programs that use the device may be fine.",
			"Check that the exporter's user can read the files: `ls -lR /sys/class/infiniband/{device}/`. In a container, mount /sys of the host; if it is mounted elsewhere, set `--path.sysfs`. If a child process of the exporter crashed or was killed, its log says how. If it timed out, the host was too busy: raise `--hardware.timeout`."),
		refused,
		entry(FindingSaturated, "", SeverityInfo,
			"A counter has reached its maximum and stays there until it is reset; or all its 64 bits are set, which means the driver could not read it.",
			"Its value is no longer known: the metric is absent, and alerts on it cannot fire. It says nothing about the port now.",
			"On InfiniBand, reset the counters of the port: `perfquery -R -C {device} -P PORT`. Elsewhere they restart when the driver is reloaded. rdma_port_counter_saturated names them; 64-bit counters return by themselves once the driver can read them."),
		flapping,
		entry(FindingSlowPort, "", SeverityWarning,
			"An active port runs below the highest rate it has had since the exporter first saw it (kept over restarts with `--state.dir`). A port that was slow from the start is not reported.",
			"Everything through the port is slower than it was, and a collective operation waits for its slowest member.",
			"Check what rate the switch port offers and is set to. If it offers more, clean or replace the cable or the module, which is mostly why a port loses lanes or falls back to a lower speed. `rdma link show`, `ibstat {device}` or `ethtool` of its network device show details. If the switch was set to a lower rate on purpose, accept this finding."),
		entry(FindingSlowBus, caseOwnLink, SeverityWarning,
			"The PCI link of the adapter has fewer lanes, or a lower speed, than the adapter supports.",
			"The PCI link may be slower than the port: the adapter then falls behind, pauses its senders or drops packets, whatever the network does.",
			"Run `lspci -vv` for the address in the message: LnkCap is what it supports, LnkSta what it has. If the slot supports as much, reseat the adapter, and try another slot or riser. If it was always so, the slot or a firmware setting (bifurcation, link speed) is the limit: choose another slot, or accept this finding."),
		entry(FindingSlowBus, caseBottleneck, SeverityWarning,
			"A PCI link between the adapter and the CPU is slower than the adapter's own.",
			"All devices below that link share it: the adapter cannot move more than the link carries, and less while the others are busy.",
			"See `lspci -tv` for what is below the bridge that the message names, and `lspci -vv` for its LnkCap and LnkSta. If it has less than it supports, reseat the riser or the switch, and check the firmware settings. If it has all it supports, move the adapter to a slot of another root port, or accept this finding."),
		entry(FindingBusErrors, "", SeverityWarning,
			"In the last 24 hours the PCI bus reported uncorrected errors of the adapter (AER counters).",
			"Transfers between the adapter and memory were lost. The driver may have reset the device, which cuts off the programs using it; such errors mostly come back.",
			"Look at `dmesg` for `AER` and for what the driver did. Reseat the adapter and its riser, and update the firmware of the adapter and the host; if it happens again, replace the adapter, then the riser. Keep jobs off the host if the errors are fatal."),
		entry(FindingTogether, "", SeverityWarning,
			"One CPU handles more than half of the interrupts of at least four completion vectors.",
			"Spreading completion queues over vectors does not help: one CPU serves them all, has no time for anything else, and notification latency grows with the load.",
			"Check where they may run: `/proc/irq/NUMBER/smp_affinity_list`. Start irqbalance, or spread them over the CPUs of the adapter's NUMA node by writing that file, as some vendors' `set_irq_affinity` scripts do. rdma_vector_interrupt_info with `--collector.interrupts` lists the numbers, and rdma_notification_vector_latency_seconds shows the cost."),
		isolated,
		entry(FindingUnaddressed, "", SeverityInfo,
			"An active RoCE port with a network device has no RoCE v2 GID with an IPv4 address.",
			"Programs that look for such a GID, as NCCL and UCX do by default, fall back to RoCE v1 or an IPv6 address, and reach nobody beyond their subnet, or nobody at all.",
			"Give the port's network device an IPv4 address: `ip -4 address show`, and `rdma link show` for which one it is. If it has one, it may be in another network namespace, or in a bond or VLAN that the driver does not follow. If the network uses IPv6, set the index of that GID in programs (`NCCL_IB_GID_INDEX`), and accept this finding."),
	}
}
