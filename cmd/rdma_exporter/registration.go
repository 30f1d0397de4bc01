package main

import (
	"math"
	"slices"
	"syscall"

	"rdma_exporter/internal/ceiling"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// bounds returns the memory of the host and what limits this process. Nothing limits what
// simulated devices give but their profile.
func bounds(s settings, device string) (ceiling.Memory, ceiling.Limits, error) {
	if s.Provider != providerSimulated {
		host := ceiling.System{Procfs: s.Inventory.Procfs, Cgroup: s.Inventory.Cgroup}
		memory, err := host.Memory()
		if err != nil {
			return memory, ceiling.Limits{}, err
		}
		limits, err := host.Limits()
		return memory, limits, err
	}
	limits := ceiling.Limits{Memlock: -1}
	i := slices.IndexFunc(s.parsed.Devices, func(d simulated.DeviceProfile) bool { return d.Name == device })
	if i >= 0 && s.parsed.Devices[i].Registration.Memlock > 0 {
		limits.Memlock = s.parsed.Devices[i].Registration.Memlock
	}
	return ceiling.Memory{Available: math.MaxInt64, Total: math.MaxInt64}, limits, nil
}

// refusedMemory tells what refused memory of a size to be registered, and says so in a
// line. Where that cannot be told, it is the device.
func refusedMemory(s settings, device string, err *verbs.Error, size int) (state.RefusedBy, string) {
	memory, limits, told := bounds(s, device)
	if told != nil {
		return state.RefusedByDevice, err.Error() + "; what limits the process could not be read: " + told.Error()
	}
	end, said := ceiling.Registration(err, int64(size), memory, limits)
	by, ok := map[ceiling.End]state.RefusedBy{
		ceiling.EndMemlock: state.RefusedByMemlock, ceiling.EndCgroup: state.RefusedByCgroup,
		ceiling.EndMemory: state.RefusedByHost, ceiling.EndMappings: state.RefusedByHost, ceiling.EndFiles: state.RefusedByHost,
	}[end]
	switch {
	case ok:
	case limits.Hidden && err.Errno == syscall.EAGAIN:
		by = state.RefusedByCgroup
	default:
		by = state.RefusedByDevice
	}
	return by, said
}
