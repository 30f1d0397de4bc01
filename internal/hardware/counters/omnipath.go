package counters

import "slices"

// hfi1 returns the rows of Intel and Cornelis Omni-Path.
func hfi1() Table {
	const pmaSource = "Linux: pma_get_ib_portcounters, pma_get_ib_portcounters_ext, pma_get_opa_port_ectrs and pma_get_opa_port_dctrs in drivers/infiniband/hw/hfi1/mad.c"
	return Table{
		Name: "hfi1",
		Note: "`counters/` counts data in flits of 8 bytes; programs that assume words of 4 show half. `hw_counters/` has hundreds of names, with `,32` appended to 32-bit ones; counters not listed are only exposed raw.",
		Rows: slices.Concat(
			read(pmaSource+"; opa-ff: FLITS_PER_MB in IbAccess/Common/Inc/stl_pm.h.",
				flits("port_rcv_data", receiveBytes, "Data received, in flits of 8 bytes."),
				flits("port_xmit_data", transmitBytes, "Data transmitted, in flits of 8 bytes."),
			),
			read(pmaSource+".",
				never("symbol_error", 16), never("VL15_dropped", 16), never("port_rcv_switch_relay_errors", 16),
				never("port_xmit_wait", 32), never("unicast_rcv_packets", 64), never("unicast_xmit_packets", 64),
			),
			read("Linux: SW_IBP_CNTR in drivers/infiniband/hw/hfi1/chip.c, and where the counter n_… is raised in drivers/infiniband/hw/hfi1/rc.c and drivers/infiniband/sw/rdmavt/qp.c.",
				hw("RcTimeOut", retransmitTimeouts, 64, "Times that the retry timer ran out (n_rc_timeouts)."),
				hw("SeqNak", sequenceNaksReceived, 64, "Sequence error NAKs received (n_seq_naks)."),
				hw("RnrNak", rnrNaksReceived, 64, "RNR NAKs received (n_rnr_naks)."),
				hw("RcDupRew", duplicateRequests, 64, "Duplicate requests received (n_rc_dupreq)."),
				raw("RcResend", 64, "Packets to resend (n_rc_resends).", "Counts a read as one, whatever the packets in its response."),
				raw("RcSeqNak", 64, "Sequence error NAKs sent (n_rc_seqnak).", "Counts gaps, not packets."),
				raw("OtherNak", 64, "NAKs received of other kinds (n_other_naks).", rawKind),
				raw("RdmaSeq", 64, "Read responses out of sequence (n_rdma_seq).", "Shows a lost response; the metrics show lost requests."),
				raw("PktDrop", 64, "Packets dropped (n_pkt_drops).", "Counts software checks, including of outgoing packets."),
				raw("LoopPkts", 64, "Packets to the host itself.", rawKind),
				raw("DmaWait", 64, "Waits for a free descriptor.", rawKind),
				raw("RcCrWait", 64, "Waits for credits of the responder.", rawKind),
				raw("Unaligned", 64, "Unaligned packets received.", rawKind),
			),
		),
	}
}

// flits returns a counter of counters/ that counts 8 bytes.
func flits(name, metric, meaning string) Row {
	r := pma(name, metric, 64, meaning)
	r.Factor = 8
	return r
}

// qib returns the rows of QLogic and Intel TrueScale.
func qib() Table {
	return Table{
		Name:  "qib",
		Buses: []string{"ib_qib"},
		Note:  "It only has `counters/`, with 64-bit traffic counters. Its other counters are in `diag_counters/`, which the exporter does not read.",
		Rows: read("Linux: pma_get_portcounters in drivers/infiniband/hw/qib/qib_mad.c.",
			never("port_xmit_wait", 32), never("port_rcv_switch_relay_errors", 16),
			never("port_xmit_constraint_errors", 8), never("port_rcv_constraint_errors", 8),
		),
	}
}
