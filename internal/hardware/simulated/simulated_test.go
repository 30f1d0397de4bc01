package simulated_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	hardware "rdma_exporter/internal/hardware/simulated"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs/simulated"
)

// now is a moment at which ports that flap are up.
func now() time.Time { return time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC) }

func read(t *testing.T, p *simulated.Profile, device string, at time.Time) state.Hardware {
	t.Helper()
	return hardware.Read(p, device, at, true, func(string) { t.Error("it hangs") })
}

// faulty returns a profile of a device like an InfiniBand adapter with some faults.
func faulty(t *testing.T, faults ...string) *simulated.Profile {
	t.Helper()
	p, err := simulated.ParseProfile("profile", []byte("devices: [{name: sim0, like: sim_ib0, hardware_faults: ["+strings.Join(faults, ", ")+"]}]"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// value returns a counter of the first port.
func value(h *state.Hardware, name string) (uint64, bool) {
	for _, c := range h.Ports[0].Counters {
		if c.Name == name {
			return c.Value, true
		}
	}
	return 0, false
}

// TestBuiltIn verifies that readings of the built-in devices pass the protocol of children and
// depend on the moment alone.
func TestBuiltIn(t *testing.T) {
	t.Parallel()
	p := simulated.Default()
	for _, name := range p.Names() {
		h := read(t, p, name, now())
		if again := read(t, p, name, now()); !reflect.DeepEqual(h, again) {
			t.Errorf("%s: %+v, then %+v", name, h, again)
		}
		var report strings.Builder
		w := wire.NewWriter(&report)
		_, _ = w.Send(wire.Line{Hardware: &h}), w.Send(wire.Line{End: &wire.End{}})
		var run state.Run
		if err := wire.Read(strings.NewReader(report.String()), &run); err != nil || run.Hardware[0].Failure != "" || len(h.Ports) == 0 {
			t.Errorf("%s: %v, %+v", name, err, run.Hardware)
		}
	}
	if h := read(t, p, "none", now()); h.Failure == "" {
		t.Errorf("%+v", h)
	}
}

// TestCountersGrow verifies the growth of counters in a second.
func TestCountersGrow(t *testing.T) {
	t.Parallel()
	p := faulty(t)
	before, after := read(t, p, "sim0", now()), read(t, p, "sim0", now().Add(time.Second))
	for _, name := range []string{"port_rcv_data", "port_xmit_packets", "np_cnp_sent"} {
		a, _ := value(&before, name)
		b, _ := value(&after, name)
		if a == 0 || b <= a {
			t.Errorf("%s is %d, and a second later %d", name, a, b)
		}
	}
	a, _ := value(&before, "port_rcv_data")
	b, _ := value(&after, "port_rcv_data")
	if b-a != 1<<28 {
		t.Errorf("a gibibyte a second is %d words", b-a)
	}
}

// Each fault does what its name says.
func TestFaults(t *testing.T) {
	t.Parallel()
	for fault, shows := range map[string]func(h *state.Hardware) bool{
		"fail": func(h *state.Hardware) bool { return h.Failure != "" && h.Ports == nil },
		"refused": func(h *state.Hardware) bool {
			_, told := value(h, "np_cnp_sent")
			r := h.Ports[0].Refused
			return !told && len(r) == 1 && r[0].Errno == "EINVAL" && r[0].Group == state.GroupHardware
		},
		"not_numeric": func(h *state.Hardware) bool {
			_, told := value(h, "port_rcv_data")
			r := h.Ports[0].Refused
			return !told && len(r) == 1 && r[0].Errno == "" && r[0].Group == state.GroupPort
		},
		"saturated": func(h *state.Hardware) bool { v, _ := value(h, "symbol_error"); return v == 1<<16-1 },
		"all_ones":  func(h *state.Hardware) bool { v, _ := value(h, "port_rcv_data"); return v == 1<<64-1 },
		"reset":     func(h *state.Hardware) bool { v, _ := value(h, "port_rcv_data"); return v < 1<<28*300 },
		"slow_link": func(h *state.Hardware) bool { return h.Ports[0].Width == 1 && h.Ports[0].Rate < h.Ports[0].MaxRate },
		"slow_pci":  func(h *state.Hardware) bool { return h.Identity.Link.Width < h.Identity.Link.MaxWidth },
		"flapping":  func(h *state.Hardware) bool { v, _ := value(h, "link_downed"); return v > 0 },
	} {
		well, ill := read(t, faulty(t), "sim0", now()), read(t, faulty(t, fault), "sim0", now())
		if shows(&well) || !shows(&ill) {
			t.Errorf("%s: %+v, without it %+v", fault, ill, well)
		}
	}
	flapping := read(t, faulty(t, "flapping"), "sim0", now().Add(35*time.Second))
	if p := flapping.Ports[0]; p.State != "down" || p.PhysState == "link_up" {
		t.Errorf("%+v", p)
	}
}

// TestFlapBetweenReadings verifies that the carrier of an Ethernet port counts what happened between two readings that
// both found the port active.
func TestFlapBetweenReadings(t *testing.T) {
	t.Parallel()
	p := faulty(t, "flapping")
	p.Devices[0].Ports[0].LinkLayer = "Ethernet"
	for after, changes := range map[time.Duration]uint64{0: 0, 35 * time.Second: 1, time.Minute: 2, 13 * time.Minute: 26} {
		before, later := read(t, p, "sim0", now()).Ports[0], read(t, p, "sim0", now().Add(after)).Ports[0]
		if before.State != "active" || before.Ifindex == 0 || before.CarrierChanges == nil || *later.CarrierChanges-*before.CarrierChanges != changes {
			t.Errorf("%v later the carrier has changed from %v to %v, want %d changes", after, before.CarrierChanges, later.CarrierChanges, changes)
		}
	}
}

// A reading that hangs says in what.
func TestHang(t *testing.T) {
	t.Parallel()
	in := make(chan string)
	go hardware.Read(faulty(t, "hang"), "sim0", now(), true, func(file string) { in <- file })
	if file := <-in; !strings.Contains(file, "sim0") {
		t.Errorf("it hangs in %q", file)
	}
}
