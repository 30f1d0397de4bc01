package probe_test

import (
	"fmt"
	"testing"

	"rdma_exporter/test/golden"
)

// TestInlineSends verifies that a message of the maximum inline data is sent if a port reaches
// itself. A size that cannot be sent is a failure, unless it is an erratum of the driver.
func TestInlineSends(t *testing.T) {
	const (
		portDown = "ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, gids: []}]"
		refused  = "faults: [{verb: ibv_post_send, when: {above: {max_inline_data: 96}}, errno: EINVAL}]"
	)
	rec := golden.Record(t)
	for _, tc := range []struct{ name, device string }{
		{"sent", "max_inline_data: 200"},
		{"refused", "max_inline_data: 200, " + refused},
		{"lost", "max_inline_data: 200, faults: [{verb: ibv_post_send, when: {above: {max_inline_data: 96}}, ignore: true}]"},
		{"never arrives", "max_inline_data: 200, faults: [{verb: ibv_post_recv, when: {qp_types: [UD]}, times: 3, ignore: true}]"},
		// The other two wait for four of the five deadlines, and for some milliseconds.
		{"lost when the time for it is used up", `max_inline_data: 200, default_latency: 0s, latency: {ibv_poll_cq: 1ms}, faults: [
			{verb: ibv_post_send, when: {qp_types: [RC], above: {max_inline_data: 96}}, times: 1, ignore: true},
			{verb: ibv_post_recv, when: {qp_types: [UC]}, times: 2, ignore: true},
			{verb: ibv_post_send, when: {qp_types: [UD], above: {max_inline_data: 96}}, times: 1, ignore: true}]`},
		{"known", "driver: vmw_pvrdma, max_inline_data: 200, " + refused},
		{"more than a datagram", "max_inline_data: 1100"},
		{"none", "max_inline_data: 0"},
		{"no address handle", "max_inline_data: 200, faults: [{verb: ibv_create_ah, errno: EINVAL}]"},
		{"no path", "max_inline_data: 200, " + portDown},
		{"a path that leads nowhere", "max_inline_data: 200, faults: [{verb: ibv_post_send, when: {qp_types: [RC], states: [RTS]}, ignore: true}]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := measure(t, "like: sim_rxe0, completion_vectors: 1, "+tc.device, impatient())
			lines := []string{"failures: " + failedSubjects(p)}
			for _, s := range p.InlineSends {
				lines = append(lines, fmt.Sprint(s.Type, " ", s.Bytes, " ", s.Result, ": ", s.Detail))
			}
			for _, k := range p.Known {
				lines = append(lines, "known: "+k.Subject.String()+", "+k.Contract)
			}
			rec.Add(tc.name, lines...)
		})
	}
}
