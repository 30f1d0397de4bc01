package counters

import "slices"

// bnxt returns the rows of Broadcom NetXtreme-E and Thor.
func bnxt() Table {
	// What a 16-bit field of counters/ takes of a counter of 64.
	cut := func(name string, width int, meaning string) Row {
		return wrapping(pmaRaw(name, width, meaning, "Truncated by the driver; hw_counters has the full value."))
	}
	physical := func(rows ...Row) []Row {
		for i := range rows {
			rows[i].VFUncounted = true
		}
		return rows
	}
	const own = "Broadcom: bnxt_re_stat_descs and bnxt_re_get_hw_stats in hw_counters.c of the driver that Broadcom distributes."
	const stats = "Linux: bnxt_re_stat_descs and bnxt_re_ib_get_hw_stats in drivers/infiniband/hw/bnxt_re/hw_counters.c; "
	return Table{
		Name:  "bnxt_re",
		Buses: []string{"bnxt_en"},
		Note:  "Counters not listed, such as the errors `res_…`, are only exposed raw. The counters of struct ctx_hw_stats have 48 bits from BCM575xx on, unless the firmware says otherwise, and 64 before. CNPs, ECN marks and out-of-buffer packets are counted from BCM575xx on. Virtual functions of that generation always show 0, those of later ones before Linux 6.14 too (bnxt_re_ib_get_hw_stats and bnxt_ext_stats_supported).",
		Rows: slices.Concat(
			read(stats+"struct ctx_hw_stats; its width by bnxt_init_stats in drivers/net/ethernet/broadcom/bnxt/bnxt.c.",
				hw("rx_bytes", receiveBytes, 48, "RoCE unicast bytes received."),
				hw("tx_bytes", transmitBytes, 48, "RoCE unicast bytes transmitted."),
				hw("rx_pkts", receivePackets, 48, "RoCE unicast packets received."),
				hw("tx_pkts", transmitPackets, 48, "RoCE unicast packets transmitted."),
				hw("rx_roce_errors", receiveErrors, 48, "Packets received with an error."),
				hw("rx_roce_discards", receiveDiscards, 48, "Packets received and dropped."),
				hw("tx_roce_discards", transmitDiscards, 48, "Packets dropped instead of transmitted."),
				raw("tx_roce_errors", 48, "Packets not transmitted because of an error.", rawKind),
				raw("recoverable_errors", 48, "What the structure calls tx_bcast_pkts.", rawUnclear),
			),
			read(stats+"struct creq_query_roce_stats_resp_sb in roce_hsi.h.",
				hw("to_retransmits", retransmitTimeouts, 64, "Retransmissions after a timeout."),
				hw("seq_err_naks_rcvd", sequenceNaksReceived, 64, "Sequence error NAKs received."),
				hw("rnr_naks_rcvd", rnrNaksReceived, 64, "RNR NAKs received."),
				hw("dup_req", duplicateRequests, 64, "Duplicate requests received."),
				hw("oos_drop_count", outOfSequence, 64, "Packets out of sequence: those received on physical functions of BCM575xx and on all functions of later ones from Linux 6.6, else those dropped."),
				hw("max_retry_exceeded", retriesExceeded, 64, "Requests that failed after all retries; whether those for RNR NAKs count is undocumented."),
				hw("missing_resp", impliedNaks, 64, "Missing responses, which Broadcom's own driver calls implied_nak_seq_err."),
			),
			read(stats+"bnxt_re_copy_ext_stats.", physical(
				hw("tx_cnp_pkts", cnpsSent, 64, "CNPs sent."),
				hw("rx_cnp_pkts", cnpsReceived, 64, "CNPs received."),
				hw("rx_ecn_marked_pkts", ecnMarked, 64, "Packets received that were marked for congestion."),
				hw("rx_out_of_buffer", outOfBuffer, 64, "Packets dropped because no receive buffer was free."),
			)...),
			read(own,
				hw("local_ack_timeout_err", retransmitTimeouts, 64, "The same as to_retransmits."),
				hw("packet_seq_err", sequenceNaksReceived, 64, "The same as seq_err_naks_rcvd."),
				hw("rnr_nak_retry_err", rnrNaksReceived, 64, "The same as rnr_naks_rcvd."),
				hw("duplicate_request", duplicateRequests, 64, "The same as dup_req."),
				hw("out_of_sequence", outOfSequence, 64, "The same as oos_drop_count."),
				hw("implied_nak_seq_err", impliedNaks, 64, "The same as missing_resp."),
			),
			read(own, physical(
				hw("np_cnp_sent", cnpsSent, 64, "CNPs sent."),
				hw("rp_cnp_handled", cnpsReceived, 64, "CNPs received, handled or not."),
				hw("np_ecn_marked_roce_packets", ecnMarked, 64, "Packets received that were marked for congestion."),
				hw("out_of_buffer", outOfBuffer, 64, "Packets dropped because no receive buffer was free."),
			)...),
			read(stats+"bnxt_re_copy_ext_stats.",
				raw("rx_roce_only_bytes", 64, "RoCE bytes received.", "rx_bytes exists on every generation."),
				raw("tx_roce_only_bytes", 64, "RoCE bytes transmitted.", "tx_bytes exists on every generation."),
				raw("rx_roce_only_pkts", 64, "RoCE packets received.", "rx_pkts exists on every generation."),
				raw("tx_roce_only_pkts", 64, "RoCE packets transmitted.", "tx_pkts exists on every generation."),
				raw("rx_roce_good_bytes", 64, "RoCE bytes received without an error.", rawPart),
				raw("rx_roce_good_pkts", 64, "RoCE packets received without an error.", rawPart),
			),
			read("Linux: bnxt_port_stats_ext_arr in drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c, from BCM573xx on; struct rx_port_stats_ext in bnxt_hsi.h.",
				micro("pfc_priN_rx_duration_us", pfcPaused, "Microseconds for which priority N was not sent."),
				micro("pfc_priN_tx_duration_us", pfcPausing, "Microseconds for which the other side was not to send priority N."),
				netRaw("pfc_priN_rx_transitions", "Changes of priority N between stopped and going on, by PFC frames received.", "Counts both directions of a change."),
			),
			read("Linux: struct bnxt_re_res_cntrs and bnxt_re_copy_db_pacing_stats in drivers/infiniband/hw/bnxt_re/hw_counters.c and hw_counters.h.",
				level("active_pds", "Protection domains."), level("active_ahs", "Address handles."),
				level("active_qps", "Queue pairs."), level("active_rc_qps", "Queue pairs of type RC."),
				level("active_ud_qps", "Queue pairs of type UD."), level("active_srqs", "Shared receive queues."),
				level("active_cqs", "Completion queues."), level("active_mrs", "Memory regions."),
				level("active_mws", "Memory windows."),
				level("watermark_pds", "Peak number of protection domains."), level("watermark_ahs", "Peak number of address handles."),
				level("watermark_qps", "Peak number of queue pairs."), level("watermark_rc_qps", "Peak number of type RC."),
				level("watermark_ud_qps", "Peak number of type UD."), level("watermark_srqs", "Peak number of shared receive queues."),
				level("watermark_cqs", "Peak number of completion queues."), level("watermark_mrs", "Peak number of memory regions."),
				level("watermark_mws", "Peak number of memory windows."),
				level("db_fifo_register", "A register of the doorbells' queue."),
			),
			read("Linux, later than 6.12: bnxt_re_assign_pma_port_counters in drivers/infiniband/hw/bnxt_re/hw_counters.c.",
				cut("port_rcv_errors", 16, "The lower bits of rx_roce_errors."),
				cut("port_xmit_discards", 16, "The lower bits of tx_roce_discards."),
				cut("port_rcv_constraint_errors", 8, "The lower bits of rx_roce_discards."),
				cut("port_xmit_constraint_errors", 8, "The lower bits of tx_roce_errors."),
				never("port_rcv_remote_physical_errors", 16), never("port_rcv_switch_relay_errors", 16),
				never("port_xmit_wait", 32), never("symbol_error", 16), never("link_error_recovery", 8),
				never("link_downed", 8), never("local_link_integrity_errors", 4),
				never("excessive_buffer_overrun_errors", 4), never("VL15_dropped", 16),
				never("multicast_rcv_packets", 64), never("multicast_xmit_packets", 64),
			),
		),
	}
}
