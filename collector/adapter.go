package collector

import (
	"strconv"

	"rdma_exporter/internal/state"
)

func declareAdapter(t *table) {
	t.about("Adapters")
	t.of(Adapter)
	t.gauge("rdma_adapter_info", "always 1",
		"The adapter behind a device and its place in the host, for joins. Unknown labels are empty.",
		"device", "pci_address", "slot", "numa_node", "driver", "driver_version", "board_id", "sriov_role", "sriov_parent", "netns_mode")
	t.gauge("rdma_adapter_pci_speed_transfers_per_second", "transfers per second",
		"Speed of each lane of the PCI link.", "device", "link")
	t.gauge("rdma_adapter_pci_max_speed_transfers_per_second", "transfers per second",
		"Speed that the device at the lower end of the link supports.", "device", "link")
	t.gauge("rdma_adapter_pci_width_lanes", "lanes",
		"Number of lanes of the PCI link.", "device", "link")
	t.gauge("rdma_adapter_pci_max_width_lanes", "lanes",
		"Number of lanes that the device at the lower end of the link supports.", "device", "link")
	t.counter("rdma_adapter_aer_errors_total", "errors",
		"Errors of the adapter that the PCI bus reported (AER). Absent until there is one.", "device", "severity")
}

func addAdapter(b *builder, name string, r *state.Hardware) {
	a := &r.Identity
	node := ""
	if a.NUMANode >= 0 && a.PCI != "" {
		node = strconv.Itoa(a.NUMANode)
	}
	b.gauge("rdma_adapter_info", 1, name, a.PCI, a.Slot, node, r.Driver, a.DriverVersion, a.BoardID, a.Role, a.Parent, a.NetnsMode)
}

func addBus(b *builder, name string, r *state.Hardware) {
	a := &r.Identity
	addPCILink(b, name, "adapter", a.Link)
	addPCILink(b, name, "bottleneck", a.Bottleneck)
	if e := a.AER; e != nil {
		b.sparse("rdma_adapter_aer_errors_total", float64(e.Correctable), name, "correctable")
		b.sparse("rdma_adapter_aer_errors_total", float64(e.Nonfatal), name, "nonfatal")
		b.sparse("rdma_adapter_aer_errors_total", float64(e.Fatal), name, "fatal")
	}
}

func addPCILink(b *builder, name, link string, l *state.PCILink) {
	if l == nil {
		return
	}
	b.positive("rdma_adapter_pci_speed_transfers_per_second", l.Speed, name, link)
	b.positive("rdma_adapter_pci_max_speed_transfers_per_second", l.MaxSpeed, name, link)
	b.positive("rdma_adapter_pci_width_lanes", float64(l.Width), name, link)
	b.positive("rdma_adapter_pci_max_width_lanes", float64(l.MaxWidth), name, link)
}
