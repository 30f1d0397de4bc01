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
		"A port stopped being active at least so often within the window. What happened between two readings counts, too: the kernel tells of it, or counts it.",
		"Each time, transfers on the port wait or fail: connections break once their retries are used up, and a collective operation stands still for the whole job. The cause is mostly a cable or a module, and seldom mends itself.",
		"See whether the other end went down as well, and when: the log of the switch, and `dmesg`. Clean or replace the cable or the module, then the port of the switch. rdma_port_state_changes_total shows it over time, rdma_port_symbol_errors_total and rdma_port_fec_uncorrectable_blocks_total tell how good the link is. Take the host out of jobs until the link is steady.")
	flapping.Threshold = "port_flapping"
	isolated := entry(FindingIsolated, "", SeverityWarning,
		"Interrupts of completion vectors run on processors that are isolated from the scheduler (`isolcpus`, or an isolated partition). It is a warning if those of most vectors do.",
		"Isolated processors are set aside for programs that must not be disturbed. These interrupts disturb them; and programs that wait for completions on other processors are woken from afar.",
		"If that is not meant to be, keep the interrupts away: `isolcpus=managed_irq,...` on the kernel's command line for drivers whose interrupts the kernel manages, otherwise write other processors to `/proc/irq/NUMBER/smp_affinity_list`, or have irqbalance do so. rdma_vector_interrupt_info with `--collector.interrupts` has the numbers.")
	isolated.Severities, isolated.Harms = []Severity{SeverityWarning, SeverityInfo}, []Harm{HarmDegradation, HarmNote}
	refused := entry(FindingRefused, "", SeverityWarning,
		"The kernel refused to read a group of counters of a port, or of the device as a whole (EINVAL or EIO), or what it told is no number. It is only worth knowing of a virtual function or a subfunction, and of a driver that has no counters of its own.",
		"What is counted there is not known: errors, discards and congestion of the port go unseen. Programs that use the port need not notice. Since some drivers write to the kernel's log with each attempt, the group is read again only after ten minutes.",
		"Try it by hand: `grep . /sys/class/infiniband/{device}/ports/*/*counters/*`, and look at `dmesg`. Virtual and otherwise restricted functions may lack the right to their counters: then look at those of the physical function, and accept this finding. On a physical function, update the firmware and the driver.")
	refused.Severities, refused.Harms = []Severity{SeverityWarning, SeverityInfo}, []Harm{HarmDegradation, HarmNote}
	return []Entry{
		entry(FindingUnreadable, caseHang, SeverityWarning,
			"The last reading of what the kernel tells of the adapter did not end in time, and it is known which file, or which request to the kernel, did not return.",
			"The driver or the firmware does not answer. What is told of counters, links and the PCI bus is missing until it does, and other programs that read the same, such as node_exporter and `ethtool`, wait as well. Other devices are still read.",
			"Look at `dmesg` for what the driver waits for, and read the file that the message names by hand: `timeout 5 cat FILE`. If it goes on, update the firmware and the driver, and reset the device or reload its driver when no job needs it. `--hardware.timeout` allows more time where answers are only slow."),
		entry(FindingUnreadable, caseFailed, SeverityWarning,
			"The last reading of what the kernel tells of the adapter did not go to its end.",
			"What is told of counters, links and the PCI bus is missing. Programs that use the device need not notice.",
			"See whether the user that the exporter runs as can read what is there: `ls -lR /sys/class/infiniband/{device}/`. In a container, mount /sys of the host; if it is mounted elsewhere, say where with `--path.sysfs`. If a child process of the exporter crashed or was killed, its log says how. If the time was up, the host was too busy: `--hardware.timeout` allows more."),
		refused,
		entry(FindingSaturated, "", SeverityInfo,
			"A counter is at the end of its width, where it stays until somebody resets it; or all its 64 bits are set, as drivers tell that could not read it.",
			"What it counts is not known any more: its metric is absent, and no alert on it can fire. It does not say how the port is now.",
			"On InfiniBand, reset the counters of the port: `perfquery -R -C {device} -P PORT`. Elsewhere they begin anew when the driver is loaded again. rdma_port_counter_saturated names them; those of 64 bits come back by themselves once the driver can read them."),
		flapping,
		entry(FindingSlowPort, "", SeverityWarning,
			"An active port has a lower rate than the highest that it had while the exporter looked, over restarts of that with `--state.dir`. Of one that was slow from the start nothing is found.",
			"Everything through the port is slower than it was, and in a collective operation all others wait for it.",
			"Compare with the port of the switch: which rate it offers, and what it is set to. If it offers more, clean or replace the cable or the module: a port that lost lanes, or settled for a lower speed, mostly has a bad one. `rdma link show`, `ibstat {device}` or `ethtool` of its network device have the particulars. If the switch offers less than before, as it is meant to, accept this finding."),
		entry(FindingSlowBus, caseOwnLink, SeverityWarning,
			"The link of the adapter to the PCI bus has fewer lanes, or a lower speed, than the adapter can have.",
			"The way to memory may be narrower than the port is fast: the adapter then falls behind, pauses its senders or drops packets, whatever the network does.",
			"See `lspci -vv` of the address that the message names: LnkCap is what it can, LnkSta what it has. If the slot should have as much, seat the adapter anew, and try another slot or riser. If it was so from the start, the slot, or a setting of the firmware (bifurcation, link speed), allows no more: choose another slot, or accept this finding."),
		entry(FindingSlowBus, caseBottleneck, SeverityWarning,
			"A link of the PCI bus between the adapter and the processor is slower than the adapter's own.",
			"All devices below that link share what it has: the adapter cannot move more than that, and less while the others do something.",
			"See `lspci -tv` for what is below the bridge that the message names, and `lspci -vv` for its LnkCap and LnkSta. If it has less than it can, seat the riser or the switch anew, and look at the settings of the firmware. If it can do no more, move the adapter to a slot of another root port, or accept this finding."),
		entry(FindingBusErrors, "", SeverityWarning,
			"In the last 24 hours the PCI bus reported errors of the adapter that it did not correct, by the counters of AER.",
			"Transfers between the adapter and memory were lost. The driver may have reset the device, and programs that used it were then cut off; it mostly comes again.",
			"Look at `dmesg` for `AER` and for what the driver did. Seat the adapter and its riser anew, update the firmware of adapter and host; if it comes again, replace the adapter, then the riser. Take the host out of jobs if the errors are fatal."),
		entry(FindingTogether, "", SeverityWarning,
			"More than half of the interrupts of at least four completion vectors run on one processor.",
			"Programs that spread their completion queues over vectors have them served one after the other nevertheless: the notification latency grows with the load, and that processor has no time for anything else.",
			"See where they may run: `/proc/irq/NUMBER/smp_affinity_list`. Start irqbalance, or spread them over the processors of the adapter's NUMA node by writing that file, as the scripts `set_irq_affinity` of some vendors do. rdma_vector_interrupt_info with `--collector.interrupts` has the numbers, and rdma_notification_vector_latency_seconds what it costs."),
		isolated,
		entry(FindingUnaddressed, "", SeverityInfo,
			"An active RoCE port with a network device has no GID of RoCE v2 that is an IPv4 address.",
			"Programs that look for such a GID, as NCCL and UCX do by default, take one of RoCE v1 or an IPv6 address, and reach nobody beyond their subnet, or nobody at all.",
			"Give the network device of the port an IPv4 address: `ip -4 address show`, and `rdma link show` for which it is. If it has one, it may be in another network namespace, or in a bond or VLAN that the driver does not follow. If the network uses IPv6, have programs use the index of that GID (`NCCL_IB_GID_INDEX`), and accept this finding."),
	}
}
