package answer

import (
	"cmp"
	"slices"

	"rdma_exporter/internal/path"
	"rdma_exporter/internal/state"
)

// Devices returns the devices of a snapshot. Those that were not probed yet have no ports.
func Devices(s *state.Snapshot, c path.Config, tor func(device string) string) (list []path.Device) {
	for _, d := range s.Devices {
		if !d.Present {
			continue
		}
		device := path.Device{Name: d.Name, Rail: c.RailOf(d.Name), ToR: tor(d.Name)}
		for _, p := range cmp.Or(d.Info, new(state.Device)).Ports {
			port := path.Port{Number: p.Number, State: p.State, LinkLayer: p.LinkLayer, MTU: p.ActiveMTU}
			if h := d.Hardware; h != nil && h.Latest != nil {
				i := slices.IndexFunc(h.Latest.Ports, func(o state.HardwarePort) bool { return o.Number == p.Number })
				for _, g := range at(h.Latest.Ports, i).GIDs {
					port.GIDs = append(port.GIDs, path.Address{GID: g.GID, Type: g.Type})
				}
			}
			device.Active = device.Active || state.IsActive(p.State)
			device.Ports = append(device.Ports, port)
		}
		list = append(list, device)
	}
	return list
}

func at(ports []state.HardwarePort, i int) state.HardwarePort {
	if i < 0 {
		return state.HardwarePort{}
	}
	return ports[i]
}
