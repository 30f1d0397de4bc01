package probe_test

import (
	"fmt"
	"testing"

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
	"rdma_exporter/verbs"
)

// registered returns the probe of memory regions. By is what refuses memory.
func registered(t *testing.T, keys string, by state.RefusedBy) state.Probe {
	t.Helper()
	o := probe.Options{Config: quick()}
	o.Config.Notification.Samples, o.Config.NoMemory = 0, true
	if by != "" {
		o.RefusedMemory = func(err *verbs.Error, size int) (state.RefusedBy, string) {
			return by, fmt.Sprintf("%s refused %d bytes: %s", by, size, verbs.ErrnoName(err.Errno))
		}
	}
	return named(t, still(t, parse(t, keys), o), "mr")
}

// TestRegistrations verifies that a refusal of memory fails the probe, unless the limit of
// the process is the cause, and that the duration is that of ibv_reg_mr.
func TestRegistrations(t *testing.T) {
	rec := golden.Record(t)
	fault := func(verb, when, errno string) string {
		return "like: sim_ib0, faults: [{verb: " + verb + ", when: {" + when + "}, errno: " + errno + "}]"
	}
	const long = "above: {length: 4096}"
	for _, tc := range []struct {
		name, device string
		by           state.RefusedBy // Empty if that is not asked for.
	}{
		{"everything", "like: sim_ib0, latency: {ibv_reg_mr: 3ms}", ""},
		{"the limit of the process", "like: sim_ib0, registration: {memlock_bytes: 65536}", state.RefusedByMemlock},
		{"a limit of nothing at all", fault("ibv_reg_mr", "", "EPERM"), state.RefusedByMemlock},
		{"the cgroup", fault("ibv_reg_mr", "", "EAGAIN"), state.RefusedByCgroup},
		{"the device, what is long", fault("ibv_reg_mr", long, "ENOMEM"), state.RefusedByDevice},
		{"unknown cause", fault("ibv_reg_mr", long, "EINVAL"), ""},
		{"not even a domain", fault("ibv_alloc_pd", "", "ENOMEM"), ""},
		{"what is left is not added to", fault("ibv_dereg_mr", "", "EBUSY"), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := registered(t, tc.device, tc.by)
			lines := []string{string(p.Status), "failures: " + failedSubjects(p), "skipped: " + skips(p.Skips)}
			for _, r := range p.Registrations {
				lines = append(lines, fmt.Sprintf("%s: %s %s %s, %d bytes in %v: %s", r.Memory, r.Result, r.By, r.Errno, r.Bytes, r.Duration, r.Detail))
			}
			rec.Add(tc.name, lines...)
		})
	}
}
