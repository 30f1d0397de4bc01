package supervisor

import (
	"slices"
	"strings"

	"rdma_exporter/internal/state"
)

// Snapshot returns what is known of the devices now. It is never nil, takes no
// lock, and may be called at any time by any goroutine, also before and after
// Run. The snapshot is shared: nobody changes it, the caller included.
func (s *Supervisor) Snapshot() *state.Snapshot { return s.snapshot.Load() }

// publish makes what is known now the snapshot, unless there is a last one. It is called
// with mu held.
func (s *Supervisor) publish() {
	if s.closed {
		return
	}
	snap := &state.Snapshot{
		Provider:       s.cfg.Provider,
		Ready:          s.discovered && len(s.awaited) == 0,
		Devices:        make([]state.DeviceState, 0, len(s.workers)),
		DiscoveryError: s.discoveryError,
		Hardware:       s.hardware,
	}
	for _, w := range s.workers {
		// A stuck child holds its device in the kernel, so it matters even if the
		// device has vanished.
		if w.state.Present || w.state.Stuck != nil || w.kept {
			snap.Devices = append(snap.Devices, w.state)
		}
	}
	for name, left := range s.leftovers {
		i := slices.IndexFunc(snap.Devices, func(d state.DeviceState) bool { return d.Name == name })
		if i < 0 {
			i = len(snap.Devices)
			snap.Devices = append(snap.Devices, state.DeviceState{Name: name})
		}
		dev := &snap.Devices[i]
		shown := new(state.Resources)
		if dev.Resources != nil {
			*shown = *dev.Resources
		}
		shown.Stuck = left.stuck
		dev.Resources = shown
	}
	slices.SortFunc(snap.Devices, func(a, b state.DeviceState) int { return strings.Compare(a.Name, b.Name) })
	s.snapshot.Store(snap)
	if s.cfg.Changed != nil {
		s.cfg.Changed()
	}
}
