package counters

import "slices"

// efa returns the rows of Amazon's Elastic Fabric Adapter.
func efa() Table {
	return Table{
		Name: "efa",
		Note: "Ports have neither an InfiniBand nor an Ethernet link, and no `counters/`. Timeouts and retransmissions are SRD's.",
		Rows: slices.Concat(
			read("Linux: EFA_DEFINE_PORT_STATS and efa_fill_port_stats in drivers/infiniband/hw/efa/efa_verbs.c, struct efa_admin_basic_stats; Amazon: Collect EFA metrics, in the guide of CloudWatch.",
				hw("rx_bytes", receiveBytes, 64, "Bytes received."),
				hw("tx_bytes", transmitBytes, 64, "Bytes transmitted."),
				hw("rx_pkts", receivePackets, 64, "Packets received."),
				hw("tx_pkts", transmitPackets, 64, "Packets transmitted."),
				hw("rx_drops", receiveDiscards, 64, "Packets received and dropped."),
			),
			read("Linux, later than 6.12: struct efa_admin_network_stats in drivers/infiniband/hw/efa/efa_admin_cmds_defs.h; Amazon: the same.",
				hw("retrans_pkts", retransmittedPackets, 64, "Retransmitted packets."),
				hw("retrans_timeout_events", retransmitTimeouts, 64, "Timeouts that led to retransmission."),
				raw("retrans_bytes", 64, "Retransmitted bytes.", rawKind),
				raw("unresponsive_remote_events", 64, "Times that the other side did not answer.", rawKind),
				raw("impaired_remote_conn_events", 64, "Times that a connection became impaired.", rawKind),
			),
			read("Linux: struct efa_admin_messages_stats, efa_admin_rdma_read_stats and efa_admin_rdma_write_stats in drivers/infiniband/hw/efa/efa_admin_cmds_defs.h; Amazon: the same.",
				raw("send_bytes", 64, "Bytes of sends.", rawPart), raw("send_wrs", 64, "Sends completed.", rawKind),
				raw("recv_bytes", 64, "Bytes of receives.", rawPart), raw("recv_wrs", 64, "Receives completed.", rawKind),
				raw("rdma_read_bytes", 64, "Bytes of reads.", rawPart), raw("rdma_read_wrs", 64, "Reads completed.", rawKind),
				raw("rdma_read_wr_err", 64, "Reads that failed.", rawKind), raw("rdma_read_resp_bytes", 64, "Bytes of responses to reads.", rawPart),
				raw("rdma_write_bytes", 64, "Bytes of writes.", rawPart), raw("rdma_write_wrs", 64, "Writes completed.", rawKind),
				raw("rdma_write_wr_err", 64, "Writes that failed.", rawKind), raw("rdma_write_recv_bytes", 64, "Bytes of writes received.", rawPart),
			),
			read("Linux: EFA_DEFINE_DEVICE_STATS in drivers/infiniband/hw/efa/efa_verbs.c.",
				raw("submitted_cmds", 64, "Commands given to the device.", rawDevice), raw("completed_cmds", 64, "Commands that the device completed.", rawDevice),
				raw("cmds_err", 64, "Commands that failed.", rawDevice), raw("no_completion_cmds", 64, "Commands that the device did not complete.", rawDevice),
				raw("keep_alive_rcvd", 64, "Keep-alives from the device.", rawDevice),
			),
		),
	}
}

// mana returns the rows of Microsoft's Azure Network Adapter.
func mana() Table {
	return Table{
		Name:        "mana",
		Note:        "`hw_counters/` of a port are those of the function: mana_ib_get_hw_port_stats does not use the port. Only the first port shows them.",
		PerFunction: true,
		Rows: slices.Concat(
			read("Linux: mana_ib_port_stats_desc in drivers/infiniband/hw/mana/counters.c, struct mana_rnic_query_vf_cntrs_resp in mana_ib.h.",
				hw("rx_bytes", receiveBytes, 64, "Bytes received."),
				hw("tx_bytes", transmitBytes, 64, "Bytes transmitted."),
				hw("rx_packets", receivePackets, 64, "Packets received."),
				hw("tx_packets", transmitPackets, 64, "Packets transmitted."),
				hw("requester_timeout", retransmitTimeouts, 64, "Timeouts of requesters."),
				hw("requester_oos_nak", sequenceNaksReceived, 64, "Sequence error NAKs, of requesters."),
				hw("requester_rnr_nak", rnrNaksReceived, 64, "RNR NAKs, of requesters."),
				hw("responder_rnr_nak", rnrNaksSent, 64, "RNR NAKs, of responders."),
				hw("responder_oos", outOfSequence, 64, "Packets out of sequence, of responders."),
				hw("responder_dup_request", duplicateRequests, 64, "Duplicate requests, of responders."),
				term("requester_retries_exceeded", retriesExceeded, "Requests that failed after all retries for timeouts."),
				term("requester_rnr_nak_retries_exceeded", retriesExceeded, "Requests that failed after all retries for RNR NAKs."),
				hw("received_cnps", cnpsReceived, 64, "CNPs received."),
				raw("dup_rx_requests", 64, "Duplicate requests received.", "How it differs from responder_dup_request is undocumented."),
				hw("requester_implicit_nak", impliedNaks, 64, "Implied NAKs, of requesters."),
				raw("rate_inc_events", 64, "Times that a rate was raised.", rawKind),
				raw("num_qps_congested", 64, "Queue pairs that became congested, or are congested now.", rawUnclear),
				raw("num_qps_recovered", 64, "Queue pairs that recovered.", rawUnclear),
				level("current_rate", "Current rate; unit undocumented."),
			),
			read("Linux, later than 6.12: mana_ib_device_stats_desc in drivers/infiniband/hw/mana/counters.c, struct mana_rnic_query_device_cntrs_resp in mana_ib.h.",
				raw("sent_cnps", 32, "CNPs sent.", rawDevice), raw("received_ecns", 32, "Packets received that were marked for congestion.", rawDevice),
				raw("received_cnp_count", 32, "CNPs received.", rawDevice), raw("qp_congested_events", 32, "Times that a queue pair became congested.", rawDevice),
				raw("qp_recovered_events", 32, "Times that a queue pair recovered.", rawDevice),
			),
		),
	}
}

// erdma returns the rows of Alibaba's Elastic RDMA.
func erdma() Table {
	const drops = "Whether the other drops include it is undocumented."
	return Table{
		Name: "erdma",
		Rows: read("Linux: erdma_descs in drivers/infiniband/hw/erdma/erdma_verbs.c, struct erdma_cmdq_query_stats_resp in erdma_hw.h.",
			hw("rx_bytes_cnt", receiveBytes, 64, "Bytes received."),
			hw("tx_bytes_cnt", transmitBytes, 64, "Bytes transmitted."),
			hw("rx_packets_cnt", receivePackets, 64, "Packets received."),
			hw("tx_packets_cnt", transmitPackets, 64, "Packets transmitted."),
			raw("tx_reqs_cnt", 64, "Requests transmitted.", rawKind),
			raw("tx_disable_drop_cnt", 64, "Outgoing packets dropped.", drops),
			raw("tx_bps_limit_drop_cnt", 64, "Outgoing packets dropped above a limit in bits per second.", drops),
			raw("tx_pps_limit_drop_cnt", 64, "Outgoing packets dropped above a limit in packets per second.", drops),
			raw("rx_disable_drop_cnt", 64, "Incoming packets dropped.", drops),
			raw("rx_bps_limit_drop_cnt", 64, "Incoming packets dropped above a limit in bits per second.", drops),
			raw("rx_pps_limit_drop_cnt", 64, "Incoming packets dropped above a limit in packets per second.", drops),
		),
	}
}
