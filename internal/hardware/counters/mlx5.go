package counters

import "slices"

// mlx5 returns the rows of Mellanox and NVIDIA ConnectX-4 and later, Connect-IB and
// BlueField.
func mlx5() Table {
	const meaning = "; NVIDIA: Understanding mlx5 Linux Counters and Status Parameters."
	const ethernet = " in drivers/net/ethernet/mellanox/mlx5/core/en_stats.c; Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst."
	stalled := func(name, direction, meaning string) Row {
		r := net32(name, pciStalled, meaning)
		r.Label = direction
		return r
	}
	percent := func(name, meaning string) Row {
		r := netRaw(name, meaning, rawLevel)
		r.Level = true
		return r
	}
	return Table{
		Name:  "mlx5",
		Buses: []string{"mlx5_core", "mlx5_ib", "mlx5_core.sf"},
		Note:  "Traffic in `counters/` is the RDMA traffic of this function only (process_pma_cmd in drivers/infiniband/hw/mlx5/mad.c). The other counters there are those of the physical port, on Ethernet as on InfiniBand (query_ib_ppcnt), so a ratio of errors to traffic mixes both where functions share a port; the kernel does not say which of them an adapter leaves at 0 on Ethernet. On representors in switchdev mode, `vport_` plus the name is the sum for a function; it feeds no metric, because the function itself reports it. The uplink's `vport_` counters stay 0 (mlx5_ib_query_q_counters_vport); its metrics are from `hw_counters/` of the device. Kernels without q_counter_other_vport and q_counter_aggregation have no `hw_counters/` on representors.",
		Rows: slices.Concat(
			read("Linux: basic_q_cnts, out_of_seq_q_cnts and retrans_q_cnts in drivers/infiniband/hw/mlx5/counters.c, 32 bits by mlx5_ib_query_q_counters"+meaning,
				hw("local_ack_timeout_err", retransmitTimeouts, 32, "Requester acknowledgement timeouts, within the retries."),
				hw("out_of_sequence", outOfSequence, 32, "Packets received out of sequence."),
				hw("packet_seq_err", sequenceNaksReceived, 32, "Sequence error NAKs received, within the retries."),
				hw("rnr_nak_retry_err", rnrNaksReceived, 32, "RNR NAKs received, within the retries."),
				hw("duplicate_request", duplicateRequests, 32, "Duplicate requests received."),
				hw("out_of_buffer", outOfBuffer, 32, "Packets dropped because no receive work request was posted."),
				hw("implied_nak_seq_err", impliedNaks, 32, "Responses received ahead of the expected sequence number."),
				raw("rx_write_requests", 32, "RDMA writes received.", rawKind),
				raw("rx_read_requests", 32, "RDMA reads received.", rawKind),
				raw("rx_atomic_requests", 32, "Atomic operations received.", rawKind),
				raw("rx_dct_connect", 32, "Connection requests received for dynamically connected targets.", rawKind),
			),
			read("Linux: cong_cnts in drivers/infiniband/hw/mlx5/counters.c, 64 bits by mlx5_lag_query_cong_counters"+meaning,
				hw("np_cnp_sent", cnpsSent, 64, "CNPs sent by the notification point."),
				hw("rp_cnp_handled", cnpsHandled, 64, "CNPs received by the reaction point that throttled a sender."),
				hw("np_ecn_marked_roce_packets", ecnMarked, 64, "RoCE v2 packets received that were marked for congestion."),
				raw("rp_cnp_ignored", 64, "CNPs received and ignored by the reaction point.", "Only handled ones feed the metric."),
			),
			read("Linux: extended_err_cnts in drivers/infiniband/hw/mlx5/counters.c"+meaning,
				raw("req_cqe_error", 32, "Completions with an error, of requesters.", rawKind),
				raw("req_cqe_flush_error", 32, "Flushed completions, of requesters.", rawKind),
				raw("req_remote_access_errors", 32, "NAKs for remote access errors received.", rawKind),
				raw("req_remote_invalid_request", 32, "NAKs for invalid requests received.", rawKind),
				exceeded("req_rnr_retries_exceeded", "Requests that failed after all retries for RNR NAKs."),
				exceeded("req_transport_retries_exceeded", "Requests that failed after all retries for timeouts."),
				raw("resp_cqe_error", 32, "Completions with an error, of responders.", rawKind),
				raw("resp_cqe_flush_error", 32, "Flushed completions, of responders.", rawKind),
				raw("resp_local_length_error", 32, "Requests received with a wrong length.", rawKind),
				raw("resp_remote_access_errors", 32, "Requests received without memory access rights.", rawKind),
			),
			read("Linux: roce_accl_cnts in drivers/infiniband/hw/mlx5/counters.c"+meaning,
				hw("roce_adp_retrans", adaptiveRetransmits, 32, "Adaptive retransmissions, not packets."),
				raw("roce_adp_retrans_to", 32, "Timeouts of adaptive retransmission.", "Counts one kind of timeout."),
				raw("roce_slow_restart", 32, "Times that slow restart was used.", rawKind),
				raw("roce_slow_restart_cnps", 32, "CNPs that slow restart generated.", rawKind),
				raw("roce_slow_restart_trans", 32, "Changes to the slow restart state.", rawKind),
			),
			read("Linux: ext_ppcnt_cnts in drivers/infiniband/hw/mlx5/counters.c"+meaning,
				hw("rx_icrc_encapsulated", icrcErrors, 64, "RoCE packets received with a wrong ICRC."),
			),
			read("Linux, from 5.16: basic_op_cnts, rdmarx_cnp_op_cnts and rdmatx_cnp_op_cnts in drivers/infiniband/hw/mlx5/counters.c.",
				raw("cc_rx_ce_pkts", 64, "Packets received that were marked for congestion.", rawOptional),
				raw("cc_rx_cnp_pkts", 64, "CNPs received.", rawOptional),
				raw("cc_tx_cnp_pkts", 64, "CNPs sent.", rawOptional),
			),
			read("Linux, later than 6.12: packets_op_cnts in drivers/infiniband/hw/mlx5/counters.c.",
				raw("rdma_rx_bytes", 64, "RDMA bytes received.", rawOptional),
				raw("rdma_rx_packets", 64, "RDMA packets received.", rawOptional),
				raw("rdma_tx_bytes", 64, "RDMA bytes sent.", rawOptional),
				raw("rdma_tx_packets", 64, "RDMA packets sent.", rawOptional),
			),
			read("Linux: pport_per_prio_pfc_stats_desc"+ethernet,
				net("rx_prioN_pause", pfcFramesReceived, "PFC frames received for priority N."),
				net("tx_prioN_pause", pfcFramesSent, "PFC frames sent for priority N."),
				micro("rx_prioN_pause_duration", pfcPaused, "Microseconds for which priority N was not sent."),
				micro("tx_prioN_pause_duration", pfcPausing, "Microseconds for which the other side was not to send priority N."),
				net("rx_prioN_pause_transition", pfcTransitions, "Changes of priority N from stopped to going on, by PFC frames received."),
			),
			read("Linux: pport_pfc_stall_stats_desc"+ethernet,
				net("tx_pause_storm_events", pauseStorms, "As for every device. It comes first, since the next one counts priority 0 only."),
				net("tx_pause_storm_error_events", pauseStorms, "Times that pause frames were sent for so long that the adapter stopped that, of priority 0 only."),
				netRaw("tx_pause_storm_warning_events", "Times that pause frames were sent for long, of priority 0 only.", rawKind),
			),
			read("Linux: pport_2863_stats_desc, pport_per_prio_traffic_stats_desc and pport_per_prio_cong_stats_desc"+ethernet,
				net("rx_discards_phy", physicalRxDiscards, "Packets dropped for lack of buffers of the physical port."),
				net("tx_discards_phy", physicalTxDiscards, "Packets dropped at transmission, because the link was down or the head of the queue too old."),
				net("rx_prioN_discards", priorityDiscards, "Packets of priority N dropped for lack of buffers of the physical port."),
				netRaw("rx_prioN_buf_discard", "Packets of priority N dropped because its buffer was full.", rawKind),
				netRaw("rx_prioN_cong_discard", "Packets of priority N dropped because of congestion.", rawKind),
			),
			read("Linux: mlx5e_stats_grp_phy_fill_stats and pcie_perf_stats_desc"+ethernet,
				only("Ethernet", net32("link_down_events", linkDowned, "As for every device, and the same number as the next one.")),
				only("Ethernet", net32("link_down_events_phy", linkDowned, "Times that the link went down at the physical layer.")),
				stalled("outbound_pci_stalled_rd_events", "read", "Seconds in which reads were stalled for more than 30 % of the time."),
				stalled("outbound_pci_stalled_wr_events", "write", "Seconds in which writes were stalled for more than 30 % of the time."),
				percent("outbound_pci_stalled_rd", "Percent of the last second in which reads were stalled."),
				percent("outbound_pci_stalled_wr", "Percent of the last second in which writes were stalled."),
			),
		),
	}
}
