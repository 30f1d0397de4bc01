package collector_test

import (
	"fmt"
	"testing"

	"rdma_exporter/internal/state"
)

// Each state of a port has its number, the first too, and a state that there is not has none.
func TestPortStates(t *testing.T) {
	t.Parallel()
	r := measured()
	want := make(map[string]string)
	for i, s := range append(state.PortStates(), "sideways") {
		r.Info.Ports = append(r.Info.Ports, state.Port{Number: i + 1, State: s})
		want[fmt.Sprintf(`rdma_port_state_id{device="rxe0",port="%d"}`, i+1)] = fmt.Sprint(i)
	}
	want[fmt.Sprintf(`rdma_port_state_id{device="rxe0",port="%d"}`, len(r.Info.Ports))] = ""
	compare(t, values(t, sceneOf("simulated", stateOf(r), r).collector()), want)
}

// TestPortStateOfKernel verifies that a port which the last run could not query has the state in sysfs.
func TestPortStateOfKernel(t *testing.T) {
	t.Parallel()
	r := measured()
	r.Info.Ports = []state.Port{{Number: 1, State: "active"}}
	s := stateOf(r)
	s.Hardware = &state.HardwareState{Latest: &state.Hardware{}}
	for i, phys := range append(state.PhysicalStates(), "sideways") {
		s.Hardware.Latest.Ports = append(s.Hardware.Latest.Ports, state.HardwarePort{Number: i + 1, State: "down", PhysState: phys})
	}
	compare(t, values(t, sceneOf("libibverbs", s, r).collector()), map[string]string{
		`rdma_port_state_id{device="rxe0",port="1"}`:          "4",
		`rdma_port_state_id{device="rxe0",port="2"}`:          "1",
		`rdma_port_physical_state_id{device="rxe0",port="1"}`: "",
		`rdma_port_physical_state_id{device="rxe0",port="2"}`: "1",
		`rdma_port_physical_state_id{device="rxe0",port="8"}`: "7",
		`rdma_port_physical_state_id{device="rxe0",port="9"}`: "",
	})
	unopened := *r
	unopened.Info = nil
	s.Last = &unopened
	compare(t, values(t, sceneOf("libibverbs", s, &unopened).collector()), map[string]string{
		`rdma_port_state_id{device="rxe0",port="1"}`: "1",
	})
	s.Hardware.Failures = 1 // It may be otherwise by now.
	compare(t, values(t, sceneOf("libibverbs", s, &unopened).collector()), map[string]string{
		`rdma_port_state_id{device="rxe0",port="1"}`: "",
	})
}
