package counters

import "slices"

// hfi1 returns the rows of Intel and Cornelis Omni-Path.
func hfi1() Table {
	const pmaSource = "Linux: pma_get_ib_portcounters, pma_get_ib_portcounters_ext, pma_get_opa_port_ectrs and pma_get_opa_port_dctrs in drivers/infiniband/hw/hfi1/mad.c"
	return Table{
		Name: "hfi1",
		Note: "In `counters/` data is counted in flits of 8 bytes, so that programs that take them for words of 4 show half. `hw_counters/` have some hundreds of names, those of 32 bits with `,32` at their end; what is not listed is told raw.",
		Rows: slices.Concat(
			read(pmaSource+"; opa-ff: FLITS_PER_MB in IbAccess/Common/Inc/stl_pm.h.",
				flits("port_rcv_data", receiveBytes, "Data received, in flits of 8 bytes."),
				flits("port_xmit_data", transmitBytes, "Data transmitted, in flits of 8 bytes."),
			),
			read(pmaSource+".",
				never("symbol_error", 16),
				never("VL15_dropped", 16),
				never("port_rcv_switch_relay_errors", 16),
				never("port_xmit_wait", 32),
				never("unicast_rcv_packets", 64),
				never("unicast_xmit_packets", 64),
			),
			read("Linux: SW_IBP_CNTR in drivers/infiniband/hw/hfi1/chip.c, and where the counter n_… is raised in drivers/infiniband/hw/hfi1/rc.c and drivers/infiniband/sw/rdmavt/qp.c.",
				hw("RcTimeOut", retransmitTimeouts, 64, "Times that the retry timer ran out (n_rc_timeouts)."),
				hw("SeqNak", sequenceNaksReceived, 64, "NAKs for a sequence error received (n_seq_naks)."),
				hw("RnrNak", rnrNaksReceived, 64, "RNR NAKs received (n_rnr_naks)."),
				hw("RcDupRew", duplicateRequests, 64, "Duplicate requests received (n_rc_dupreq)."),
				raw("RcResend", 64, "Packets to send once more (n_rc_resends).", "A read counts as one, however many packets its response has."),
				raw("RcSeqNak", 64, "NAKs for a sequence error sent (n_rc_seqnak).", "It counts one for each gap, and not packets."),
				raw("OtherNak", 64, "NAKs received of other kinds (n_other_naks).", rawKind),
				raw("RdmaSeq", 64, "Responses to reads that were out of sequence (n_rdma_seq).", "It tells of a lost response, and the metrics of lost requests."),
				raw("PktDrop", 64, "Packets dropped (n_pkt_drops).", "It is of checks in software, of packets to be sent, too."),
				raw("LoopPkts", 64, "Packets to the host itself.", rawKind),
				raw("DmaWait", 64, "Waits for a free descriptor.", rawKind),
				raw("RcCrWait", 64, "Waits for credits of the responder.", rawKind),
				raw("Unaligned", 64, "Packets received unaligned.", rawKind),
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
		Note:  "It has `counters/` alone, with those of traffic in 64 bits. What it counts besides is in `diag_counters/`, which the exporter does not read.",
		Rows: read("Linux: pma_get_portcounters in drivers/infiniband/hw/qib/qib_mad.c.",
			never("port_xmit_wait", 32),
			never("port_rcv_switch_relay_errors", 16),
			never("port_xmit_constraint_errors", 8),
			never("port_rcv_constraint_errors", 8),
		),
	}
}
