package simulated

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/input"
	"rdma_exporter/verbs"
)

//go:embed default.yaml
var defaultYAML []byte

// Profile says which devices to simulate.
type Profile struct {
	// Devices are the devices. An empty list is a host without any.
	Devices []DeviceProfile `yaml:"devices"`
}

// DeviceProfile describes one simulated device. Fields that stand for an
// enumeration hold its name, as String of the type in package verbs has it.
type DeviceProfile struct {
	// Name is the device's name, unique in the profile.
	Name string `yaml:"name"`
	// Like names a device of the default profile from which every key that the
	// file leaves out is taken. ParseProfile resolves and clears it; in a profile
	// made otherwise it must be empty.
	Like string `yaml:"like,omitempty"`
	// Driver is the name of the driver that the device is said to have, such as mlx5,
	// and Kernel the release of the kernel, such as 6.1, that it is said to be of. What
	// the driver is known for is not held against the device. Both may be empty.
	Driver string `yaml:"driver,omitempty"`
	Kernel string `yaml:"kernel,omitempty"`
	// Transport is the name of a verbs.Transport.
	Transport string `yaml:"transport"`
	// Firmware is fw_ver, at most 63 bytes.
	Firmware     string `yaml:"fw_version"`
	VendorID     uint32 `yaml:"vendor_id"`
	VendorPartID uint32 `yaml:"vendor_part_id"`
	HWVersion    uint32 `yaml:"hw_version"`
	// NodeGUID is written as sysfs does: 5254:00ff:fe12:3456.
	NodeGUID string `yaml:"node_guid"`
	// Ports are the ports, in the order of their numbers from 1.
	Ports []PortProfile `yaml:"ports"`
	// CompletionVectors is num_comp_vectors, at least 1.
	CompletionVectors int `yaml:"completion_vectors"`
	// QPTypes are the names of the verbs.QPTypes that can be created; others fail
	// with EOPNOTSUPP. SRD, a type of one driver alone, is not even tried on a device
	// that does not list it.
	QPTypes []string `yaml:"qp_types"`
	// RawPacketNeedsPermission makes the creation of a raw packet QP fail with
	// EPERM, as it does for a process without CAP_NET_RAW.
	RawPacketNeedsPermission bool `yaml:"raw_packet_needs_permission"`
	// XRC is whether the device has extended reliable connections.
	XRC bool `yaml:"xrc,omitempty"`
	// Limits are what ibv_query_device says.
	Limits Limits `yaml:"limits"`
	// CQModeration is the most that CQs can be moderated (cq_mod_caps); the zero value if
	// they cannot be.
	CQModeration Moderation `yaml:"cq_moderation,omitempty"`
	// Extended is what else ibv_query_device_ex says.
	Extended Extended `yaml:"extended,omitempty"`
	// MaxInlineData is the most inline data that a QP can be given, in bytes. No
	// verb tells it.
	MaxInlineData int `yaml:"max_inline_data"`
	// Registration says which memory can be registered.
	Registration Registration `yaml:"registration,omitempty"`
	// Rounding says which sizes objects are given.
	Rounding Rounding `yaml:"rounding"`
	// Memory says what objects cost.
	Memory Costs `yaml:"memory"`
	// DefaultLatency is the least time that verbs take which Latency does not
	// name. Posting, polling, arming, waiting for events and acknowledging them
	// take no time of their own unless named.
	DefaultLatency time.Duration `yaml:"default_latency"`
	// Latency is the least time that a verb takes.
	Latency map[verbs.Verb]time.Duration `yaml:"latency,omitempty"`
	// CompletionLatency says how long completions take to reach the process.
	CompletionLatency CompletionLatency `yaml:"completion_latency,omitempty"`
	// Vanish makes the device one that is listed but gone: opening it fails with
	// ENODEV.
	Vanish bool `yaml:"vanish,omitempty"`
	// Faults are the ways in which verbs of the device misbehave.
	Faults []Fault `yaml:"faults,omitempty"`
	// CompletionFaults are the ways in which completions and events misbehave.
	CompletionFaults []CompletionFault `yaml:"completion_faults,omitempty"`
	// Violate names the contracts that the device breaks, each of those that
	// Contracts returns in a way of its own that leaves the others unbroken.
	Violate []string `yaml:"violate,omitempty"`
	// AsyncEvents names the asynchronous events, as verbs.AsyncEventType does, that come as
	// soon as the device is opened. Those of a port are of port 1.
	AsyncEvents []string `yaml:"async_events,omitempty"`
	// HardwareFaults names what is wrong with the hardware, or with reading it: some of
	// those that HardwareFaults returns.
	HardwareFaults []string `yaml:"hardware_faults,omitempty"`
	// Resources is what the kernel tells of the objects on the device.
	Resources Resources `yaml:"resources,omitempty"`
}

// PortProfile describes a port.
type PortProfile struct {
	// Number counts from 1.
	Number int `yaml:"number"`
	// State is the name of a verbs.PortState.
	State string `yaml:"state"`
	// LinkLayer is the name of a verbs.LinkLayer.
	LinkLayer string `yaml:"link_layer"`
	LID       uint16 `yaml:"lid,omitempty"`
	// ActiveMTU is in bytes: 256, 512, 1024, 2048 or 4096.
	ActiveMTU int `yaml:"active_mtu"`
	// PKeys is the size of the partition key table; 0 stands for 1.
	PKeys int `yaml:"pkeys,omitempty"`
	// PKeyTable are the first entries of that table, {0xffff} if it is empty. The
	// others are 0: not used.
	PKeyTable []uint16 `yaml:"pkey_table,omitempty"`
	// GRHRequired has an InfiniBand port take global addresses only.
	GRHRequired bool `yaml:"grh_required,omitempty"`
	// GIDs are the used entries of the GID table.
	GIDs []GIDProfile `yaml:"gids"`
}

// GIDProfile is a used entry of a GID table.
type GIDProfile struct {
	Index int `yaml:"index"`
	// GID is written as an IPv6 address.
	GID string `yaml:"gid"`
	// Type is the name of a verbs.GIDType.
	Type string `yaml:"type"`
}

// Limits are the fields of verbs.Limits under the names of struct
// ibv_device_attr. A max_srq, max_ah or max_mcast_grp of 0 means that the device
// has no such objects: creating one fails with EOPNOTSUPP.
type Limits struct {
	MaxMRSize       uint64 `yaml:"max_mr_size"`
	MaxQP           int    `yaml:"max_qp"`
	MaxQPWR         int    `yaml:"max_qp_wr"`
	MaxSGE          int    `yaml:"max_sge"`
	MaxCQ           int    `yaml:"max_cq"`
	MaxCQE          int    `yaml:"max_cqe"`
	MaxMR           int    `yaml:"max_mr"`
	MaxPD           int    `yaml:"max_pd"`
	MaxQPRdAtom     int    `yaml:"max_qp_rd_atom"`
	MaxQPInitRdAtom int    `yaml:"max_qp_init_rd_atom"`
	MaxMW           int    `yaml:"max_mw"`
	MaxAH           int    `yaml:"max_ah"`
	MaxMcastGroup   int    `yaml:"max_mcast_grp"`
	MaxMcastQP      int    `yaml:"max_mcast_qp_attach"`
	MaxSRQ          int    `yaml:"max_srq"`
	MaxSRQWR        int    `yaml:"max_srq_wr"`
	MaxSRQSGE       int    `yaml:"max_srq_sge"`
	MaxPKeys        int    `yaml:"max_pkeys"`
}

// Extended are attributes under the names that struct ibv_device_attr_ex gives them.
type Extended struct {
	// TimestampMask is the largest timestamp of a completion; 0 if there are none.
	TimestampMask uint64 `yaml:"completion_timestamp_mask"`
	// CoreClock is in kHz.
	CoreClock     uint64 `yaml:"hca_core_clock"`
	RawPacketCaps uint32 `yaml:"raw_packet_caps"`
	MaxDMSize     uint64 `yaml:"max_dm_size"`
}

// Moderation is how much CQs can be moderated.
type Moderation struct {
	// Count is max_cq_count, in completions.
	Count uint16 `yaml:"max_count"`
	// Period is max_cq_period, in microseconds.
	Period uint16 `yaml:"max_period"`
}

// Costs say what each object of a kind costs. Others than these cost nothing.
type Costs struct {
	CompChannel Cost `yaml:"comp_channel"`
	CQ          Cost `yaml:"cq"`
	SRQ         Cost `yaml:"srq"`
	QP          Cost `yaml:"qp"`
}

// Cost is what an object costs, in bytes. The entries of a CQ are its
// completions, those of an SRQ its work requests, those of a QP its send and
// receive work requests together; other objects have none.
type Cost struct {
	Virtual         uint64 `yaml:"virtual,omitempty"`
	Locked          uint64 `yaml:"locked,omitempty"`
	VirtualPerEntry uint64 `yaml:"virtual_per_entry,omitempty"`
	LockedPerEntry  uint64 `yaml:"locked_per_entry,omitempty"`
}

// Fault makes calls of one verb misbehave. It has exactly one action: Errno,
// Short, Ignore, Delay, Hang or Crash. If several faults act on a call, they do so in
// the order of the profile.
type Fault struct {
	// Verb is the verb whose calls count. A fault of ibv_get_device_list acts on
	// the list of all devices.
	Verb verbs.Verb `yaml:"verb"`
	// When says which calls are counted; the zero value: all. Devices differ in what they refuse
	// in which state: that is told by this.
	When Condition `yaml:"when,omitempty"`
	// After is the number of calls that come first and are not affected.
	After int `yaml:"after,omitempty"`
	// Times is the number of calls that are affected; 0 means all.
	Times int `yaml:"times,omitempty"`
	// Errno is the symbol ("ENOMEM") of the error with which the verb fails. It
	// then does nothing else: what it should destroy stays. "no_errno" is a verb that
	// fails and sets no errno.
	Errno string `yaml:"errno,omitempty"`
	// Short makes each size that the verb gives smaller, by so many, than the one
	// that was asked for, but not smaller than 0. Only verbs that give sizes can
	// come up short: ibv_create_cq, ibv_resize_cq, ibv_create_srq, ibv_query_srq, ibv_create_qp
	// and ibv_query_qp. Sizes of 0 stay.
	Short int `yaml:"short,omitempty"`
	// Ignore makes the verb succeed and do nothing: a work request never completes,
	// a CQ is not armed. Only verbs that give nothing can be ignored: those that
	// post, ibv_req_notify_cq, ibv_modify_srq and ibv_modify_qp.
	Ignore bool `yaml:"ignore,omitempty"`
	// Delay makes the verb take longer.
	Delay time.Duration `yaml:"delay,omitempty"`
	// Hang makes the verb never return.
	Hang bool `yaml:"hang,omitempty"`
	// Crash ends the process by SIGABRT within the verb.
	Crash bool `yaml:"crash,omitempty"`
}

// CompletionLatency says which times verbs.Device.Measure finds: those from
// posting a work request until the process has its completion. They are medians;
// the times themselves are drawn from a distribution with a long tail, in an
// order that only depends on the name of the device. Without a median the time is
// what the simulation really took, mostly that of Go's scheduler. Outside a
// measurement completions take no time.
type CompletionLatency struct {
	// Polled is the time until a completion is polled.
	Polled time.Duration `yaml:"polled,omitempty"`
	// Notified is the time until its event is returned.
	Notified time.Duration `yaml:"notified,omitempty"`
	// Jitter says how much the times differ, from 0, not at all, to 1: it is the
	// standard deviation of their logarithm, if the tail is left aside.
	Jitter float64 `yaml:"jitter,omitempty"`
	// SlowVectors stands in for Notified for the CQs of some completion vectors. A
	// vector that the device does not have does not matter.
	SlowVectors map[int]time.Duration `yaml:"slow_vectors,omitempty"`
}

// CompletionFault makes completions, or the events that tell of them, misbehave.
// If several faults act on one, they do so in the order of the profile.
type CompletionFault struct {
	// Fault is what goes wrong, one of FaultDropEvent and so on. It says also what
	// is counted: the events of the device that are due, for FaultSpuriousEvent the
	// armings of a CQ that has a channel, for the faults of completions all
	// completions of the device that a CQ has room for.
	Fault string `yaml:"fault"`
	// Path, if it is not empty, has the fault count and act on completions of one
	// path only, PathLoopback or PathFlush, or on their events. FaultSpuriousEvent
	// takes none.
	Path string `yaml:"path,omitempty"`
	// After is the number of those that come first and are not affected.
	After int `yaml:"after,omitempty"`
	// Times is the number of those that are affected; 0 means all.
	Times int `yaml:"times,omitempty"`
	// Status is the name of the verbs.WCStatus of FaultFailCompletion.
	Status string `yaml:"status,omitempty"`
	// Delay is by how much FaultDelayEvent delays.
	Delay time.Duration `yaml:"delay,omitempty"`
}

// Default returns a new copy of the built-in profile: sim_rxe0, like Soft-RoCE;
// sim_siw0, like a software iWARP device; sim_ib0, like an InfiniBand adapter
// with one active and one inactive port.
func Default() *Profile {
	p, err := parse("default.yaml", defaultYAML)
	if err != nil {
		panic(err) // part of the program, not input
	}
	return p
}

// LoadProfile reads a profile from a file, which must be a regular one. See [ParseProfile] for its errors.
func LoadProfile(path string) (*Profile, error) {
	data, err := input.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read profile of simulated devices: %w", err)
	}
	p, err := parse(path, data)
	if err != nil {
		return nil, err
	}
	if err := checkWhole(path, data, p); err != nil {
		return nil, err
	}
	return p, nil
}

// ParseProfile parses and validates a profile. Keys that it does not know are
// errors. All problems are reported at once; each is a [*ProfileError].
func ParseProfile(data []byte) (*Profile, error) {
	return parse("profile", data)
}

// Marshal returns the profile as YAML that ParseProfile understands.
func (p *Profile) Marshal() ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("encode profile: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("encode profile: %w", err)
	}
	return out.Bytes(), nil
}

// Names returns the names of the devices, sorted.
func (p *Profile) Names() []string {
	names := make([]string, 0, len(p.Devices))
	for _, d := range p.Devices {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}

// Only returns the profile of the device of p with a name, which it shares with p; without
// a name, p.
func (p *Profile) Only(name string) *Profile {
	if name == "" {
		return p
	}
	only := &Profile{Devices: []DeviceProfile{}}
	for i := range p.Devices {
		if p.Devices[i].Name == name {
			only.Devices = p.Devices[i : i+1 : i+1]
		}
	}
	return only
}

// Scale returns a new profile with n devices. It repeats those of p in turn; the
// first round keeps the names, later ones add their number: sim_rxe0, sim_rxe0_1,
// sim_rxe0_2. The node GUIDs of later rounds differ, too. If p has no devices or
// n is not positive, neither has the result.
func (p *Profile) Scale(n int) *Profile {
	scaled := &Profile{Devices: []DeviceProfile{}}
	if len(p.Devices) == 0 {
		return scaled
	}
	used := make(map[string]bool, n)
	for _, d := range p.Devices {
		used[d.Name] = true
	}
	for i := range n {
		d := p.Devices[i%len(p.Devices)].clone()
		if round := i / len(p.Devices); round > 0 {
			base := d.Name
			for suffix := round; used[d.Name]; suffix += n {
				d.Name = base + "_" + strconv.Itoa(suffix)
			}
			used[d.Name] = true
			d.NodeGUID = otherGUID(d.NodeGUID, round)
		}
		scaled.Devices = append(scaled.Devices, d)
	}
	return scaled
}

// otherGUID returns the round-th other GUID. One that is no GUID stays, for
// Validate to report.
func otherGUID(s string, round int) string {
	g, ok := parseGUID(s)
	if !ok {
		return s
	}
	g[1] ^= byte(round >> 16 & math.MaxUint8)
	g[2] ^= byte(round >> 8 & math.MaxUint8)
	g[3] ^= byte(round & math.MaxUint8)
	return g.String()
}

// clone returns a copy that shares nothing with d.
func (d DeviceProfile) clone() DeviceProfile {
	d.Ports = slices.Clone(d.Ports)
	for i := range d.Ports {
		d.Ports[i].GIDs = slices.Clone(d.Ports[i].GIDs)
		d.Ports[i].PKeyTable = slices.Clone(d.Ports[i].PKeyTable)
	}
	d.QPTypes = slices.Clone(d.QPTypes)
	d.Rounding = d.Rounding.clone()
	d.Latency = maps.Clone(d.Latency)
	d.Faults = slices.Clone(d.Faults)
	for i := range d.Faults {
		d.Faults[i].When = d.Faults[i].When.clone()
	}
	d.CompletionLatency.SlowVectors = maps.Clone(d.CompletionLatency.SlowVectors)
	d.CompletionFaults = slices.Clone(d.CompletionFaults)
	d.Violate = slices.Clone(d.Violate)
	d.AsyncEvents = slices.Clone(d.AsyncEvents)
	d.HardwareFaults = slices.Clone(d.HardwareFaults)
	d.Resources = d.Resources.clone()
	return d
}
