package api

import (
	"time"

	"rdma_exporter/internal/state"
)

// Hardware is what the kernel shows of an adapter without opening it.
type Hardware struct {
	// When what follows was read; absent if nothing was yet.
	Read time.Time `json:"read,omitzero"`
	// How many attempts there were since the last complete one.
	Failures int `json:"failures"`
	// Why the last attempt was incomplete; absent if it was complete.
	Failure string `json:"failure,omitempty"`
	// The file, or the request to the kernel, that did not return in time; absent if all did.
	Reading string `json:"reading,omitempty"`
	// When the device is read again after a failure; absent if that is not put off.
	Next time.Time `json:"next,omitzero"`
	// Name of the kernel's driver, such as mlx5_core; absent if it is not known.
	Driver string `json:"driver,omitempty"`
	// Which adapter it is, and where in the host; absent if nothing was read yet.
	Adapter *Adapter `json:"adapter,omitempty"`
	// Its ports, in the order of their numbers.
	Ports []HardwarePort `json:"ports,omitempty"`
	// What the driver calls those counters of the device as a whole that have reached
	// their maximum, and stay there.
	Saturated []string `json:"saturated,omitempty"`
	// The groups of counters of the device as a whole that the kernel refused to read.
	Refused []RefusedCounters `json:"refused,omitempty"`
	// The counters of the device as a whole that were lower than the time before, and how
	// often.
	Drops []CounterDrop `json:"drops,omitempty"`
	// The interrupts that serve completion vectors, in the order of these.
	Interrupts []Interrupt `json:"interrupts,omitempty"`
}

// Adapter is which adapter a device is, and where in the host. What is not known is absent.
type Adapter struct {
	// Address of the PCI function, such as 0000:3b:00.0.
	PCI string `json:"pci_address,omitempty"`
	// Name of the physical slot.
	Slot string `json:"slot,omitempty"`
	// The node of memory that is next to it.
	NUMANode *int `json:"numa_node,omitempty"`
	// What the adapter calls its board, such as MT_0000000838.
	BoardID string `json:"board_id,omitempty"`
	// What the adapter calls its model, such as MT4129.
	Model string `json:"model,omitempty"`
	// Version that the driver says it has.
	DriverVersion string `json:"driver_version,omitempty"`
	// Whether it is a physical function (pf), a virtual one (vf) or a scalable one (sf).
	Role string `json:"sriov_role,omitempty"`
	// Address of the physical function that a virtual one is of.
	Parent string `json:"sriov_parent,omitempty"`
	// How many virtual functions it has.
	VFs int `json:"sriov_vfs,omitempty"`
	// How the RDMA subsystem shares devices among network namespaces: shared or exclusive.
	NetnsMode string `json:"netns_mode,omitempty"`
	// Its own link to the PCI bus.
	Link *PCILink `json:"pci_link,omitempty"`
	// The slowest link on the way to the root of the PCI bus; absent if none is slower than
	// its own.
	Bottleneck *PCILink `json:"pci_bottleneck,omitempty"`
	// The errors that the PCI bus reported; absent if it does not count them.
	AER *AER `json:"aer,omitempty"`
}

// PCILink is a link of the PCI bus. What is not known is 0.
type PCILink struct {
	// Address of the device at its lower end.
	Address string `json:"pci_address"`
	// Transfers in a second on each lane, such as 32000000000.
	Speed int64 `json:"speed_transfers_per_second"`
	// The most that the device can have.
	MaxSpeed int64 `json:"max_speed_transfers_per_second"`
	// How many lanes it has.
	Width int `json:"width_lanes"`
	// The most that the device can have.
	MaxWidth int `json:"max_width_lanes"`
}

// AER counts the errors that the PCI bus reported, since the kernel started.
type AER struct {
	// Errors that the bus corrected.
	Correctable int64 `json:"correctable"`
	// Errors that were not corrected, and after which the link could be used.
	Nonfatal int64 `json:"nonfatal"`
	// Errors after which the link could not be relied on.
	Fatal int64 `json:"fatal"`
}

// HardwarePort is what the kernel shows of a port. What is not known is absent.
type HardwarePort struct {
	// Its number, from 1.
	Number int `json:"number"`
	// InfiniBand or Ethernet.
	LinkLayer string `json:"link_layer,omitempty"`
	// Its state, such as active or down.
	State string `json:"state,omitempty"`
	// The state of its physical link, such as link_up.
	PhysState string `json:"phys_state,omitempty"`
	// What it moves at most in a second as it is now, in bits.
	Rate int64 `json:"rate_bits_per_second,omitempty"`
	// The most that it could move so far, in bits a second.
	MaxRate int64 `json:"max_rate_bits_per_second,omitempty"`
	// How many lanes it uses.
	Width int `json:"width_lanes,omitempty"`
	// What each lane moves, in bits a second.
	Speed int64 `json:"speed_bits_per_second,omitempty"`
	// Its network device.
	Netdev string `json:"netdev,omitempty"`
	// The bond that the network device is a part of.
	Bond string `json:"bond,omitempty"`
	// The largest packet of the network device, in bytes.
	MTU int `json:"mtu_bytes,omitempty"`
	// Its GID of index 0.
	GID string `json:"gid,omitempty"`
	// How many GIDs it has that are not zero.
	GIDs int `json:"gids"`
	// How many of these there are of each type and network device.
	GIDTypes []GIDCount `json:"gid_types,omitempty"`
	// How often the list of its GIDs changed since it was first looked at.
	GIDChanges int64 `json:"gid_changes"`
	// Index of the first GID of RoCE v2 that is an IPv4 address, which is the one that
	// NCCL_IB_GID_INDEX wants; absent if there is none.
	RoCEv2IPv4 *int `json:"roce_v2_ipv4_gid_index,omitempty"`
	// Temperature of its module.
	Temperature *float64 `json:"module_temperature_celsius,omitempty"`
	// How its state went; absent if it was not watched yet.
	Link *Link `json:"link,omitempty"`
	// What the driver counts for it, under names that are the same for all drivers.
	Counters []Counter `json:"counters,omitempty"`
	// What the driver calls those of its counters that have reached their maximum, and
	// stay there: they are not among the counters above.
	Saturated []string `json:"saturated,omitempty"`
	// The groups of counters that the kernel refused to read.
	Refused []RefusedCounters `json:"refused,omitempty"`
	// The counters that were lower than the time before, and how often.
	Drops []CounterDrop `json:"drops,omitempty"`
}

// GIDCount counts the GIDs of a port of one type and network device.
type GIDCount struct {
	// The type: ib, roce_v1 or roce_v2.
	Type string `json:"type"`
	// The network device; absent if they are of none.
	Netdev string `json:"netdev,omitempty"`
	// How many there are.
	GIDs int `json:"gids"`
}

// Link is how the state of a port went since it was first looked at, over restarts of the
// exporter with --state.dir.
type Link struct {
	// Whether the port is active.
	Active bool `json:"active"`
	// Since when; absent if it has been so since it was first looked at.
	Since time.Time `json:"since,omitzero"`
	// How often it became active.
	Ups int64 `json:"ups"`
	// How often it stopped being active.
	Downs int64 `json:"downs"`
	// When it did the last times, the latest last.
	Recent []time.Time `json:"recent_downs,omitempty"`
}

// Counter is a counter of a driver under the name that all drivers share.
// docs/reference/counters.md has them all.
type Counter struct {
	// The name, which is that of the metric.
	Metric string `json:"metric"`
	// What the driver calls it; the terms of a sum have + between them.
	Counter string `json:"counter"`
	// The priority of Ethernet that it is of, from 0 to 7; absent where there is one for all.
	Priority string `json:"priority,omitempty"`
	// What it counted, in the unit of the metric.
	Value int64 `json:"value"`
}

// CounterDrop counts how often a counter was lower than the time before.
type CounterDrop struct {
	// Where it was read.
	Group state.CounterGroup `json:"group"`
	// What the driver calls it.
	Counter string `json:"counter"`
	// How often it may have begun anew.
	Resets int64 `json:"resets"`
	// How often it had reached its maximum.
	Wraps int64 `json:"wraps"`
}

// RefusedCounters is a group of counters that the kernel refused to read.
type RefusedCounters struct {
	// Which.
	Group state.CounterGroup `json:"group"`
	// The errno, such as EINVAL; absent if what was read is no number.
	Errno string `json:"errno,omitempty"`
	// Why, in words.
	Detail string `json:"detail,omitempty"`
}

// Interrupt is the one that serves a completion vector.
type Interrupt struct {
	// Number of the completion vector, from 0.
	Vector int `json:"comp_vector"`
	// Number of the interrupt.
	IRQ int `json:"irq"`
	// Name of the interrupt, as the driver has it.
	Name string `json:"name"`
	// The processors that it may run on, as the kernel lists them.
	CPUs string `json:"cpus,omitempty"`
	// The processors that it does run on.
	Effective string `json:"effective_cpus,omitempty"`
	// Whether all of these are isolated from the scheduler.
	Isolated bool `json:"isolated,omitempty"`
	// How often it came since the kernel started.
	Count int64 `json:"count"`
}
