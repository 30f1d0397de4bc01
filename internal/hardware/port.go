package hardware

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"rdma_exporter/internal/state"
)

// maxChips limits the chips of hwmon, and the sensors of modules, that are read.
const maxChips = 64

func (d *device) port(number int) state.HardwarePort {
	p := state.HardwarePort{Number: number}
	dir := filepath.Join(d.dir, "ports", strconv.Itoa(number))
	if layer := d.text(filepath.Join(dir, "link_layer")); isWord(layer) {
		p.LinkLayer = layer
	}
	p.State = d.state(filepath.Join(dir, "state"))
	p.PhysState = d.state(filepath.Join(dir, "phys_state"))
	p.Rate, p.Width, p.Speed = parseRate(d.text(filepath.Join(dir, "rate")))
	if !d.Without.GIDs {
		d.gids(&p, dir)
	}
	d.netdev(&p, dir)
	d.rate(&p)
	if !d.Without.Adapter {
		p.TemperatureCelsius = d.temperature(number)
	}
	if !d.Without.Counters {
		d.counters(&p, dir)
	}
	return p
}

// isWord reports whether a text consists of letters, digits and what joins them.
func isWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_-. ", c)
	})
}

// state returns the state in a file such as state, which has "4: ACTIVE", as active, and in
// phys_state, which has "5: LinkUp", as link_up.
func (d *device) state(path string) string {
	s := d.text(path)
	if _, after, ok := strings.Cut(s, ":"); ok {
		s = after
	}
	s = strings.Trim(s, " <>")
	if !isWord(s) {
		return ""
	}
	var b strings.Builder
	var lower bool // the character before
	for _, c := range s {
		switch {
		case c == ' ' || c == '-':
			c = '_'
		case unicode.IsUpper(c) && lower:
			b.WriteByte('_')
		}
		lower = unicode.IsLower(c)
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// parseRate parses a rate such as "100 Gb/sec (4X EDR)", in bits per second. Unknown values are 0.
func parseRate(s string) (rate float64, width int, speed float64) {
	number, rest, ok := strings.Cut(s, " Gb/sec")
	gigabits, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(gigabits > 0 && gigabits < 1e5) {
		return 0, 0, 0
	}
	rate = gigabits * 1e9
	lanes, _, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(rest), "("), "X")
	w, err := strconv.ParseUint(lanes, 10, 8)
	if !ok || err != nil || w == 0 {
		return rate, 0, 0
	}
	return rate, int(w), rate / float64(w)
}

// rate prefers the speed of an Ethernet port's network device to the rate of the RDMA driver, which
// is a constant with mana, and with efa, hns and new link modes of mlx5 in older kernels. The speed
// of a bond is the sum of its members that can transmit.
func (d *device) rate(p *state.HardwarePort) {
	if d.table == "mana" { // mana_ib_query_port reports 4X EDR, whatever the link.
		p.Rate, p.Width, p.Speed = 0, 0, 0
	}
	if p.Rate > 0 {
		p.RateFrom = "rdma"
	}
	if p.LinkLayer != "Ethernet" || p.Ifindex == 0 || d.software() {
		return
	}
	megabits, ok := d.int(filepath.Join(d.Sysfs, "class/net", p.Netdev, "speed"))
	if !ok || megabits <= 0 || megabits >= 1e8 {
		return
	}
	if p.Bond == p.Netdev {
		if _, all := d.members(p.Bond); !all {
			return
		}
	}
	if rate := float64(megabits) * 1e6; rate != p.Rate {
		p.Rate, p.Width, p.Speed = rate, 0, 0
	}
	p.RateFrom = "netdev"
}

// members returns the members of a bond that are on the adapter, and whether all are.
func (d *device) members(bond string) (own []string, all bool) {
	net := filepath.Join(d.Sysfs, "class/net")
	names, _ := d.list(filepath.Join(net, bond), maxEntries)
	all = true
	for _, name := range names {
		member, ok := strings.CutPrefix(name, "lower_")
		switch {
		case !ok || !isNetdev(member):
		case d.function == "" || d.ownNetdev(filepath.Join(net, member)):
			own = append(own, member)
		default:
			all = false
		}
	}
	return own, all
}

// netdev finds and reads the network device of a port.
func (d *device) netdev(p *state.HardwarePort, dir string) {
	p.Netdev = d.findNetdev(p, dir)
	if p.Netdev == "" {
		return
	}
	net := filepath.Join(d.Sysfs, "class/net", p.Netdev)
	// With shared network namespaces the name can be from another namespace, and belong to another
	// network device in this one.
	if d.function != "" && !d.ownNetdev(net) {
		return
	}
	ifindex, ok := d.int(filepath.Join(net, "ifindex"))
	if !ok || ifindex <= 0 {
		return
	}
	p.Ifindex = ifindex
	if mtu, ok := d.int(filepath.Join(net, "mtu")); ok && mtu > 0 {
		p.MTU = mtu
	}
	if n, err := strconv.ParseUint(d.text(filepath.Join(net, "carrier_changes")), 10, 64); err == nil {
		p.CarrierChanges = &n
	}
	if d.text(filepath.Join(net, "bonding/mode")) != "" {
		p.Bond = p.Netdev
	} else if master := d.link(filepath.Join(net, "master")); isNetdev(master) && d.text(filepath.Join(net, "master/bonding/mode")) != "" {
		p.Bond = master
	}
}

// ownNetdev reports whether a network device can belong to the adapter: it is on the adapter, or
// on a bus other than PCI, or made of other network devices, as a bond or a VLAN. Any other, such
// as the veth of a container, only has the same name.
func (d *device) ownNetdev(net string) bool {
	target, err := d.resolve(filepath.Join(net, "device"))
	if err == nil {
		return !isPCI(filepath.Base(target)) || slot(target) == slot(d.function)
	}
	names, err := d.list(net, maxEntries)
	return err != nil || slices.ContainsFunc(names, func(name string) bool {
		return name == "bonding" || strings.HasPrefix(name, "lower_")
	})
}

// findNetdev returns the name of the network device of a port. It is empty if unknown.
func (d *device) findNetdev(p *state.HardwarePort, dir string) string {
	// The first address of a RoCE port belongs to its own network device, and not to a VLAN on
	// it. The file of an absent address cannot be read.
	if name := d.text(filepath.Join(dir, "gid_attrs/ndevs/0")); isNetdev(name) {
		return name
	}
	for _, g := range p.GIDs {
		if g.Netdev != "" {
			return g.Netdev
		}
	}
	// With older kernels the addresses of iWARP have none. For emulated devices no other file
	// has it.
	if name := d.askNetdev(p); name != "" {
		return name
	}
	// InfiniBand has no such files, but usually IPoIB.
	if d.function == "" || d.subfunction {
		return ""
	}
	names, _ := d.list(filepath.Join(d.function, "net"), maxEntries)
	var found []string
	for _, name := range names {
		if !isNetdev(name) {
			continue
		}
		net := filepath.Join(d.function, "net", name)
		// Children of IPoIB name their parent. Representors have a port name.
		index, ok := d.int(filepath.Join(net, "ifindex"))
		if link, linked := d.int(filepath.Join(net, "iflink")); !ok || linked && link != index {
			continue
		}
		if strings.HasPrefix(strings.TrimLeft(d.text(filepath.Join(net, "phys_port_name")), "c0123456789"), "pf") {
			continue
		}
		found = append(found, name)
	}
	if d.ports > 1 || len(found) > 1 {
		found = slices.DeleteFunc(found, func(name string) bool {
			at, ok := d.int(filepath.Join(d.function, "net", name, "dev_port"))
			return !ok || at != p.Number-1
		})
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// askNetdev asks for the network device of an Ethernet port over netlink.
func (d *device) askNetdev(p *state.HardwarePort) string {
	if d.Netdevs == nil || p.LinkLayer != "Ethernet" || d.begin("rdma link of port "+strconv.Itoa(p.Number)) != nil {
		return ""
	}
	defer d.end()
	if name, err := d.Netdevs.Netdev(d.ctx, d.Device, p.Number); err == nil && isNetdev(name) {
		return name
	}
	return ""
}

// isNetdev reports whether a text can be the name of a network device. The kernel allows 15 bytes
// without slashes and spaces.
func isNetdev(s string) bool {
	return s != "" && len(s) < 16 && s != "." && s != ".." && !strings.ContainsFunc(s, func(c rune) bool {
		return c == '/' || c == ':' || unicode.IsSpace(c) || c == unicode.ReplacementChar
	})
}

// temperature returns the temperature of a port's module, if the driver has a sensor for it in
// hwmon, such as Module0 of mlx5.
func (d *device) temperature(port int) *float64 {
	if d.function == "" || d.subfunction {
		return nil
	}
	root := filepath.Join(d.function, "hwmon")
	chips, _ := d.list(root, maxChips)
	inputs := map[string]string{} // by the label of the sensor
	for _, chip := range chips {
		names, _ := d.list(filepath.Join(root, chip), maxEntries)
		for _, name := range names {
			sensor, ok := strings.CutSuffix(name, "_label")
			if !ok || !strings.HasPrefix(sensor, "temp") || len(inputs) == maxChips {
				continue
			}
			label := strings.ToLower(d.text(filepath.Join(root, chip, name)))
			if strings.HasPrefix(label, "module") {
				inputs[label] = filepath.Join(root, chip, sensor+"_input")
			}
		}
	}
	// On an adapter with several functions, each has only the sensor of its own port.
	input := inputs["module"+strconv.Itoa(port-1)]
	if len(inputs) == 1 {
		for _, only := range inputs {
			input = only
		}
	}
	milli, ok := d.int(input)
	if !ok {
		return nil
	}
	celsius := float64(milli) / 1000
	return &celsius
}
