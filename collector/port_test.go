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
