package probe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/state"
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
	t.Parallel()
	const small, many = "4KiB registered", "2MiB registered"
	fault := func(verb, when, errno string) string {
		return "like: sim_ib0, faults: [{verb: " + verb + ", when: {" + when + "}, errno: " + errno + "}]"
	}
	for _, tc := range []struct {
		name, device string
		by           state.RefusedBy
		want         string
		status       state.Status
		failed       string // subjects
		skipped      string // subjects
	}{
		{"everything", "like: sim_ib0, latency: {ibv_reg_mr: 3ms}", "", small + ", " + many, state.StatusOK, "", ""},
		{
			"the limit of the process", "like: sim_ib0, registration: {memlock_bytes: 65536}", state.RefusedByMemlock,
			small + ", 2MiB refused memlock ENOMEM", state.StatusOK, "", "2MiB",
		},
		{
			"a limit of nothing at all", fault("ibv_reg_mr", "", "EPERM"), state.RefusedByMemlock,
			"4KiB refused memlock EPERM, 2MiB refused memlock EPERM", state.StatusSkipped, "", "4KiB 2MiB",
		},
		{
			"the cgroup", fault("ibv_reg_mr", "", "EAGAIN"), state.RefusedByCgroup,
			"4KiB refused cgroup EAGAIN, 2MiB refused cgroup EAGAIN", state.StatusFailed, "4KiB, 2MiB", "",
		},
		{
			"the device, what is long", fault("ibv_reg_mr", "above: {length: 4096}", "ENOMEM"), state.RefusedByDevice,
			small + ", 2MiB refused device ENOMEM", state.StatusFailed, "2MiB", "",
		},
		{
			"nobody is asked", fault("ibv_reg_mr", "above: {length: 4096}", "EINVAL"), "",
			small + ", 2MiB refused device EINVAL", state.StatusFailed, "2MiB", "",
		},
		{
			"not even a domain", "like: sim_ib0, faults: [{verb: ibv_alloc_pd, errno: ENOMEM}]", "",
			"", state.StatusFailed, "pd", "",
		},
		{
			"what is left is not added to", "like: sim_ib0, faults: [{verb: ibv_dereg_mr, errno: EBUSY}]", "",
			small, state.StatusFailed, "4KiB", "",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := registered(t, tc.device, tc.by)
			var got, skipped []string
			for _, r := range p.Registrations {
				words := strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Memory, r.Result, r.By, r.Errno))
				got = append(got, words)
				if done := r.Result == state.MemoryRegistered; done != (r.Detail == "") || r.Bytes < 4096 || strings.Contains(tc.device, "3ms") && r.Duration != 3*time.Millisecond {
					t.Errorf("%+v", r)
				}
				if r.Result == state.MemoryRefused && tc.by != "" && !strings.HasPrefix(r.Detail, string(tc.by)+" refused ") {
					t.Errorf("%s: %s", r.Memory, r.Detail)
				}
			}
			for _, s := range p.Skips {
				skipped = append(skipped, s.Subject.String())
				if s.Reason != state.SkipNotPermitted {
					t.Errorf("%+v", s)
				}
			}
			if g := strings.Join(got, ", "); g != tc.want {
				t.Errorf("got %q\nwant %q", g, tc.want)
			}
			if p.Status != tc.status || failedSubjects(p) != tc.failed || strings.Join(skipped, " ") != tc.skipped {
				t.Errorf("%s, failed %q, skipped %q", p.Status, failedSubjects(p), skipped)
			}
		})
	}
}
