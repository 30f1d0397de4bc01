//go:build vm

package peers

import (
	"fmt"
	"testing"
)

// TestSimulatedDevices measures on this machine: the exporter on simulated devices,
// beside node_exporter on files such as sysfs would have for as many devices.
func TestSimulatedDevices(t *testing.T) {
	for _, c := range []struct {
		devices, vectors int
		own              bool
	}{{8, 2, false}, {8, 64, false}, {64, 2, false}, {64, 64, false}, {8, 2, true}} {
		name := fmt.Sprintf("%d devices, %d vectors", c.devices, c.vectors)
		flags := []string{withoutOwn}
		if c.own {
			name, flags = name+", with the metrics of the exporters themselves", nil
		}
		t.Run(name, func(t *testing.T) {
			compareScrapes(t, comparison{
				table: all.table("Scrapes, simulated devices on the machine itself", "node_exporter"), situation: name, devices: c.devices, contracts: true,
				ours: append(append([]string{
					"--provider=simulated", "--simulated.profile=" + simulatedProfile(t, c.devices, c.vectors), "--contract.interval=1h", "--probe.concurrency=16",
				}, onceFlags...), flags...),
				theirs:  append(append([]string{"--path.sysfs=" + sysfsOf(t, c.devices)}, nodeExporterFlags...), flags...),
				scrapes: 400,
			})
		})
	}
	for _, devices := range []int{8, 64} {
		t.Run(fmt.Sprintf("%d devices over time", devices), func(t *testing.T) {
			table := all.table("CPU over time, simulated devices on the machine itself", "node_exporter")
			measureIdle(t, table, fmt.Sprintf("%d devices, 2 vectors", devices), devices,
				[]string{"--provider=simulated", "--simulated.profile=" + simulatedProfile(t, devices, 2)},
				append([]string{"--path.sysfs=" + sysfsOf(t, devices)}, nodeExporterFlags...))
		})
	}
}
