package simulated

import (
	_ "embed"
	"slices"
	"time"

	"rdma_exporter/verbs"
)

//go:embed default.yaml
var defaultYAML []byte

// Profile says which devices to simulate. default.yaml and docs/reference/simulator.md
// describe the keys.
//
// The tags of the fields are the rules of Validate: "of" is a list of words or its name,
// "keys" the list for the keys of a map, "in" the range of a number, which otherwise must not
// be negative. "max" limits the bytes of a text, "match" is a regular expression for it, and
// "example" is a valid one. An empty text is valid if YAML omits it.
type Profile struct {
	Devices []DeviceProfile `yaml:"devices"`
}

// DeviceProfile describes one simulated device. A field that stands for an enumeration
// holds the name that String of the type in package verbs returns.
type DeviceProfile struct {
	// Name becomes a label and a path in reports. The kernel allows 63 bytes.
	Name string `yaml:"name" match:"[0-9A-Za-z][0-9A-Za-z_.-]{0,62}" example:"sim_rxe0"`
	// Like is resolved and cleared by ParseProfile.
	Like                     string             `yaml:"like,omitempty"`
	Driver                   string             `yaml:"driver,omitempty" match:"[0-9a-z_]{0,32}" example:"bnxt_re"`
	Kernel                   string             `yaml:"kernel,omitempty" match:"[0-9]+\\.[0-9]+[0-9A-Za-z.+~_-]{0,56}" example:"6.1"`
	Transport                string             `yaml:"transport" of:"transport"`
	Firmware                 string             `yaml:"fw_version" max:"63" example:"20.31.1014"`
	VendorID                 uint32             `yaml:"vendor_id"`
	VendorPartID             uint32             `yaml:"vendor_part_id"`
	HWVersion                uint32             `yaml:"hw_version"`
	NodeGUID                 string             `yaml:"node_guid" match:"[0-9a-fA-F]{4}(:[0-9a-fA-F]{4}){3}" example:"5254:00ff:fe12:3456"`
	Ports                    []PortProfile      `yaml:"ports"`
	CompletionVectors        int                `yaml:"completion_vectors" in:"1-2147483647"`
	QPTypes                  []string           `yaml:"qp_types" of:"qp type"`
	RawPacketNeedsPermission bool               `yaml:"raw_packet_needs_permission"`
	Limits                   verbs.Limits       `yaml:"limits"`
	Extended                 verbs.ExtendedAttr `yaml:"extended,omitempty"`
	MaxInlineData            int                `yaml:"max_inline_data" in:"0-1048576"`
	Registration             struct {
		Memlock int64 `yaml:"memlock_bytes,omitempty"`
	} `yaml:"registration,omitempty"`
	Rounding          string                              `yaml:"rounding" of:"exact rxe ib"`
	Memory            Costs                               `yaml:"memory"`
	DefaultLatency    time.Duration                       `yaml:"default_latency"`
	Latency           replaced[verbs.Verb, time.Duration] `yaml:"latency,omitempty" keys:"verb"`
	CompletionLatency CompletionLatency                   `yaml:"completion_latency,omitempty"`
	Bandwidth         float64                             `yaml:"bandwidth_bytes_per_second,omitempty"`
	Vanish            bool                                `yaml:"vanish,omitempty"`
	Faults            []Fault                             `yaml:"faults,omitempty"`
	CompletionFaults  []CompletionFault                   `yaml:"completion_faults,omitempty"`
	Violate           []string                            `yaml:"violate,omitempty" of:"contract"`
	AsyncEvents       []string                            `yaml:"async_events,omitempty" of:"asynchronous event"`
	HardwareFaults    []string                            `yaml:"hardware_faults,omitempty" of:"hang fail refused not_numeric saturated all_ones reset slow_link slow_pci flapping"`
	Resources         Resources                           `yaml:"resources,omitempty"`
}

// PortProfile describes a port.
type PortProfile struct {
	Number      int          `yaml:"number" in:"1-255"`
	State       string       `yaml:"state" of:"port state"`
	LinkLayer   string       `yaml:"link_layer" of:"link layer"`
	LID         uint16       `yaml:"lid,omitempty"`
	ActiveMTU   int          `yaml:"active_mtu" of:"256 512 1024 2048 4096"`
	PKeys       int          `yaml:"pkeys,omitempty" in:"0-65535"`
	PKeyTable   []uint16     `yaml:"pkey_table,omitempty"`
	GRHRequired bool         `yaml:"grh_required,omitempty"`
	GIDs        []GIDProfile `yaml:"gids"`
}

// GIDProfile is a used entry of a GID table.
type GIDProfile struct {
	Index int    `yaml:"index" in:"0-255"`
	GID   string `yaml:"gid"`
	Type  string `yaml:"type" of:"GID type"`
}

// Costs say what an object of each kind costs. Objects of other kinds cost nothing.
type Costs struct {
	CompChannel Cost `yaml:"comp_channel"`
	CQ          Cost `yaml:"cq"`
	SRQ         Cost `yaml:"srq"`
	QP          Cost `yaml:"qp"`
}

// Cost is what an object costs, in bytes. The entries of a CQ are its completions, those
// of an SRQ its work requests, and those of a QP its send and receive work requests.
type Cost struct {
	Virtual         uint64 `yaml:"virtual,omitempty"`
	Locked          uint64 `yaml:"locked,omitempty"`
	VirtualPerEntry uint64 `yaml:"virtual_per_entry,omitempty"`
	LockedPerEntry  uint64 `yaml:"locked_per_entry,omitempty"`
}

// Fault makes calls of one verb misbehave. It has exactly one action: Errno, Short,
// Ignore, Delay, Hang or Crash. If several faults act on a call, they do so in the order
// of the profile.
type Fault struct {
	// Verb is the verb whose calls count. ibv_get_device_list is that of all devices.
	Verb verbs.Verb `yaml:"verb" of:"verb"`
	// When reports whether a call counts. Nil means that all do. Only programs can set
	// it, and child processes do not have it.
	When func(Call) bool `yaml:"-"`
	// Times is the number of calls that are affected after the first After. Zero means all.
	After  int           `yaml:"after,omitempty"`
	Times  int           `yaml:"times,omitempty"`
	Errno  string        `yaml:"errno,omitempty" of:"errno"`
	Short  int           `yaml:"short,omitempty"`
	Ignore bool          `yaml:"ignore,omitempty"`
	Delay  time.Duration `yaml:"delay,omitempty"`
	Hang   bool          `yaml:"hang,omitempty"`
	Crash  bool          `yaml:"crash,omitempty"`
}

// Call describes a call of a verb to Fault.When. A field that does not apply is zero.
type Call struct {
	// QPType and State are those of the QP, and To is the state that ibv_modify_qp asks for.
	QPType    verbs.QPType
	State, To verbs.QPState
	// Port and GID are the port and the GID index of the call or of its QP. Global is true
	// if there is a GID index.
	Port, GID int
	Global    bool
	// Inline is the size of inline data, requested of a QP or sent. Length is that of a
	// memory region.
	Inline, Length int
}

// CompletionLatency holds the medians of the times that verbs.Device.Measure finds, from
// posting a work request until the process has its completion. Without a median, the time is
// what the simulation takes, mainly Go's scheduler. Outside a measurement completions take no
// time.
type CompletionLatency struct {
	Polled      time.Duration                `yaml:"polled,omitempty"`
	Notified    time.Duration                `yaml:"notified,omitempty"`
	Jitter      float64                      `yaml:"jitter,omitempty"`
	SlowVectors replaced[int, time.Duration] `yaml:"slow_vectors,omitempty"`
}

// CompletionFault makes completions or their events misbehave. If several faults act on
// one, they do so in the order of the profile.
type CompletionFault struct {
	Fault string `yaml:"fault" of:"drop_event delay_event misdirect_event misname_event spurious_event lose_completion never_complete fail_completion"`
	// Path limits the fault to flushed work requests, or to all others.
	Path   string        `yaml:"path,omitempty" of:"loopback flush"`
	After  int           `yaml:"after,omitempty"`
	Times  int           `yaml:"times,omitempty"`
	Status string        `yaml:"status,omitempty" of:"status"`
	Delay  time.Duration `yaml:"delay,omitempty"`
}

// Default returns a new copy of the built-in profile: sim_rxe0, like Soft-RoCE;
// sim_siw0, like a software iWARP device; sim_ib0, like an InfiniBand adapter with one
// active and one inactive port.
func Default() *Profile {
	p, err := ParseProfile("default.yaml", defaultYAML)
	if err != nil {
		panic(err) // part of the program, not input
	}
	return p
}

// Names returns the names of the devices, sorted.
func (p *Profile) Names() []string {
	var names []string
	for _, d := range p.Devices {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}

// Only returns the profile of one device of p, which it shares with p. Without a name, it
// returns p.
func (p *Profile) Only(name string) *Profile {
	i := slices.IndexFunc(p.Devices, func(d DeviceProfile) bool { return d.Name == name })
	switch {
	case name == "":
		return p
	case i < 0:
		return &Profile{Devices: []DeviceProfile{}}
	}
	return &Profile{Devices: p.Devices[i : i+1 : i+1]}
}
