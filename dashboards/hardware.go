package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// ofCollector ends the description of a panel that a collector feeds which is on by default.
const ofCollector = " Of the collector %s."

type counterLine struct{ metric, legend string }

// ratesOf returns the rates of counters of ports, a line for each port.
func ratesOf(factor string, counters ...counterLine) []query {
	var queries []query
	for _, c := range counters {
		queries = append(queries, query{
			fmt.Sprintf(`%ssum by (@id, port) (rate(rdma_port_%s_total{@device}[$__rate_interval]))`, factor, c.metric), c.legend + ofPort,
		})
	}
	return queries
}

// ofPort ends the legend of what each port of each chosen device has, a series by @id, port.
const ofPort = ", {{device}} port {{port}}"

func eachPort(metric string) string { return `max by (@id, port) (` + metric + `{@device})` }

func deviceTraffic() []dashboard.Panel {
	counters := fmt.Sprintf(ofCollector, "counters")
	return []dashboard.Panel{
		dashed(lines(of(12, 9, "Throughput of ports", bits, plain(),
			"What each port receives and transmits; dashed: the rate of its link."+counters), append(ratesOf("8 * ", counterLine{"receive_bytes", "received"}, counterLine{"transmit_bytes", "transmitted"}),
			query{eachPort("rdma_port_rate_bits_per_second"), "link, {{device}} port {{port}}"})...), "/^link/"),
		lines(of(12, 9, "Packets of ports", packets, plain(),
			"Packets that each port receives and transmits."+counters), ratesOf("", counterLine{"receive_packets", "received"}, counterLine{"transmit_packets", "transmitted"})...),
		columns(of(12, 9, "Retransmissions", perSecond, plain(),
			"Per second. Packets lost or overtaken are retransmitted: shown as packets where the driver counts these, otherwise as the timeouts and NAKs that caused it, each of which may mean many packets. Out of sequence and duplicate: the same, seen by the receiver. RNR: no receive was posted."+counters), ratesOf("",
			counterLine{"retransmitted_packets", "retransmitted"},
			counterLine{"retransmit_timeouts", "timeouts"},
			counterLine{"sequence_naks_received", "sequence NAKs received"},
			counterLine{"out_of_sequence_packets", "out of sequence"},
			counterLine{"duplicate_requests", "duplicate"},
			counterLine{"implied_naks", "implied NAKs"},
			counterLine{"adaptive_retransmissions", "adaptive"},
			counterLine{"rnr_naks_received", "RNR NAKs received"},
			counterLine{"rnr_naks_sent", "RNR NAKs sent"},
			counterLine{"out_of_buffer_packets", "out of buffer"},
		)...),
		columns(of(12, 9, "Port errors and discards", perSecond, plain(),
			"Per second. Requests that failed after all retries, errors of the receiver and of the link, and packets that the port dropped."+counters), ratesOf("",
			counterLine{"retries_exceeded", "failed after all retries"},
			counterLine{"receive_discards", "received, discarded"},
			counterLine{"transmit_discards", "to transmit, discarded"},
			counterLine{"receive_errors", "received with an error"},
			counterLine{"receive_remote_physical_errors", "marked bad on the way"},
			counterLine{"icrc_errors", "wrong ICRC"},
			counterLine{"symbol_errors", "symbol errors"},
			counterLine{"carrier_symbol_errors", "symbol errors with a carrier"},
			counterLine{"fec_uncorrectable_blocks", "not repaired by FEC"},
			counterLine{"link_error_recoveries", "link recoveries"},
			counterLine{"link_downed", "link downed"},
			counterLine{"local_link_integrity_errors", "link integrity"},
			counterLine{"buffer_overrun_errors", "buffer overruns"},
		)...),
		columns(of(12, 9, "Congestion: ECN marks and CNPs", perSecond, plain(),
			"Per second. ECN marked: a switch on the way was congested; a CNP sent tells the sender, a CNP handled slowed this side down."+counters), ratesOf("",
			counterLine{"ecn_marked_packets", "ECN marked"},
			counterLine{"cnps_sent", "CNPs sent"},
			counterLine{"cnps_received", "CNPs received"},
			counterLine{"cnps_handled", "CNPs handled"},
		)...),
		columns(of(12, 9, "PFC and pause frames", perSecond, plain(),
			"Per second. Frames received stop this side, frames sent the other: one priority (PFC) or all. Waiting: ticks of the adapter's clock without credits or arbitration."+counters), append(
			ratesOf("", counterLine{"pause_frames_received", "pause received"}, counterLine{"pause_frames_sent", "pause sent"}, counterLine{"transmit_wait_ticks", "waiting"}),
			query{rateOf("port, priority", "rdma_port_pfc_frames_received_total"), "PFC received, priority {{priority}}, {{device}} port {{port}}"},
			query{rateOf("port, priority", "rdma_port_pfc_frames_sent_total"), "PFC sent, priority {{priority}}, {{device}} port {{port}}"},
			query{rateOf("port, priority", "rdma_port_pfc_transitions_total"), "PFC let go on, priority {{priority}}, {{device}} port {{port}}"},
			query{rateOf("port", "rdma_port_pause_storms_total"), "storms, {{device}} port {{port}}"},
		)...),
		lines(of(12, 9, "PFC pause seconds per second, PCI stalls", fraction, plain(),
			"Share of the time for which PFC frames stopped a priority of this side or of the other, and in which the PCI bus held the adapter up. Only some drivers report it."+counters),
			query{rateOf("port, priority", "rdma_port_pfc_paused_seconds_total"), "paused, priority {{priority}}, {{device}} port {{port}}"},
			query{rateOf("port, priority", "rdma_port_pfc_pausing_seconds_total"), "pauses the other side, priority {{priority}}, {{device}} port {{port}}"},
			query{rateOf("port, direction", "rdma_port_pci_stalled_seconds_total"), "PCI {{direction}}, {{device}} port {{port}}"}),
		columns(of(12, 9, "Discards of the physical port", perSecond, plain(),
			"Packets per second of all traffic, not only RDMA, that the adapter dropped. A discard in a lossless priority is a loss for RDMA."+counters), append(
			ratesOf("", counterLine{"physical_receive_discards", "received"}, counterLine{"physical_transmit_discards", "to transmit"}),
			query{rateOf("port, priority", "rdma_port_priority_discards_total"), "received, priority {{priority}}, {{device}} port {{port}}"},
		)...),
	}
}

func deviceLinks() []dashboard.Panel {
	links, gids := fmt.Sprintf(ofCollector, "links"), fmt.Sprintf(ofCollector, "gids")
	const moved = `label_join(label_join(rdma_bandwidth_bytes_per_second{@device}, "port", " port ", "device", "port"), "numa_node", " node ", "operation", "numa_node")`
	bandwidth := matrix(of(16, 6, "Bandwidth by port and NUMA node", bits, plain(),
		"What each port moved to (write) and from (read) the memory of each NUMA node, by the last measurement that ended well. Empty without --bandwidth.schedule."),
		"port", "numa_node", nil, `8 * max by (port, numa_node) (`+moved+`)`)
	bandwidth.FieldConfig.Defaults.Color.Mode = dashboard.FieldColorModeIdContinuousBlues
	return []dashboard.Panel{
		strips(of(24, 6, "Physical port state over time", count, plain(),
			"The physical state of each port: polling means no light or no partner, disabled that the host or the switch has switched it off, training that the link comes up."),
			physicalStates(), query{eachPort("rdma_port_physical_state_id"), "{{device}} port {{port}}"}),
		byDevice(of(24, 5, "Port links: rate, MTU, GID index", count, plain(),
			"What each port is, the rate of its link beside the highest so far, how often it went down in the time shown, and the index of its RoCE v2 GID with IPv4, the value for NCCL_IB_GID_INDEX."+fmt.Sprintf(ofCollector, "links")+gids), "", []column{
			label("port", 60), titled("link_layer", "link layer"), titled("netdev", "network device"), label("bond"),
			titled("gid", "GID 0"),
			{field: "B", title: "rate", unit: bits},
			{field: "C", title: "at most", unit: bits, empty: "not known"},
			titled("D", "lanes", 70),
			{field: "E", title: "active MTU", width: 90, empty: "not known"},
			{field: "F", title: "network MTU", width: 100, empty: "none"},
			{field: "G", title: "went down", width: 100, thresholds: new(rising(step{1, warning}, step{3, critical})), empty: "0"},
			{field: "H", title: "RoCE v2, IPv4", width: 120, empty: "none"},
			{field: "I", title: "physical state", width: 110, mappings: physicalStates(), empty: "not known"},
			{field: "J", title: "reason down", width: 100, empty: "none"},
			{field: "K", title: "detail", width: 70, empty: "none"},
		},
			query{filled(`max by (@id, port, link_layer, netdev, bond, gid) (rdma_port_info{@device})`, "netdev", "bond", "gid"), ""},
			query{eachPort("rdma_port_rate_bits_per_second"), ""},
			query{eachPort("rdma_port_max_rate_bits_per_second"), ""},
			query{eachPort("rdma_port_width_lanes"), ""},
			query{eachPort("rdma_port_active_mtu_bytes"), ""},
			query{eachPort("rdma_port_mtu_bytes"), ""},
			query{`round(sum by (@id, port) (increase(rdma_port_state_changes_total{@device,to="down"}[$__range])))`, ""},
			query{eachPort("rdma_port_roce_v2_ipv4_gid_index"), ""},
			query{eachPort("rdma_port_physical_state_id"), ""},
			query{eachPort("rdma_port_link_down_reason_id"), ""},
			query{eachPort("rdma_port_link_down_detail_id"), ""}),
		columns(of(8, 8, "Port state changes", count, plain(),
			"How often each port went down, and became active, in the minutes before each bar, including between two scrapes."+links),
			query{`round(sum by (@id, port, to) (increase(rdma_port_state_changes_total{@device}[$__rate_interval])))`, "{{to}}, {{device}} port {{port}}"}),
		dashed(steps(of(8, 8, "Port rate against the highest", bits, plain(),
			"The rate of each link; dashed: the highest the port has had. Less means a lost lane, or that the other side offers less."+links),
			query{eachPort("rdma_port_rate_bits_per_second"), "{{device}} port {{port}}"},
			query{eachPort("rdma_port_max_rate_bits_per_second"), "highest, {{device}} port {{port}}"}), "/^highest/"),
		stat(of(8, 4, "Time since port state change", seconds, plain(),
			"How long each port has been in its state."+links),
			nil, query{`time() - ` + eachPort("rdma_port_state_change_timestamp_seconds"), "{{device}} port {{port}}"}),
		lines(of(8, 8, "Module temperature", celsius, plain(),
			"Temperature of the module in each port, where the driver reports it."+links),
			query{eachPort("rdma_port_module_temperature_celsius"), "{{device}} port {{port}}"}),
		byDevice(of(8, 8, "GIDs by type", count, plain(),
			"How many non-zero GIDs each port has, by type and network device."+gids), "", []column{
			label("port", 60), label("type"), titled("netdev", "network device"), titled("A", "GIDs", 80),
		}, query{filled(`max by (@id, port, type, netdev) (rdma_port_gids{@device})`, "netdev"), ""}),
		columns(of(8, 8, "GID changes", count, plain(),
			"How often the list of a port's GIDs changed, in the minutes before each bar. An index kept by a program may then be another address."+gids),
			query{`round(sum by (@id, port) (increase(rdma_port_gid_changes_total{@device}[$__rate_interval])))`, "{{device}} port {{port}}"}),
		lines(of(8, 8, "FEC corrected blocks and bits", perSecond, plain(),
			"Blocks, or bits, per second that forward error correction repaired: a link that needs more of it than similar links has a bad cable or module."+fmt.Sprintf(ofCollector, "counters")), ratesOf("", counterLine{"fec_corrected_blocks", "blocks"}, counterLine{"fec_corrected_bits", "bits"})...),
		bandwidth,
		byDevice(of(8, 6, "Bandwidth measurements", count, plain(),
			"When the device was last measured, and how many measurements in the time shown ended well or did not. The usual reason is that the device was in use."), "", []column{
			{title: "measured ago", width: 110, unit: seconds, empty: "never", expr: `time() - max by (@id) (rdma_bandwidth_timestamp_seconds{@device})`},
			{title: "ok", width: 60, expr: `round(sum by (@id) (increase(rdma_bandwidth_runs_total{@device,result="ok"}[$__range])))`},
			{title: "not ok", width: 70, empty: "0", expr: `round(sum by (@id) (increase(rdma_bandwidth_runs_total{@device,result!="ok"}[$__range])))`},
		}),
	}
}

func deviceTopology() []dashboard.Panel {
	adapter := fmt.Sprintf(ofCollector, "adapter")
	byLink := func(metric string) query {
		return query{`max by (@id, link) (rdma_adapter_pci_` + metric + `{@device})`, ""}
	}
	return []dashboard.Panel{
		byDevice(of(24, 4, "Adapter: PCI address, NUMA node, driver", words, plain(),
			"Which adapter it is, and where in the host: join it with other exporters by PCI address, and with CPUs and GPUs by NUMA node."+adapter), "", []column{
			titled("pci_address", "PCI address"), label("slot"), titled("numa_node", "NUMA node"), label("driver"),
			titled("driver_version", "driver's version"), titled("board_id", "board"), titled("sriov_role", "function"),
			titled("sriov_parent", "of"), titled("netns_mode", "network namespaces"),
		}, query{filled(`max by (@id, pci_address, slot, numa_node, driver, driver_version, board_id, sriov_role, sriov_parent, netns_mode) (rdma_adapter_info{@device})`,
			"slot", "numa_node", "driver_version", "board_id", "sriov_role", "sriov_parent"), ""}),
		byDevice(of(12, 6, "PCI link speed and width", count, plain(),
			"The adapter's own PCI link beside the best it supports, and the slowest link on the way to the root if that is another and slower one."+adapter), "", []column{
			label("link"), titled("A", "transfers per second"), titled("B", "at most"), titled("C", "lanes"),
			titled("D", "at most, lanes"),
		}, byLink("speed_transfers_per_second"), byLink("max_speed_transfers_per_second"), byLink("width_lanes"), byLink("max_width_lanes")),
		steps(of(12, 6, "PCI errors (AER)", count, plain(),
			"Errors of the adapter that the PCI bus reported since the host started (AER). No line: none."+adapter),
			query{`max by (@id, severity) (rdma_adapter_aer_errors_total{@device})`, "{{device}} {{severity}}"}),
		byDevice(of(12, 8, "Interrupts of completion vectors", count, plain(),
			"Which interrupt serves each completion vector, on which CPUs, and how often it fires per second."+fmt.Sprintf(needsCollector, "interrupts")), "a second", []column{
			{field: "comp_vector", title: "vector", width: 75, unit: words},
			{field: "irq", title: "interrupt", width: 90, unit: words},
			titled("cpus", "processors"), titled("B", "a second"),
		},
			query{`max by (@id, comp_vector, irq, cpus) (rdma_vector_interrupt_info{@device})`, ""},
			query{`sum by (@id, comp_vector, irq) (rate(rdma_vector_interrupts_total{@device}[$__rate_interval]))`, ""}),
		lines(of(12, 8, "Interrupts by completion vector", perSecond, plain(),
			"Interrupts per second. One line above all others: the users of the device share one vector, and so one CPU."+fmt.Sprintf(needsCollector, "interrupts")),
			query{`sum by (@id, comp_vector) (rate(rdma_vector_interrupts_total{@device}[$__rate_interval]))`, "{{device}} vector {{comp_vector}}"}),
	}
}

func deviceCounters() []dashboard.Panel {
	return []dashboard.Panel{
		byDevice(of(12, 8, "Saturated and reset counters", count, plain(),
			"Counters stuck at their maximum, and counters that were lower than before: restarted or wrapped. No rows: none."+fmt.Sprintf(ofCollector, "counters")), "saturated", []column{
			label("port", 60), label("counter"),
			{
				title: "saturated", width: 90, mappings: texts(text{"1", "yes", warning}, text{"0", "no", good}), empty: "no",
				expr: filled(`max by (@id, port, counter) (rdma_port_counter_saturated{@device})`, "port"),
			},
			{title: "resets", width: 80, empty: "0", expr: filled(
				`sum by (@id, port, counter) (rdma_port_counter_decreases_total{@device,how="reset"})`, "port")},
			{title: "wraps", width: 80, empty: "0", expr: filled(
				`sum by (@id, port, counter) (rdma_port_counter_decreases_total{@device,how="wrapped"})`, "port")},
		}),
		stat(of(4, 4, "Age of hardware data", seconds, rising(step{120, warning}, step{600, critical}),
			"Time since the hardware of this device was last read completely."),
			nil, query{`time() - max by (@id) (rdma_hardware_timestamp_seconds{@device})`, "{{device}}"}),
		stat(of(4, 4, "Hardware readings succeed", count, falling(0.5, 1),
			"Whether the last reading of the adapter's hardware data was complete. If not, the finding hardware_unreadable says what did not return."), okOr("fails"),
			query{`min by (@id) (rdma_hardware_success{@device})`, "{{device}}"}),
		stat(of(4, 4, "Hardware reading stuck", count, anyIs(critical),
			"Whether a killed child process that read the hardware has not ended."),
			stuckOrNot(), query{`max by (@id) (rdma_hardware_stuck{@device})`, "{{device}}"}),
		steps(of(12, 8, "Duration of hardware readings", seconds, plain(),
			"Duration of the last reading of the hardware of all devices of the host."),
			query{`max by (@host) (rdma_hardware_duration_seconds{@instance})`, "all devices"}),
		columns(of(12, 8, "Hardware readings by outcome", count, plain(),
			"Readings of the hardware that finished in the minutes before each bar, by outcome."),
			runsOf("rdma_hardware_runs_total")...),
		filterable(byDevice(of(24, 14, "Raw counters by name", count, plain(),
			"Each counter under the driver's own name and in its own unit; port none is the whole device. Filter by a column to find one. docs/reference/counters.md says what they mean."+fmt.Sprintf(needsCollector, "raw-counters")), "", []column{
			label("port", 60), label("counter"),
			{title: "value", expr: filled(
				`max by (@id, port, counter) (rdma_port_hw_counter_total{@device} or rdma_port_counter_total{@device})`, "port")},
			{title: "a second", expr: filled(
				`sum by (@id, port, counter) (rate(rdma_port_hw_counter_total{@device}[$__rate_interval]) or rate(rdma_port_counter_total{@device}[$__rate_interval]))`, "port")},
		})),
	}
}

func fleetHardware() []dashboard.Panel {
	const (
		// The share of packets that ports transmit once more, how many timeouts and sequence NAKs there are for each
		// packet, and what adapters have of the speed and the lanes that they could have.
		resent = `topk(20, max by (@id, port) (instance_device_port:rdma_port_retransmitted_packets:ratio_rate5m{@instance}) > 0)`
		lost   = `topk(20, max by (@id, port) (instance_device_port:rdma_port_retransmit_events:ratio_rate5m{@instance}) > 0)`
		pci    = `topk(20, max by (@id) (instance_device:rdma_adapter_pci_bandwidth:ratio{@instance}) < 1)`
		paused = `topk(10, max by (@id, port) (rate(rdma_port_pfc_paused_seconds_total{@instance}[$__rate_interval])) > 0)`
		cnps   = `topk(10, max by (@id, port) ((rate(rdma_port_cnps_handled_total{@instance}[$__rate_interval]) or rate(rdma_port_cnps_received_total{@instance}[$__rate_interval])) / rate(rdma_port_transmit_packets_total{@instance}[$__rate_interval])) > 0)`
	)
	withPort := func(columns ...column) []column {
		return append(append(whose(), label("port", 60)), columns...)
	}
	counters := fmt.Sprintf(ofCollector, "counters")
	return []dashboard.Panel{
		table(of(8, 10, "Retransmitted packets by port", fraction, plain(),
			"The 20 ports with the largest share of retransmitted packets, where the driver counts these. No rows: none."+counters+needsRules), "share", withPort(column{field: "A", title: "share", width: 100, thresholds: new(rising(step{1e-4, warning}, step{1e-3, critical}))}),
			query{resent, ""}),
		table(of(8, 10, "Retransmit timeouts and NAKs by port", fraction, plain(),
			"The 20 ports with the most timeouts and sequence NAKs for each packet sent. Each means one packet resent, or everything in flight. No rows: none."+counters+needsRules), "for each packet", withPort(column{field: "A", title: "for each packet", width: 120, thresholds: new(rising(step{1e-5, warning}, step{1e-4, critical}))}),
			query{lost, ""}),
		table(of(8, 10, "PCI links below their best", fraction, plain(),
			"The 20 adapters whose own PCI link has least of the speed and lanes that they support. No rows: none."+fmt.Sprintf(ofCollector, "adapter")+needsRules), "-share", append(whose(), column{field: "A", title: "share", width: 100, thresholds: new(falling(0.5, 1))}),
			query{pci, ""}),
		table(of(24, 8, "Congestion: PFC pause time and CNPs by port", fraction, plain(),
			"The 10 ports with a priority that PFC frames of the other side stopped for the largest share of the time, where the driver counts it (bnxt_re, mlx5), and the 10 with the most CNPs for each packet sent. Drivers count CNPs differently: compare a port with its own past, as the finding congested does. No rows: none."+counters), "PFC pause seconds per second", withPort(
			column{title: "PFC pause seconds per second", width: 200, empty: "not known", thresholds: new(rising(step{0.01, warning}, step{0.1, critical})), expr: paused},
			column{title: "CNPs for each packet", width: 160, empty: "not known", expr: cnps},
		)),
	}
}
