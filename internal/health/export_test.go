package health

import "rdma_exporter/internal/state"

// Assess returns the findings of a device as if the host had no other.
func Assess(dev *state.DeviceState, c Config, history History) []Finding {
	if dev == nil {
		return nil
	}
	alone := state.Snapshot{Devices: []state.DeviceState{*dev}}
	a := assessor{state: dev, config: &c, deviceHistory: history.of(dev, &c), unplugged: unplugged(&alone), host: alone.Devices}
	return a.assess()
}
