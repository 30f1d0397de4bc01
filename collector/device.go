package collector

import (
	"fmt"
	"strconv"

	"rdma_exporter/internal/state"
)

// addDevice adds what a present device says of itself.
func addDevice(b *builder, provider, name string, info *state.Device) {
	if info == nil {
		b.gauge(deviceInfo, 1, name, provider, "", "", "", "", "", "")
		return
	}
	// Numbers look as ibv_devinfo prints them, so that one can be searched for
	// with the other's output.
	b.gauge(deviceInfo, 1, name, provider, info.Transport, info.Firmware,
		fmt.Sprintf("0x%04x", info.VendorID),
		strconv.FormatUint(uint64(info.VendorPartID), 10),
		fmt.Sprintf("0x%x", info.HWVersion),
		info.NodeGUID)
	b.gauge(deviceCompletionVectors, float64(info.CompletionVectors), name)
	for _, l := range info.Limits {
		b.gauge(deviceLimit, float64(l.Value), name, l.Name)
	}
}

// addPorts adds the states of the ports that the last run found. What an earlier
// run found is not told: a port that was active may not be any more.
func addPorts(b *builder, name string, info *state.Device) {
	for _, p := range info.Ports {
		number := strconv.Itoa(p.Number)
		for _, word := range state.PortStates() {
			b.truth(portState, p.State == word, name, number, word)
		}
	}
}
