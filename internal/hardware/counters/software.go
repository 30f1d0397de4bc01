package counters

// rxe returns the rows of Soft-RoCE.
func rxe() Table {
	return Table{
		Name:  "rxe",
		Buses: []string{"rdma_rxe"},
		Note:  "siw, the other software driver, has no counters.",
		Rows: read("Linux: rxe_counter_descs in drivers/infiniband/sw/rxe/rxe_hw_counters.c, and where rxe_counter_inc is called in rxe_comp.c, rxe_net.c, rxe_recv.c and rxe_resp.c.",
			hw("sent_pkts", transmitPackets, 64, "Packets handed to the network device."),
			hw("rcvd_pkts", receivePackets, 64, "Complete packets received with a correct ICRC."),
			hw("out_of_seq_request", outOfSequence, 64, "Request packets ahead of the expected one, counted once per gap."),
			hw("rcvd_seq_err", sequenceNaksReceived, 64, "Sequence error NAKs received with new information."),
			hw("rcvd_rnr_err", rnrNaksReceived, 64, "RNR NAKs received."),
			hw("send_rnr_err", rnrNaksSent, 64, "RNR NAKs sent."),
			hw("duplicate_request", duplicateRequests, 64, "Request packets behind the expected one."),
			hw("link_downed", linkDowned, 64, "Times that the port went down with its network device."),
			raw("completer_retry_err", 64, "Times that a requester starts resending, after a timeout or a NAK.", "Counts rounds, not packets or timeouts."),
			raw("ack_deferred", 64, "Responses handed to another thread.", rawKind),
			term("retry_exceeded_err", retriesExceeded, "Requests that failed after all retries for timeouts."),
			term("retry_rnr_exceeded_err", retriesExceeded, "Requests that failed after all retries for RNR NAKs."),
			raw("send_err", 64, "Packets that the network device refused.", "They are sent later, not lost."),
			raw("rdma_sends", 64, "Sends completed.", rawKind),
			raw("rdma_recvs", 64, "Receives completed.", rawKind),
		),
	}
}
