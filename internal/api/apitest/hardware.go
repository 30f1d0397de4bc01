package apitest

import (
	"fmt"
	"time"

	"rdma_exporter/internal/state"
)

// hardware returns what the kernel tells of a healthy adapter of one port and so many
// vectors.
func hardware(name string, vectors int) *state.HardwareState {
	active := Now().Add(-26 * time.Hour)
	link := &state.PCILink{Address: "0000:3b:00.0", Speed: 32e9, MaxSpeed: 32e9, Width: 16, MaxWidth: 16}
	port := state.HardwarePort{
		Number: 1, LinkLayer: "Ethernet", State: "active", PhysState: "link_up",
		Rate: 400e9, MaxRate: 400e9, Width: 4, Speed: 100e9,
		Netdev: "eth2", Ifindex: 4, MTU: 9000, CarrierChanges: new(uint64(3)),
		GIDs: []state.GID{
			{Index: 0, GID: "fe80:0000:0000:0000:0e42:a1ff:fe65:bafe", Type: "roce_v1", Family: "ipv6", Netdev: "eth2"},
			{Index: 1, GID: "fe80:0000:0000:0000:0e42:a1ff:fe65:bafe", Type: "roce_v2", Family: "ipv6", Netdev: "eth2"},
			{Index: 2, GID: "0000:0000:0000:0000:0000:ffff:0a01:0203", Type: "roce_v1", Family: "ipv4", Netdev: "eth2"},
			{Index: 3, GID: "0000:0000:0000:0000:0000:ffff:0a01:0203", Type: "roce_v2", Family: "ipv4", Netdev: "eth2"},
		},
		RoCEv2IPv4: new(3), TemperatureCelsius: new(46.25),
		Counters: []state.Counter{
			{Group: state.GroupPort, Name: "port_rcv_data", Value: 1 << 40},
			{Group: state.GroupPort, Name: "port_xmit_data", Value: 1 << 41},
			{Group: state.GroupPort, Name: "port_rcv_packets", Value: 1 << 30},
			{Group: state.GroupPort, Name: "port_xmit_packets", Value: 1 << 31},
			{Group: state.GroupPort, Name: "port_xmit_discards", Value: 0},
			{Group: state.GroupEthtool, Name: "link_down_events", Value: 1},
			{Group: state.GroupPort, Name: "symbol_error", Value: 12},
			{Group: state.GroupHardware, Name: "np_cnp_sent", Value: 4711},
			{Group: state.GroupHardware, Name: "rp_cnp_handled", Value: 815},
			{Group: state.GroupHardware, Name: "out_of_sequence", Value: 12},
			{Group: state.GroupHardware, Name: "local_ack_timeout_err", Value: 2},
		},
	}
	h := &state.Hardware{
		Device: name, Driver: "mlx5_core", Table: "mlx5",
		Identity: state.Adapter{
			PCI: link.Address, Slot: "4", NUMANode: 0, BoardID: "MT_0000000838", Model: "MT4129", DriverVersion: "6.12.9",
			Role: "pf", VFs: 2, NetnsMode: "shared", Link: link, AER: &state.AER{Correctable: 1},
		},
		Ports: []state.HardwarePort{port},
	}
	for n := range vectors {
		h.Interrupts = append(h.Interrupts, state.Interrupt{
			Vector: n, IRQ: 120 + n, Name: fmt.Sprintf("mlx5_comp%d@pci:%s", n, link.Address), CPUs: fmt.Sprint(n), Effective: fmt.Sprint(n), Count: uint64(1000 * (n + 1)),
		})
	}
	return &state.HardwareState{
		Latest: h, Read: Now().Add(-4 * time.Second),
		Drops: []state.CounterDrop{{Port: 1, Group: state.GroupHardware, Name: "out_of_sequence", Resets: 1}},
		Links: []state.Link{{Port: 1, Active: true, Since: active, Ups: 1, Downs: 1, Recent: []time.Time{active.Add(-9 * time.Second)}, GIDChanges: 2}},
	}
}
