// Package simulated derives the hardware of a simulated device from its profile. At one moment
// every reader sees the same. Counters grow with the clock, as if the device were always busy.
package simulated

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/verbs/simulated"
)

const (
	// bytesPerSecond is what a port sends and receives each, in packets of bytesPerPacket.
	bytesPerSecond = 1 << 30
	bytesPerPacket = 1 << 12
	// resetEvery is the interval of the fault counter reset.
	resetEvery = 5 * time.Minute
	// flapEvery is the interval at which a flapping port goes down, and flapFor for how long.
	flapEvery, flapFor = time.Minute, 20 * time.Second
	// cpus is the number of CPUs of the host.
	cpus = 64
)

// epoch is the start of the host.
func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// Read returns the hardware of a device at a moment, with its counters if counters is true. If
// the device hangs, Read calls begin with the file and never returns.
func Read(p *simulated.Profile, device string, now time.Time, counters bool, begin func(file string)) state.Hardware {
	i := slices.IndexFunc(p.Devices, func(d simulated.DeviceProfile) bool { return d.Name == device })
	if i < 0 {
		return state.Hardware{Device: device, Failure: "there is no such simulated device"}
	}
	d := host{DeviceProfile: p.Devices[i], up: max(now.Sub(epoch()), 0)}
	file := fmt.Sprintf("/sys/class/infiniband/%s/ports/1/counters/port_rcv_data", device)
	switch {
	case d.has("hang"):
		begin(file)
		select {}
	case d.has("fail"):
		return state.Hardware{Device: device, Failure: fmt.Sprintf("read %s: input/output error", file)}
	}
	h := state.Hardware{Device: device, Driver: kernelDriver(d.Driver), Identity: d.adapter()}
	for _, port := range d.Ports {
		h.Ports = append(h.Ports, d.port(port, counters))
	}
	if !d.software() {
		for v := range min(d.CompletionVectors, cpus) {
			cpu := fmt.Sprint(v % cpus)
			h.Interrupts = append(h.Interrupts, state.Interrupt{
				Vector: v, IRQ: 64 + v, Name: fmt.Sprintf("%s-comp%d", device, v), CPUs: cpu, Effective: cpu, Count: d.grown(1000),
			})
		}
	}
	return h
}

// kernelDriver returns the name of the kernel's driver for a provider.
func kernelDriver(provider string) string {
	if provider == "mlx5" || provider == "mlx4" {
		return provider + "_core"
	}
	return provider
}

// host is a device on a host that has been up for a time.
type host struct {
	simulated.DeviceProfile
	up time.Duration
}

func (d *host) has(fault string) bool { return slices.Contains(d.HardwareFaults, fault) }

// software reports whether the kernel emulates the device.
func (d *host) software() bool { return d.Driver == "rxe" || d.Driver == "siw" }

// grown returns a counter that grows by perSecond each second.
func (d *host) grown(perSecond uint64) uint64 {
	up := d.up
	if d.has("reset") {
		up %= resetEvery
	}
	return perSecond * uint64(up/time.Second)
}

func (d *host) adapter() state.Adapter {
	if d.software() {
		return state.Adapter{NUMANode: -1, NetnsMode: "shared"}
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(d.Name)) // which takes everything
	bus := sum.Sum32() & 0xff
	const speed, width = 16e9, 16
	link := state.PCILink{Address: fmt.Sprintf("0000:%02x:00.0", bus), Speed: speed, MaxSpeed: speed, Width: width, MaxWidth: width}
	if d.has("slow_pci") {
		link.Width = width / 2
	}
	return state.Adapter{
		PCI: link.Address, Slot: fmt.Sprint(bus), NUMANode: int(bus & 1), BoardID: "SIM0000000001", Model: "Simulated adapter",
		DriverVersion: d.Kernel, Role: "pf", NetnsMode: "shared", Link: &link, AER: &state.AER{},
	}
}

func (d *host) port(of simulated.PortProfile, counters bool) state.HardwarePort {
	const width, lane = 4, 25e9
	p := state.HardwarePort{
		Number: of.Number, LinkLayer: of.LinkLayer, State: of.State, PhysState: "link_up",
		Rate: width * lane, MaxRate: width * lane, Width: width, Speed: lane,
	}
	flaps := d.has("flapping")
	if flaps && d.up%flapEvery < flapFor {
		p.State = "down"
	}
	if p.State == "down" {
		p.PhysState = "disabled"
	}
	if d.has("slow_link") {
		p.Width, p.Rate = 1, lane
	}
	if of.LinkLayer == "Ethernet" {
		p.Netdev, p.MTU, p.Ifindex, p.CarrierChanges = "net_"+d.Name, 1500, of.Number, new(uint64)
		if flaps { // Down at the beginning of each interval, and up after flapFor.
			*p.CarrierChanges = uint64(d.up/flapEvery) + uint64((d.up+flapEvery-flapFor)/flapEvery)
		}
	}
	for _, g := range of.GIDs {
		p.GIDs = append(p.GIDs, gid(g, of.LinkLayer, p.Netdev))
	}
	i := slices.IndexFunc(p.GIDs, func(g state.GID) bool { return g.Type == "roce_v2" && g.Family == "ipv4" })
	if i >= 0 {
		p.RoCEv2IPv4 = &p.GIDs[i].Index
	}
	if !counters {
		return p
	}
	active := of.State == "active"
	p.Counters = d.counters(of.LinkLayer, active, flaps)
	switch {
	case d.has("refused"):
		p.Counters = slices.DeleteFunc(p.Counters, func(c state.Counter) bool { return c.Group == state.GroupHardware })
		p.Refused = []state.RefusedCounters{{Group: state.GroupHardware, Errno: "EINVAL", Detail: "invalid argument"}}
	case d.has("not_numeric"):
		p.Counters = slices.DeleteFunc(p.Counters, func(c state.Counter) bool { return c.Name == "port_rcv_data" })
		p.Refused = []state.RefusedCounters{{Group: state.GroupPort, Detail: `port_rcv_data is "N/A", which is no number`}}
	}
	return p
}

// counters returns the counters of a port. Soft-RoCE has only those of the driver.
func (d *host) counters(linkLayer string, active, flaps bool) []state.Counter {
	var all []state.Counter
	add := func(group state.CounterGroup, name string, value uint64) {
		all = append(all, state.Counter{Group: group, Name: name, Value: value})
	}
	var bytes, packets uint64
	if active {
		bytes, packets = d.grown(bytesPerSecond), d.grown(bytesPerSecond/bytesPerPacket)
	}
	switch d.Driver {
	case "rxe":
		for _, name := range []string{"sent_pkts", "rcvd_pkts"} {
			add(state.GroupHardware, name, packets)
		}
		for _, name := range []string{"duplicate_request", "out_of_seq_request", "rcvd_rnr_err", "send_rnr_err", "rcvd_seq_err", "retry_exceeded_err", "retry_rnr_exceeded_err", "link_downed"} {
			add(state.GroupHardware, name, 0)
		}
		return all
	case "siw":
		return nil
	}
	const word = 4 // bytes
	for _, name := range []string{"port_rcv_data", "port_xmit_data"} {
		add(state.GroupPort, name, bytes/word)
	}
	for _, name := range []string{"port_rcv_packets", "port_xmit_packets"} {
		add(state.GroupPort, name, packets)
	}
	for _, name := range []string{"symbol_error", "link_error_recovery", "port_rcv_errors", "port_xmit_discards", "local_link_integrity_errors"} {
		add(state.GroupPort, name, 0)
	}
	var downed uint64
	if flaps {
		downed = uint64(d.up / flapEvery)
	}
	add(state.GroupPort, "link_downed", downed)
	if linkLayer == "Ethernet" {
		add(state.GroupEthtool, "link_down_events", downed)
	}
	for _, c := range []struct {
		name      string
		perSecond uint64
	}{
		{"duplicate_request", 1},
		{"local_ack_timeout_err", 0},
		{"np_cnp_sent", 3},
		{"np_ecn_marked_roce_packets", 5},
		{"out_of_buffer", 0},
		{"out_of_sequence", 2},
		{"packet_seq_err", 1},
		{"req_rnr_retries_exceeded", 0},
		{"req_transport_retries_exceeded", 0},
		{"rnr_nak_retry_err", 0},
		{"rp_cnp_handled", 3},
	} {
		add(state.GroupHardware, c.name, d.grown(c.perSecond))
	}
	for i := range all {
		switch c := &all[i]; {
		case c.Name == "symbol_error" && d.has("saturated"):
			c.Value = 1<<16 - 1
		case c.Name == "port_rcv_data" && d.has("all_ones"):
			c.Value = 1<<64 - 1
		}
	}
	return all
}

// gid returns an address of a port as sysfs shows it.
func gid(of simulated.GIDProfile, linkLayer, netdev string) state.GID {
	g := state.GID{Index: of.Index, Type: "ib", Family: "ipv6", Netdev: netdev}
	switch {
	case of.Type == "RoCE v2":
		g.Type = "roce_v2"
	case linkLayer == "Ethernet":
		g.Type = "roce_v1"
	}
	address, err := netip.ParseAddr(of.GID)
	if err != nil {
		return g // Validated profiles have no such address.
	}
	if address.Is4In6() {
		g.Family = "ipv4"
	}
	g.GID = address.StringExpanded()
	return g
}
