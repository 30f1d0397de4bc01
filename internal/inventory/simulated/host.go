package simulated

import (
	"slices"
	"time"

	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
	profile "rdma_exporter/verbs/simulated"
)

const (
	// index is the kernel's number of the only device.
	index = 1
	// firstContext is above the ids of all contexts of holders.
	firstContext = 1 << 24
)

// Context returns the context of a process that has opened the device.
func Context(pid int) state.Context {
	return state.Context{Index: index, ID: firstContext + uint32(pid)}
}

// Host is the host of one simulated device. It implements inventory.Tables and inventory.People. It
// is immutable, and safe for concurrent use.
type Host struct {
	// device is nil if the kernel does not know it.
	device  *profile.DeviceProfile
	batches []batch
}

// New returns the host of a device of a profile, which must be valid, at a moment. look are the
// contexts of exited processes, the oldest first, which may have leaked objects. A device that is
// not in the profile, or vanishes, is in no table.
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

// left returns the contexts with leaked objects.
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
