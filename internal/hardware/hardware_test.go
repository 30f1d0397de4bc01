package hardware_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/hardware/hardwaretest"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

func same[T any](t testing.TB, want, got T, about ...any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Errorf("got %#v instead of %#v %v", got, want, about)
	}
}

// has is same, and ends the test on failure.
func has[T any](t testing.TB, want, got T) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("got %#v instead of %#v", got, want)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// told verifies that the protocol between child and parent preserves a result.
func told(t testing.TB, h state.Hardware) {
	t.Helper()
	var lines bytes.Buffer
	w := wire.NewWriter(&lines)
	check(t, w.Send(wire.Line{Hardware: &h}))
	check(t, w.Send(wire.Line{End: &wire.End{}}))
	run := state.Run{Kind: state.KindHardware}
	check(t, wire.Read(&lines, &run))
	same(t, []state.Hardware{h}, run.Hardware)
}

func options(root, device string) hardware.Options {
	return hardware.Options{
		Sysfs:  filepath.Join(root, "sys"),
		Procfs: filepath.Join(root, "proc"),
		Device: device,
	}
}

// one reads the device mlx5_0 of a small tree, with more lines laid over it.
func one(t *testing.T, lines string) state.Hardware {
	t.Helper()
	return hardware.Read(t.Context(), options(small(t, lines), "mlx5_0"))
}

// onePort reads the only port of that device.
func onePort(t *testing.T, lines string) state.HardwarePort {
	t.Helper()
	return portOf(t, one(t, lines))
}

// portOf returns the only port of a device that was read without failure.
func portOf(t *testing.T, h state.Hardware) state.HardwarePort {
	t.Helper()
	told(t, h)
	same(t, "", h.Failure)
	has(t, 1, len(h.Ports))
	return h.Ports[0]
}

// small lays out a small tree, with more lines over it, which begin in the directory of
// port 1.
func small(t testing.TB, lines string) (root string) {
	t.Helper()
	root = t.TempDir()
	hardwaretest.Lay(t, root, `
@ sys/class/infiniband/mlx5_0/ports/1
state: 4: ACTIVE
phys_state: 5: LinkUp
rate: 100 Gb/sec (4X EDR)
link_layer: Ethernet
counters/a: 1
hw_counters/lifespan: 10
hw_counters/b: 2
gids/0: fe80:0000:0000:0000:0202:c9ff:fe00:0001
gid_attrs/types/0: RoCE v2
gid_attrs/ndevs/0: eth0
@ sys/class/net/eth0
ifindex: 3
mtu: 1500
carrier_changes: 4
`+port+strings.TrimLeft(lines, "\n"))
	return root
}

// port is where the lines over a small tree begin.
const port = "@ sys/class/infiniband/mlx5_0/ports/1\n"

func counted(all []state.Counter) string {
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, "%s/%s=%d ", c.Group, c.Name, c.Value)
	}
	return strings.TrimSpace(b.String())
}

// files returns the counters in the files below a directory, as counted does.
func files(t *testing.T, dir string) string {
	t.Helper()
	var all []state.Counter
	for _, group := range []state.CounterGroup{state.GroupPort, state.GroupHardware} {
		names, err := filepath.Glob(filepath.Join(dir, string(group), "*"))
		check(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			if filepath.Base(name) == "lifespan" || err != nil {
				continue
			}
			value, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
			check(t, err)
			all = append(all, state.Counter{Group: group, Name: filepath.Base(name), Value: value})
		}
	}
	return counted(all)
}

// TestTrees compares each counter of several adapters with its file, and the rest with golden files.
func TestTrees(t *testing.T) {
	for _, name := range hardwaretest.Names(t) {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			root := hardwaretest.Tree(t, name)
			for _, device := range hardwaretest.Devices(t, root) {
				h := hardware.Read(t.Context(), options(root, device))
				told(t, h)
				dir := filepath.Join(root, "sys/class/infiniband", device)
				same(t, files(t, dir), counted(h.Counters))
				h.Counters = nil
				for i, p := range h.Ports {
					if p.Number == 1 || !counters.PerFunction(h.Table) {
						same(t, files(t, filepath.Join(dir, "ports", strconv.Itoa(p.Number))), counted(p.Counters))
					}
					h.Ports[i].Counters = nil
				}
				b.WriteString(golden.JSON(t, h))
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), b.String())
		})
	}
}

func TestNoDevice(t *testing.T) {
	root := small(t, "")
	for _, device := range []string{"", ".", "..", "../infiniband/mlx5_0", "mlx5_0/ports", "mlx5_9"} {
		h := hardware.Read(t.Context(), options(root, device))
		same(t, true, h.Failure != "", device)
		same(t, 0, len(h.Ports), device)
	}
}

func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("too late"))
	h := hardware.Read(ctx, options(small(t, ""), "mlx5_0"))
	same(t, true, strings.Contains(h.Failure, "too late"), h.Failure)
	same(t, false, h.Late)
}

// TestLate verifies that only a read whose time was up before its end is late.
func TestLate(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	h := hardware.Read(ctx, options(small(t, ""), "mlx5_0"))
	same(t, true, h.Late)
	same(t, true, strings.Contains(h.Failure, "infiniband/mlx5_0/ports was read"), h.Failure)
	same(t, "", h.Reading)
	told(t, h)

	all := &counting{Context: t.Context(), each: func(int) error { return nil }}
	hardware.Read(all, options(small(t, ""), "mlx5_0"))
	for after, late := range map[int]bool{all.times: false, all.times - 1: true} {
		h = hardware.Read(&counting{Context: t.Context(), each: func(n int) error {
			if n > after {
				return context.DeadlineExceeded
			}
			return nil
		}}, options(small(t, ""), "mlx5_0"))
		same(t, late, h.Late, h.Failure)
		same(t, late, h.Failure != "")
	}
}

// counting is a context whose error each returns, by the number of the call.
type counting struct {
	context.Context //nolint:containedctx // It is one.
	times           int
	each            func(n int) error
}

func (c *counting) Err() error {
	c.times++
	return c.each(c.times)
}

func TestCounters(t *testing.T) {
	refused := func(errno, detail string) []state.RefusedCounters {
		return []state.RefusedCounters{{Group: state.GroupPort, Errno: errno, Detail: detail}}
	}
	noCount := func(content string) []state.RefusedCounters {
		return refused("", fmt.Sprintf("a: %q is no count", content))
	}
	const b = "hw_counters/b=2"
	for _, c := range []struct {
		name, lines, counters string
		refused               []state.RefusedCounters
	}{
		{"as they are", "", "counters/a=1 " + b, nil},
		{"hexadecimal", "counters/a: 0xff", "counters/a=255 " + b, nil},
		{"the largest", "counters/a: 18446744073709551615", "counters/a=18446744073709551615 " + b, nil},
		{"not supported", "counters/a: N/A (no PMA)", b, nil},
		{"absent for the driver", "counters/a -> /nowhere", b, nil},
		{"a directory", "counters/a/\ncounters/z: 7", "counters/z=7 " + b, refused("", "a: is not a regular file")},
		{"no number", "counters/a: many\ncounters/z: 7", "counters/z=7 " + b, noCount("many")},
		{"negative", "counters/a: -1", b, noCount("-1")},
		{"2^64", "counters/a: 18446744073709551616", b, noCount("18446744073709551616")},
		{"empty", "counters/a: ", b, noCount("")},
		{"more than a page", "counters/a: " + strings.Repeat("1", 5000), b, noCount(strings.Repeat("1", 40))},
		{"too long", "counters/a: " + strings.Repeat("1", 65<<10), b, refused("", "a: is too long")},
		{"terminal control", "counters/a: \x1b[2J", b, noCount("\x1b[2J")},
		{"EINVAL ends the group", "counters/a !EINVAL\ncounters/z: 7", b, refused("EINVAL", "a: invalid argument")},
		{"EIO ends the group", "counters/m !EIO\ncounters/z: 7", "counters/a=1 " + b, refused("EIO", "m: input/output error")},
		{
			"both groups", "counters/a !EINVAL\nhw_counters/b !EINVAL", "",
			append(refused("EINVAL", "a: invalid argument"),
				state.RefusedCounters{Group: state.GroupHardware, Errno: "EINVAL", Detail: "b: invalid argument"}),
		},
	} {
		p := onePort(t, c.lines)
		same(t, c.counters, counted(p.Counters), c.name)
		same(t, c.refused, p.Refused, c.name)
	}
}

func TestCountersOfTheDevice(t *testing.T) {
	h := one(t, "@ sys/class/infiniband/mlx5_0/hw_counters\nlifespan: 12\ncmds: 4\n")
	same(t, "hw_counters/cmds=4", counted(h.Counters))
	h = one(t, "@ sys/class/infiniband/mlx5_0/hw_counters\ncmds !EINVAL\n")
	same(t, []state.RefusedCounters{{Group: state.GroupHardware, Errno: "EINVAL", Detail: "cmds: invalid argument"}}, h.Refused)
}

// TestNothingIsWaitedFor verifies that FIFOs without a writer do not block.
func TestNothingIsWaitedFor(t *testing.T) {
	root := small(t, "")
	dir := filepath.Join(root, "sys/class/infiniband/mlx5_0/ports/1")
	for _, name := range []string{"state", "rate", "counters/a", "hw_counters/b", "gids/0", "gids/1"} {
		_ = os.Remove(filepath.Join(dir, name))
		check(t, syscall.Mkfifo(filepath.Join(dir, name), 0o644))
	}
	check(t, syscall.Mkfifo(filepath.Join(root, "sys/class/infiniband/mlx5_0/hw_counters"), 0o644))
	check(t, syscall.Mkfifo(filepath.Join(root, "sys/class/infiniband/mlx5_0/ports/2"), 0o644))
	h := hardware.Read(t.Context(), options(root, "mlx5_0"))
	same(t, "", h.Failure)
	has(t, 2, len(h.Ports))
	same(t, "", h.Ports[0].State)
	same(t, 0, len(h.Ports[0].Counters))
	same(t, []state.RefusedCounters{
		{Group: state.GroupPort, Detail: "a: is not a regular file"},
		{Group: state.GroupHardware, Detail: "b: is not a regular file"},
	}, h.Ports[0].Refused)
}

func TestBounds(t *testing.T) {
	var lines strings.Builder
	for i := range 520 {
		fmt.Fprintf(&lines, "counters/c%03d: %d\n", i, i)
	}
	for i := range state.MaxGIDs + 4 {
		fmt.Fprintf(&lines, "gids/%d: fe80:0000:0000:0000:0000:0000:0000:%04x\n", i, i+1)
	}
	lines.WriteString("@ sys/class/infiniband/mlx5_0/ports\n")
	for i := range 40 {
		fmt.Fprintf(&lines, "%d/state: 1: DOWN\n", i+2)
	}
	lines.WriteString("129/state: 4: ACTIVE\n") // as the uplink of an eswitch
	lines.WriteString("0/state: 1: DOWN\n70000/state: 1: DOWN\n")
	h := one(t, lines.String())
	told(t, h)
	has(t, 32, len(h.Ports))
	same(t, 31, h.Ports[30].Number)
	same(t, 129, h.Ports[31].Number)
	same(t, state.MaxGIDs, len(h.Ports[0].GIDs))
	same(t, 512+1, len(h.Ports[0].Counters))
}

func TestStatesAndRates(t *testing.T) {
	for file, want := range map[string][2]string{ // of the port, and physical
		"4: ACTIVE":                    {"active", "active"},
		"5: ACTIVE_DEFER":              {"active_defer", "active_defer"},
		"5: LinkUp":                    {"link_up", "link_up"},
		"4: PortConfigurationTraining": {"port_configuration_training", "port_configuration_training"},
		"7: Phy Test":                  {"phy_test", "phy_test"},
		"9: <unknown>":                 {"unknown", "unknown"},
		"DOWN":                         {"down", "down"},
		"":                             {},
		"4: ACTIVE!":                   {},
		"4: \u202eevil":                {},
	} {
		p := onePort(t, "state: "+file+"\nphys_state: "+file)
		same(t, want, [2]string{p.State, p.PhysState}, file)
	}
	for file, want := range map[string]state.HardwarePort{
		"100 Gb/sec (4X EDR)": {Rate: 100e9, Speed: 25e9, Width: 4},
		"2.5 Gb/sec (1X SDR)": {Rate: 2.5e9, Speed: 2.5e9, Width: 1},
		"200 Gb/sec (2X NDR)": {Rate: 200e9, Speed: 100e9, Width: 2},
		"10 Gb/sec (4X)":      {Rate: 10e9, Speed: 2.5e9, Width: 4},
		"8 Gb/sec":            {Rate: 8e9},
		"8 Gb/sec (0X)":       {Rate: 8e9},
		"NaN Gb/sec (4X)":     {},
		"1e300 Gb/sec (4X)":   {},
		"-1 Gb/sec (4X)":      {},
		"fast":                {},
	} {
		p := onePort(t, "rate: "+file)
		same(t, want, state.HardwarePort{Rate: p.Rate, Speed: p.Speed, Width: p.Width}, file)
	}
}

// TestRateOfNetdev verifies which of two rates a port has.
func TestRateOfNetdev(t *testing.T) {
	const (
		bond    = "@ sys/class/net/eth0\nspeed: 200000\nbonding/mode: 802.3ad 4\nlower_eth1 -> ../eth1\nlower_eth2 -> ../eth2\n"
		members = `@ sys
class/net/eth1/device -> ../../../devices/pci0000:00/0000:00:01.0/0000:3b:00.0
class/net/eth2/device -> ../../../devices/pci0000:00/0000:00:01.0/%[1]s
devices/pci0000:00/0000:00:01.0/%[1]s/class: 0x020000
`
	)
	driver := state.HardwarePort{Rate: 100e9, RateFrom: "rdma", Width: 4, Speed: 25e9}
	for name, c := range map[string]struct {
		lines string
		want  state.HardwarePort
	}{
		"no speed":             {"", driver},
		"the same speed":       {"@ sys/class/net/eth0\nspeed: 100000\n", state.HardwarePort{Rate: 100e9, RateFrom: "netdev", Width: 4, Speed: 25e9}},
		"another speed":        {"@ sys/class/net/eth0\nspeed: 16000\n", state.HardwarePort{Rate: 16e9, RateFrom: "netdev"}},
		"unknown speed":        {"@ sys/class/net/eth0\nspeed: -1\n", driver},
		"netdev down":          {"@ sys/class/net/eth0\nspeed !EINVAL\n", driver},
		"IP over InfiniBand":   {"link_layer: InfiniBand\n@ sys/class/net/eth0\nspeed: 16000\n", driver},
		"another namespace":    {"gid_attrs/ndevs/0: eth9\n@ sys/class/net/eth0\nspeed: 16000\n", driver},
		"no rate of RDMA":      {"rate: fast\n@ sys/class/net/eth0\nspeed: 16000\n", state.HardwarePort{Rate: 16e9, RateFrom: "netdev"}},
		"a bond":               {adapter + bond + fmt.Sprintf(members, "0000:3b:00.1"), state.HardwarePort{Rate: 200e9, RateFrom: "netdev"}},
		"a bond of 2 adapters": {adapter + bond + fmt.Sprintf(members, "0000:5e:00.0"), driver},
	} {
		p := onePort(t, c.lines)
		same(t, c.want, state.HardwarePort{Rate: p.Rate, RateFrom: p.RateFrom, Width: p.Width, Speed: p.Speed}, name)
	}
}

func TestGIDs(t *testing.T) {
	p := onePort(t, `
gids/1: 0000:0000:0000:0000:0000:0000:0000:0000
gid_attrs/types/1 !EINVAL
gid_attrs/ndevs/1 !EINVAL
gids/2: 0000:0000:0000:0000:0000:ffff:0a00:0001
gid_attrs/types/2: IB/RoCE v1
gid_attrs/ndevs/2: eth0
gids/10: 0000:0000:0000:0000:0000:ffff:0a00:0001
gid_attrs/types/10: RoCE v2
gid_attrs/ndevs/10: eth0.5
gids/11: not an address
gids/x: fe80:0000:0000:0000:0000:0000:0000:0001
`)
	same(t, []state.GID{
		{Index: 0, GID: "fe80:0000:0000:0000:0202:c9ff:fe00:0001", Type: "roce_v2", Family: "ipv6", Netdev: "eth0"},
		{Index: 2, GID: "0000:0000:0000:0000:0000:ffff:0a00:0001", Type: "roce_v1", Family: "ipv4", Netdev: "eth0"},
		{Index: 10, GID: "0000:0000:0000:0000:0000:ffff:0a00:0001", Type: "roce_v2", Family: "ipv4", Netdev: "eth0.5"},
	}, p.GIDs)
	has(t, true, p.RoCEv2IPv4 != nil)
	same(t, 10, *p.RoCEv2IPv4)
}

func TestNetdev(t *testing.T) {
	four := uint64(4)
	known := func(bond string) state.HardwarePort {
		return state.HardwarePort{Netdev: "eth0", Bond: bond, Ifindex: 3, MTU: 1500, CarrierChanges: &four}
	}
	const onAdapter = `
@ sys
class/infiniband/mlx5_0/device -> ../../../devices/pci0000:00/0000:3b:00.0
devices/pci0000:00/0000:3b:00.0/numa_node: 0
`
	const other = onAdapter + "devices/pci0000:00/%s/numa_node: 0\n" +
		"class/net/eth0/device -> ../../../devices/pci0000:00/%[1]s\n"
	for _, c := range []struct {
		name, lines string
		want        state.HardwarePort
	}{
		{"in this namespace", "", known("")},
		{"in another", "gid_attrs/ndevs/0: eth9", state.HardwarePort{Netdev: "eth9"}},
		{"odd name", "gid_attrs/ndevs/0: ../eth0", state.HardwarePort{}},
		{"part of a bond", "@ sys/class/net\neth0/master -> ../bond1\nbond1/bonding/mode: 802.3ad 4\n", known("bond1")},
		{"part of a bridge", "@ sys/class/net\neth0/master -> ../br0\nbr0/mtu: 1500\n", known("")},
		{"same name, on another adapter", fmt.Sprintf(other, "0000:5e:00.0"), state.HardwarePort{Netdev: "eth0"}},
		{"on another function of the adapter", fmt.Sprintf(other, "0000:3b:00.1"), known("")},
		{"same name, on no adapter", onAdapter, state.HardwarePort{Netdev: "eth0"}},
		{"a VLAN on the adapter's", onAdapter + "class/net/eth0/lower_eth1 -> ../eth1\n", known("")},
		{"a bond of the adapter's", onAdapter + "class/net/eth0/bonding/mode: 802.3ad 4\n", known("eth0")},
	} {
		p := onePort(t, c.lines)
		same(t, c.want, state.HardwarePort{
			Netdev: p.Netdev, Bond: p.Bond, Ifindex: p.Ifindex, MTU: p.MTU, CarrierChanges: p.CarrierChanges,
		}, c.name)
	}
}

// adapter is a small tree's adapter on the bus. What follows it begins in the directory of
// its function.
const adapter = `
@ sys/class/infiniband/mlx5_0
device -> ../../../devices/pci0000:00/0000:00:01.0/0000:3b:00.0
@ sys/devices/pci0000:00/0000:00:01.0/0000:3b:00.0
class: 0x020700
`

func TestVectors(t *testing.T) {
	root := small(t, adapter+"msi_irqs/9: msix\n")
	// The vector that each name serves. Those with -1 serve none.
	for word := range strings.FieldsSeq(`
		mlx5_comp0@pci:0000:3b:00.0=0 mlx5_comp17@pci:0000:3b:00.0=17 mlx5_async0@pci:0000:3b:00.0=-1
		mlx5_sf_comp3@pci:0000:3b:00.0=-1 mlx5_comp@pci:0000:3b:00.0=-1 mlx5_comp-1@pci:0000:3b:00.0=-1
		mlx5_comp5000@pci:0000:3b:00.0=-1 mlx4-3@0000:05:00.0=2 mlx4-0@0000:05:00.0=-1
		mlx4-async@pci:0000:05:00.0=-1 bnxt_re-nq-1@pci:0000:41:00.0=1 bnxt_qplib_nq-2=2
		bnxt_re-creq@pci:0000:41:00.0=-1 irdma-0000:4b:00.0-CEQ-4=4 irdma-0000:4b:00.0-AEQCEQ-0=0
		irdma-0000:4b:00.0-AEQ=-1 AEQCEQ=0 CEQ=0 hns-0000:bd:00.0-ceq-6=6 hns-ceq-7=7 hns-aeq-0=-1
		efa-comp2@pci:0000:00:1d.0=2 efa-mgmnt@pci:0000:00:1d.0=-1 erdma-ceq3@pci:0000:00:05.0=3
		erdma-common@pci:0000:00:05.0=-1 qedr5@pci:0000:81:00.0=5 ens4f0np0-TxRx-0=-1
		=-1`) {
		name, vector, _ := strings.Cut(word, "=")
		hardwaretest.Lay(t, root, "@ sys/kernel/irq/9\nactions: "+name)
		got := "-1"
		for _, i := range hardware.Read(t.Context(), options(root, "mlx5_0")).Interrupts {
			got = strconv.Itoa(i.Vector)
		}
		same(t, vector, got, name)
	}
}

func TestInterrupts(t *testing.T) {
	const vector = adapter + `msi_irqs/9: msix
msi_irqs/10: msix
msi_irqs/many: msix
@ proc/irq
9/mlx5_comp0@pci:0000:3b:00.0/
9/smp_affinity_list: 0-3
10/smp_affinity_list: 0-3
@ sys/kernel/irq
10/actions: mlx5_comp0@pci:0000:3b:00.0
`
	for _, c := range []struct {
		name, lines string
		want        state.Interrupt
	}{
		{"by the directory of its action", "", state.Interrupt{CPUs: "0-3"}},
		{
			"runs on one", "@ proc/irq\n9/effective_affinity_list: 2\n@ sys/devices/system/cpu\nisolated: 1",
			state.Interrupt{CPUs: "0-3", Effective: "2"},
		},
		{
			"runs on an isolated one", "@ proc/irq\n9/effective_affinity_list: 2\n@ sys/devices/system/cpu\nisolated: 1-2,9",
			state.Interrupt{CPUs: "0-3", Effective: "2", Isolated: true},
		},
		{
			"may run on all isolated ones", "@ sys/devices/system/cpu\nisolated: 0-3",
			state.Interrupt{CPUs: "0-3", Isolated: true},
		},
		{
			"may run on others, too", "@ sys/devices/system/cpu\nisolated: 0-2",
			state.Interrupt{CPUs: "0-3"},
		},
		{
			"malformed", "@ proc/irq\n9/smp_affinity_list: 3-0\n9/effective_affinity_list: 1-99999\n" +
				"@ sys/devices/system/cpu\nisolated: x",
			state.Interrupt{},
		},
		{
			"of many processors", "@ proc/irq\n9/smp_affinity_list: " + odd(150) + "\n9/effective_affinity_list: " + odd(1000),
			state.Interrupt{CPUs: odd(150)},
		},
		{"counted", "@ sys/kernel/irq\n9/per_cpu_count: 5,0,7", state.Interrupt{CPUs: "0-3", Count: 12}},
		// A wrap at 32 bits is an increase by one.
		{
			"at its end on a CPU", "@ sys/kernel/irq\n9/per_cpu_count: 4294967295,4294967287",
			state.Interrupt{CPUs: "0-3", Count: 1<<32 - 10},
		},
		{"wrapped there", "@ sys/kernel/irq\n9/per_cpu_count: 0,4294967287", state.Interrupt{CPUs: "0-3", Count: 1<<32 - 9}},
	} {
		h := one(t, vector+c.lines)
		has(t, 1, len(h.Interrupts))
		c.want.IRQ, c.want.Name = 9, "mlx5_comp0@pci:0000:3b:00.0"
		same(t, c.want, h.Interrupts[0], c.name)
	}
}

func odd(many int) string {
	var list []string
	for i := range many {
		list = append(list, strconv.Itoa(2*i+1))
	}
	return strings.Join(list, ",")
}

func TestBus(t *testing.T) {
	const link = "current_link_speed: 16.0 GT/s PCIe\ncurrent_link_width: 16\n" +
		"max_link_speed: 16.0 GT/s PCIe\nmax_link_width: 16\n"
	own := &state.PCILink{Address: "0000:3b:00.0", Speed: 16e9, MaxSpeed: 16e9, Width: 16, MaxWidth: 16}
	for _, c := range []struct {
		name, lines string
		want        state.Adapter
	}{
		{"not told", "", state.Adapter{}},
		{"unknown", "current_link_speed: Unknown\ncurrent_link_width: 255\n", state.Adapter{}},
		{"as it should be", link, state.Adapter{Link: own}},
		{
			"an older kernel", "current_link_speed: 8 GT/s\ncurrent_link_width: 8\n",
			state.Adapter{Link: &state.PCILink{Address: "0000:3b:00.0", Speed: 8e9, Width: 8}},
		},
		{
			"a slower bridge", link + "../current_link_speed: 8.0 GT/s PCIe\n../current_link_width: 16\n",
			state.Adapter{Link: own, Bottleneck: &state.PCILink{Address: "0000:00:01.0", Speed: 8e9, Width: 16}},
		},
		{"a faster bridge", link + "../current_link_speed: 32.0 GT/s PCIe\n../current_link_width: 8\n", state.Adapter{Link: own}},
		{"a node of memory", "numa_node: 1", state.Adapter{NUMANode: 1}},
		{"a virtual function of no adapter", "physfn -> /nowhere", state.Adapter{}},
		{"virtual functions", "sriov_totalvfs: 8\nsriov_numvfs: 2\n", state.Adapter{Role: "pf", VFs: 2}},
		{"none can be made", "sriov_totalvfs: 0\n", state.Adapter{}},
		{"its slot", "@ sys/bus/pci/slots\n7/address: 0000:3b:00\n8/address: 0000:00:01\n", state.Adapter{Slot: "7"}},
		{"the slot of its board", "@ sys/bus/pci/slots\n8/address: 0000:00:01\n9/address: 0000:00:02\n", state.Adapter{Slot: "8"}},
		{
			"errors", `aer_dev_correctable: RxErr 1\nTOTAL_ERR_COR 5`, state.Adapter{AER: &state.AER{Correctable: 5}},
		},
		{
			"errors of each kind", "aer_dev_correctable: TOTAL_ERR_COR 5\naer_dev_nonfatal: DLP 9\\nTOTAL_ERR_NONFATAL 6\n" +
				"aer_dev_fatal: TOTAL_ERR_FATAL 7\n",
			state.Adapter{AER: &state.AER{Correctable: 5, Nonfatal: 6, Fatal: 7}},
		},
		{"malformed errors", "aer_dev_fatal: TOTAL_ERR_FATAL many\n", state.Adapter{}},
	} {
		h := one(t, adapter+c.lines)
		c.want.PCI = "0000:3b:00.0"
		if !strings.HasPrefix(c.lines, "numa_node") {
			c.want.NUMANode = -1
		}
		same(t, c.want, h.Identity, c.name)
	}
}

func TestTemperature(t *testing.T) {
	const temp = "hwmon/hwmon1/temp"
	for _, c := range []struct {
		name, lines string
		want        *float64
	}{
		{"none", "", nil},
		{"only that of the chip", temp + "1_label: asic\n" + temp + "1_input: 60000\n", nil},
		{"of the module", temp + "1_label: asic\n" + temp + "2_label: Module1\n" + temp + "2_input: 41250\n", new(41.25)},
		{
			"of several modules", temp + "1_label: Module0\n" + temp + "1_input: -500\n" + temp + "2_label: Module1\n",
			new(-0.5),
		},
		{"of those of others", temp + "1_label: Module1\n" + temp + "2_label: Module2\n", nil},
		{"unknown", temp + "1_label: Module0\n" + temp + "1_input: warm\n", nil},
	} {
		same(t, c.want, onePort(t, adapter+c.lines).TemperatureCelsius, c.name)
	}
}

// asked stands in for netlink.
type asked struct {
	statistics, ethtool []state.Counter
	err                 error
	of                  []string
}

func (a *asked) Statistics(_ context.Context, device string, port int) ([]state.Counter, error) {
	a.of = append(a.of, fmt.Sprintf("%s/%d", device, port))
	return a.statistics, a.err
}

func (a *asked) Counters(_ context.Context, netdev string, _ func(string) bool) ([]state.Counter, error) {
	a.of = append(a.of, netdev)
	return a.ethtool, a.err
}

func TestNetlink(t *testing.T) {
	root := small(t, "")
	for _, c := range []struct {
		name string
		a    asked
		skip []hardware.Group
		want string
		of   []string
	}{
		{
			"answers", asked{
				statistics: []state.Counter{{Name: "b", Value: 5}, {Name: "b"}, {Name: "cc_rx_ce_pkts", Value: 6}, {Name: "odd\n"}},
				ethtool:    []state.Counter{{Name: "rx_pause", Value: 7}},
			}, nil, "counters/a=1 hw_counters/b=5 hw_counters/cc_rx_ce_pkts=6 ethtool/rx_pause=7", []string{"mlx5_0/1", "eth0"},
		},
		{"answers nothing", asked{}, nil, "counters/a=1 hw_counters/b=2", []string{"mlx5_0/1", "eth0"}},
		{
			"refuses",
			asked{err: syscall.EOPNOTSUPP, statistics: []state.Counter{{Name: "x"}}},
			nil,
			"counters/a=1 hw_counters/b=2",
			[]string{"mlx5_0/1", "eth0"},
		},
		{
			"is not asked",
			asked{},
			[]hardware.Group{{Port: 1, Group: state.GroupHardware}, {Port: 1, Group: state.GroupEthtool}},
			"counters/a=1", nil,
		},
		{
			"skipped elsewhere",
			asked{},
			[]hardware.Group{{Port: 2, Group: state.GroupPort}},
			"counters/a=1 hw_counters/b=2",
			[]string{"mlx5_0/1", "eth0"},
		},
	} {
		o := options(root, "mlx5_0")
		o.Statistics, o.Ethtool, o.Skip = &c.a, &c.a, c.skip
		p := portOf(t, hardware.Read(t.Context(), o))
		same(t, c.want, counted(p.Counters), c.name)
		same(t, c.of, c.a.of, c.name)
	}
}

// TestCountersOfTheFunction verifies that counters which a driver repeats on each port are shown once.
func TestCountersOfTheFunction(t *testing.T) {
	root := small(t, "@ sys/class/infiniband/mlx5_0/ports/2\ncounters/a: 1\nhw_counters/b: 2\n")
	for driver, want := range map[string][2]string{
		"mana": {"counters/a=1 hw_counters/b=2", "counters/a=1"},
		"mlx5": {"counters/a=1 hw_counters/b=2", "counters/a=1 hw_counters/b=2"},
	} {
		var a asked
		o := options(root, "mlx5_0")
		o.Driver, o.Statistics = driver, &a
		h := hardware.Read(t.Context(), o)
		has(t, 2, len(h.Ports))
		same(t, want, [2]string{counted(h.Ports[0].Counters), counted(h.Ports[1].Counters)}, driver)
		same(t, driver == "mlx5", len(a.of) == 2, driver, a.of)
	}
}

// TestLinkDown verifies that the reason for a link that is down is stored in the port, not among its counters.
func TestLinkDown(t *testing.T) {
	for _, c := range []struct {
		name, lines, want string
		reason, detail    *int
	}{
		{"up", "link_down_events: 3", "link_down_events=3", nil, nil},
		{"no cable", "link_down_events: 3\nlink_down_reason: 4", "link_down_events=3", new(4), nil},
		{"autonegotiation", "link_down_reason: 0\nlink_down_detail: 1", "", new(0), new(1)},
	} {
		root := small(t, "@ ethtool/eth0/netlink\n"+c.lines)
		o := options(root, "mlx5_0")
		o.Ethtool = hardwaretest.Ethtool(t, root)
		p := portOf(t, hardware.Read(t.Context(), o))
		same(t, strings.TrimSpace("counters/a=1 hw_counters/b=2 "+strings.ReplaceAll(c.want, "link", "ethtool/link")), counted(p.Counters), c.name)
		same(t, c.reason, p.LinkDownReason, c.name)
		same(t, c.detail, p.LinkDownDetail, c.name)
	}
}

// TestStatisticsOfDriver verifies that only drivers with such counters in their table are asked for
// their statistics.
func TestStatisticsOfDriver(t *testing.T) {
	root := small(t, "@ ethtool/eth0/driver\nrx_prio3_pause: 5\nrx0_packets: 6\npfc_pri3_rx_duration_us: 7")
	for driver, want := range map[string]string{
		"mlx5": " ethtool/rx_prio3_pause=5", "bnxt_re": " ethtool/pfc_pri3_rx_duration_us=7", "irdma": "", "": "",
	} {
		o := options(root, "mlx5_0")
		o.Driver, o.Ethtool = driver, hardwaretest.Ethtool(t, root)
		same(t, "counters/a=1 hw_counters/b=2"+want, counted(portOf(t, hardware.Read(t.Context(), o)).Counters), driver)
	}
}

// TestBondCounters verifies that the counters of a bond's members are summed, if they belong to the
// adapter.
func TestBondCounters(t *testing.T) {
	const bond = adapter + `@ sys/class/infiniband/mlx5_0/ports/1
gid_attrs/ndevs/0: bond0
@ sys/class/net
bond0/ifindex: 9
bond0/bonding/mode: 802.3ad 4
bond0/lower_eth0 -> ../eth0
eth0/device -> ../../../devices/pci0000:00/0000:00:01.0/0000:3b:00.0
@ sys/class/net/eth1
device -> ../../../devices/pci0000:00/0000:00:01.0/0000:3b:00.1
@ sys/class/net/eth9
device -> ../../../devices/pci0000:00/0000:00:02.0/0000:5e:00.0
@ sys/devices/pci0000:00
0000:00:01.0/0000:3b:00.1/class: 0x020700
0000:00:02.0/0000:5e:00.0/class: 0x020700
@ ethtool
bond0/netlink/tx_pause_frames: 1000
eth0/netlink/tx_pause_frames: 1
eth0/netlink/fec_corrected_blocks: 4
eth0/netlink/link_down_reason: 4
eth0/driver/rx_prio3_pause: 2
eth1/netlink/tx_pause_frames: 10
eth1/netlink/link_down_reason: 4
eth1/driver/rx_prio3_pause: 20
eth9/netlink/tx_pause_frames: 100
`
	const two = bond + "@ sys/class/net/bond0\nlower_eth1 -> ../eth1\n"
	for _, c := range []struct {
		name, lines, want string
		members           []string
		reason            *int // of one member it would not say which
	}{
		{"one member", bond, "rx_prio3_pause=2 tx_pause_frames=1 fec_corrected_blocks=4", []string{"eth0"}, nil},
		{"two, and one counts no FEC", two, "rx_prio3_pause=22 tx_pause_frames=11", []string{"eth0", "eth1"}, nil},
		{
			"one of another adapter", two + "lower_eth9 -> ../eth9\n", "rx_prio3_pause=22 tx_pause_frames=11",
			[]string{"eth0", "eth1"},
			nil,
		},
		{"one that says nothing", two + "@ ethtool\neth1/\n", "", []string{"eth0", "eth1"}, nil},
		{
			"one that cannot read a counter", two + "@ ethtool/eth1\ndriver/rx_prio3_pause: 0xffffffffffffffff\n",
			"tx_pause_frames=11",
			[]string{"eth0", "eth1"},
			nil,
		},
		{"no member", two + "@ sys/class/net\nbond0/\nbond0/ifindex: 9\nbond0/bonding/mode: 802.3ad 4\n", "", nil, nil},
		{
			"a member of its own", two + port + "gid_attrs/ndevs/0: eth0\n@ sys/class/net\neth0/master -> ../bond0\neth0/ifindex: 3\n",
			"rx_prio3_pause=2 tx_pause_frames=1 fec_corrected_blocks=4", nil, new(4),
		},
	} {
		root := small(t, c.lines)
		o := options(root, "mlx5_0")
		o.Driver, o.Ethtool = "mlx5", hardwaretest.Ethtool(t, root)
		p := portOf(t, hardware.Read(t.Context(), o))
		_, got, _ := strings.Cut(counted(p.Counters), "hw_counters/b=2")
		same(t, c.want, strings.TrimSpace(strings.ReplaceAll(got, "ethtool/", "")), c.name)
		same(t, c.members, p.Members, c.name)
		same(t, "bond0", p.Bond, c.name)
		same(t, c.reason, p.LinkDownReason, c.name)
	}
}

func TestWithout(t *testing.T) {
	root := hardwaretest.Tree(t, "connectx-7")
	o := options(root, "mlx5_0")
	o.Without = hardware.Parts{InterruptCounts: true}
	h := hardware.Read(t.Context(), o)
	has(t, 8, len(h.Interrupts))
	same(t, state.Interrupt{Vector: 1, IRQ: 302, Name: "mlx5_comp1@pci:0000:18:00.0", Effective: "4", Isolated: true}, h.Interrupts[1])
	o.Without = hardware.Parts{Counters: true, Adapter: true, GIDs: true}
	h = hardware.Read(t.Context(), o)
	p := portOf(t, h)
	same(t, "active", p.State)
	same(t, "ibp24s0", p.Netdev)
	same(t, 0, len(p.Counters))
	same(t, 0, len(p.GIDs))
	same(t, state.Adapter{NUMANode: -1}, h.Identity)
	same(t, "mlx5_core", h.Driver)
}

// TestSoftware verifies that an emulated device is not taken for the adapter below it.
func TestSoftware(t *testing.T) {
	root := hardwaretest.Tree(t, "connectx-7")
	o := options(root, "mlx5_0")
	o.Driver = "siw"
	h := hardware.Read(t.Context(), o)
	same(t, "siw", h.Driver)
	same(t, "", h.Identity.PCI)
	same(t, 0, len(h.Interrupts))
}

type netdevs string

func (n netdevs) Netdev(_ context.Context, device string, port int) (string, error) {
	if n == "" {
		return "veth4", errors.New("refused")
	}
	return string(n) + strings.Repeat(" ", len(device)+port-len("siw0")-1), nil
}

// TestNetdevByNetlink verifies that only Ethernet ports without a network device in sysfs are asked
// for.
func TestNetdevByNetlink(t *testing.T) {
	for _, c := range []struct {
		name, layer, first string
		ask                hardware.Netdevs
		netdev             string
		mtu                int
	}{
		{"sysfs tells", "Ethernet", "veth4", netdevs("other"), "veth4", 1500},
		{"nobody is asked", "Ethernet", "", nil, "", 0},
		{"told", "Ethernet", "", netdevs("veth4"), "veth4", 1500},
		{"told one that is not here", "Ethernet", "", netdevs("eth7"), "eth7", 0},
		{"refused", "Ethernet", "", netdevs(""), "", 0},
		{"no name", "Ethernet", "", netdevs("../x"), "", 0},
		{"InfiniBand", "InfiniBand", "", netdevs("veth4"), "", 0},
	} {
		root := hardwaretest.Tree(t, "siw")
		port := filepath.Join(root, "sys/class/infiniband/siw0/ports/1")
		for file, content := range map[string]string{"gid_attrs/ndevs/0": c.first, "link_layer": c.layer} {
			running.Check(t, os.WriteFile(filepath.Join(port, file), []byte(content+"\n"), 0o644))
		}
		o := options(root, "siw0")
		o.Driver, o.Netdevs = "siw", c.ask
		p := portOf(t, hardware.Read(t.Context(), o))
		same(t, c.netdev, p.Netdev, c.name)
		same(t, c.mtu, p.MTU, c.name)
	}
}

// hanging is a request that hangs until it is released.
type hanging struct{ entered, release chan struct{} }

func (h hanging) Statistics(context.Context, string, int) ([]state.Counter, error) {
	close(h.entered)
	<-h.release
	return nil, errors.New("late")
}

func TestReadingNamesWhatHangs(t *testing.T) {
	h := hanging{make(chan struct{}), make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	var reading atomic.Pointer[string]
	o := options(small(t, ""), "mlx5_0")
	o.Statistics, o.Reading = h, &reading
	done := make(chan state.Hardware)
	go func() { done <- hardware.Read(ctx, o) }()
	<-h.entered
	has(t, true, reading.Load() != nil)
	same(t, "rdma statistic of port 1", *reading.Load())
	cancel()
	close(h.release)
	got := <-done
	same(t, true, reading.Load() == nil)
	same(t, true, got.Failure != "")
	has(t, 1, len(got.Ports))
	same(t, "counters/a=1", counted(got.Ports[0].Counters), "what was read until then")
}

func TestGoneMeanwhile(t *testing.T) {
	root := small(t, "")
	o := options(root, "mlx5_0")
	o.Statistics = removing(filepath.Join(root, "sys/class/infiniband/mlx5_0"))
	h := hardware.Read(t.Context(), o)
	same(t, true, strings.Contains(h.Failure, "no such file"), h.Failure)
}

// TestPortsComeLater verifies that Read waits for the ports of a device that is being registered.
func TestPortsComeLater(t *testing.T) {
	root := small(t, "")
	ports := filepath.Join(root, "sys/class/infiniband/mlx5_0/ports")
	check(t, os.Rename(ports, ports+"_to_be"))
	h := hardware.Read(&counting{Context: t.Context(), each: func(n int) error {
		if n == 3 { // the second time that it looks for them
			check(t, os.Rename(ports+"_to_be", ports))
		}
		return nil
	}}, options(root, "mlx5_0"))
	same(t, "", h.Failure)
	same(t, 1, len(h.Ports))
}

type removing string

func (r removing) Statistics(context.Context, string, int) ([]state.Counter, error) {
	return nil, os.RemoveAll(string(r))
}

// FuzzRead puts any content into the files that are parsed.
func FuzzRead(f *testing.F) {
	files := []string{
		"ports/1/state", "ports/1/rate", "ports/1/counters/x", "ports/1/gids/0", "ports/1/gid_attrs/types/0",
		"ports/1/gid_attrs/ndevs/0", "board_id", "device/current_link_speed", "device/current_link_width",
		"device/aer_dev_fatal", "device/numa_node", "device/sriov_totalvfs", "proc/irq/7/smp_affinity_list",
		"sys/kernel/irq/7/actions", "sys/kernel/irq/7/per_cpu_count", "sys/devices/system/cpu/isolated",
		"sys/bus/pci/slots/1/address",
	}
	for which, seed := range []string{
		"4: ACTIVE", "100 Gb/sec (4X EDR)", "0xffffffffffffffff", "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2",
		"eth0", "MT_0000000838", "16.0 GT/s PCIe", "255", "X 1\nTOTAL_ERR_FATAL 3", "-1", "8", "0-3,5", "mlx5_comp4095@pci:",
		"1,2,3", "0-8191", "0000:3b:00",
	} {
		f.Add(uint8(which), seed)
	}
	root := small(f, `
@ sys
class/infiniband/mlx5_0/device -> ../../../devices/pci0000:00/0000:3b:00.0
bus/pci/slots/1/address: 0000:3b:00
@ sys/devices/pci0000:00/0000:3b:00.0
current_link_speed: 8.0 GT/s
current_link_width: 8
msi_irqs/7: msix
@ sys/kernel/irq/7
actions: mlx5_comp0@pci:0000:3b:00.0
per_cpu_count: 1,0
@ proc/irq/7
smp_affinity_list: 0-1
`)
	f.Fuzz(func(t *testing.T, which uint8, content string) {
		path := files[int(which)%len(files)]
		switch {
		case strings.HasPrefix(path, "proc/"), strings.HasPrefix(path, "sys/"):
		default:
			path = "sys/class/infiniband/mlx5_0/" + path
		}
		path = filepath.Join(root, path)
		before, err := os.ReadFile(path)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(content), 0o644))
		portOf(t, hardware.Read(t.Context(), options(root, "mlx5_0")))
		if err == nil {
			check(t, os.WriteFile(path, before, 0o644))
		} else {
			check(t, os.Remove(path))
		}
	})
}
