package health_test

import (
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

func TestHardware(t *testing.T) {
	all := func(effective string, n int) func(*state.HardwareState) {
		return func(h *state.HardwareState) {
			for i := range n {
				h.Latest.Interrupts[i].Effective = effective
			}
		}
	}
	port := func(change func(*state.HardwarePort)) func(*state.HardwareState) {
		return func(h *state.HardwareState) { change(&h.Latest.Ports[0]) }
	}
	for _, tc := range []struct {
		name   string
		change func(*state.HardwareState)
		want   string
	}{
		{"well", func(*state.HardwareState) {}, ""},
		{"nothing read yet", func(h *state.HardwareState) { *h = state.HardwareState{} }, ""},
		{"went down twice", func(h *state.HardwareState) { h.Links[0].Recent = flaps(2) }, ""},
		{"went down three times", func(h *state.HardwareState) { h.Links[0].Recent = flaps(3) }, "warning port_flapping port 1"},
		{"long ago", func(h *state.HardwareState) { h.Links[0].Recent, h.Read = flaps(3), taken().Add(2*time.Hour) }, ""},
		{"went down between two readings", func(h *state.HardwareState) { h.Links[0].Recent, h.Read = flaps(3), time.Time{} }, "warning port_flapping port 1"},
		{"half the rate", port(func(p *state.HardwarePort) { p.Rate = 200e9 }), "warning port_slow port 1"},
		{"half the rate, and down", port(func(p *state.HardwarePort) { p.Rate, p.State = 200e9, "down" }), ""},
		{"a rate that is not known", port(func(p *state.HardwarePort) { p.Rate = 0 }), ""},
		{"nothing better known", port(func(p *state.HardwarePort) { p.MaxRate = 0 }), ""},
		{"more than it can", port(func(p *state.HardwarePort) { p.MaxRate = 1 }), ""},
		{"fewer lanes to the bus", func(h *state.HardwareState) { h.Latest.Identity.Link.Width = 8 }, "warning pci_degraded 0000:3b:00.0"},
		{"slower lanes", func(h *state.HardwareState) { h.Latest.Identity.Link.Speed = 16e9 }, "warning pci_degraded 0000:3b:00.0"},
		{"a bus that is not known", func(h *state.HardwareState) { h.Latest.Identity.Link = new(state.PCILink) }, ""},
		{"no bus at all", func(h *state.HardwareState) { h.Latest.Identity.Link, h.Latest.Identity.AER = nil, nil }, ""},
		{"a bridge", func(h *state.HardwareState) {
			h.Latest.Identity.Bottleneck = &state.PCILink{Address: "0000:3a:00.0", Speed: 8e9, Width: 8}
		}, "warning pci_degraded 0000:3a:00.0"},
		{"vector 5 and four others of eight on one CPU", all("5", 4), "warning interrupts_together CPU 5"},
		{"three and another of eight", all("9", 4), ""},
		{"all on several", all("0-3", 8), ""},
		{"all of three on one", func(h *state.HardwareState) {
			h.Latest.Interrupts = h.Latest.Interrupts[:3]
			all("5", 3)(h)
		}, ""},
		{"all of four on one that they may run on", func(h *state.HardwareState) {
			h.Latest.Interrupts = h.Latest.Interrupts[:4]
			for i := range h.Latest.Interrupts {
				h.Latest.Interrupts[i].CPUs, h.Latest.Interrupts[i].Effective = "0", ""
			}
		}, "warning interrupts_together CPU 0"},
		{"one isolated", func(h *state.HardwareState) { h.Latest.Interrupts[0].Isolated = true }, "info interrupts_isolated isolated CPUs"},
		{"most isolated", func(h *state.HardwareState) {
			for i := range 5 {
				h.Latest.Interrupts[i].Isolated = true
			}
		}, "warning interrupts_isolated isolated CPUs"},
		{"saturated", port(func(p *state.HardwarePort) { p.Counters[0].Value = 1<<16 - 1 }), "info counter_saturated port 1"},
		{"large for its width elsewhere", port(func(p *state.HardwarePort) { p.Counters[0].Name, p.Counters[0].Value = "unheard_of", 1<<16-1 }), ""},
		{"all ones", port(func(p *state.HardwarePort) { p.Counters[0].Name, p.Counters[0].Value = "unheard_of", 1<<64-1 }), "info counter_saturated port 1"},
		{"saturated, of the device", func(h *state.HardwareState) {
			h.Latest.Counters = []state.Counter{{Group: state.GroupHardware, Name: "x", Value: 1<<64 - 1}}
		}, "info counter_saturated the device"},
		{"no address", port(func(p *state.HardwarePort) { p.RoCEv2IPv4 = nil }), "info no_roce_v2_ipv4 port 1"},
		{"no address, on InfiniBand", port(func(p *state.HardwarePort) { p.RoCEv2IPv4, p.GIDs = nil, []state.GID{{Type: "ib"}} }), ""},
		{"no address, and down", port(func(p *state.HardwarePort) { p.RoCEv2IPv4, p.State = nil, "down" }), ""},
		{"no address nor network device", port(func(p *state.HardwarePort) { p.RoCEv2IPv4, p.Netdev = nil, "" }), ""},
		{"refused", port(func(p *state.HardwarePort) {
			p.Refused = []state.RefusedCounters{{Group: state.GroupPort, Errno: "EINVAL"}}
		}), "warning counters_refused port 1"},
		{"refused, of the device", func(h *state.HardwareState) {
			h.Latest.Refused = []state.RefusedCounters{{Group: state.GroupHardware, Errno: "EINVAL"}}
		}, "warning counters_refused the device"},
		{"refused to a virtual function", func(h *state.HardwareState) {
			h.Latest.Identity.Role, h.Latest.Ports[0].Refused = "vf", []state.RefusedCounters{{Group: state.GroupPort, Errno: "EINVAL"}}
		}, "info counters_refused port 1"},
		{"refused by a driver without counters", func(h *state.HardwareState) {
			h.Latest.Table, h.Latest.Ports[0].Refused = "", []state.RefusedCounters{{Group: state.GroupPort, Errno: "EINVAL"}}
		}, "info counters_refused port 1"},
		{"half of it", func(h *state.HardwareState) {
			h.Failures, h.Latest.Failure, h.Latest.Identity.Link.Width = 1, "x", 8
		}, "warning pci_degraded 0000:3b:00.0, warning hardware_unreadable hardware"},
		{"of before", func(h *state.HardwareState) { h.Failures, h.Latest.Identity.Link.Width = 1, 8 }, "warning hardware_unreadable hardware"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := adapter(tc.change)
			got := lines(assess(s), true)
			if strings.Join(got, ", ") != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// What was kept by a clock that was wrong, and has been set right since, does not count until that time comes again.
func TestFlappingByAnotherClock(t *testing.T) {
	c := health.Default()
	c.Now = taken
	for years, want := range []int{1, 0} {
		s := adapter(func(h *state.HardwareState) {
			for _, at := range flaps(3) {
				h.Links[0].Recent = append(h.Links[0].Recent, at.AddDate(years, 0, 0))
			}
		})
		if got := health.Assess(s, c, health.History{}); len(got) != want {
			t.Errorf("%d years ahead: got %+v", years, got)
		}
	}
}

// Whose transport is not known may be of iWARP, which has no RoCE, whatever the kernel calls its addresses.
func TestNoAddress(t *testing.T) {
	for _, tc := range []struct {
		info *state.Device
		want int
	}{
		{&state.Device{Transport: "InfiniBand"}, 1},
		{&state.Device{Transport: "iWARP"}, 0},
		{&state.Device{}, 0},
		{nil, 0},
	} {
		s := adapter(func(h *state.HardwareState) { h.Latest.Ports[0].RoCEv2IPv4 = nil })
		s.Info = tc.info
		if got := assess(s); len(got) != tc.want {
			t.Errorf("%+v: got %+v", tc.info, got)
		}
	}
}

// TestHardwareRoots verifies that a flapping port and a stuck child are reported once, with what follows from them.
func TestHardwareRoots(t *testing.T) {
	flapping := adapter(func(h *state.HardwareState) { h.Links[0] = state.Link{Port: 1, Recent: flaps(5)} })
	flapping.Last.Info.Ports = []state.Port{{Number: 1, State: "down"}, {Number: 2, State: "down"}}
	hung := worn()[3]
	dead := worn()[3]
	dead.Hardware.Stuck = nil
	dead.Last = &state.Run{Kind: state.KindProbe, Outcome: state.OutcomeTimeout, Verb: "ibv_open_device"}
	for _, tc := range []struct {
		name string
		of   *state.DeviceState
		past health.History
		want string
	}{
		{"a port that was active", flapping, health.History{Ports: map[string][]int{"rxe0": {1}}}, "port_down port 1: port_flapping port 1, port_down port 2"},
		{"a port of which that is not known", flapping, health.History{}, "port_flapping port 1: port_down ports 1, 2"},
		{"a child that does not end", hung, health.History{}, "stuck pid 816: hardware_unreadable hardware"},
		{"a device that hangs", dead, health.History{}, "run_aborted the probes, in ibv_open_device: hardware_unreadable hardware"},
	} {
		got := lines(health.Assess(tc.of, health.Default(), tc.past), false)
		if strings.Join(got, ", ") != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestBusErrors verifies that PCI errors count from the first look, and for a day.
func TestBusErrors(t *testing.T) {
	j := newEvaluator()
	for _, step := range []struct {
		name  string
		hours int
		aer   state.AER
		want  string
	}{
		{"what there was before", 0, state.AER{Correctable: 9, Nonfatal: 5, Fatal: 1}, ""},
		{"what was corrected", 1, state.AER{Correctable: 99, Nonfatal: 5, Fatal: 1}, ""},
		{"two more", 2, state.AER{Correctable: 99, Nonfatal: 7, Fatal: 1}, "2 uncorrected errors and 0 fatal ones"},
		{"the same, 23 hours later", 25, state.AER{Correctable: 99, Nonfatal: 7, Fatal: 1}, "2 uncorrected errors and 0 fatal ones"},
		{"the same, a day later", 26, state.AER{Correctable: 99, Nonfatal: 7, Fatal: 1}, ""},
		{"a fatal one", 27, state.AER{Correctable: 99, Nonfatal: 7, Fatal: 2}, "2 uncorrected errors and 1 fatal one"},
		{"began anew", 28, state.AER{Nonfatal: 1}, ""},
		{"one more", 29, state.AER{Nonfatal: 2}, "1 uncorrected error and 0 fatal ones"},
	} {
		s := adapter(func(h *state.HardwareState) {
			h.Read, h.Latest.Identity.AER = taken().Add(time.Duration(step.hours)*time.Hour), &step.aer
		})
		found := j.Evaluate(snapshot(*s)).Devices[0].Findings
		switch {
		case step.want == "" && len(found) == 0:
		case step.want != "" && len(found) == 1 && found[0].Kind == health.FindingBusErrors && strings.Contains(found[0].Message, "reported "+step.want+" of the adapter"):
		default:
			t.Errorf("%s: got %+v, want %q", step.name, found, step.want)
		}
	}
}

// hiddenPorts returns the findings of a host with two adapters, one of them changed.
func hiddenPorts(change func(*state.HardwareState)) []health.Finding {
	s := snapshot(*adapter(func(h *state.HardwareState) {
		h.Latest.Ports[0].LinkLayer, h.Latest.Ports[0].Counters = "InfiniBand", nil
	}), *adapter(change))
	s.Devices[0].Name = "mlx5_1"
	return health.New(health.Default(), health.History{}).Evaluate(s).Findings
}

func TestNetnsBlind(t *testing.T) {
	counters := func(groups ...state.CounterGroup) []state.Counter {
		var all []state.Counter
		for _, g := range groups {
			all = append(all, state.Counter{Group: g, Name: "x"})
		}
		return all
	}
	const (
		netdevs = "In another network namespace are the network devices of rxe0 port 1 (eth2)."
		dirs    = "The kernel hides `counters/` and `hw_counters/` of rxe0 port 1."
	)
	for _, tc := range []struct {
		name   string
		change func(h *state.Hardware, p *state.HardwarePort)
		want   string
	}{
		{"all is seen", func(*state.Hardware, *state.HardwarePort) {}, ""},
		{"no network device here", func(_ *state.Hardware, p *state.HardwarePort) { p.Ifindex, p.Counters = 0, nil }, netdevs},
		{"none at all", func(_ *state.Hardware, p *state.HardwarePort) { p.Ifindex, p.Netdev, p.Counters = 0, "", nil }, ""},
		{"a virtual function's is in a pod", func(h *state.Hardware, p *state.HardwarePort) {
			h.Ports = append(h.Ports, *p)
			p.Ifindex = 0
		}, ""},
		{"all are in pods", func(_ *state.Hardware, p *state.HardwarePort) {
			p.Ifindex, p.Counters = 0, counters(state.GroupPort)
		}, ""},
		{"IP over InfiniBand", func(_ *state.Hardware, p *state.HardwarePort) {
			p.Ifindex, p.LinkLayer, p.Counters = 0, "InfiniBand", nil
		}, ""},
		{"no PCI device", func(h *state.Hardware, p *state.HardwarePort) {
			h.Identity.PCI, p.Ifindex, p.Counters = "", 0, nil
		}, ""},
		{"netlink alone has counters", func(_ *state.Hardware, p *state.HardwarePort) { p.Counters = counters(state.GroupHardware) }, dirs},
		{"neither", func(_ *state.Hardware, p *state.HardwarePort) {
			p.Ifindex, p.Counters = 0, counters(state.GroupHardware)
		}, netdevs + " " + dirs},
		{"counters/ has some", func(_ *state.Hardware, p *state.HardwarePort) {
			p.Counters = counters(state.GroupPort, state.GroupHardware)
		}, ""},
		{"counters/ is refused", func(_ *state.Hardware, p *state.HardwarePort) {
			p.Counters, p.Refused = counters(state.GroupHardware), []state.RefusedCounters{{Group: state.GroupPort, Errno: "EINVAL"}}
		}, ""},
		{"no counters of any kind", func(_ *state.Hardware, p *state.HardwarePort) { p.Counters = nil }, ""},
		{"a driver without counters/", func(h *state.Hardware, p *state.HardwarePort) {
			h.Table, p.Counters = "irdma", counters(state.GroupHardware)
		}, ""},
		{"a representor", func(h *state.Hardware, p *state.HardwarePort) {
			h.Counters, p.Counters = counters(state.GroupHardware), counters(state.GroupHardware)
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found := hiddenPorts(func(h *state.HardwareState) { tc.change(h.Latest, &h.Latest.Ports[0]) })
			got := ""
			for _, f := range found {
				got += string(f.Severity) + " " + string(f.Kind) + ": " + f.Message
			}
			if tc.want != "" {
				tc.want = "warning netns_blind: " + tc.want
			}
			if got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
