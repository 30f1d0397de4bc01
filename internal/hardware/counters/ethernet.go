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
		Note:  "Names of newer versions have spaces. What is not listed is told raw.",
		Rows: slices.Concat(
			read(mib,
				term("ip4InOctets", receiveBytes, "Bytes of IPv4 received."),
				term("ip6InOctets", receiveBytes, "Bytes of IPv6 received."),
				term("ip4OutOctets", transmitBytes, "Bytes of IPv4 transmitted."),
				term("ip6OutOctets", transmitBytes, "Bytes of IPv6 transmitted."),
				term("ip4InPkts", receivePackets, "Packets of IPv4 received."),
				term("ip6InPkts", receivePackets, "Packets of IPv6 received."),
				term("ip4OutPkts", transmitPackets, "Packets of IPv4 transmitted."),
				term("ip6OutPkts", transmitPackets, "Packets of IPv6 transmitted."),
				term("ip4InDiscards", receiveDiscards, "Packets of IPv4 received and dropped."),
				term("ip6InDiscards", receiveDiscards, "Packets of IPv6 received and dropped."),
				raw("ip4InMcastOctets", 64, "Bytes of IPv4 multicast received.", rawPart), raw("ip6InMcastOctets", 64, "Bytes of IPv6 multicast received.", rawPart),
				raw("ip4OutMcastOctets", 64, "Bytes of IPv4 multicast transmitted.", rawPart), raw("ip6OutMcastOctets", 64, "Bytes of IPv6 multicast transmitted.", rawPart),
				raw("ip4InMcastPkts", 64, "Packets of IPv4 multicast received.", rawPart), raw("ip6InMcastPkts", 64, "Packets of IPv6 multicast received.", rawPart),
				raw("ip4OutMcastPkts", 64, "Packets of IPv4 multicast transmitted.", rawPart), raw("ip6OutMcastPkts", 64, "Packets of IPv6 multicast transmitted.", rawPart),
				raw("ip4InTruncatedPkts", 64, "Packets of IPv4 received that were cut short.", rawKind), raw("ip6InTruncatedPkts", 64, "Packets of IPv6 received that were cut short.", rawKind),
				raw("ip4OutNoRoutes", 64, "Packets of IPv4 without a route.", rawKind), raw("ip6OutNoRoutes", 64, "Packets of IPv6 without a route.", rawKind),
			),
			read(source+"TCPRTXSEG and its neighbours have lost the word tcp in newer versions, since they are of RoCE, too.",
				hw("RetransSegs", retransmittedPackets, 64, "Segments transmitted once more."),
				hw("tcpRetransSegs", retransmittedPackets, 64, "The same, in versions up to Linux 6.12."),
				raw("InSegs", 64, "Segments received.", rawPart), raw("tcpInSegs", 64, "The same, in versions up to Linux 6.12.", rawPart),
				raw("OutSegs", 64, "Segments transmitted.", rawPart), raw("tcpOutSegs", 64, "The same, in versions up to Linux 6.12.", rawPart),
			),
			read(source+"RXRPCNPHANDLED, TXNPCNPSENT and RXNPECNMARKEDPKTS, of E800 and later.",
				hw("cnpSent", cnpsSent, 64, "CNPs sent by the notification point."),
				hw("cnpHandled", cnpsHandled, 64, "CNPs that the reaction point handled."),
				hw("RxECNMrkd", ecnMarked, 64, "Packets received that were marked for congestion."),
				raw("cnpIgnored", 64, "CNPs that the reaction point ignored.", "Those that were handled are told."),
				raw("RxUDP", 64, "Packets of RoCE v2 received.", rawPart),
				raw("TxUDP", 64, "Packets of RoCE v2 transmitted.", rawPart),
			),
			read("Linux, later than 6.12: the third generation in irdma_hw_stat_names.",
				hw("RTO", retransmitTimeouts, 64, "Timeouts of retransmission."),
				hw("Nak Sequence Error", sequenceNaksReceived, 64, "NAKs for a sequence error."),
				hw("RNR received", rnrNaksReceived, 64, "RNR NAKs received."),
				hw("RNR sent", rnrNaksSent, 64, "RNR NAKs sent."),
				hw("Rcvd Out of order packets", outOfSequence, 64, "Packets received out of order."),
				raw("Nak Sequence Error Implied", 64, "Implied NAKs.", "It tells of a lost response, and the metrics of lost requests."),
				raw("CRC errors", 64, "Packets received with a wrong ICRC.", rawKind),
			),
		),
	}
}

// hns returns the rows of HiSilicon Kunpeng.
func hns() Table {
	return Table{
		Name:  "hns",
		Buses: []string{"hns3", "hns_roce", "hns_roce_hw_v2"},
		Note:  "It counts no bytes. What is not listed is told raw; its meaning is told nowhere.",
		Rows: read("Linux: hns_roce_port_stats_descs in drivers/infiniband/hw/hns/hns_roce_main.c, 64 bits by hns_roce_hw_v2_query_counter.",
			hw("rx_pkt", receivePackets, 64, "Packets received."),
			hw("tx_pkt", transmitPackets, 64, "Packets transmitted."),
			hw("rx_err_pkt", receiveErrors, 64, "Packets received with an error."),
			hw("tx_cnp_pkt", cnpsSent, 64, "CNPs sent."),
			hw("rx_cnp_pkt", cnpsReceived, 64, "CNPs received."),
			raw("tx_err_pkt", 64, "Packets transmitted with an error.", rawKind),
			raw("rx_rc_pkt", 64, "Packets of type RC received.", rawPart), raw("tx_rc_pkt", 64, "Packets of type RC transmitted.", rawPart),
			raw("rx_uc_pkt", 64, "Packets of type UC received.", rawPart), raw("tx_uc_pkt", 64, "Packets of type UC transmitted.", rawPart),
			raw("rx_ud_pkt", 64, "Packets of type UD received.", rawPart), raw("tx_ud_pkt", 64, "Packets of type UD transmitted.", rawPart),
			raw("rx_xrc_pkt", 64, "Packets of type XRC received.", rawPart), raw("tx_xrc_pkt", 64, "Packets of type XRC transmitted.", rawPart),
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
		Note: "The firmware tells names and widths (ionic_hw_stats.c in drivers/infiniband/hw/ionic), and the driver 64 ones for what it cannot read. What is not listed is told raw.",
		Rows: slices.Concat(
			read(source+".",
				term("rx_rdma_ucast_bytes", receiveBytes, "Bytes of unicast received."),
				term("rx_rdma_mcast_bytes", receiveBytes, "Bytes of multicast received."),
				term("tx_rdma_ucast_bytes", transmitBytes, "Bytes of unicast transmitted."),
				term("tx_rdma_mcast_bytes", transmitBytes, "Bytes of multicast transmitted."),
				term("rx_rdma_ucast_pkts", receivePackets, "Packets of unicast received."),
				term("rx_rdma_mcast_pkts", receivePackets, "Packets of multicast received."),
				term("tx_rdma_ucast_pkts", transmitPackets, "Packets of unicast transmitted."),
				term("tx_rdma_mcast_pkts", transmitPackets, "Packets of multicast transmitted."),
				hw("tx_rdma_cnp_pkts", cnpsSent, 64, "CNPs sent."),
				hw("rx_rdma_cnp_pkts", cnpsReceived, 64, "CNPs received."),
				hw("rx_rdma_ecn_pkts", ecnMarked, 64, "Packets received that were marked for congestion."),
				hw("req_rx_pkt_seq_err", sequenceNaksReceived, 64, "NAKs for a sequence error, of requesters."),
				hw("req_rx_rnr_retry_err", rnrNaksReceived, 64, "RNR NAKs, of requesters."),
				hw("resp_tx_rnr_retry_err", rnrNaksSent, 64, "RNR NAKs, of responders."),
				hw("resp_rx_dup_request", duplicateRequests, 64, "Duplicate requests."),
				hw("resp_rx_outof_buf", outOfBuffer, 64, "Requests without a receive."),
				hw("resp_rx_outouf_seq", outOfSequence, 64, "Packets of requests out of sequence."),
				raw("req_rx_impl_nak_seq_err", 64, "Implied NAKs.", "It tells of a lost response, and the metrics of lost requests."),
				raw("resp_tx_pkt_seq_err", 64, "NAKs for a sequence error, of responders.", rawKind),
				raw("req_tx_retry_excd_err", 64, "Requests that failed after all retries.", rawKind),
			),
			read("AMD: rocprofiler-systems for ainic_tx_rdma_ack_timeout, node-scraper for the others; in newer firmware.",
				hw("tx_rdma_ack_timeout", retransmitTimeouts, 64, "Timeouts of acknowledgements."),
				hw("tx_rdma_retx_pkts", retransmittedPackets, 64, "Packets transmitted once more."),
				raw("tx_rdma_retx_bytes", 64, "Bytes transmitted once more.", rawKind),
				raw("rx_rdma_mtu_discard_pkts", 64, "Packets received and dropped for their size.", "It is one cause of many."),
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
			raw("ip4InSegs", 64, "Segments of TCP over IPv4 received.", rawDevice), raw("ip6InSegs", 64, "Segments of TCP over IPv6 received.", rawDevice),
			raw("ip4OutSegs", 64, "Segments of TCP over IPv4 transmitted.", rawDevice), raw("ip6OutSegs", 64, "Segments of TCP over IPv6 transmitted.", rawDevice),
			raw("ip4RetransSegs", 64, "Segments of TCP over IPv4 transmitted once more.", rawDevice), raw("ip6RetransSegs", 64, "Segments of TCP over IPv6 transmitted once more.", rawDevice),
			raw("ip4OutRsts", 64, "Resets of TCP over IPv4.", rawDevice), raw("ip6OutRsts", 64, "Resets of TCP over IPv6.", rawDevice),
		),
	}
}

// ocrdma returns the rows of Emulex OneConnect.
func ocrdma() Table {
	return Table{
		Name:  "ocrdma",
		Buses: []string{"be2net"},
		Note:  "It has `counters/` alone, and sets four of them, cut off at 32 bits.",
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

// short returns a counter of traffic of counters/ that has 32 bits and begins anew.
func short(name, metric string, factor uint64, meaning string) Row {
	r := wrapping(traffic(name, metric, factor, meaning))
	r.Width = 32
	return r
}
