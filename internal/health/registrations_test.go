package health_test

import (
	"testing"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// What was refused to be registered is found by what refused it, with what helps there; what no program needs is not.
func TestRegistrations(t *testing.T) {
	const kind = health.FindingProbeFailed
	refused := func(memory state.RegisteredMemory, by state.RefusedBy, errno string) state.Registration {
		return state.Registration{Memory: memory, Bytes: 4096, Result: state.MemoryRefused, By: by, Errno: errno, Detail: "ibv_reg_mr on rxe0: " + errno}
	}
	of := func(list ...state.Registration) *state.DeviceState {
		p := state.Probe{Name: "mr", Registrations: list}
		for _, r := range list {
			if r.Result == state.MemoryRefused && r.By != state.RefusedByMemlock {
				p.Status = state.StatusFailed
				p.Failures = append(p.Failures, state.Failure{Subject: state.Subject{Object: string(r.Memory)}, Verb: "ibv_reg_mr", Errno: r.Errno, Message: r.Detail})
			}
		}
		return probed(p)
	}
	good := state.Registration{Memory: state.MemoryPage, Bytes: 4096, Result: state.MemoryRegistered, Duration: 1}
	well := of()
	well.Last.Outcome, well.Last.Probes[0].Failures, well.Last.Probes[0].Registrations = state.OutcomeOK, nil, []state.Registration{
		good,
	}
	check(t, well, health.Default(), kind)
	for _, tc := range []struct {
		by       state.RefusedBy
		severity health.Severity
		action   string
	}{
		{state.RefusedByMemlock, health.SeverityWarning, "LimitMEMLOCK=infinity"},
		{state.RefusedByCgroup, health.SeverityCritical, "rdma.max"},
		{state.RefusedByHost, health.SeverityCritical, "`free`"},
		{state.RefusedByDevice, health.SeverityCritical, "`rdma resource show rxe0`"},
		{"the weather", health.SeverityCritical, "`rdma resource show rxe0`"},
	} {
		s := of(good, refused(state.MemoryMany, tc.by, "ENOMEM"))
		message := "Memory could not be registered (2MiB): ibv_reg_mr on rxe0: ENOMEM."
		if tc.by == state.RefusedByMemlock {
			s.Last.Outcome = state.OutcomeOK
			check(t, s, health.Default(), kind)
			s.Last.Probes[0].Registrations[0] = refused(state.MemoryPage, tc.by, "ENOMEM")
			message = "Memory could not be registered (4KiB, 2MiB): ibv_reg_mr on rxe0: ENOMEM."
		}
		check(t, s, health.Default(), kind, want{tc.severity, "memory", []string{message}, []string{tc.action}})
		alone(t, s, kind)
	}
	// Another failure of the probe has its own finding.
	s := of(refused(state.MemoryMany, state.RefusedByDevice, "EINVAL"))
	s.Last.Probes[0].Failures = append(s.Last.Probes[0].Failures, state.Failure{Subject: state.Subject{Object: "pd"}, Verb: "ibv_alloc_pd", Errno: "EIO", Message: "no"})
	check(
		t, s, health.Default(), kind,
		want{health.SeverityCritical, "mr", []string{"ibv_alloc_pd"}, nil}, want{health.SeverityCritical, "memory", nil, nil},
	)
}
