package supervisor

import (
	"slices"
	"strings"

	"rdma_exporter/internal/report"
)

// Snapshot returns what is known of the devices now. It is never nil, takes no
// lock, and may be called at any time by any goroutine, also before and after
// Run. The snapshot is shared: nobody changes it, the caller included.
func (s *Supervisor) Snapshot() *report.Snapshot { return s.snapshot.Load() }

// assess sums up what is known of a device.
func (s *Supervisor) assess(state *report.DeviceState) {
	if s.cfg.Assess != nil {
		state.Assessment = s.cfg.Assess(state)
	}
}

// publish makes what is known now the snapshot. It is called with mu held.
func (s *Supervisor) publish() {
	snap := &report.Snapshot{
		Provider:       s.cfg.Provider,
		Ready:          s.discovered && len(s.awaited) == 0,
		Devices:        make([]report.DeviceState, 0, len(s.workers)),
		DiscoveryError: s.discoveryError,
	}
	for _, w := range s.workers {
		// A stuck child holds its device in the kernel, so it matters even if the
		// device has vanished.
		if w.state.Present || w.state.Stuck != nil || w.kept {
			snap.Devices = append(snap.Devices, w.state)
		}
	}
	for name, left := range s.leftovers {
		if _, ok := s.workers[name]; ok {
			continue // whose auditor shows it
		}
		state := report.DeviceState{Name: name, Resources: &report.Resources{Stuck: left.stuck}}
		s.assess(&state)
		snap.Devices = append(snap.Devices, state)
	}
	slices.SortFunc(snap.Devices, func(a, b report.DeviceState) int { return strings.Compare(a.Name, b.Name) })
	s.snapshot.Store(snap)
}
