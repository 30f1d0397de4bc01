package counters

import "slices"

// mlx4 returns the rows of Mellanox ConnectX-2 and ConnectX-3.
func mlx4() Table {
	const source = "Linux: diag_basic and diag_ext in drivers/infiniband/hw/mlx4/main.c, 32 bits by mlx4_ib_get_hw_stats, commit 3f85f2aaabf7; Mellanox: struct hermonprm_query_diag_counters in MT25408_PRM.h of iPXE."
	return Table{
		Name:     "mlx4",
		Buses:    []string{"mlx4_core", "mlx4_ib"},
		Note:     "`sq_` is the requester's count, `rq_` the responder's. A port has `hw_counters/` only if the firmware counts by port; those of the device have the same names and feed no metric. On Ethernet ports the driver sets only the four traffic counters (edit_counter in drivers/infiniband/hw/mlx4/mad.c): all others in `counters/` are 0 there and feed no metric. The same holds for virtual functions (mlx4_ib_process_mad).",
		Ethernet: []string{"port_rcv_data", "port_xmit_data", "port_rcv_packets", "port_xmit_packets"},
		Rows: slices.Concat(
			read(source,
				hw("sq_num_to", retransmitTimeouts, 32, "Timeouts of requesters."),
				hw("rq_num_oos", outOfSequence, 32, "Requests received out of sequence."),
				hw("sq_num_oos", sequenceNaksReceived, 32, "Sequence error NAKs received."),
				hw("sq_num_rnr", rnrNaksReceived, 32, "RNR NAKs received."),
				hw("rq_num_rnr", rnrNaksSent, 32, "RNR NAKs sent."),
				hw("rq_num_dup", duplicateRequests, 32, "Duplicate requests received."),
				raw("rq_num_lle", 32, "Local length errors, of responders.", rawKind),
				raw("sq_num_lle", 32, "Local length errors, of requesters.", rawKind),
				raw("rq_num_lqpoe", 32, "Local QP operation errors, of responders.", rawKind),
				raw("sq_num_lqpoe", 32, "Local QP operation errors, of requesters.", rawKind),
				raw("rq_num_lpe", 32, "Local protection errors, of responders.", rawKind),
				raw("sq_num_lpe", 32, "Local protection errors, of requesters.", rawKind),
				raw("rq_num_wrfe", 32, "Completions with an error, of responders.", rawKind),
				raw("sq_num_wrfe", 32, "Completions with an error, of requesters.", rawKind),
				raw("sq_num_mwbe", 32, "Errors binding memory windows.", rawKind),
				raw("sq_num_bre", 32, "Bad responses.", rawKind),
				raw("sq_num_rire", 32, "Remote invalid request errors, of requesters.", rawKind),
				raw("rq_num_rire", 32, "Remote invalid request errors, of responders.", rawKind),
				raw("sq_num_rae", 32, "Remote access errors, of requesters.", rawKind),
				raw("rq_num_rae", 32, "Remote access errors, of responders.", rawKind),
				raw("sq_num_roe", 32, "Remote operation errors.", rawKind),
				exceeded("sq_num_tree", "Requests that failed after all retries for timeouts."),
				exceeded("sq_num_rree", "Requests that failed after all retries for RNR NAKs."),
			),
			read("Linux: diag_device_only in drivers/infiniband/hw/mlx4/main.c; the same.",
				raw("num_cqovf", 32, "Overruns of completion queues.", rawDevice),
				raw("rq_num_udsdprd", 32, "UD packets dropped because no receive was posted.", rawDevice),
			),
		),
	}
}

// exceeded returns one of the counters of 32 bits whose sum is the requests that failed after all retries.
func exceeded(name, meaning string) Row {
	r := term(name, retriesExceeded, meaning)
	r.Width = 32
	return r
}
