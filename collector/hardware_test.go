package collector_test

import (
	"fmt"
	"strings"
	"testing"

	"rdma_exporter/collector"
	"rdma_exporter/internal/state"
)

// readings exposes what was read of one device, one state after the other.
func readings(t *testing.T, o collector.Options) func(h *state.HardwareState) map[string]string {
	t.Helper()
	var snapshot *state.Snapshot
	o.Host, o.Collectors = judged(func() *state.Snapshot { return snapshot }, nil), collector.Everything()
	c := collector.New(o)
	return func(h *state.HardwareState) map[string]string {
		snapshot = &state.Snapshot{Devices: []state.DeviceState{{Name: "mlx5_0", Present: true, Hardware: h}}}
		return values(t, c)
	}
}

// counted is a device whose counters have these values.
func counted(values map[string]uint64) *state.HardwareState {
	h := hardwareOf("mlx5_0", 0)
	of := h.Latest.Ports[0].Counters
	for i := range of {
		if v, ok := values[of[i].Name]; ok {
			of[i].Value = v
		}
	}
	return h
}

// A counter that is saturated has no value until it is reset, and that it was is told on.
func TestSaturated(t *testing.T) {
	t.Parallel()
	read := readings(t, collector.Options{})
	const (
		value     = `rdma_port_symbol_errors_total{device="mlx5_0",port="1"}`
		raw       = `rdma_port_counter_total{counter="symbol_error",device="mlx5_0",port="1"}`
		saturated = `rdma_port_counter_saturated{counter="symbol_error",device="mlx5_0",port="1"}`
	)
	for _, step := range []struct {
		count uint64
		want  [3]string
	}{
		{65534, [3]string{"65534", "65534", ""}},
		{65535, [3]string{"", "", "1"}},
		{7, [3]string{"7", "7", "0"}},
		{1<<64 - 1, [3]string{"", "", "1"}},
	} {
		compare(t, read(counted(map[string]uint64{"symbol_error": step.count})), map[string]string{value: step.want[0], raw: step.want[1], saturated: step.want[2]})
	}
}

// What never happens on a link that is well is there once it happened.
func TestRare(t *testing.T) {
	t.Parallel()
	read := readings(t, collector.Options{})
	const rare, priority = `rdma_port_link_error_recoveries_total{device="mlx5_0",port="1"}`, `rdma_port_pfc_frames_received_total{device="mlx5_0",port="1",priority="3"}`
	for _, step := range []struct {
		count uint64
		want  string
	}{{0, ""}, {2, "2"}, {0, "0"}} {
		compare(t, read(counted(map[string]uint64{"link_error_recovery": step.count, "pfc_indications_prio3": step.count})), map[string]string{rare: step.want, priority: step.want})
	}
}

// What could not be read the last time is not told as if it stood still; of what was read
// then, half is told, and changes of links are, by whom they are seen.
func TestUnread(t *testing.T) {
	t.Parallel()
	read := readings(t, collector.Options{})
	const (
		bytes   = `rdma_port_receive_bytes_total{device="mlx5_0",port="1"}`
		rate    = `rdma_port_rate_bits_per_second{device="mlx5_0",port="1"}`
		changes = `rdma_port_state_changes_total{device="mlx5_0",port="1",to="down"}`
		success = `rdma_hardware_success{device="mlx5_0"}`
	)
	h := hardwareOf("mlx5_0", 0)
	h.Failures, h.Failure = 1, "x"
	compare(t, read(h), map[string]string{bytes: "", rate: "", changes: "2", success: "0"})
	half := hardwareOf("mlx5_0", 0)
	half.Failures, half.Latest.Failure = 2, "x"
	compare(t, read(half), map[string]string{bytes: "4.398046511104e+12", rate: "4e+11", changes: "2", success: "0"})
	compare(t, read(hardwareOf("mlx5_0", 0)), map[string]string{bytes: "4.398046511104e+12", success: "1"})
}

// Drivers cannot fill the server with counters.
func TestRawCounters(t *testing.T) {
	t.Parallel()
	h := hardwareOf("mlx5_0", 0)
	for n := range 600 {
		h.Latest.Ports[0].Counters = append(h.Latest.Ports[0].Counters, state.Counter{Group: state.GroupHardware, Name: fmt.Sprint("x", n), Value: 1})
	}
	h.Latest.Counters = []state.Counter{{Group: state.GroupHardware, Name: "of_the_device", Value: 7}}
	count := func(got map[string]string) int {
		n := 0
		for series := range got {
			if strings.HasPrefix(series, "rdma_port_hw_counter_total{") || strings.HasPrefix(series, "rdma_port_counter_total{") {
				n++
			}
		}
		return n
	}
	all := len(h.Latest.Ports[0].Counters)
	got := readings(t, collector.Options{})(h)
	if n := count(got); n != 512+1 {
		t.Errorf("%d counters are told", n)
	}
	compare(t, got, map[string]string{
		`rdma_exporter_dropped_series{device="mlx5_0"}`:                                       fmt.Sprint(all - 512),
		`rdma_port_hw_counter_total{counter="of_the_device",device="mlx5_0",port=""}`:         "7",
		`rdma_port_counter_total{counter="port_rcv_packets",device="mlx5_0",port="1"}`:        "1.099511627779e+12",
		`rdma_port_hw_counter_total{counter="np_cnp_sent",device="mlx5_0",port="1"}`:          "1006",
		`rdma_port_counter_decreases_total{counter="x",device="mlx5_0",how="reset",port="1"}`: "",
	})
}

// A virtual function tells which physical one it is of, and a port of a bond which bond.
func TestVirtualFunction(t *testing.T) {
	t.Parallel()
	h := hardwareOf("mlx5_0", 0)
	h.Latest.Driver = "mlx5_core"
	h.Latest.Identity = state.Adapter{
		PCI: "0000:3b:00.2", Slot: "4", NUMANode: 1, DriverVersion: "6.12", BoardID: "MT_1", Role: "vf", Parent: "0000:3b:00.0", NetnsMode: "exclusive",
	}
	p := &h.Latest.Ports[0]
	p.LinkLayer, p.Netdev, p.Bond, p.GIDs = "Ethernet", "eth2", "bond0", []state.GID{{Index: 0, GID: "fe80::1"}}
	compare(t, readings(t, collector.Options{})(h), map[string]string{
		`rdma_adapter_info{board_id="MT_1",device="mlx5_0",driver="mlx5_core",driver_version="6.12",netns_mode="exclusive",numa_node="1",pci_address="0000:3b:00.2",slot="4",sriov_parent="0000:3b:00.0",sriov_role="vf"}`: "1",
		`rdma_port_info{bond="bond0",device="mlx5_0",gid="fe80::1",link_layer="Ethernet",netdev="eth2",port="1"}`:                                                                                                          "1",
	})
}

// What goes up and down is no counter.
func TestLevels(t *testing.T) {
	t.Parallel()
	h := hardwareOf("bnxt_re0", 0)
	h.Latest.Table = "bnxt_re"
	h.Latest.Ports[0].Counters = []state.Counter{{Group: state.GroupHardware, Name: "active_qps", Value: 3}, {Group: state.GroupHardware, Name: "rx_pkts", Value: 4}}
	compare(t, readings(t, collector.Options{})(h), map[string]string{
		`rdma_port_hw_counter_total{counter="active_qps",device="mlx5_0",port="1"}`: "",
		`rdma_port_hw_counter_total{counter="rx_pkts",device="mlx5_0",port="1"}`:    "4",
	})
}

// With none of what needs the hardware nothing is said of it.
func TestNoHardware(t *testing.T) {
	t.Parallel()
	s := hardware()
	s.on = collector.Everything()
	for _, name := range []string{collector.Counters, collector.RawCounters, collector.Links, collector.Adapter, collector.Interrupts, collector.GIDs} {
		if !s.on.Hardware() {
			t.Errorf("nothing needs the hardware, with %s on", name)
		}
		s.on[name] = false
	}
	if s.on.Hardware() {
		t.Error("the hardware is needed")
	}
	for series := range values(t, s.collector()) {
		for _, prefix := range []string{"rdma_hardware", "rdma_port_", "rdma_adapter_", "rdma_vector_"} {
			if strings.HasPrefix(series, prefix) {
				t.Errorf("there is %s", series)
			}
		}
	}
}
