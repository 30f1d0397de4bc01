package api_test

import (
	"testing"

	"rdma_exporter/internal/api"
)

// TestWords: what people read of hardware, and what tells of trouble.
func TestWords(t *testing.T) {
	for metric, want := range map[string]struct {
		words string
		wrong bool
	}{
		"rdma_port_receive_bytes_total":            {"receive bytes", false},
		"rdma_port_transmit_packets_total":         {"transmit packets", false},
		"rdma_port_retransmitted_packets_total":    {"retransmitted packets", true},
		"rdma_port_cnps_sent_total":                {"cnps sent", false},
		"rdma_port_ecn_marked_packets_total":       {"ecn marked packets", false},
		"rdma_port_fec_corrected_blocks_total":     {"fec corrected blocks", false},
		"rdma_port_fec_uncorrectable_blocks_total": {"fec uncorrectable blocks", true},
		"rdma_port_receive_errors_total":           {"receive errors", true},
		"rdma_port_out_of_buffer_packets_total":    {"out of buffer packets", true},
	} {
		c := api.Counter{Metric: metric}
		if c.Words() != want.words || c.Wrong() != want.wrong {
			t.Errorf("%s: %q, wrong: %t", metric, c.Words(), c.Wrong())
		}
	}
	if got := (&api.Counter{Metric: "rdma_port_pfc_frames_received_total", Priority: "3"}).Words(); got != "pfc frames received of priority 3" {
		t.Errorf("%q", got)
	}
	for want, l := range map[string]api.PCILink{
		"32 GT/s × 16": {Speed: 32e9, MaxSpeed: 32e9, Width: 16, MaxWidth: 16}, "2.5 GT/s × 1": {Speed: 2.5e9, Width: 1}, "not known": {MaxSpeed: 32e9, MaxWidth: 16},
	} {
		if l.Words() != want || l.Below() {
			t.Errorf("%+v: %q, below: %t", l, l.Words(), l.Below())
		}
	}
	for _, l := range []api.PCILink{{Speed: 16e9, MaxSpeed: 32e9, Width: 16, MaxWidth: 16}, {Speed: 32e9, MaxSpeed: 32e9, Width: 8, MaxWidth: 16}} {
		if !l.Below() {
			t.Errorf("%+v is not below", l)
		}
	}
	for want, a := range map[string]api.Adapter{
		"": {}, "physical (pf)": {Role: "pf"}, "virtual (vf) of 0000:3b:00.0": {Role: "vf", Parent: "0000:3b:00.0"}, "physical (pf) with 2 virtual functions": {Role: "pf", VFs: 2}, "x": {Role: "x"},
	} {
		if got := a.Function(); got != want {
			t.Errorf("%+v: %q, want %q", a, got, want)
		}
	}
	slow := api.HardwarePort{State: "active", Rate: 100e9, MaxRate: 400e9, Width: 1, LinkLayer: "Ethernet", GIDs: 1, GIDChanges: 1}
	if got := slow.Moves(); !slow.Slow() || got != "100 Gb/s of 400 Gb/s, 1 lane" {
		t.Errorf("%q", got)
	}
	if got := slow.Addresses(); got != "1, no RoCE v2 over IPv4, changed 1 time" {
		t.Errorf("%q", got)
	}
	slow.Link = new(api.Link) // It has gone down since.
	if slow.Now() != "down" || slow.Slow() {
		t.Errorf("%q, slow: %t", slow.Now(), slow.Slow())
	}
}
