package wire_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// hardware is a sane one that says something of everything.
func hardware() state.Hardware {
	index, changes, celsius := 3, uint64(7), 41.5
	link := state.PCILink{Address: "0000:3b:00.0", Speed: 16e9, MaxSpeed: 32e9, Width: 8, MaxWidth: 16}
	return state.Hardware{
		Device: "mlx5 0/é", Failure: "stopped", Reading: "/sys/a", Driver: "mlx5_core", Table: "mlx5",
		Identity: state.Adapter{
			PCI: "0000:3b:00.1", Slot: "3", NUMANode: -1, BoardID: "MT_0000000223", Model: "ConnectX-7", DriverVersion: "6.1", Role: "vf",
			Parent: "0000:3b:00.0", VFs: 4, NetnsMode: "exclusive", Link: &link, Bottleneck: &link, AER: &state.AER{Correctable: 1<<64 - 1},
		},
		Ports: []state.HardwarePort{{
			Number: 1, LinkLayer: "Ethernet", State: "active", PhysState: "link_up", Rate: 8e11, MaxRate: 8e11, Width: 4, Speed: 2e11,
			Netdev: "eth0", Bond: "bond0", Ifindex: 4, MTU: 9000, CarrierChanges: &changes,
			GIDs:       []state.GID{{Index: 3, GID: "0000:0000:0000:0000:0000:ffff:c000:020b", Type: "roce_v2", Family: "ipv4", Netdev: "eth0"}},
			RoCEv2IPv4: &index,
			Counters: []state.Counter{
				{Group: state.GroupPort, Name: "port_rcv_data", Value: 1<<64 - 1},
				{Group: state.GroupHardware, Name: "port_rcv_data", Value: 1},
			},
			Refused:            []state.RefusedCounters{{Group: state.GroupEthtool, Errno: "EINVAL", Detail: "no"}},
			TemperatureCelsius: &celsius,
		}},
		Counters:   []state.Counter{{Group: state.GroupHardware, Name: "rx:bytes (phys)", Value: 4}},
		Refused:    []state.RefusedCounters{{Group: state.GroupHardware}},
		Interrupts: []state.Interrupt{{Vector: 0, IRQ: 120, Name: "mlx5_comp0@pci:0000:3b:00.0", CPUs: "0-3,8", Effective: "2", Isolated: true, Count: 9}},
	}
}

// TestHardware makes sure that what is written of the hardware is what is read.
func TestHardware(t *testing.T) {
	t.Parallel()
	want := []state.Hardware{hardware(), {Device: "b"}}
	var run state.Run
	err := wire.Read(stream(t, func(w *wire.Writer) error { return errors.Join(w.Hardware(want[0]), w.Hardware(want[1])) }), &run)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(run.Hardware, want) {
		t.Errorf("read %+v, want %+v", run.Hardware, want)
	}
}

// TestHardwareRefused makes sure that what no reading in its right mind tells is a failure of
// that device when it is written, and costs the others nothing; and that it is not read.
func TestHardwareRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	for name, spoil := range map[string]func(*state.Hardware){
		"odd driver":            func(h *state.Hardware) { h.Driver = "mlx5\n" },
		"odd table":             func(h *state.Hardware) { h.Table = long },
		"odd address":           func(h *state.Hardware) { h.Identity.PCI = "over there" },
		"odd parent":            func(h *state.Hardware) { h.Identity.Parent = "0000:3b:00.0\n" },
		"unknown role":          func(h *state.Hardware) { h.Identity.Role = "king" },
		"odd mode":              func(h *state.Hardware) { h.Identity.NetnsMode = "a/b" },
		"odd NUMA node":         func(h *state.Hardware) { h.Identity.NUMANode = -2 },
		"negative VFs":          func(h *state.Hardware) { h.Identity.VFs = -1 },
		"negative width":        func(h *state.Hardware) { h.Identity.Link.Width = -1 },
		"negative speed":        func(h *state.Hardware) { h.Identity.Bottleneck.MaxSpeed = -1 },
		"odd address of a link": func(h *state.Hardware) { h.Identity.Bottleneck.Address = "x" },
		"port 0":                func(h *state.Hardware) { h.Ports[0].Number = 0 },
		"port twice":            func(h *state.Hardware) { h.Ports = append(h.Ports, state.HardwarePort{Number: 1}) },
		"too many ports":        func(h *state.Hardware) { h.Ports = make([]state.HardwarePort, 300) },
		"odd link layer":        func(h *state.Hardware) { h.Ports[0].LinkLayer = "a\tb" },
		"odd state":             func(h *state.Hardware) { h.Ports[0].State = "4: ACTIVE" },
		"odd physical state":    func(h *state.Hardware) { h.Ports[0].PhysState = long },
		"negative rate":         func(h *state.Hardware) { h.Ports[0].Rate = -1 },
		"huge rate":             func(h *state.Hardware) { h.Ports[0].MaxRate = 1e300 },
		"negative lanes":        func(h *state.Hardware) { h.Ports[0].Width = -1 },
		"negative ifindex":      func(h *state.Hardware) { h.Ports[0].Ifindex = -1 },
		"negative MTU":          func(h *state.Hardware) { h.Ports[0].MTU = -1 },
		"odd GID":               func(h *state.Hardware) { h.Ports[0].GIDs[0].GID = "x" },
		"no GID":                func(h *state.Hardware) { h.Ports[0].GIDs[0].GID = "" },
		"GID of no type":        func(h *state.Hardware) { h.Ports[0].GIDs[0].Type = "" },
		"GID of no family":      func(h *state.Hardware) { h.Ports[0].GIDs[0].Family = "ipx" },
		"GID twice":             func(h *state.Hardware) { h.Ports[0].GIDs = append(h.Ports[0].GIDs, h.Ports[0].GIDs...) },
		"too many GIDs":         func(h *state.Hardware) { h.Ports[0].GIDs = make([]state.GID, state.MaxGIDs+1) },
		"negative index":        func(h *state.Hardware) { *h.Ports[0].RoCEv2IPv4 = -1 },
		"unknown group":         func(h *state.Hardware) { h.Ports[0].Counters[0].Group = "geiger" },
		"counter without name":  func(h *state.Hardware) { h.Ports[0].Counters[0].Name = "" },
		"odd counter":           func(h *state.Hardware) { h.Counters[0].Name = "a\x1b" },
		"counter with é":        func(h *state.Hardware) { h.Counters[0].Name = "é" },
		"counter twice":         func(h *state.Hardware) { h.Ports[0].Counters[1].Group = state.GroupPort },
		"too many counters":     func(h *state.Hardware) { h.Counters = make([]state.Counter, 5000) },
		"refused of no group":   func(h *state.Hardware) { h.Ports[0].Refused[0].Group = "" },
		"refused twice":         func(h *state.Hardware) { h.Refused = append(h.Refused, h.Refused...) },
		"odd errno":             func(h *state.Hardware) { h.Refused[0].Errno = "-22\n" },
		"negative vector":       func(h *state.Hardware) { h.Interrupts[0].Vector = -1 },
		"vector twice":          func(h *state.Hardware) { h.Interrupts = append(h.Interrupts, h.Interrupts...) },
		"negative interrupt":    func(h *state.Hardware) { h.Interrupts[0].IRQ = -1 },
		"odd processors":        func(h *state.Hardware) { h.Interrupts[0].CPUs = "all" },
		"odd effective ones":    func(h *state.Hardware) { h.Interrupts[0].Effective = strings.Repeat("1", 2000) },
		"too many interrupts":   func(h *state.Hardware) { h.Interrupts = make([]state.Interrupt, 5000) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hardware()
			spoil(&h)
			var run state.Run
			err := wire.Read(stream(t, func(w *wire.Writer) error { return errors.Join(w.Hardware(h), w.Hardware(state.Hardware{Device: "b"})) }), &run)
			if err != nil {
				t.Fatal(err)
			}
			want := []state.Hardware{{Device: h.Device, Failure: run.Hardware[0].Failure}, {Device: "b"}}
			if !reflect.DeepEqual(run.Hardware, want) || want[0].Failure == "" {
				t.Errorf("read %+v", run.Hardware)
			}
		})
	}
	for name, line := range map[string]string{
		"no device":   `{"hardware":{}}`,
		"long device": `{"hardware":{"device":"` + long + `"}}`,
		"odd driver":  `{"hardware":{"device":"a","driver":"/"}}`,
		"twice":       `{"hardware":{"device":"a"}}` + "\n" + `{"hardware":{"device":"a"}}`,
		"no number":   `{"hardware":{"device":"a","counters":[{"group":"counters","name":"x","value":-1}]}}`,
	} {
		var run state.Run
		var wrong *wire.LineError
		if err := wire.Read(strings.NewReader(line+"\n"+`{"end":{}}`+"\n"), &run); !errors.As(err, &wrong) {
			t.Errorf("%s: read with %v", name, err)
		}
	}
}

// TestHardwareIsCleaned makes sure that names from outside are fit for a label, and texts no
// longer than a reader keeps.
func TestHardwareIsCleaned(t *testing.T) {
	t.Parallel()
	const odd = "a\x1b[31m"
	h := hardware()
	a, p := &h.Identity, &h.Ports[0]
	names := func(h *state.Hardware) []*string {
		a, p := &h.Identity, &h.Ports[0]
		return []*string{&a.Slot, &a.BoardID, &a.Model, &a.DriverVersion, &p.Netdev, &p.Bond, &p.GIDs[0].Netdev, &h.Interrupts[0].Name}
	}
	for _, s := range names(&h) {
		*s = odd + strings.Repeat("é", 200)
	}
	h.Failure, a.BoardID, p.Refused[0].Detail = strings.Repeat("x", 9999), odd, strings.Repeat("x", 9999)
	var run state.Run
	if err := wire.Read(stream(t, func(w *wire.Writer) error { return w.Hardware(h) }), &run); err != nil {
		t.Fatal(err)
	}
	got := run.Hardware[0]
	for _, s := range names(&got) {
		if len(*s) > 128 || !strings.HasPrefix(*s, "a\ufffd[31m") {
			t.Errorf("%d bytes: %q", len(*s), *s)
		}
	}
	if n := fmt.Sprint(len(got.Failure), len(got.Ports[0].Refused[0].Detail)); n != "4096 4096" {
		t.Errorf("texts of %s bytes", n)
	}
}
