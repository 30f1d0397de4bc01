package counters

import "slices"

// irdma returns the rows of Intel E800, IPU and X722.
func irdma() Table {
	const (
		source = "Linux: irdma_hw_stat_names in drivers/infiniband/hw/irdma/verbs.c; "
		mib    = source + "the names are those of the IP-MIB (RFC 4293), by which octets and packets include multicast. Widths: irdma_update_stats in ctrl.c adds up what the adapter has in 24 to 56 bits."
	)
	return Table{
		Name:  "irdma",
		Buses: []string{"ice", "i40e", "idpf", "i40iw"},
		Note:  "Newer versions have names with spaces. Counters not listed are only exposed raw.",
		Rows: slices.Concat(
			read(mib,
				term("ip4InOctets", receiveBytes, "IPv4 bytes received."),
				term("ip6InOctets", receiveBytes, "IPv6 bytes received."),
				term("ip4OutOctets", transmitBytes, "IPv4 bytes transmitted."),
				term("ip6OutOctets", transmitBytes, "IPv6 bytes transmitted."),
				term("ip4InPkts", receivePackets, "IPv4 packets received."),
				term("ip6InPkts", receivePackets, "IPv6 packets received."),
				term("ip4OutPkts", transmitPackets, "IPv4 packets transmitted."),
				term("ip6OutPkts", transmitPackets, "IPv6 packets transmitted."),
				term("ip4InDiscards", receiveDiscards, "IPv4 packets received and dropped."),
				term("ip6InDiscards", receiveDiscards, "IPv6 packets received and dropped."),
				raw("ip4InMcastOctets", 64, "IPv4 multicast bytes received.", rawPart), raw("ip6InMcastOctets", 64, "IPv6 multicast bytes received.", rawPart),
				raw("ip4OutMcastOctets", 64, "IPv4 multicast bytes transmitted.", rawPart), raw("ip6OutMcastOctets", 64, "IPv6 multicast bytes transmitted.", rawPart),
				raw("ip4InMcastPkts", 64, "IPv4 multicast packets received.", rawPart), raw("ip6InMcastPkts", 64, "IPv6 multicast packets received.", rawPart),
				raw("ip4OutMcastPkts", 64, "IPv4 multicast packets transmitted.", rawPart), raw("ip6OutMcastPkts", 64, "IPv6 multicast packets transmitted.", rawPart),
				raw("ip4InTruncatedPkts", 64, "IPv4 packets received truncated.", rawKind), raw("ip6InTruncatedPkts", 64, "IPv6 packets received truncated.", rawKind),
				raw("ip4OutNoRoutes", 64, "IPv4 packets without a route.", rawKind), raw("ip6OutNoRoutes", 64, "IPv6 packets without a route.", rawKind),
			),
			read(source+"Newer versions drop tcp from the names of TCPRTXSEG and its neighbours, since they also count RoCE.",
				hw("RetransSegs", retransmittedPackets, 64, "Retransmitted segments."),
				hw("tcpRetransSegs", retransmittedPackets, 64, "The same, up to Linux 6.12."),
				raw("InSegs", 64, "Segments received.", rawPart), raw("tcpInSegs", 64, "The same, up to Linux 6.12.", rawPart),
				raw("OutSegs", 64, "Segments transmitted.", rawPart), raw("tcpOutSegs", 64, "The same, up to Linux 6.12.", rawPart),
			),
			read(source+"RXRPCNPHANDLED, TXNPCNPSENT and RXNPECNMARKEDPKTS, of E800 and later.",
				hw("cnpSent", cnpsSent, 64, "CNPs sent by the notification point."),
				hw("cnpHandled", cnpsHandled, 64, "CNPs that the reaction point handled."),
				hw("RxECNMrkd", ecnMarked, 64, "Packets received that were marked for congestion."),
				raw("cnpIgnored", 64, "CNPs that the reaction point ignored.", "Only handled ones feed the metric."),
				raw("RxUDP", 64, "RoCE v2 packets received.", rawPart),
				raw("TxUDP", 64, "RoCE v2 packets transmitted.", rawPart),
			),
			read("Linux, later than 6.12: the third generation in irdma_hw_stat_names.",
				hw("RTO", retransmitTimeouts, 64, "Retransmission timeouts."),
				hw("Nak Sequence Error", sequenceNaksReceived, 64, "Sequence error NAKs."),
				hw("RNR received", rnrNaksReceived, 64, "RNR NAKs received."),
				hw("RNR sent", rnrNaksSent, 64, "RNR NAKs sent."),
				hw("Rcvd Out of order packets", outOfSequence, 64, "Packets received out of order."),
				hw("Nak Sequence Error Implied", impliedNaks, 64, "Implied NAKs."),
				hw("CRC errors", icrcErrors, 64, "Packets received with a wrong ICRC."),
			),
		),
	}
}

// hns returns the rows of HiSilicon Kunpeng.
func hns() Table {
	return Table{
		Name:  "hns",
		Buses: []string{"hns3", "hns_roce", "hns_roce_hw_v2"},
		Note:  "It counts no bytes. Counters not listed are only exposed raw; they are undocumented.",
		Rows: read("Linux: hns_roce_port_stats_descs in drivers/infiniband/hw/hns/hns_roce_main.c, 64 bits by hns_roce_hw_v2_query_counter.",
			hw("rx_pkt", receivePackets, 64, "Packets received."),
			hw("tx_pkt", transmitPackets, 64, "Packets transmitted."),
			hw("rx_err_pkt", receiveErrors, 64, "Packets received with an error."),
			hw("tx_cnp_pkt", cnpsSent, 64, "CNPs sent."),
			hw("rx_cnp_pkt", cnpsReceived, 64, "CNPs received."),
			raw("tx_err_pkt", 64, "Packets transmitted with an error.", rawKind),
			raw("rx_rc_pkt", 64, "RC packets received.", rawPart), raw("tx_rc_pkt", 64, "RC packets transmitted.", rawPart),
			raw("rx_uc_pkt", 64, "UC packets received.", rawPart), raw("tx_uc_pkt", 64, "UC packets transmitted.", rawPart),
			raw("rx_ud_pkt", 64, "UD packets received.", rawPart), raw("tx_ud_pkt", 64, "UD packets transmitted.", rawPart),
			raw("rx_xrc_pkt", 64, "XRC packets received.", rawPart), raw("tx_xrc_pkt", 64, "XRC packets transmitted.", rawPart),
			raw("ecn_doorbell", 64, "ECN_DB.", rawUnclear),
			raw("rx_buffer", 64, "RX_BUF.", rawUnclear),
		),
	}
}

// ionic returns the rows of AMD Pensando.
func ionic() Table {
	const source = "Pensando: rdma_stats_hdrs in nic/hal/plugins/cfg/rdma of the adapter's firmware, all of 64 bits; AMD: the metrics of the Device Metrics Exporter"
	return Table{
		Name: "ionic",
		Note: "The firmware gives names and widths (ionic_hw_stats.c in drivers/infiniband/hw/ionic); the driver shows 64 ones for counters it cannot read. Counters not listed are only exposed raw.",
		Rows: slices.Concat(
			read(source+".",
				term("rx_rdma_ucast_bytes", receiveBytes, "Unicast bytes received."),
				term("rx_rdma_mcast_bytes", receiveBytes, "Multicast bytes received."),
				term("tx_rdma_ucast_bytes", transmitBytes, "Unicast bytes transmitted."),
				term("tx_rdma_mcast_bytes", transmitBytes, "Multicast bytes transmitted."),
				term("rx_rdma_ucast_pkts", receivePackets, "Unicast packets received."),
				term("rx_rdma_mcast_pkts", receivePackets, "Multicast packets received."),
				term("tx_rdma_ucast_pkts", transmitPackets, "Unicast packets transmitted."),
				term("tx_rdma_mcast_pkts", transmitPackets, "Multicast packets transmitted."),
				hw("tx_rdma_cnp_pkts", cnpsSent, 64, "CNPs sent."),
				hw("rx_rdma_cnp_pkts", cnpsReceived, 64, "CNPs received."),
				hw("rx_rdma_ecn_pkts", ecnMarked, 64, "Packets received that were marked for congestion."),
				hw("req_rx_pkt_seq_err", sequenceNaksReceived, 64, "Sequence error NAKs, of requesters."),
				hw("req_rx_rnr_retry_err", rnrNaksReceived, 64, "RNR NAKs, of requesters."),
				hw("resp_tx_rnr_retry_err", rnrNaksSent, 64, "RNR NAKs, of responders."),
				hw("resp_rx_dup_request", duplicateRequests, 64, "Duplicate requests."),
				hw("resp_rx_outof_buf", outOfBuffer, 64, "Requests without a posted receive."),
				hw("resp_rx_outouf_seq", outOfSequence, 64, "Request packets out of sequence."),
				hw("req_rx_impl_nak_seq_err", impliedNaks, 64, "Implied NAKs."),
				raw("resp_tx_pkt_seq_err", 64, "Sequence error NAKs, of responders.", rawKind),
				hw("req_tx_retry_excd_err", retriesExceeded, 64, "Requests that failed after all retries."),
			),
			read("AMD: rocprofiler-systems for ainic_tx_rdma_ack_timeout, node-scraper for the others; in newer firmware.",
				hw("tx_rdma_ack_timeout", retransmitTimeouts, 64, "Acknowledgement timeouts."),
				hw("tx_rdma_retx_pkts", retransmittedPackets, 64, "Retransmitted packets."),
				raw("tx_rdma_retx_bytes", 64, "Retransmitted bytes.", rawKind),
				raw("rx_rdma_mtu_discard_pkts", 64, "Packets received and dropped because of their size.", "Only one of many causes."),
			),
		),
	}
}

// cxgb4 returns the rows of Chelsio T4 to T6.
func cxgb4() Table {
	return Table{
		Name:  "cxgb4",
		Buses: []string{"iw_cxgb4"},
		Rows: read("Linux: cxgb4_descs in drivers/infiniband/hw/cxgb4/provider.c, which has them for the device.",
			raw("ip4InSegs", 64, "TCP segments over IPv4 received.", rawDevice), raw("ip6InSegs", 64, "TCP segments over IPv6 received.", rawDevice),
			raw("ip4OutSegs", 64, "TCP segments over IPv4 transmitted.", rawDevice), raw("ip6OutSegs", 64, "TCP segments over IPv6 transmitted.", rawDevice),
			raw("ip4RetransSegs", 64, "TCP segments over IPv4 retransmitted.", rawDevice), raw("ip6RetransSegs", 64, "TCP segments over IPv6 retransmitted.", rawDevice),
			raw("ip4OutRsts", 64, "TCP resets over IPv4.", rawDevice), raw("ip6OutRsts", 64, "TCP resets over IPv6.", rawDevice),
		),
	}
}

// ocrdma returns the rows of Emulex OneConnect.
func ocrdma() Table {
	return Table{
		Name:  "ocrdma",
		Buses: []string{"be2net"},
		Note:  "It only has `counters/`, and sets four of them, truncated to 32 bits.",
		Rows: read("Linux: ocrdma_pma_counters in drivers/infiniband/hw/ocrdma/ocrdma_stats.c.",
			short("port_rcv_data", receiveBytes, 4, "Data received, in words of 4 bytes."),
			short("port_xmit_data", transmitBytes, 4, "Data transmitted, in words of 4 bytes."),
			short("port_rcv_packets", receivePackets, 1, "Packets received."),
			short("port_xmit_packets", transmitPackets, 1, "Packets transmitted."),
			never("port_rcv_errors", 16), never("port_rcv_remote_physical_errors", 16), never("port_rcv_switch_relay_errors", 16),
			never("port_xmit_discards", 16), never("port_xmit_constraint_errors", 8), never("port_rcv_constraint_errors", 8),
			never("port_xmit_wait", 32), never("symbol_error", 16), never("link_error_recovery", 8), never("link_downed", 8),
			never("local_link_integrity_errors", 4), never("excessive_buffer_overrun_errors", 4), never("VL15_dropped", 16),
		),
	}
}

// short returns a traffic counter of counters/ with 32 bits that wraps.
func short(name, metric string, factor uint64, meaning string) Row {
	r := wrapping(traffic(name, metric, factor, meaning))
	r.Width = 32
	return r
}
