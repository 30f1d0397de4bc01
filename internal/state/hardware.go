package state

import "time"

// Hardware is what the kernel shows of an adapter without opening it: its
// counters, its ports and their addresses, its place in the host, and its interrupts. It
// is read from sysfs, procfs and netlink.
type Hardware struct {
	// Device is the name of the device.
	Device string `json:"device" wire:"device,key"`
	// Failure says why it could not be read to the end; empty if it could. What was read
	// until then is kept.
	Failure string `json:"failure,omitempty"`
	// Late tells that this is because the time was up, though all that was asked returned.
	Late bool `json:"late,omitempty"`
	// Reading is the file, or the request to the kernel, that did not return in time;
	// empty if all did.
	Reading string `json:"reading,omitempty"`
	// Driver is the name of the kernel's driver, such as mlx5_core, and Table the name of
	// the rows of the table of counters that apply to it, such as mlx5; empty if none do.
	Driver string `json:"driver,omitempty" wire:"word"`
	Table  string `json:"table,omitempty" wire:"word"`
	// Identity is which adapter it is, and where.
	Identity Adapter `json:"identity"`
	// Ports are its ports, in the order of their numbers.
	Ports []HardwarePort `json:"ports,omitempty" wire:"max=256"`
	// Counters are those of the device as a whole.
	Counters []Counter `json:"counters,omitempty"`
	// Refused are the groups of these that the kernel refused to read.
	Refused []RefusedCounters `json:"refused,omitempty"`
	// Interrupts are those that serve completion vectors, in the order of these.
	Interrupts []Interrupt `json:"interrupts,omitempty"`
}

// Adapter is which adapter a device is, and where in the host. What is not known is empty.
type Adapter struct {
	// PCI is the address of the function, such as 0000:3b:00.0; Slot the name of the
	// physical slot; NUMANode the node of memory that is next to it, -1 for none.
	PCI      string `json:"pci_address,omitempty" wire:"name"`
	Slot     string `json:"slot,omitempty" wire:"name"`
	NUMANode int    `json:"numa_node" wire:"min=-1"`
	// BoardID and Model are what the adapter calls itself, DriverVersion what the driver
	// says of itself.
	BoardID       string `json:"board_id,omitempty" wire:"name"`
	Model         string `json:"model,omitempty" wire:"name"`
	DriverVersion string `json:"driver_version,omitempty" wire:"name"`
	// Role is pf, vf, sf or empty, and Parent the PCI address of a VF's physical function.
	Role   string `json:"sriov_role,omitempty" wire:"word"`
	Parent string `json:"sriov_parent,omitempty" wire:"name"`
	VFs    int    `json:"sriov_vfs,omitempty"`
	// NetnsMode is that of the RDMA subsystem: shared, exclusive or unknown_N.
	NetnsMode string `json:"netns_mode,omitempty" wire:"word"`
	// Link is the adapter's own link to the PCI bus, and Bottleneck the slowest on the way
	// to the root, with its address, if that is another one and slower; nil if it is not
	// known.
	Link       *PCILink `json:"pci_link,omitempty"`
	Bottleneck *PCILink `json:"pci_bottleneck,omitempty"`
	// AER are the errors that the bus reported, nil if it does not count them.
	AER *AER `json:"aer,omitempty"`
}

// PCILink is a link of the PCI bus. Speeds are in transfers a second and lane, widths in
// lanes.
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

// HardwarePort is what the kernel shows of a port.
type HardwarePort struct {
	Number int `json:"port" wire:"key,min=1,max=65536"`
	// LinkLayer is InfiniBand or Ethernet, State and PhysState the words of sysfs in lower
	// case, such as active and link_up.
	LinkLayer string `json:"link_layer,omitempty" wire:"word"`
	State     string `json:"state,omitempty" wire:"word"`
	PhysState string `json:"phys_state,omitempty" wire:"word"`
	// Rate is in bits a second as sysfs tells it, and MaxRate what the port could have, or had;
	// Width is in lanes, Speed in bits a second and lane. 0 is not known.
	Rate    float64 `json:"rate_bits_per_second,omitempty"`
	MaxRate float64 `json:"max_rate_bits_per_second,omitempty"`
	Width   int     `json:"width_lanes,omitempty"`
	Speed   float64 `json:"speed_bits_per_second,omitempty"`
	// Netdev is the port's network device, Bond the bond that this is a part of, and
	// Ifindex its number in the exporter's network namespace, 0 if it is in none.
	Netdev  string `json:"netdev,omitempty" wire:"name"`
	Bond    string `json:"bond,omitempty" wire:"name"`
	Ifindex int    `json:"ifindex,omitempty"`
	// MTU is that of the network device, in bytes.
	MTU int `json:"mtu_bytes,omitempty"`
	// CarrierChanges is how often the network device's carrier came or went, by the
	// kernel's count; nil if it does not tell.
	CarrierChanges *uint64 `json:"carrier_changes,omitempty"`
	// GIDs are the port's addresses that are not zero. At most MaxGIDs are kept.
	GIDs []GID `json:"gids,omitempty" wire:"max=256"`
	// RoCEv2IPv4 is the index of the first GID of RoCE v2 that is an IPv4 address, which
	// is the one that NCCL_IB_GID_INDEX wants; nil if there is none.
	RoCEv2IPv4 *int `json:"roce_v2_ipv4_gid_index,omitempty"`
	// Counters are the port's, those of its network device among them.
	Counters []Counter `json:"counters,omitempty"`
	// Refused are the groups of counters that the kernel refused to read, with the errno.
	Refused []RefusedCounters `json:"refused,omitempty"`
	// TemperatureCelsius is that of the port's module; nil if it is not told.
	TemperatureCelsius *float64 `json:"module_temperature_celsius,omitempty" wire:"any"`
}

// MaxGIDs is the most addresses of a port that are kept.
const MaxGIDs = 256

// GID is an address of a port.
type GID struct {
	Index int `json:"index" wire:"key"`
	// GID is in the form of sysfs, Type is ib, roce_v1 or roce_v2, Family ipv4 or ipv6,
	// and Netdev the network device that it belongs to.
	GID    string `json:"gid" wire:"name"`
	Type   string `json:"type" wire:"word"`
	Family string `json:"family" wire:"word"`
	Netdev string `json:"netdev,omitempty" wire:"name"`
}

// GIDTypes returns every type that an address can have.
func GIDTypes() []string { return []string{"ib", "roce_v1", "roce_v2"} }

// CounterGroup says where a counter was read.
type CounterGroup string

// The groups of counters.
const (
	// GroupPort: counters/ of a port in sysfs, which the InfiniBand specification names.
	GroupPort CounterGroup = "counters"
	// GroupHardware: hw_counters/ of a port or a device, in sysfs or by rdma statistic,
	// which the driver names.
	GroupHardware CounterGroup = "hw_counters"
	// GroupEthtool: statistics of the port's network device that ethtool names.
	GroupEthtool CounterGroup = "ethtool"
)

// CounterGroups returns every group.
func CounterGroups() []CounterGroup {
	return []CounterGroup{GroupPort, GroupHardware, GroupEthtool}
}

// Counter is one counter as the driver has it.
type Counter struct {
	Group CounterGroup `json:"group" wire:"key"`
	// Name is the driver's own.
	Name string `json:"name" wire:"name,key"`
	// Value is as it was read, in the driver's own unit.
	Value uint64 `json:"value"`
}

// RefusedCounters is a group of counters that could not be read.
type RefusedCounters struct {
	Group CounterGroup `json:"group" wire:"key"`
	// Errno is its symbol, or empty for what is no number.
	Errno  string `json:"errno,omitempty" wire:"word"`
	Detail string `json:"detail,omitempty"`
}

// Interrupt is the one that serves a completion vector.
type Interrupt struct {
	Vector int    `json:"comp_vector" wire:"key,max=65536"`
	IRQ    int    `json:"irq"`
	Name   string `json:"name" wire:"name"`
	// CPUs are those that it may run on, as the kernel lists them, Effective those that it
	// does run on; Isolated tells that all of these are isolated from the scheduler.
	CPUs      string `json:"cpus,omitempty"`
	Effective string `json:"effective_cpus,omitempty"`
	Isolated  bool   `json:"isolated,omitempty"`
	// Count is how often it came since the kernel started.
	Count uint64 `json:"count"`
}

// HardwareState is what is known of the hardware of a device.
type HardwareState struct {
	// Latest is what was read last, and Read when; Latest may be of an earlier time than
	// the last attempt. It is nil if nothing was read yet.
	Latest *Hardware `json:"latest,omitempty"`
	Read   time.Time `json:"read,omitzero"`
	// Failures counts the attempts since the last one that finished.
	Failures int `json:"failures"`
	// Failure is that of the last attempt; empty if there was none.
	Failure string `json:"failure,omitempty"`
	// Reading is as that of Hardware, of the last attempt.
	Reading string `json:"reading,omitempty"`
	// Next is when the device is read again, after a failure.
	Next time.Time `json:"next,omitzero"`
	// Stuck is a child that was killed while it read this device, and has not ended;
	// nil if there is none. The device is not read until it has.
	Stuck *Stuck `json:"stuck,omitempty"`
	// Drops are the counters that were lower than the time before.
	Drops []CounterDrop `json:"drops,omitempty"`
	// Links are how the states of its ports went, in the order of their numbers.
	Links []Link `json:"links,omitempty"`
}

// CounterDrop counts how often a counter was lower than the time before.
type CounterDrop struct {
	// Port is 0 for the device as a whole.
	Port  int          `json:"port"`
	Group CounterGroup `json:"group"`
	Name  string       `json:"name"`
	// Resets are those after which it may have restarted, Wraps those at the maximum of its
	// width.
	Resets uint64 `json:"resets"`
	Wraps  uint64 `json:"wraps"`
}

// Link is how the state of a port went since it was first looked at, over restarts of the
// exporter if there is a place to keep it.
type Link struct {
	Port int `json:"port"`
	// Active reports whether it is active now, and Since from when on, zero if it has been so
	// since it was first looked at.
	Active bool      `json:"active"`
	Since  time.Time `json:"since,omitzero"`
	// Ups and Downs count how often it became active, and stopped being it.
	Ups   uint64 `json:"ups"`
	Downs uint64 `json:"downs"`
	// Recent are the times of the latest changes to down, at most MaxRecent, for how often
	// it flapped in a window.
	Recent []time.Time `json:"recent,omitempty"`
	// MaxRate is the highest rate that it had while it was active, in bits a second; 0 if it
	// never was.
	MaxRate float64 `json:"max_rate_bits_per_second,omitempty"`
	// GIDChanges counts how often the list of its addresses was another than before.
	GIDChanges uint64 `json:"gid_changes"`
}

// MaxRecent is the most changes of a port whose times are kept.
const MaxRecent = 32

// LinkEvent is an event of the kernel about a network device.
type LinkEvent struct {
	Ifindex int
	Name    string
	// Removed is true if the namespace no longer has the device. The event then has no
	// other fields.
	Removed bool
	// Up reports whether an RDMA port on the device is active, as far as the device
	// decides: it is running and has a carrier. See ib_get_curr_port_state of
	// include/rdma/ib_verbs.h, which the kernel uses since Linux 6.14, and drivers before
	// (mlx5_query_port_roce, rxe_set_port_state): netif_running and netif_carrier_ok, of
	// which IFF_LOWER_UP has both (dev_get_flags of net/core/dev.c). With RoCE on a bond,
	// mlx5 uses the state of the bond.
	Up bool
	// CarrierUps and CarrierDowns are how often the carrier came and went since the device
	// was made. The kernel counts at once and sends one event for several changes
	// (net/core/link_watch.c). HasCounts is true if the event has them, as all have since
	// Linux 4.16 except events of wireless devices.
	CarrierUps   uint64
	CarrierDowns uint64
	HasCounts    bool
	// Lost is true if the kernel dropped events. The event then has no other fields. More
	// may be dropped until the waiting ones are read.
	Lost bool
}

// LinkHistory is how the links of a device went, as it is remembered while the device is not
// there, and over restarts of the exporter.
type LinkHistory struct {
	Links []Link `json:"links"`
	// PCI and BoardID are those of the adapter that they were of, empty if they are not
	// known.
	PCI     string `json:"pci_address,omitempty"`
	BoardID string `json:"board_id,omitempty"`
	// Away is since when the device is not there; zero if it was there to the last.
	Away time.Time `json:"away,omitzero"`
}

// MaxAway is how long a device may be away for its links to go on with what they were.
const MaxAway = 30 * 24 * time.Hour

// Forgotten tells whether the device is away for too long.
func (p *LinkHistory) Forgotten(now time.Time) bool {
	return !p.Away.IsZero() && now.Sub(p.Away) > MaxAway
}

// Of tells whether links can be of an adapter. Names of devices are given anew when
// adapters are added or moved.
func (p *LinkHistory) Of(a *Adapter) bool {
	other := func(was, is string) bool { return was != "" && is != "" && was != is }
	return !other(p.PCI, a.PCI) && !other(p.BoardID, a.BoardID)
}
