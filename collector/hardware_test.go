package collector_test

import (
	"fmt"
	"testing"

	"rdma_exporter/collector"
	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/state"
)

// readings returns a function that exposes one state of a device after the other.
func readings(t *testing.T) func(h *state.HardwareState) map[string]string {
	t.Helper()
	snapshot := &state.Snapshot{Devices: []state.DeviceState{{Name: "mlx5_0", Present: true}}}
	c := collectorOf(snapshot)
	return func(h *state.HardwareState) map[string]string {
		snapshot.Devices[0].Hardware = h
		return values(t, c)
	}
}

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

// TestSaturated verifies that a saturated counter has no value until it is reset.
func TestSaturated(t *testing.T) {
	t.Parallel()
	read := readings(t)
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

// TestRare verifies that a rare error has a series once it occurred.
func TestRare(t *testing.T) {
	t.Parallel()
	read := readings(t)
	const rare, priority = `rdma_port_link_error_recoveries_total{device="mlx5_0",port="1"}`, `rdma_port_pfc_frames_received_total{device="mlx5_0",port="1",priority="3"}`
	for _, step := range []struct {
		count uint64
		want  string
	}{{0, ""}, {2, "2"}, {0, "0"}} {
		compare(t, read(counted(map[string]uint64{"link_error_recovery": step.count, "rx_prio3_pause": step.count})), map[string]string{rare: step.want, priority: step.want})
	}
}

// TestUnreadable verifies that counters that could not be read are absent, instead of standing
// still. Changes of links come from another source.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	read := readings(t)
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

// TestRawCounters verifies that the counters of a port are bounded.
func TestRawCounters(t *testing.T) {
	t.Parallel()
	h := hardwareOf("mlx5_0", 0)
	for n := range 600 {
		h.Latest.Ports[0].Counters = append(h.Latest.Ports[0].Counters, state.Counter{Group: state.GroupHardware, Name: fmt.Sprint("x", n), Value: 1})
	}
	h.Latest.Counters = []state.Counter{{Group: state.GroupHardware, Name: "of_the_device", Value: 7}}
	all := 0
	for _, c := range h.Latest.Ports[0].Counters {
		if !counters.Level(h.Latest.Table, c.Group, c.Name) {
			all++
		}
	}
	got := readings(t)(h)
	if n := len(with("rdma_port_hw_counter_total", got)) + len(with("rdma_port_counter_total", got)); n != 512+1 {
		t.Errorf("%d counters are told", n)
	}
	compare(t, got, map[string]string{
		`rdma_exporter_dropped_series{device="mlx5_0"}`:                                       fmt.Sprint(all - 512),
		`rdma_port_hw_counter_total{counter="of_the_device",device="mlx5_0",port=""}`:         "7",
		`rdma_port_counter_total{counter="port_rcv_packets",device="mlx5_0",port="1"}`:        "1.099511627779e+12",
		`rdma_port_hw_counter_total{counter="np_cnp_sent",device="mlx5_0",port="1"}`:          "1003",
		`rdma_port_counter_decreases_total{counter="x",device="mlx5_0",how="reset",port="1"}`: "",
	})
}

// TestLevels verifies that a value that can go down is not exposed as a counter.
func TestLevels(t *testing.T) {
	t.Parallel()
	h := hardwareOf("bnxt_re0", 0)
	h.Latest.Table = "bnxt_re"
	h.Latest.Ports[0].Counters = []state.Counter{{Group: state.GroupHardware, Name: "active_qps", Value: 3}, {Group: state.GroupHardware, Name: "rx_pkts", Value: 4}}
	compare(t, readings(t)(h), map[string]string{
		`rdma_port_hw_counter_total{counter="active_qps",device="mlx5_0",port="1"}`: "",
		`rdma_port_hw_counter_total{counter="rx_pkts",device="mlx5_0",port="1"}`:    "4",
	})
}

// TestNoHardware verifies that no reading is needed or shown if all its collectors are off.
func TestNoHardware(t *testing.T) {
	t.Parallel()
	s := hardware()
	s.on = collector.Everything()
	for _, name := range []string{collector.Counters, collector.RawCounters, collector.Links, collector.Adapter, collector.Interrupts, collector.GIDs} {
		if !s.on.Hardware() {
			t.Errorf("%s needs no reading", name)
		}
		s.on[name] = false
	}
	if shown := with("rdma_hardware", values(t, s.collector())); s.on.Hardware() || len(shown) > 0 {
		t.Errorf("all are off: a reading is needed %t, and shows %s", s.on.Hardware(), shown)
	}
}
