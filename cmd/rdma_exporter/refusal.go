package main

import (
	"context"
	"math"
	"slices"
	"syscall"

	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/refusal"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// refusalOf returns what refused a request of this child. Only its profile limits a simulated
// device.
func refusalOf(s settings, device string, err *verbs.Error, r refusal.Request) (cause refusal.Cause, said string, hidden bool) {
	memory, limits := refusal.Memory{Available: math.MaxInt64, Total: math.MaxInt64}, refusal.Limits{Memlock: -1}
	if s.Provider == providerSimulated {
		i := slices.IndexFunc(s.parsed.Devices, func(d simulated.DeviceProfile) bool { return d.Name == device })
		if i >= 0 && s.parsed.Devices[i].Registration.Memlock > 0 {
			limits.Memlock = s.parsed.Devices[i].Registration.Memlock
		}
	} else {
		host := refusal.System{Procfs: s.Inventory.Procfs, Cgroup: s.Inventory.Cgroup}
		var failed error
		if memory, failed = host.Memory(); failed == nil {
			limits, failed = host.Limits()
		}
		if failed != nil {
			return refusal.Unknown, err.Error() + "; the limits of the process are unknown: " + failed.Error(), false
		}
	}
	cause, said = refusal.Of(err, r, memory, limits)
	return cause, said, limits.Hidden
}

// exhausted reports whether a verb failed because the device has no more objects of a type to
// give, and how many the kernel counts now. If anything else can be the reason, or the kernel
// does not count them, it reports nothing.
func exhausted(ctx context.Context, s settings, device string, err *verbs.Error) (found state.Refused, ok bool) {
	kind, counted := map[verbs.Verb]string{
		verbs.CreateCQ: "cq", verbs.CreateQP: "qp", verbs.CreateSRQ: "srq", verbs.RegMR: "mr", verbs.AllocPD: "pd",
	}[err.Verb]
	if !counted {
		return found, false
	}
	if cause, _, _ := refusalOf(s, device, err, refusal.Request{}); cause != refusal.Device {
		return found, false
	}
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	u, done, failed := usageOf(s, device)
	if failed != nil {
		return found, false
	}
	defer done()
	objects, failed := inventory.Count(ctx, u.Tables, device, kind)
	if failed != nil || objects < 1 {
		return found, false
	}
	return state.Refused{Type: kind, Verb: string(err.Verb), Errno: verbs.ErrnoName(err.Errno), Objects: objects}, true
}

// refusedMemory returns what refused to register memory of a size, and why, in one line. If that
// is unknown, it is the device.
func refusedMemory(s settings, device string, err *verbs.Error, size int) (state.RefusedBy, string) {
	cause, said, hidden := refusalOf(s, device, err, refusal.Request{Size: int64(size)})
	switch {
	case cause == refusal.Memlock:
		return state.RefusedByMemlock, said
	case cause == refusal.Cgroup || hidden && err.Errno == syscall.EAGAIN:
		return state.RefusedByCgroup, said
	case cause == refusal.Host || cause == refusal.Mappings || cause == refusal.Files:
		return state.RefusedByHost, said
	default:
		return state.RefusedByDevice, said
	}
}
