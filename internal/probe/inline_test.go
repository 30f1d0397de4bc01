package probe_test

import (
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/internal/state"
)

// TestInlineSends verifies that a message of the maximum inline data is sent if a port reaches
// itself. A size that cannot be sent is a failure, unless it is an erratum of the driver.
func TestInlineSends(t *testing.T) {
	t.Parallel()
	const (
		portDown = "ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, gids: []}]"
		refused  = "faults: [{verb: ibv_post_send, when: {above: {max_inline_data: 96}}, errno: EINVAL}]"
		all      = "rc 200 sent, uc 200 sent, ud 200 sent"
		failed   = "rc 200 failed, uc 200 failed, ud 200 failed"
		untried  = "rc 200 untried, uc 200 untried, ud 200 untried"
	)
	for _, tc := range []struct {
		name, device, want string
		detail             string // of the first or the last that is not sent
		failures, known    string // their subjects
	}{
		{name: "sent", device: "max_inline_data: 200", want: all},
		{
			name: "refused", device: "max_inline_data: 200, " + refused, want: failed, detail: "ibv_post_send on dev: EINVAL",
			failures: "rc inline, uc inline, ud inline",
		},
		{
			name: "lost", device: "max_inline_data: 200, faults: [{verb: ibv_post_send, when: {above: {max_inline_data: 96}}, ignore: true}]", want: failed,
			detail: "did not complete within", failures: "rc inline, uc inline, ud inline",
		},
		{name: "never arrives", device: "max_inline_data: 200, faults: [{verb: ibv_post_recv, when: {qp_types: [UD]}, times: 3, ignore: true}]", want: "rc 200 sent, uc 200 sent, ud 200 failed", detail: "3 times, and it never arrived", failures: "ud inline"},
		{
			// The other two wait for four of the five deadlines, and for some milliseconds.
			name: "lost when the time for it is used up", device: `max_inline_data: 200, default_latency: 0s, latency: {ibv_poll_cq: 1ms}, faults: [
				{verb: ibv_post_send, when: {qp_types: [RC], above: {max_inline_data: 96}}, times: 1, ignore: true},
				{verb: ibv_post_recv, when: {qp_types: [UC]}, times: 2, ignore: true},
				{verb: ibv_post_send, when: {qp_types: [UD], above: {max_inline_data: 96}}, times: 1, ignore: true}]`,
			want: "rc 200 failed, uc 200 sent, ud 200 untried", detail: "the time for it was used up", failures: "rc inline",
		},
		{name: "known", device: "driver: vmw_pvrdma, max_inline_data: 200, " + refused, want: failed, detail: "EINVAL", known: "rc inline, uc inline, ud inline"},
		{
			name: "more than a datagram", device: "max_inline_data: 1100", want: "rc 1100 sent, uc 1100 sent, ud 1100 untried",
			detail: "a datagram of port 1 has no more than 1024 bytes",
		},
		{name: "none", device: "max_inline_data: 0", want: "rc 0 untried, uc 0 untried, ud 0 untried", detail: "there is none"},
		{name: "nor any other way", device: "max_inline_data: 200, faults: [{verb: ibv_create_ah, errno: EINVAL}]", want: "rc 200 sent, uc 200 sent, ud 200 untried", detail: "in any way: ibv_create_ah"},
		{name: "no path", device: "max_inline_data: 200, " + portDown, want: untried, detail: "no port was seen to reach itself"},
		{
			name: "a path that leads nowhere", device: "max_inline_data: 200, faults: [{verb: ibv_post_send, when: {qp_types: [RC], states: [RTS]}, ignore: true}]",
			want: untried, detail: "no port was seen to reach itself", failures: "loopback any vector 0, loopback solicited vector 0, loopback poll vector 0",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := measure(t, "like: sim_rxe0, completion_vectors: 1, "+tc.device, impatient())
			var got []string
			detail := ""
			for _, s := range p.InlineSends {
				got = append(got, strings.Join([]string{s.Type, strconv.FormatInt(s.Bytes, 10), string(s.Result)}, " "))
				if s.Result == state.InlineSent != (s.Detail == "") {
					t.Errorf("%+v", s)
				}
				detail += s.Detail
			}
			for _, k := range p.Known {
				if k.Contract != "qp_at_least_requested" {
					t.Errorf("%+v", k)
				}
			}
			if strings.Join(got, ", ") != tc.want || !strings.Contains(detail, tc.detail) {
				t.Errorf("%s (%s), want %s (%s)", got, detail, tc.want, tc.detail)
			}
			if failedSubjects(p) != tc.failures || knownSubjects(p) != tc.known {
				t.Errorf("failures %+v, known %+v", p.Failures, p.Known)
			}
		})
	}
}
