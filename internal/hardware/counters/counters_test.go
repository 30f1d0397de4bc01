package counters_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
)

// counter returns the counter of "GROUP/NAME=VALUE".
func counter(t *testing.T, text string) state.Counter {
	t.Helper()
	name, number, _ := strings.Cut(text, "=")
	group, name, _ := strings.Cut(name, "/")
	value := running.Must(strconv.ParseUint(number, 10, 64))(t)
	return state.Counter{Group: state.CounterGroup(group), Name: name, Value: value}
}

// values returns the metrics of a port of a device.
func values(table, role, link string, all ...state.Counter) []counters.Value {
	h := state.Hardware{Table: table, Identity: state.Adapter{Role: role}}
	return counters.Values(&h, &state.HardwarePort{LinkLayer: link, Counters: all})
}

// TestValues verifies units, sums, and the counters of which TestDrivers has none.
func TestValues(t *testing.T) {
	for name, c := range map[string]struct{ table, counters, want string }{
		"no counters":      {"mlx5", "", ""},
		"not in the table": {"mlx5", "hw_counters/rx_read_requests=1 hw_counters/new=2", ""},
		"words are four bytes": {
			"mlx5", "counters/port_rcv_data=10 counters/port_xmit_data=1099511627776 counters/port_rcv_packets=3",
			"receive_bytes=40 receive_packets=3 transmit_bytes=4398046511104",
		},
		"a device that has no table": {
			"", "counters/port_rcv_data=10 counters/link_downed=2", "link_downed=2 receive_bytes=40",
		},
		"ConnectX in Ethernet": {
			"mlx5",
			`ethtool/tx_pause_frames=16 ethtool/rx_pause_frames=17 ethtool/fec_corrected_blocks=18
			ethtool/fec_uncorrectable_blocks=19 ethtool/symbol_errors_during_carrier=20 ethtool/tx_prio3_pause=21
			ethtool/rx_prio0_pause=22 ethtool/tx_prio8_pause=23 ethtool/rx_prio3_pause_duration=1500000
			ethtool/tx_prio3_pause_duration=1 ethtool/rx_prio3_pause_transition=24 ethtool/tx_pause_storm_error_events=25
			ethtool/rx_discards_phy=26 ethtool/tx_discards_phy=27 ethtool/rx_prio3_discards=28
			ethtool/outbound_pci_stalled_rd_events=29 ethtool/outbound_pci_stalled_wr_events=30
			ethtool/fec_corrected_bits=31`,
			`carrier_symbol_errors=20 fec_corrected_bits=31 fec_corrected_blocks=18 fec_uncorrectable_blocks=19
			pause_frames_received=17 pause_frames_sent=16 pause_storms=25 pci_stalled_seconds:read=29
			pci_stalled_seconds:write=30 pfc_frames_received:0=22 pfc_frames_sent:3=21 pfc_paused_seconds:3=1.5
			pfc_pausing_seconds:3=0.000001 pfc_transitions:3=24 physical_receive_discards=26
			physical_transmit_discards=27 priority_discards:3=28`,
		},
		// Over netlink, they are global pause, or from a cache that is not refreshed.
		"ConnectX without PFC in its statistics": {
			"mlx5", "ethtool/pfc_requests_prio3=21 ethtool/pfc_indications_prio0=22 ethtool/rx_global_pause=23", "",
		},
		"storms of all priorities": {
			"mlx5", "ethtool/tx_pause_storm_error_events=0 ethtool/tx_pause_storm_events=3", "pause_storms=3",
		},
		"bnxt_re in Ethernet": {
			"bnxt_re", `ethtool/pfc_requests_prio3=21 ethtool/pfc_indications_prio0=22 ethtool/pfc_pri3_rx_duration_us=2000000
			ethtool/pfc_pri3_tx_duration_us=500000 ethtool/pfc_pri3_rx_transitions=9`,
			"pfc_frames_received:0=22 pfc_frames_sent:3=21 pfc_paused_seconds:3=2 pfc_pausing_seconds:3=0.5",
		},
		// As leptonai/gpud has them in the tree of an H100 host.
		"a ConnectX-7 with counters at their end": {
			"mlx5",
			`counters/excessive_buffer_overrun_errors=15 counters/link_downed=255 counters/port_rcv_data=205128687774249
			counters/port_rcv_errors=14 counters/port_rcv_packets=317548853677 counters/port_rcv_switch_relay_errors=2
			counters/port_xmit_data=230442669431839 counters/port_xmit_packets=315487941081
			counters/port_xmit_wait=4294967295 counters/unicast_rcv_packets=317548853677 counters/VL15_dropped=0
			hw_counters/lifespan=12 hw_counters/roce_adp_retrans=3 hw_counters/rx_write_requests=3809045607
			hw_counters/out_of_buffer=0`,
			`adaptive_retransmissions=3 out_of_buffer_packets=0 receive_bytes=820514751096996 receive_errors=14 receive_packets=317548853677
			transmit_bytes=921770677727356 transmit_packets=315487941081`,
		},
		"Soft-RoCE": {
			"rxe",
			`hw_counters/sent_pkts=1 hw_counters/rcvd_pkts=2 hw_counters/out_of_seq_request=3 hw_counters/rcvd_seq_err=4
			hw_counters/rcvd_rnr_err=5 hw_counters/send_rnr_err=6 hw_counters/duplicate_request=7 hw_counters/link_downed=8
			hw_counters/completer_retry_err=9 hw_counters/ack_deferred=10`,
			`duplicate_requests=7 link_downed=8 out_of_sequence_packets=3 receive_packets=2 rnr_naks_received=5
			rnr_naks_sent=6 sequence_naks_received=4 transmit_packets=1`,
		},
		"failures after retries for timeouts and for RNR NAKs": {
			"mlx5", "hw_counters/req_rnr_retries_exceeded=4294967295 hw_counters/req_transport_retries_exceeded=4",
			"retries_exceeded=4294967299",
		},
		"a VF of Thor, which does not count congestion": {
			"bnxt_re", "hw_counters/rx_pkts=0 hw_counters/tx_cnp_pkts=0 hw_counters/rx_cnp_pkts=0 hw_counters/rx_out_of_buffer=0",
			"receive_packets=0",
		},
		"a VF of Thor2, which does": {
			"bnxt_re", "hw_counters/tx_cnp_pkts=0 hw_counters/rx_cnp_pkts=1 hw_counters/rx_ecn_marked_pkts=2", "cnps_received=1 ecn_marked_packets=2",
		},
		"a function of Thor in a guest": {"bnxt_re", "hw_counters/rx_pkts=0 hw_counters/tx_cnp_pkts=0", "receive_packets=0"},
		"a PF of Thor":                  {"bnxt_re", "hw_counters/rx_out_of_buffer=0", "out_of_buffer_packets=0"},
		"flits of 8 bytes": {
			"hfi1", "counters/port_rcv_data=5 counters/port_xmit_data=6 counters/port_rcv_packets=7",
			"receive_bytes=40 receive_packets=7 transmit_bytes=48",
		},
		"words that wrap":      {"ocrdma", "counters/port_rcv_data=4294967295", "receive_bytes=17179869180"},
		"a sum":                {"irdma", "hw_counters/ip4InOctets=1 hw_counters/ip6InOctets=2", "receive_bytes=3"},
		"a sum without a term": {"irdma", "hw_counters/ip4InOctets=1", ""},
		"a sum with a term that fails": {
			"ionic", "hw_counters/rx_rdma_ucast_bytes=1 hw_counters/rx_rdma_mcast_bytes=18446744073709551615", "",
		},
		"a sum that is too large": {
			"irdma", "hw_counters/ip4InOctets=9223372036854775808 hw_counters/ip6InOctets=9223372036854775808", "",
		},
		"names of newer versions": {
			"irdma", "hw_counters/RetransSegs=1 hw_counters/tcpRetransSegs=2 hw_counters/RTO=3",
			"retransmit_timeouts=3 retransmitted_packets=1",
		},
	} {
		var all []state.Counter
		for word := range strings.FieldsSeq(c.counters) {
			all = append(all, counter(t, word))
		}
		if name == "names of newer versions" { // which have spaces
			all = append(all, counter(t, "hw_counters/RNR sent=4"), counter(t, "hw_counters/Rcvd Out of order packets=5"))
			c.want = "out_of_sequence_packets=5 " + c.want + " rnr_naks_sent=4"
		}
		var got []string
		role := map[string]string{"a VF": "vf", "a PF": "pf"}[name[:4]]
		for _, v := range values(c.table, role, "", all...) {
			metric := strings.TrimSuffix(strings.TrimPrefix(v.Metric, "rdma_port_"), "_total")
			if v.Label != "" {
				metric += ":" + v.Label
			}
			got = append(got, metric+"="+strconv.FormatFloat(v.Value, 'f', -1, 64))
		}
		slices.Sort(got)
		if want := strings.Fields(c.want); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestUplink verifies that the counters of the device are those of the uplink alone.
func TestUplink(t *testing.T) {
	ofVport, ofDevice := counter(t, "hw_counters/vport_out_of_buffer=0"), counter(t, "hw_counters/out_of_buffer=7")
	h := state.Hardware{Table: "mlx5", Counters: []state.Counter{ofDevice}}
	p := state.HardwarePort{Counters: []state.Counter{ofVport}}
	if got := counters.Values(&h, &p); len(got) != 0 {
		t.Errorf("a representor has %+v", got)
	}
	p.Uplink = true
	if got := counters.Values(&h, &p); len(got) != 1 || got[0].Value != 7 {
		t.Errorf("the uplink has %+v", got)
	}
}

// TestSaturated verifies that only full counters, by their width, feed no metric.
func TestSaturated(t *testing.T) {
	const (
		all32 = "=4294967295"
		all64 = "=18446744073709551615"
	)
	for _, c := range []struct {
		table, counter   string
		saturated, feeds bool
	}{
		{"mlx5", "counters/link_downed=255", true, false},
		{"mlx5", "counters/link_downed=254", false, true},
		{"mlx5", "counters/link_downed=256", false, true},
		{"mlx5", "counters/excessive_buffer_overrun_errors=15", true, false}, // of 4 bits
		{"mlx5", "counters/symbol_error=15", false, true},                    // of 16
		{"mlx5", "counters/port_xmit_wait" + all32, true, false},
		{"mlx5", "counters/port_rcv_data" + all64, true, false},
		{"", "counters/port_rcv_data" + all32, true, false},                  // an old one
		{"mlx5", "counters/port_rcv_data=4611686018427387904", false, false}, // more bytes than fit
		{"mlx5", "hw_counters/out_of_sequence" + all32, false, true},         // it wraps
		{"rxe", "hw_counters/sent_pkts" + all64, true, false},                // unreadable
		{"mlx5", "ethtool/tx_prio1_pause" + all64, true, false},
		{"bnxt_re", "hw_counters/new" + all32, false, false},
		{"bnxt_re", "hw_counters/new" + all64, true, false},
		{"bnxt_re", "hw_counters/db_fifo_register" + all64, false, false}, // a level
		{"bnxt_re", "hw_counters/link_downed=255", false, false},          // of another group
	} {
		saturated := counters.Saturated(c.table, counter(t, c.counter))
		feeds := len(values(c.table, "", "", counter(t, c.counter))) == 1
		if saturated != c.saturated || feeds != c.feeds {
			t.Errorf("%+v: saturated %v, feeds a metric: %v", c, saturated, feeds)
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
		{"mlx5", state.GroupHardware, "req_transport_retries_exceeded", 32},
		{"bnxt_re", state.GroupHardware, "rx_bytes", 48},
		{"ocrdma", state.GroupPort, "port_rcv_data", 32},
		{"bnxt_re", state.GroupPort, "port_rcv_errors", 16},
		{"mlx5", state.GroupEthtool, "pfc_requests_prio7", 64},
		{"mlx5", state.GroupEthtool, "rx_prio7_pause_duration", 64},
		{"mlx5", state.GroupEthtool, "link_down_events_phy", 32},
		{"mlx5", state.GroupEthtool, "outbound_pci_stalled_rd", 0},
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
	level := func(table, name string) bool { return counters.Level(table, state.GroupHardware, name) }
	if !level("bnxt_re", "active_qps") || level("bnxt_re", "rx_bytes") || level("", "active_qps") {
		t.Error("active_qps of bnxt_re is the only level of the three")
	}
}

func TestTableOf(t *testing.T) {
	for driver, want := range map[string]string{
		"mlx5": "mlx5", "mlx5_core": "mlx5", "rxe": "rxe", "bnxt_re": "bnxt_re", "bnxt_en": "bnxt_re",
		"": "", "siw": "", "e1000": "",
	} {
		if got := counters.TableOf(driver); got != want {
			t.Errorf("%q: got %q, want %q", driver, got, want)
		}
	}
}

// TestLinkLayers verifies that the link downs of a port have one source, by its link layer.
func TestLinkLayers(t *testing.T) {
	const all = "counters/link_downed=1 hw_counters/link_downed=2 ethtool/link_down_events=3 ethtool/link_down_events_phy=4"
	for _, c := range []struct{ table, layer, counters, want string }{
		{"mlx5", "Ethernet", all, "link_down_events=3"},
		{"mlx5", "Ethernet", "counters/link_downed=1 ethtool/link_down_events_phy=4", "link_down_events_phy=4"},
		{"mlx5", "Ethernet", "counters/link_downed=1", ""},
		{"mlx5", "InfiniBand", all, "link_downed=1"},
		{"mlx5", "InfiniBand", "ethtool/link_down_events=3 ethtool/link_down_events_phy=4", ""},
		{"bnxt_re", "Ethernet", all, "link_down_events=3"},
		{"", "Ethernet", all, "link_down_events=3"},
		{"", "InfiniBand", all, "link_downed=1"},
		{"", "", all, "link_downed=1"},
		{"rxe", "Ethernet", all, "link_downed=2"},
	} {
		var counted []state.Counter
		for word := range strings.FieldsSeq(c.counters) {
			counted = append(counted, counter(t, word))
		}
		got := ""
		for _, v := range values(c.table, "", c.layer, counted...) {
			if v.Metric == "rdma_port_link_downed_total" {
				got = fmt.Sprintf("%s=%.0f", v.Counter, v.Value)
			}
		}
		if got != c.want {
			t.Errorf("%s, %s, %s: got %q, want %q", c.table, c.layer, c.counters, got, c.want)
		}
	}
}

// TestOfNetdev verifies which statistics of a driver are read.
func TestOfNetdev(t *testing.T) {
	for _, c := range []struct {
		table, name string
		want        bool
	}{
		{"mlx5", "rx_prio0_pause", true},
		{"mlx5", "rx_prio7_pause_duration", true},
		{"mlx5", "rx_prio8_pause", false},
		{"mlx5", "rx_prio33_pause", false},
		{"mlx5", "rx_prio_pause", false},
		{"mlx5", "rx_prioN_pause", false},
		{"mlx5", "rx_global_pause", false},
		{"mlx5", "rx_discards_phy", true},
		{"mlx5", "rx0_packets", false},
		{"mlx5", "", false},
		{"bnxt_re", "pfc_pri3_rx_duration_us", true},
		{"bnxt_re", "rx_bytes", false},
	} {
		if got := counters.OfNetdev(c.table)(c.name); got != c.want {
			t.Errorf("%s, %q: got %v", c.table, c.name, got)
		}
	}
	for _, table := range []string{"", "irdma", "mlx4", "rxe", "nothing"} {
		if counters.OfNetdev(table) != nil {
			t.Errorf("the network devices of %q are asked", table)
		}
	}
}
