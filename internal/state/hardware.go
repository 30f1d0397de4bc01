package state

import "time"

// Hardware is what the kernel shows of an adapter in sysfs, procfs and netlink, without
// opening it. Empty fields are unknown.
type Hardware struct {
	Device string `json:"device" wire:"device,key"`
	// Failure is why it was not read completely. The rest was.
	Failure string `json:"failure,omitempty"`
	// Late is true if the time was up although each request returned.
	Late bool `json:"late,omitempty"`
	// Reading is the file, or the request to the kernel, that did not return in time.
	Reading string `json:"reading,omitempty"`
	// Driver is the kernel's driver, such as mlx5_core.
	Driver string `json:"driver,omitempty" wire:"word"`
	// Table names the rows of the table of counters that apply to it, such as mlx5.
	Table    string         `json:"table,omitempty" wire:"word"`
	Identity Adapter        `json:"identity"`
	Ports    []HardwarePort `json:"ports,omitempty" wire:"max=256"`
	// Counters are those of the device as a whole.
	Counters []Counter `json:"counters,omitempty"`
	// Refused are groups of these that the kernel refused to read.
	Refused []RefusedCounters `json:"refused,omitempty"`
	// Interrupts are those of completion vectors.
	Interrupts []Interrupt `json:"interrupts,omitempty"`
	// IOMMU is how the adapter's addresses are treated, on a host with GPUs: none, identity, DMA, DMA-FQ.
	IOMMU string `json:"iommu,omitempty" wire:"word"`
	GPUs  []GPU  `json:"gpus,omitempty" wire:"max=64"`
}

// Adapter is which adapter a device is, and where in the host. Empty fields are unknown.
type Adapter struct {
	// PCI is the address of the function, such as 0000:3b:00.0.
	PCI string `json:"pci_address,omitempty" wire:"name"`
	// Slot is the name of the physical slot.
	Slot string `json:"slot,omitempty" wire:"name"`
	// NUMANode is −1 without one.
	NUMANode int    `json:"numa_node" wire:"min=-1"`
	BoardID  string `json:"board_id,omitempty" wire:"name"`
	Model    string `json:"model,omitempty" wire:"name"`
	// DriverVersion is what the driver reports of itself.
	DriverVersion string `json:"driver_version,omitempty" wire:"name"`
	// Role is pf, vf or sf, and Parent the PCI address of a VF's physical function.
	Role   string `json:"sriov_role,omitempty" wire:"word"`
	Parent string `json:"sriov_parent,omitempty" wire:"name"`
	VFs    int    `json:"sriov_vfs,omitempty"`
	// NetnsMode of the RDMA subsystem is shared, exclusive or unknown_N.
	NetnsMode string `json:"netns_mode,omitempty" wire:"word"`
	// Link is the adapter's own link to the PCI bus.
	Link *PCILink `json:"pci_link,omitempty"`
	// Bottleneck is the slowest link on the way to the root, if it is slower than Link.
	Bottleneck *PCILink `json:"pci_bottleneck,omitempty"`
	// AER are the errors that the bus reported; absent if it does not count them.
	AER *AER `json:"aer,omitempty"`
}

// Virtual reports whether it is a virtual function or a subfunction, which come and go with their users.
func (a *Adapter) Virtual() bool { return a.Role == "vf" || a.Role == "sf" }

// PCILink is a link of the PCI bus. Speeds are in transfers per second and lane.
type PCILink struct {
	Address  string  `json:"pci_address" wire:"name"`
	Speed    float64 `json:"speed_transfers_per_second"`
	MaxSpeed float64 `json:"max_speed_transfers_per_second"`
	Width    int     `json:"width_lanes"`
	MaxWidth int     `json:"max_width_lanes"`
}

// AER counts the errors of advanced error reporting.
type AER struct {
	Correctable uint64 `json:"correctable"`
	Nonfatal    uint64 `json:"nonfatal"`
	Fatal       uint64 `json:"fatal"`
}

// HardwarePort is what the kernel shows of a port. Zero means unknown.
type HardwarePort struct {
	Number int `json:"port" wire:"key,min=1,max=65536"`
	// LinkLayer is InfiniBand or Ethernet.
	LinkLayer string `json:"link_layer,omitempty" wire:"word"`
	// State and PhysState are the words of sysfs in lower case, such as active and link_up.
	State     string `json:"state,omitempty" wire:"word"`
	PhysState string `json:"phys_state,omitempty" wire:"word"`
	// Rate is the current one, and MaxRate the highest that the port could have, or had.
	Rate float64 `json:"rate_bits_per_second,omitempty"`
	// RateFrom is netdev if Rate is the speed of the network device, else rdma. Width and Speed
	// are the RDMA driver's, and unknown if its rate is another.
	RateFrom string  `json:"rate_from,omitempty" wire:"word"`
	MaxRate  float64 `json:"max_rate_bits_per_second,omitempty"`
	Width    int     `json:"width_lanes,omitempty"`
	// Speed is per lane.
	Speed float64 `json:"speed_bits_per_second,omitempty"`
	// Uplink is true if it is the physical port among representors, whose counters are those of
	// the device.
	Uplink bool `json:"uplink,omitempty"`
	// Netdev is the port's network device, and Bond the bond that it is part of.
	Netdev string `json:"netdev,omitempty" wire:"name"`
	Bond   string `json:"bond,omitempty" wire:"name"`
	// Members are the network devices of the adapter in the bond that Netdev is. The counters of
	// ethtool are their sum.
	Members []string `json:"members,omitempty" wire:"name"`
	// Ifindex is the number of Netdev in the exporter's network namespace.
	Ifindex int `json:"ifindex,omitempty"`
	MTU     int `json:"mtu_bytes,omitempty"`
	// CarrierChanges counts changes of the network device's carrier.
	CarrierChanges *uint64 `json:"carrier_changes,omitempty"`
	// LinkDownReason and LinkDownDetail are why the link is down, as numbers of enum
	// ethtool_link_ext_state and of the enum for each of its values. Zero is one of them.
	LinkDownReason *int `json:"link_down_reason_id,omitempty"`
	LinkDownDetail *int `json:"link_down_detail_id,omitempty"`
	// GIDs are the port's addresses that are not zero.
	GIDs []GID `json:"gids,omitempty" wire:"max=256"`
	// RoCEv2IPv4 is the index of the first RoCE v2 GID that is an IPv4 address, for
	// NCCL_IB_GID_INDEX.
	RoCEv2IPv4 *int `json:"roce_v2_ipv4_gid_index,omitempty"`
	// Counters are the port's and its network device's.
	Counters []Counter         `json:"counters,omitempty"`
	Refused  []RefusedCounters `json:"refused,omitempty"`
	// TemperatureCelsius is that of the port's module.
	TemperatureCelsius *float64 `json:"module_temperature_celsius,omitempty" wire:"any"`
}

// MaxGIDs limits the addresses of a port that are kept.
const MaxGIDs = 256

// GID is an address of a port, in the form of sysfs.
type GID struct {
	Index int    `json:"index" wire:"key"`
	GID   string `json:"gid" wire:"name"`
	// Type is ib, roce_v1 or roce_v2, and Family ipv4 or ipv6.
	Type   string `json:"type" wire:"word"`
	Family string `json:"family" wire:"word"`
	Netdev string `json:"netdev,omitempty" wire:"name"`
}

// CounterGroup is where a counter was read.
type CounterGroup string

// The groups of counters.
const (
	// GroupPort is counters/ of a port in sysfs, named by the InfiniBand specification.
	GroupPort CounterGroup = "counters"
	// GroupHardware is hw_counters/ of a port or a device, in sysfs or by rdma statistic,
	// named by the driver.
	GroupHardware CounterGroup = "hw_counters"
	// GroupEthtool is statistics of the port's network device, named by ethtool.
	GroupEthtool CounterGroup = "ethtool"
)

// CounterGroups returns every group.
func CounterGroups() []CounterGroup {
	return []CounterGroup{GroupPort, GroupHardware, GroupEthtool}
}

// Counter is a counter by the driver's name, in the driver's unit.
type Counter struct {
	Group CounterGroup `json:"group" wire:"key"`
	Name  string       `json:"name" wire:"name,key"`
	Value uint64       `json:"value"`
}

// Names of values of [GroupEthtool] that are no counters: see [HardwarePort].LinkDownReason.
const (
	LinkDownReason = "link_down_reason"
	LinkDownDetail = "link_down_detail"
)

// RefusedCounters is a group of counters that could not be read.
type RefusedCounters struct {
	Group CounterGroup `json:"group" wire:"key"`
	// Errno is empty if the content was not a number.
	Errno  string `json:"errno,omitempty" wire:"word"`
	Detail string `json:"detail,omitempty"`
}

// Interrupt is the interrupt of a completion vector.
type Interrupt struct {
	Vector int    `json:"comp_vector" wire:"key,max=65536"`
	IRQ    int    `json:"irq"`
	Name   string `json:"name" wire:"name"`
	// CPUs are those that it may run on, as the kernel lists them.
	CPUs string `json:"cpus,omitempty"`
	// Effective are those that it does run on.
	Effective string `json:"effective_cpus,omitempty"`
	// Isolated is true if all of these are isolated from the scheduler.
	Isolated bool `json:"isolated,omitempty"`
	// Count is how often it came since the kernel started.
	Count uint64 `json:"count"`
}

// GPU is an accelerator, and how an adapter reaches it. Empty fields are unknown.
type GPU struct {
	PCI    string `json:"pci_address" wire:"name,key"`
	Driver string `json:"driver,omitempty" wire:"name"`
	// NUMANode is −1 without one.
	NUMANode int `json:"numa_node" wire:"min=-1"`
	// BAR is the size of its largest BAR.
	BAR int64 `json:"bar_bytes,omitempty"`
	// Memory is what lets the adapter register its memory: a kernel module such as
	// nvidia_peermem, amdgpu, dma-buf, or none.
	Memory string `json:"peer_memory,omitempty" wire:"word"`
	// Distance is that to the adapter, as nvidia-smi topo -m has it: PIX (the same bridge), PXB
	// (the same switch), PHB (the same host bridge), NODE (the same NUMA node) or SYS.
	Distance string `json:"distance" wire:"word"`
	// ACS is redirect if bridges send what goes between the two through the CPU, although they
	// share a switch, and direct if none does. Redirecting are these bridges.
	ACS         string   `json:"acs,omitempty" wire:"word"`
	Redirecting []string `json:"acs_redirecting,omitempty" wire:"name"`
}

// SharesSwitch reports whether no host bridge is between adapter and GPU.
func (g *GPU) SharesSwitch() bool { return g.Distance == "PIX" || g.Distance == "PXB" }

// HardwareState is the state of the hardware of a device.
type HardwareState struct {
	// Latest is the latest reading, and Read its time. The last attempt may be later.
	Latest *Hardware `json:"latest,omitempty"`
	Read   time.Time `json:"read,omitzero"`
	// Failures counts the attempts since the last one that finished.
	Failures int `json:"failures"`
	// Failure and Reading are those of the last attempt.
	Failure string `json:"failure,omitempty"`
	Reading string `json:"reading,omitempty"`
	// Next is when the device is read again after a failure.
	Next time.Time `json:"next,omitzero"`
	// Stuck is a child that was killed while it read this device, and has not exited. The
	// device is not read until it has.
	Stuck *Stuck `json:"stuck,omitempty"`
	// Drops are the counters that decreased.
	Drops []CounterDrop `json:"drops,omitempty"`
	// Links are the histories of the ports, in the order of their numbers.
	Links []Link `json:"links,omitempty"`
}

// CounterDrop counts how often a counter decreased.
type CounterDrop struct {
	// Port is zero for the device as a whole.
	Port  int          `json:"port"`
	Group CounterGroup `json:"group"`
	Name  string       `json:"name"`
	// Wraps are the decreases at the maximum of the counter's width, and Resets the others.
	Resets uint64 `json:"resets"`
	Wraps  uint64 `json:"wraps"`
}

// Link is the history of a port since it was first seen. With a state directory, it
// survives restarts of the exporter.
type Link struct {
	Port int `json:"port"`
	// Since is when it became or ceased to be active; zero if it did not change.
	Active bool      `json:"active"`
	Since  time.Time `json:"since,omitzero"`
	// Ups and Downs count how often it became, and ceased to be, active.
	Ups   uint64 `json:"ups"`
	Downs uint64 `json:"downs"`
	// Recent are the times of the latest changes to down, for how often it flapped.
	Recent []time.Time `json:"recent,omitempty"`
	// MaxRate is the highest rate that it had while it was active, from the source RateFrom.
	// Empty means rdma.
	MaxRate  float64 `json:"max_rate_bits_per_second,omitempty"`
	RateFrom string  `json:"rate_from,omitempty"`
	// GIDChanges counts changes of the list of its addresses.
	GIDChanges uint64 `json:"gid_changes"`
}

// MaxRecent limits the changes of a port whose times are kept.
const MaxRecent = 32

// LinkHistory is the history of the links of a device while it is absent, and over restarts
// of the exporter.
type LinkHistory struct {
	Links []Link `json:"links"`
	// PCI and BoardID are those of the adapter; empty if unknown.
	PCI     string `json:"pci_address,omitempty"`
	BoardID string `json:"board_id,omitempty"`
	// Away is since when the device is absent; zero if it was present to the last.
	Away time.Time `json:"away,omitzero"`
}

// MaxAway is how long a device may be absent without losing the history of its links.
const MaxAway = 30 * 24 * time.Hour

// Forgotten reports whether the device is absent for too long.
func (p *LinkHistory) Forgotten(now time.Time) bool {
	return !p.Away.IsZero() && now.Sub(p.Away) > MaxAway
}

// Of reports whether links can be of an adapter. The kernel may give the name of a device to
// another one when adapters are added or moved.
func (p *LinkHistory) Of(a *Adapter) bool {
	other := func(was, is string) bool { return was != "" && is != "" && was != is }
	return !other(p.PCI, a.PCI) && !other(p.BoardID, a.BoardID)
}
