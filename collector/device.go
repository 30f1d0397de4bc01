package collector

import (
	"fmt"
	"slices"
	"strconv"

	"rdma_exporter/internal/state"
)

func declareDevice(t *table) {
	t.about("Devices")
	t.gauge("rdma_device_info", "always 1",
		"Description of a present device; labels after provider are empty until it has been queried.", "device", "provider", "transport", "fw_version", "vendor_id", "vendor_part_id", "hw_version", "node_guid")
	t.gauge("rdma_device_completion_vectors", "completion vectors",
		"Number of completion vectors of a device.", "device")
	t.gauge("rdma_port_state_id", "number of the state",
		"State of a port at the last run, or by the last reading of the hardware if that run could not query it, numbered as in InfiniBand and sysfs: 0 nop, 1 down, 2 init, 3 armed, 4 active, 5 active_defer.", "device", "port")
	t.of(Limits)
	t.gauge("rdma_device_limit", "what the limit counts",
		"Limit reported by the device, by its name in struct ibv_device_attr.", "device", "limit")
}

func addDevice(b *builder, provider, name string, info *state.Device) {
	if info == nil {
		b.gauge("rdma_device_info", 1, name, provider, "", "", "", "", "", "")
		return
	}
	// Numbers look as ibv_devinfo prints them, so that one can be searched for
	// with the other's output.
	b.gauge("rdma_device_info", 1, name, provider, info.Transport, info.Firmware,
		fmt.Sprintf("0x%04x", info.VendorID),
		strconv.FormatUint(uint64(info.VendorPartID), 10),
		fmt.Sprintf("0x%x", info.HWVersion),
		info.NodeGUID)
	b.gauge("rdma_device_completion_vectors", float64(info.CompletionVectors), name)
	for _, l := range info.Limits {
		b.gauge("rdma_device_limit", float64(l.Value), name, l.Name)
	}
}

// addPorts adds the ports of the last run only: a port that was active before may not be
// now.
func addPorts(b *builder, name string, info *state.Device) {
	for _, p := range info.Ports {
		port := strconv.Itoa(p.Number)
		addPortState(b, name, port, p.State)
		b.positive("rdma_port_active_mtu_bytes", float64(p.ActiveMTU), name, port)
	}
}

func addPortState(b *builder, name, port, word string) {
	if id := slices.Index(state.PortStates(), word); id >= 0 {
		b.gauge("rdma_port_state_id", float64(id), name, port)
	}
}
