package counters_test

import (
	"strings"
	"testing"

	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
)

// infiniband are the counters of counters/ of a port, as the kernel lists them.
const infiniband = `VL15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery
	local_link_integrity_errors multicast_rcv_packets multicast_xmit_packets port_rcv_constraint_errors port_rcv_data
	port_rcv_errors port_rcv_packets port_rcv_remote_physical_errors port_rcv_switch_relay_errors
	port_xmit_constraint_errors port_xmit_data port_xmit_discards port_xmit_packets port_xmit_wait symbol_error
	unicast_rcv_packets unicast_xmit_packets`

// TestDrivers verifies which counter feeds which metric, with all that each driver has for a port, as
// its source lists it.
func TestDrivers(t *testing.T) {
	fed := golden.Record(t)
	for _, c := range []struct{ name, table, port, hardware string }{
		{"mthca, which has no table", "", infiniband, ""},
		{"qib", "qib", infiniband, ""},
		{
			"mlx5", "mlx5", infiniband,
			`duplicate_request implied_nak_seq_err lifespan local_ack_timeout_err np_cnp_sent np_ecn_marked_roce_packets
			out_of_buffer out_of_sequence packet_seq_err req_cqe_error req_cqe_flush_error req_remote_access_errors
			req_remote_invalid_request req_rnr_retries_exceeded req_transport_retries_exceeded resp_cqe_error
			resp_cqe_flush_error resp_local_length_error resp_remote_access_errors rnr_nak_retry_err roce_adp_retrans
			roce_adp_retrans_to roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans rp_cnp_handled rp_cnp_ignored
			rx_atomic_requests rx_dct_connect rx_icrc_encapsulated rx_read_requests rx_write_requests cc_rx_ce_pkts
			cc_rx_cnp_pkts cc_tx_cnp_pkts rdma_rx_bytes rdma_rx_packets rdma_tx_bytes rdma_tx_packets vport_out_of_buffer`,
		},
		{
			"mlx4", "mlx4", infiniband,
			`rq_num_dup rq_num_lle rq_num_lpe rq_num_lqpoe rq_num_oos rq_num_rae rq_num_rire rq_num_rnr rq_num_wrfe sq_num_bre
			sq_num_lle sq_num_lpe sq_num_lqpoe sq_num_mwbe sq_num_oos sq_num_rae sq_num_rire sq_num_rnr sq_num_roe sq_num_rree
			sq_num_to sq_num_tree sq_num_wrfe`,
		},
		{"mlx4 with Ethernet", "mlx4", infiniband, "rq_num_oos"},
		{"mlx4 VF", "mlx4", infiniband, ""},
		{
			"hfi1", "hfi1", infiniband,
			`TxUnVL TxPkt RcResend RnrNak OtherNak RcTimeOut PktDrop DmaWait RcSeqNak RcDupRew RdmaSeq Unaligned SeqNak
			RcCrWait RcvHdrOvr0,32`,
		},
		{"ocrdma", "ocrdma", infiniband, ""},
		{
			"bnxt_re", "bnxt_re", infiniband,
			`active_ahs active_cqs active_mrs active_mws active_pds active_qps bad_resp_err db_fifo_register dup_req
			max_retry_exceeded missing_resp oos_drop_count pacing_alerts recoverable_errors res_cq_load_err resize_cq_cnt
			rnr_naks_rcvd rx_bytes rx_cnp_pkts rx_ecn_marked_pkts rx_out_of_buffer rx_pkts rx_roce_discards rx_roce_errors
			rx_roce_good_bytes rx_roce_only_bytes rx_roce_only_pkts seq_err_naks_rcvd to_retransmits tx_bytes tx_cnp_pkts
			tx_pkts tx_roce_discards tx_roce_errors tx_roce_only_bytes tx_roce_only_pkts unrecoverable_err watermark_qps`,
		},
		{
			"bnxt_re of Broadcom", "bnxt_re", "",
			`rx_pkts rx_bytes tx_pkts tx_bytes recoverable_errors tx_roce_errors tx_roce_discards rx_roce_errors rx_roce_discards
			local_ack_timeout_err packet_seq_err max_retry_exceeded rnr_nak_retry_err implied_nak_seq_err duplicate_request
			out_of_sequence out_of_buffer np_cnp_sent rp_cnp_handled np_ecn_marked_roce_packets req_cqe_error roce_adp_retrans
			rp_cnp_ignored rx_icrc_encapsulated`,
		},
		{
			"efa", "efa", "",
			`tx_bytes tx_pkts rx_bytes rx_pkts rx_drops send_bytes send_wrs recv_bytes recv_wrs rdma_read_wrs rdma_read_bytes
			rdma_read_wr_err rdma_read_resp_bytes rdma_write_wrs rdma_write_bytes rdma_write_wr_err rdma_write_recv_bytes
			retrans_bytes retrans_pkts retrans_timeout_events unresponsive_remote_events impaired_remote_conn_events`,
		},
		{
			"irdma of Linux 6.12", "irdma", "",
			`ip4InDiscards ip4InTruncatedPkts ip4OutNoRoutes ip6InDiscards ip6InTruncatedPkts ip6OutNoRoutes tcpRetransSegs
			tcpInOptErrors tcpInProtoErrors rxVlanErrors ip4InOctets ip4InPkts ip4InReasmRqd ip4InMcastPkts ip4OutOctets
			ip4OutPkts ip4OutSegRqd ip4OutMcastPkts ip6InOctets ip6InPkts ip6InReasmRqd ip6InMcastPkts ip6OutOctets ip6OutPkts
			ip6OutSegRqd ip6OutMcastPkts tcpInSegs tcpOutSegs iwInRdmaReads iwInRdmaSends iwInRdmaWrites iwOutRdmaReads
			iwOutRdmaSends iwOutRdmaWrites iwRdmaBnd iwRdmaInv cnpHandled cnpIgnored cnpSent ip4InMcastOctets
			ip4OutMcastOctets ip6InMcastOctets ip6OutMcastOctets RxUDP TxUDP RxECNMrkd`,
		},
		{
			"hns", "hns", "",
			`rx_rc_pkt rx_uc_pkt rx_ud_pkt rx_xrc_pkt rx_pkt rx_err_pkt rx_cnp_pkt tx_rc_pkt tx_uc_pkt tx_ud_pkt tx_xrc_pkt
			tx_pkt tx_err_pkt tx_cnp_pkt trp_get_mpt_err_pkt trp_get_irrl_err_pkt ecn_doorbell rx_buffer trp_rx_sof cq_cqe
			cq_poe cq_notify`,
		},
		{
			"ionic", "ionic", "",
			`tx_rdma_ucast_bytes tx_rdma_ucast_pkts tx_rdma_mcast_bytes tx_rdma_mcast_pkts tx_rdma_cnp_pkts rx_rdma_ucast_bytes
			rx_rdma_ucast_pkts rx_rdma_mcast_bytes rx_rdma_mcast_pkts rx_rdma_cnp_pkts rx_rdma_ecn_pkts req_rx_pkt_seq_err
			req_rx_rnr_retry_err req_rx_rmt_acc_err req_rx_impl_nak_seq_err req_rx_cqe_err req_tx_retry_excd_err
			resp_rx_dup_request resp_rx_outof_buf resp_rx_outouf_seq resp_tx_pkt_seq_err resp_tx_rnr_retry_err
			tx_rdma_ack_timeout tx_rdma_retx_pkts tx_rdma_retx_bytes rx_rdma_mtu_discard_pkts`,
		},
		{
			"mana", "mana", "",
			`requester_timeout requester_oos_nak requester_rnr_nak responder_rnr_nak responder_oos responder_dup_request
			requester_implicit_nak received_cnps num_qps_congested rate_inc_events num_qps_recovered current_rate
			dup_rx_requests requester_rnr_nak_retries_exceeded requester_retries_exceeded tx_bytes rx_bytes rx_send_requests tx_packets rx_packets`,
		},
		{
			"erdma", "erdma", "",
			`tx_reqs_cnt tx_packets_cnt tx_bytes_cnt tx_disable_drop_cnt tx_bps_limit_drop_cnt tx_pps_limit_drop_cnt
			rx_packets_cnt rx_bytes_cnt rx_disable_drop_cnt rx_bps_limit_drop_cnt rx_pps_limit_drop_cnt`,
		},
		{"cxgb4", "cxgb4", "", "ip4InSegs ip4OutSegs ip4RetransSegs ip4OutRsts ip6InSegs ip6OutSegs ip6RetransSegs ip6OutRsts"},
	} {
		if c.table != "" && counters.TableOf(c.table) != c.table {
			t.Errorf("%s: there is no table %s", c.name, c.table)
		}
		var all []state.Counter
		for i, n := range strings.Fields(c.port) {
			all = append(all, state.Counter{Group: state.GroupPort, Name: n, Value: uint64(i % 3)})
		}
		for i, n := range strings.Fields(c.hardware) {
			all = append(all, state.Counter{Group: state.GroupHardware, Name: n, Value: uint64(i)})
		}
		link := "InfiniBand"
		if strings.HasSuffix(c.name, " with Ethernet") {
			link = "Ethernet"
		}
		role := ""
		if strings.HasSuffix(c.name, " VF") {
			role = "vf"
		}
		var lines []string
		for _, v := range values(c.table, role, link, all...) {
			lines = append(lines, v.Metric+" = "+v.Counter)
		}
		fed.Add(c.name, lines...)
	}
}
