package counters_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/state"
)

func set(group state.CounterGroup, values map[string]uint64) []state.Counter {
	var c []state.Counter
	for name, value := range values {
		c = append(c, state.Counter{Group: group, Name: name, Value: value})
	}
	return c
}

// values returns the metrics of a port by name and priority.
func values(table string, c []state.Counter) map[string]uint64 {
	got := make(map[string]uint64)
	for _, v := range counters.Values(table, "", c) {
		name := v.Metric
		if v.Priority != "" {
			name += " " + v.Priority
		}
		got[name] = v.Value
	}
	return got
}

func TestOf(t *testing.T) {
	for name, c := range map[string]struct {
		table    string
		counters []state.Counter
		want     map[string]uint64
	}{
		"no counters":      {"mlx5", nil, map[string]uint64{}},
		"not in the table": {"mlx5", set(state.GroupHardware, map[string]uint64{"rx_read_requests": 1, "new": 2}), map[string]uint64{}},
		"words are four bytes": {
			"mlx5",
			set(state.GroupPort, map[string]uint64{"port_rcv_data": 10, "port_xmit_data": 1 << 40, "port_rcv_packets": 3}),
			map[string]uint64{
				"rdma_port_receive_bytes_total":   40,
				"rdma_port_transmit_bytes_total":  1 << 42,
				"rdma_port_receive_packets_total": 3,
			},
		},
		"a device that has no table": {
			"", set(state.GroupPort, map[string]uint64{"port_rcv_data": 10, "link_downed": 2}),
			map[string]uint64{"rdma_port_receive_bytes_total": 40, "rdma_port_link_downed_total": 2},
		},
		"ConnectX in RoCE": {
			"mlx5",
			slices.Concat(
				set(state.GroupPort, map[string]uint64{"port_xmit_discards": 1, "symbol_error": 2, "port_xmit_wait": 3}),
				set(state.GroupHardware, map[string]uint64{
					"local_ack_timeout_err": 4, "out_of_sequence": 5, "packet_seq_err": 6, "rnr_nak_retry_err": 7,
					"duplicate_request": 8, "out_of_buffer": 9, "np_cnp_sent": 10, "rp_cnp_handled": 11,
					"np_ecn_marked_roce_packets": 12, "rp_cnp_ignored": 13, "roce_adp_retrans": 14, "cc_rx_ce_pkts": 15,
				}),
				set(state.GroupEthtool, map[string]uint64{
					"tx_pause_frames": 16, "rx_pause_frames": 17, "fec_corrected_blocks": 18, "fec_uncorrectable_blocks": 19,
					"symbol_errors_during_carrier": 20, "pfc_requests_prio3": 21, "pfc_indications_prio0": 22, "pfc_requests_prio8": 23,
				}),
			),
			map[string]uint64{
				"rdma_port_transmit_discards_total": 1, "rdma_port_symbol_errors_total": 2, "rdma_port_transmit_wait_ticks_total": 3,
				"rdma_port_retransmit_timeouts_total": 4, "rdma_port_out_of_sequence_packets_total": 5,
				"rdma_port_sequence_naks_received_total": 6, "rdma_port_rnr_naks_received_total": 7,
				"rdma_port_duplicate_requests_total": 8, "rdma_port_out_of_buffer_packets_total": 9,
				"rdma_port_cnps_sent_total": 10, "rdma_port_cnps_handled_total": 11, "rdma_port_ecn_marked_packets_total": 12,
				"rdma_port_pause_frames_sent_total": 16, "rdma_port_pause_frames_received_total": 17,
				"rdma_port_fec_corrected_blocks_total": 18, "rdma_port_fec_uncorrectable_blocks_total": 19,
				"rdma_port_carrier_symbol_errors_total": 20,
				"rdma_port_pfc_frames_sent_total 3":     21, "rdma_port_pfc_frames_received_total 0": 22,
			},
		},
		// As leptonai/gpud has them in the tree of an H100 host.
		"a ConnectX-7 with counters at their end": {
			"mlx5",
			slices.Concat(
				set(state.GroupPort, map[string]uint64{
					"excessive_buffer_overrun_errors": 15, "link_downed": 255, "port_rcv_data": 205128687774249,
					"port_rcv_errors": 14, "port_rcv_packets": 317548853677, "port_rcv_switch_relay_errors": 2,
					"port_xmit_data": 230442669431839, "port_xmit_packets": 315487941081, "port_xmit_wait": 4294967295,
					"unicast_rcv_packets": 317548853677, "VL15_dropped": 0,
				}),
				set(state.GroupHardware, map[string]uint64{"lifespan": 12, "roce_adp_retrans": 3, "rx_write_requests": 3809045607, "out_of_buffer": 0}),
			),
			map[string]uint64{
				"rdma_port_receive_bytes_total": 820514751096996, "rdma_port_transmit_bytes_total": 921770677727356,
				"rdma_port_receive_packets_total": 317548853677, "rdma_port_transmit_packets_total": 315487941081,
				"rdma_port_receive_errors_total": 14, "rdma_port_out_of_buffer_packets_total": 0,
			},
		},
		"Soft-RoCE": {
			"rxe",
			set(state.GroupHardware, map[string]uint64{
				"sent_pkts": 1, "rcvd_pkts": 2, "out_of_seq_request": 3, "rcvd_seq_err": 4, "rcvd_rnr_err": 5,
				"send_rnr_err": 6, "duplicate_request": 7, "link_downed": 8, "completer_retry_err": 9, "ack_deferred": 10,
			}),
			map[string]uint64{
				"rdma_port_transmit_packets_total": 1, "rdma_port_receive_packets_total": 2,
				"rdma_port_out_of_sequence_packets_total": 3, "rdma_port_sequence_naks_received_total": 4,
				"rdma_port_rnr_naks_received_total": 5, "rdma_port_rnr_naks_sent_total": 6,
				"rdma_port_duplicate_requests_total": 7, "rdma_port_link_downed_total": 8,
			},
		},
		"bnxt_re with counters/": {
			"bnxt_re",
			slices.Concat(
				set(state.GroupPort, map[string]uint64{"port_rcv_data": 1, "port_xmit_discards": 2, "link_downed": 0, "port_xmit_wait": 0}),
				set(state.GroupHardware, map[string]uint64{"rx_bytes": 7, "tx_roce_discards": 65538, "rx_cnp_pkts": 3, "active_qps": 4}),
			),
			map[string]uint64{
				"rdma_port_receive_bytes_total": 7, "rdma_port_transmit_discards_total": 65538, "rdma_port_cnps_received_total": 3,
			},
		},
	} {
		if got := values(c.table, c.counters); !maps.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestSaturated verifies that only full counters, by their width, feed no metric.
func TestSaturated(t *testing.T) {
	port, driver := state.GroupPort, state.GroupHardware
	for name, c := range map[string]struct {
		table     string
		counter   state.Counter
		saturated bool
	}{
		"8 bits":                  {"mlx5", state.Counter{Group: port, Name: "link_downed", Value: 255}, true},
		"8 bits, not yet":         {"mlx5", state.Counter{Group: port, Name: "link_downed", Value: 254}, false},
		"8 bits, above":           {"mlx5", state.Counter{Group: port, Name: "link_downed", Value: 256}, false},
		"4 bits":                  {"mlx5", state.Counter{Group: port, Name: "excessive_buffer_overrun_errors", Value: 15}, true},
		"15 of 16 bits":           {"mlx5", state.Counter{Group: port, Name: "symbol_error", Value: 15}, false},
		"32 bits":                 {"mlx5", state.Counter{Group: port, Name: "port_xmit_wait", Value: math.MaxUint32}, true},
		"64 bits":                 {"mlx5", state.Counter{Group: port, Name: "port_rcv_data", Value: math.MaxUint64}, true},
		"32 bits of an old one":   {"", state.Counter{Group: port, Name: "port_rcv_data", Value: math.MaxUint32}, true},
		"more than fits in bytes": {"mlx5", state.Counter{Group: port, Name: "port_rcv_data", Value: 1 << 62}, false},
		"one that wraps":          {"mlx5", state.Counter{Group: driver, Name: "out_of_sequence", Value: math.MaxUint32}, false},
		"unreadable":              {"rxe", state.Counter{Group: driver, Name: "sent_pkts", Value: math.MaxUint64}, true},
		"a priority":              {"mlx5", state.Counter{Group: state.GroupEthtool, Name: "pfc_requests_prio1", Value: math.MaxUint64}, true},
	} {
		if got := counters.Saturated(c.table, c.counter); got != c.saturated {
			t.Errorf("%s: saturated %v, want %v", name, got, c.saturated)
		}
		feeds := len(counters.Values(c.table, "", []state.Counter{c.counter})) == 1
		if want := !c.saturated && c.counter.Value != 1<<62; feeds != want {
			t.Errorf("%s: feeds a metric: %v, want %v", name, feeds, want)
		}
	}
	for name, c := range map[string]struct {
		counter state.Counter
		want    bool
	}{
		"not in the table":        {state.Counter{Group: state.GroupHardware, Name: "new", Value: math.MaxUint32}, false},
		"neither, and unreadable": {state.Counter{Group: state.GroupHardware, Name: "new", Value: math.MaxUint64}, true},
		"a level":                 {state.Counter{Group: state.GroupHardware, Name: "db_fifo_register", Value: math.MaxUint64}, false},
		"of another group":        {state.Counter{Group: state.GroupHardware, Name: "link_downed", Value: 255}, false},
	} {
		if got := counters.Saturated("bnxt_re", c.counter); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestWidth(t *testing.T) {
	for _, c := range []struct {
		table string
		group state.CounterGroup
		name  string
		want  int
	}{
		{"mlx5", state.GroupHardware, "out_of_sequence", 32},
		{"mlx5", state.GroupHardware, "np_cnp_sent", 64},
		{"bnxt_re", state.GroupHardware, "rx_bytes", 48},
		{"ocrdma", state.GroupPort, "port_rcv_data", 32},
		{"bnxt_re", state.GroupPort, "port_rcv_errors", 16},
		{"mlx5", state.GroupEthtool, "pfc_requests_prio7", 64},
		// They stay at all ones.
		{"mlx5", state.GroupPort, "link_downed", 64},
		{"", state.GroupPort, "symbol_error", 64},
		// It is no counter.
		{"bnxt_re", state.GroupHardware, "active_qps", 0},
		{"nothing", state.GroupHardware, "nothing", 64},
	} {
		if got := counters.Width(c.table, c.group, c.name); got != c.want {
			t.Errorf("%s %s/%s: got %d, want %d", c.table, c.group, c.name, got, c.want)
		}
	}
}

func TestLevel(t *testing.T) {
	if !counters.Level("bnxt_re", state.GroupHardware, "active_qps") || counters.Level("bnxt_re", state.GroupHardware, "rx_bytes") || counters.Level("", state.GroupHardware, "active_qps") {
		t.Error("active_qps of bnxt_re is the only level of the three")
	}
}

func TestTableOf(t *testing.T) {
	for driver, want := range map[string]string{
		"mlx5": "mlx5", "mlx5_core": "mlx5", "rxe": "rxe", "bnxt_re": "bnxt_re", "bnxt_en": "bnxt_re", "": "", "siw": "", "e1000": "",
	} {
		if got := counters.TableOf(driver); got != want {
			t.Errorf("%q: got %q, want %q", driver, got, want)
		}
	}
}
