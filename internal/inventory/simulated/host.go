package simulated

import (
	"slices"
	"time"

	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
	profile "rdma_exporter/verbs/simulated"
)

// index is the kernel's number of the device. There is no other in the tables.
const index = 1

// firstContext is above the ids of all contexts of holders, which are in the
// profile's bounds.
const firstContext = 1 << 24

// Context returns what the kernel calls the device when a process has opened it.
// It differs from process to process, as long as their numbers do.
func Context(pid int) state.Context {
	return state.Context{Index: index, ID: firstContext + uint32(pid)}
}

// Host is the host of one simulated device: it implements inventory.Tables and
// inventory.People. It does not change, and can be used by any number of goroutines
// at once.
type Host struct {
	// device is nil for one that the kernel does not know.
	device  *profile.DeviceProfile
	batches []batch
}

// New returns the host of a device of a profile, which must be valid, at a moment.
// look are the contexts of processes that have ended, the oldest first: of those
// the device may have leaked something. A device that is not in the profile is in
// no table, and nor is one that vanishes.
func New(p *profile.Profile, device string, now time.Time, look []state.Context) *Host {
	i := slices.IndexFunc(p.Devices, func(d profile.DeviceProfile) bool { return d.Name == device })
	if i < 0 || p.Devices[i].Vanish {
		return new(Host)
	}
	h := &Host{device: &p.Devices[i]}
	r := &h.device.Resources
	next := make(map[restrack.Type]uint32)
	for i := range r.Holders {
		h.batches = append(h.batches, held(&r.Holders[i], r.PIDsInvisible, now, next))
	}
	for _, context := range left(r.Leak, look) {
		h.batches = append(h.batches, leaked(r.Leak.Objects, context, next))
	}
	return h
}

// left returns the contexts of which something is left.
func left(l profile.Leak, look []state.Context) []uint32 {
	leaks := false
	for _, n := range l.Objects {
		leaks = leaks || n > 0
	}
	var contexts []uint32
	for _, c := range look {
		if !leaks || l.Times > 0 && len(contexts) == l.Times {
			break
		}
		if c.Index == index && !slices.Contains(contexts, c.ID) {
			contexts = append(contexts, c.ID)
		}
	}
	return contexts
}
