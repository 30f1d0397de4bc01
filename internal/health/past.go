package health

import (
	"slices"

	"rdma_exporter/internal/state"
)

// Past is what was before, as far as judgement depends on it. The zero value is no past.
type Past struct {
	// Ports are the ports of each device that were active once, in order.
	Ports map[string][]int
}

const (
	// maxPastDevices is the most devices whose past is kept, and maxPastPorts the most
	// ports of each, whatever names and numbers come and go.
	maxPastDevices = 4096
	maxPastPorts   = 256
)

// clone returns a copy that shares nothing.
func (p Past) clone() Past {
	c := Past{Ports: make(map[string][]int, len(p.Ports))}
	for device, ports := range p.Ports {
		c.Ports[device] = slices.Clone(ports)
	}
	return c
}

// take takes in what is known of a device now.
func (p *Past) take(d *state.DeviceState) {
	if d.Last == nil || d.Last.Info == nil {
		return
	}
	before := p.Ports[d.Name]
	after := before
	for _, port := range d.Last.Info.Ports {
		if isActive(port) && !slices.Contains(after, port.Number) && len(after) < maxPastPorts {
			after = append(slices.Clip(after), port.Number)
		}
	}
	if len(after) == len(before) || before == nil && len(p.Ports) >= maxPastDevices {
		return
	}
	slices.Sort(after)
	p.Ports[d.Name] = after
}

// isActive tells whether a port can be used.
func isActive(p state.Port) bool { return p.State == "active" || p.State == "active_defer" }

// Past returns what is to be handed to New after a restart.
func (j *Judge) Past() Past {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.past.clone()
}
