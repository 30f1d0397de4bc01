package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/hardware/hardwaretest"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs/simulated"
)

// childOf runs the command hardware with what it is told, and returns what it reports of each
// device.
func childOf(t *testing.T, s settings, r wire.HardwareRequest) map[string]state.Hardware {
	t.Helper()
	told := running.Must(json.Marshal(wire.Input[settings]{Request: wire.Request{Hardware: &r}, Settings: s}))(t)
	var report bytes.Buffer
	running.Check(t, readHardware(t.Context(), newOptions(), stdio{in: bytes.NewReader(told), out: &report}))
	var run state.Run
	running.Check(t, wire.Read(&report, &run))
	all := make(map[string]state.Hardware)
	for _, h := range run.Hardware {
		all[h.Device] = h
	}
	if len(all) != len(r.Devices) {
		t.Errorf("it tells of %d devices of %d", len(all), len(r.Devices))
	}
	return all
}

// A device that hangs, and one that fails, take nothing from what is told of the others.
func TestHardwareChild(t *testing.T) {
	t.Parallel()
	s := settings{Provider: providerSimulated, Hardware: hardwareSettings{Budget: 10 * time.Second}}
	var r wire.HardwareRequest
	var all simulated.Profile
	for i, faults := range []string{"hang", "fail", "saturated", "", "refused", "reset", "flapping", "slow_link"} {
		name := fmt.Sprint("sim", i)
		p := running.Must(simulated.ParseProfile("profile", fmt.Appendf(nil, "devices: [{name: %s, like: sim_ib0, driver: mlx5, hardware_faults: [%s]}]", name, faults)))(t)
		all.Devices = append(all.Devices, p.Devices...)
		r.Devices = append(r.Devices, name)
	}
	var err error
	if s.Profile, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	told := childOf(t, s, r)
	for _, name := range r.Devices {
		h := told[name]
		switch name {
		case "sim0":
			if h.Reading == "" || !strings.Contains(h.Failure, "timed out after 10s of "+h.Reading) {
				t.Errorf("of the one that hangs: %+v", h)
			}
		case "sim1":
			if h.Reading != "" || !strings.Contains(h.Failure, "input/output error") {
				t.Errorf("of the one that fails: %+v", h)
			}
		default:
			if h.Failure != "" || h.Table != "mlx5" || len(h.Ports) != 2 || len(h.Ports[0].Counters) == 0 {
				t.Errorf("of %s: %+v", name, h)
			}
		}
	}
	s.Hardware.Without.Counters = true
	r.Devices = r.Devices[3:4]
	if h := childOf(t, s, r)["sim3"]; len(h.Ports) != 2 || h.Ports[0].Counters != nil {
		t.Errorf("without counters: %+v", h)
	}
}

// A device for which there was no time has not failed, and hangs in nothing.
func TestHardwareIsLate(t *testing.T) {
	t.Parallel()
	s := settings{Provider: providerLibibverbs, Hardware: hardwareSettings{Sysfs: filepath.Join(hardwaretest.Tree(t, "rxe"), "sys"), Budget: time.Nanosecond}}
	for _, h := range childOf(t, s, wire.HardwareRequest{Devices: []string{"rxe0"}}) {
		if h.Failure == "" || !h.Late && h.Reading == "" {
			t.Errorf("%+v", h)
		}
	}
}

// What real adapters have in sysfs is read, in the form in which it can be told, apart from
// what is to be left alone.
func TestHardwareOfTrees(t *testing.T) {
	t.Parallel()
	for _, tree := range hardwaretest.Names(t) {
		t.Run(tree, func(t *testing.T) {
			t.Parallel()
			root := hardwaretest.Tree(t, tree)
			s := settings{Provider: providerLibibverbs, Hardware: hardwareSettings{Sysfs: filepath.Join(root, "sys"), Budget: time.Minute}}
			s.Inventory.Procfs = filepath.Join(root, "proc")
			r := wire.HardwareRequest{Devices: hardwaretest.Devices(t, root)}
			all := childOf(t, s, r)
			for _, device := range r.Devices {
				h := all[device]
				if h.Failure != "" || len(h.Ports) == 0 {
					t.Errorf("%+v", h)
				}
				for _, p := range h.Ports {
					r.Skip = append(r.Skip, wire.SkipCounters{Device: device, Port: p.Number, Group: state.GroupPort})
				}
			}
			for _, h := range childOf(t, s, r) {
				for _, p := range h.Ports {
					for _, c := range p.Counters {
						if c.Group == state.GroupPort {
							t.Errorf("%s: %s is read", h.Device, c.Name)
						}
					}
				}
			}
		})
	}
}

func TestHardwareOfGPUs(t *testing.T) {
	t.Parallel()
	root := hardwaretest.H100(t, "")
	s := settings{Provider: providerLibibverbs, Hardware: hardwareSettings{Sysfs: filepath.Join(root, "sys"), Budget: time.Minute}}
	s.Inventory.Procfs = filepath.Join(root, "proc")
	for _, h := range childOf(t, s, wire.HardwareRequest{Devices: hardwaretest.Devices(t, root)}) {
		if len(h.GPUs) != 8 || h.GPUs[7].Memory != "nvidia_peermem" {
			t.Errorf("%+v", h.GPUs)
		}
	}
}

func TestHardwareByHand(t *testing.T) {
	t.Parallel()
	err := readHardware(t.Context(), newOptions(), stdio{in: strings.NewReader(""), out: new(bytes.Buffer)})
	if err == nil || !strings.Contains(err.Error(), "for the exporter itself") {
		t.Error(err)
	}
}
