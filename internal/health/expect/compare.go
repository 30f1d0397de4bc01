package expect

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Difference is one way in which a host differs from a rule.
type Difference struct {
	// Device is empty if the difference is not that of a single device.
	Device string
	// Key is that of the rule, and Subject adds which devices it is about.
	Key, Subject string
	Message      string
	// Ports are those that are not active, if Key is active_ports.
	Ports []int
	// Unread is true if what there is could not be read.
	Unread bool
}

// maxNames limits what a message lists.
const maxNames = 32

// Devices returns the number of devices that the rules expect: that of all if there is one, else the sum. Nil means
// that they expect no number.
func (all Rules) Devices() (sum *int) {
	for _, r := range all {
		if r.Devices != nil && r.Device == "" {
			return r.Devices
		}
		if r.Devices != nil {
			sum = new(*cmp.Or(sum, new(int)) + *r.Devices)
		}
	}
	return sum
}

// Compare returns how a snapshot differs from the rules. It accepts any snapshot. Once is true if no later snapshot has
// what is missing in this one. The RLIMIT_MEMLOCK of this process is nil if it says nothing about jobs.
func (all Rules) Compare(s *state.Snapshot, once bool, memlock *int64) (found []Difference) {
	for i := range all {
		c := comparison{Rule: &all[i], once: once, values: all[i].values()}
		names, err := Names(c.Device)
		for n := range s.Devices {
			d := &s.Devices[n]
			if err == nil && names.MatchString(d.Name) && (c.Device != "" || !hardwareOf(d).Identity.Virtual()) {
				c.device(d)
			}
		}
		c.host(memlock)
		found = append(found, c.found...)
	}
	return found
}

type comparison struct {
	*Rule
	once   bool
	values map[string]string
	found  []Difference
	// names are the devices that are there. Of those that vanished there is a finding already.
	names    []string
	vanished int
	// matched is true if the rule is about any device, present or not.
	matched bool
	// pending is true if a device is too new to know its ports.
	pending bool
	active  int
	// down are the ports that are not active, and dead the devices without an active port.
	down []port
	dead []string
}

// port has empty fields if the kernel's files of the port could not be read.
type port struct {
	state.HardwarePort
	device, mtu string
}

func (p *port) isActive() bool { return state.IsActive(p.State) }

func (p *port) roce() string {
	if p.RoCEv2IPv4 != nil || p.LinkLayer == "" {
		return map[bool]string{true: "true"}[p.RoCEv2IPv4 != nil]
	}
	return "no such GID"
}

// portsOf returns the ports of a device. If it cannot be opened, they are those of the kernel's files.
func portsOf(d *state.DeviceState) (all []port) {
	hardware := hardwareOf(d).Ports
	if d.Last == nil || d.Last.Info == nil {
		for _, h := range hardware {
			all = append(all, port{h, d.Name, ""})
		}
		return all
	}
	for _, p := range d.Last.Info.Ports {
		of := port{device: d.Name, mtu: strconv.Itoa(p.ActiveMTU)}
		if i := slices.IndexFunc(hardware, func(h state.HardwarePort) bool { return h.Number == p.Number }); i >= 0 {
			of.HardwarePort = hardware[i]
		}
		of.Number, of.State = p.Number, p.State
		all = append(all, of)
	}
	return all
}

func (c *comparison) device(d *state.DeviceState) {
	c.matched = true
	if !d.Present {
		c.vanished += map[bool]int{false: 1}[d.Vanished.IsZero()]
		return
	}
	c.names = append(c.names, text.Name(d.Name))
	if d.Last == nil && !c.once {
		c.pending = true
		return
	}
	all, is := portsOf(d), hardwareOf(d)
	active := slices.DeleteFunc(slices.Clone(all), func(p port) bool { return !p.isActive() })
	c.active += len(active)
	c.down = append(c.down, slices.DeleteFunc(all, func(p port) bool { return p.isActive() })...)
	if len(active) == 0 {
		c.dead = append(c.dead, d.Name)
	}
	c.each(d, "mtu", c.values["mtu"], active, func(p *port) string { return p.mtu })
	c.version(d, "firmware", cmp.Or(d.Info, new(state.Device)).Firmware)
	if d.Hardware != nil || c.once { // Otherwise it will be read soon.
		c.each(d, "rate", rateText(bitsPerSecond(c.Rate)), active, func(p *port) string { return rateText(p.Rate) })
		c.each(d, "roce_v2_ipv4", c.values["roce_v2_ipv4"], active, (*port).roce)
		c.version(d, "driver", is.Identity.DriverVersion, is.Driver)
	}
	var got []string
	for _, o := range cmp.Or(cmp.Or(d.Resources, new(state.Resources)).Inventory, new(state.Inventory)).Owners {
		// A process that has more than it may is exempt, by the capability IPC_LOCK.
		if m := o.Memlock; m != nil && c.isLess(m.Limit) && max(m.Pinned, m.Locked) <= m.Limit {
			got = append(got, fmt.Sprintf("pid %d (%s) may lock %s", o.PID, text.Name(o.Comm), text.Bytes(m.Limit)))
		}
	}
	c.differ(Difference{Device: d.Name, Key: "memlock"}, got)
}

// each compares a value of each port. An empty one is not known.
func (c *comparison) each(d *state.DeviceState, key, wanted string, all []port, value func(*port) string) {
	var got []string
	unread := true
	for i := range all {
		p := &all[i]
		if is := value(p); wanted != "" && is != wanted {
			got = append(got, fmt.Sprintf("port %d has %s", p.Number, cmp.Or(is, "an unknown one")))
			unread = unread && is == ""
		}
	}
	c.differ(Difference{Device: d.Name, Key: key, Unread: unread}, got)
}

// version compares a version, of which any of several forms may match.
func (c *comparison) version(d *state.DeviceState, key string, forms ...string) {
	is := cmp.Or(forms...)
	matches := func(s string) bool { ok, err := path.Match(c.values[key], s); return ok && err == nil }
	if c.values[key] != "" && (is == "" || !slices.ContainsFunc(forms, matches)) {
		c.differ(Difference{Device: d.Name, Key: key, Unread: is == ""}, []string{"it is " + cmp.Or(text.Name(is), "not known")})
	}
}

func (c *comparison) isLess(limit int64) bool {
	wanted := lockable(c.Memlock)
	return limit >= 0 && (wanted < 0 || limit < wanted)
}

// host compares the numbers of devices and active ports, and the limit of this process.
func (c *comparison) host(memlock *int64) {
	if memlock != nil && c.isLess(*memlock) {
		c.differ(Difference{Key: "memlock"}, []string{"this process, and what else its parent starts, may lock " + text.Bytes(*memlock)})
	}
	if c.Device != "" && c.Devices == nil && c.ActivePorts == nil && !c.matched {
		c.differ(Difference{Key: "device"}, []string{"no device has such a name"})
	}
	missing := *cmp.Or(c.Devices, new(int)) - len(c.names) - c.vanished
	if missing > 0 {
		is := fmt.Sprintf("there %s %d", text.Either(len(c.names), "is", "are"), len(c.names))
		c.differ(Difference{Key: "devices"}, []string{text.JoinWords(": ", is, text.Join(c.names, ", ", maxNames))})
	}
	short := *cmp.Or(c.ActivePorts, new(int)) - c.active
	if short <= 0 || c.pending {
		return
	}
	// If more are down than are missing, some are not meant to be cabled, and it is not known which.
	var blamed []string
	if len(c.dead) <= short {
		blamed = append(blamed, c.dead...)
	}
	for _, p := range c.down {
		if len(c.down) <= short {
			blamed = append(blamed, p.device)
		}
	}
	slices.Sort(blamed)
	for _, device := range slices.Compact(blamed) {
		c.inactive(device, slices.DeleteFunc(slices.Clone(c.down), func(p port) bool { return p.device != device }))
	}
	// Devices that are gone are reported already, and their ports with them.
	if len(blamed) == 0 && missing <= 0 && c.vanished == 0 {
		c.inactive("", c.down)
	}
}

func (c *comparison) inactive(device string, down []port) {
	d := Difference{Device: device, Key: "active_ports", Unread: len(down) == 0}
	all := c.active + len(c.down)
	got := []string{fmt.Sprintf("%d of %s active", c.active, text.Count(all, "port is", "ports are"))}
	for i := range down {
		p := &down[i]
		d.Ports = append(d.Ports, p.Number)
		name := map[bool]string{true: text.Name(p.device) + " "}[device == ""]
		got = append(got, fmt.Sprintf("%sport %d is %s", name, p.Number, cmp.Or(text.Name(p.State), "in an unknown state")))
	}
	c.differ(d, got)
}

// differ adds a difference, unless there is nothing that differs.
func (c *comparison) differ(d Difference, got []string) {
	if len(got) == 0 {
		return
	}
	selected := text.Name(c.Device)
	if selected == ".*" {
		selected = ""
	}
	d.Subject = d.Key
	if d.Device == "" {
		d.Subject = text.JoinWords(" of ", d.Key, selected)
	}
	expected := text.JoinWords(" of ", fmt.Sprintf("`%s: %s` is expected", d.Key, text.Name(c.values[d.Key])), selected)
	d.Message = fmt.Sprintf("%s, but %s.", expected, text.Join(got, ", ", maxNames))
	c.found = append(c.found, d)
}
