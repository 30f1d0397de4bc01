package expect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/health/expect"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
)

// parse decodes rules as the configuration file does.
func parse(s string) (all expect.Rules, err error) {
	dec := yaml.NewDecoder(strings.NewReader(s))
	dec.KnownFields(true)
	if err := dec.Decode(&all); err != nil {
		return nil, err
	}
	return all, all.Validate()
}

func rules(t *testing.T, s string) expect.Rules {
	t.Helper()
	all := running.Must(parse(s))(t)
	return all
}

func TestRefused(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("- {devices: 1, device: x}\n", 65)
	for _, tc := range []struct{ yaml, want string }{
		{"{device: a}", "expect expects nothing: add a key such as devices"},
		{"{device: 'a(', devices: 1}", "expect.device is \"a(\": missing closing ): `a(`"},
		{"{device: 'a)|(b', devices: 1}", "expect.device is \"a)|(b\": unexpected ): `a)|(b`"},
		{"{device: " + strings.Repeat("x", 9000) + ", devices: 1}", "use up to 8192 characters"},
		{"{devices: -1}", `expect.devices is "-1": use a number from 0 to 4096`},
		{"{active_ports: 5000}", `expect.active_ports is "5000": use a number from 0 to 4096`},
		{"{mtu: 0}", `expect.mtu is "0": use a number from 256 to 65536`},
		{"{rate: 400}", `expect.rate is "400": use a rate such as 400Gb/s or 200G`},
		{"{rate: 400GB/s}", "use a rate such as"},
		{"{rate: 1e400G}", "use a rate such as"},
		{"{memlock: 65536}", `expect.memlock is "65536": use a size such as 64KiB or 16GiB, or unlimited`},
		{"{memlock: 0KiB}", "use a size such as"},
		{"{roce_v2_ipv4: false}", `expect.roce_v2_ipv4 is "false": use true, or leave out the key`},
		{"{firmware: '28.[a'}", `expect.firmware is "28.[a": use a pattern such as 28.43.* of up to 100 characters`},
		{"{driver: '" + strings.Repeat("*a", 51) + "'}", "expect.driver is "},
		{"{devices: 0, active_ports: 1}", `expect.devices is "0": leave out the other keys, which no device can meet`},
		{"[{rate: 200G}, {rate: 400G}]", "expect[1].rate is 400G, and an earlier item has 200G for the same devices: leave out one"},
		{"[{device: a, mtu: 4096, devices: 2}, {device: a, mtu: 1024}]", "expect[1].mtu is 1024, and an earlier item has 4096 for the same devices: leave out one"},
		{"[{devices: 1}, {mtu: 1}]", `expect[1].mtu is "1": use a number`},
		{many, "expect has 65 items: use no more than 64"},
		{"{rate: }", `line 1: expect has no value for the key "rate": give one, or leave out the key`},
		{"[{devices: 8, firmware: ''}]", `expect has no value for the key "firmware"`},
		{"{devices: ~}", `expect has no value for the key "devices"`},
		{"{device: [a]}", "cannot unmarshal !!seq into string"},
		{"{ports: 8}", "field ports not found"},
		{"8", "cannot unmarshal !!int `8` into expect.Rule"},
		{"", "EOF"},
	} {
		_, err := parse(tc.yaml)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "; ") {
			t.Errorf("%.60s: got %v, want %s", tc.yaml, err, tc.want)
		}
	}
	if _, err := parse("{mtu: 1, rate: x}"); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "; ") {
		t.Errorf("two flaws: %v", err)
	}
}

// host returns devices with a port each, as of recipes such as "mlx5_0 rate=200".
func host(recipes ...string) *state.Snapshot {
	s := &state.Snapshot{Ready: true}
	for _, recipe := range recipes {
		name, rest, _ := strings.Cut(recipe, " ")
		port := state.HardwarePort{Number: 1, State: "active", LinkLayer: "Ethernet", Rate: 400e9, RoCEv2IPv4: new(3)}
		h := &state.Hardware{Device: name, Driver: "mlx5_core", Identity: state.Adapter{Role: "pf", DriverVersion: "24.10-1.1.4"}}
		info := &state.Device{Firmware: "28.43.2026", Ports: []state.Port{{Number: 1, State: "active", ActiveMTU: 4096}}}
		d := state.DeviceState{
			Name: name, Present: true, Info: info, Last: &state.Run{Outcome: state.OutcomeOK, Info: info},
			Hardware: &state.HardwareState{Latest: h},
		}
		for word := range strings.FieldsSeq(rest) {
			switch key, value, _ := strings.Cut(word, "="); key {
			case "rate":
				_, _ = fmt.Sscan(value, &port.Rate)
				port.Rate *= 1e9
			case "mtu":
				_, _ = fmt.Sscan(value, &info.Ports[0].ActiveMTU)
			case "noroce":
				port.RoCEv2IPv4 = nil
			case "state":
				info.Ports[0].State, port.State = value, value
			case "spare":
				info.Ports = append(info.Ports, state.Port{Number: 2, State: "down"})
			case "firmware":
				info.Firmware = value
			case "driver":
				h.Identity.DriverVersion = value
			case "role":
				h.Identity.Role = value
			case "closed":
				d.Last, d.Info = &state.Run{Outcome: state.OutcomeFailed}, nil
			case "new":
				d.Last, d.Info, d.Hardware = nil, nil, nil
			case "unread":
				d.Hardware.Latest = nil
			case "later":
				d.Hardware = nil
			case "gone":
				d.Present, d.Vanished = false, time.Unix(1, 0)
			case "moved":
				d.Present = false
			case "limit", "pinned":
				if d.Resources == nil {
					d.Resources = &state.Resources{Inventory: &state.Inventory{Owners: []state.Owner{{PID: 7, Comm: "train", Memlock: new(state.Memlock)}}}}
				}
				m := d.Resources.Inventory.Owners[0].Memlock
				_, _ = fmt.Sscan(value, map[string]*int64{"limit": &m.Limit, "pinned": &m.Pinned}[key])
			default:
				panic(word)
			}
		}
		if d.Hardware != nil && d.Hardware.Latest != nil {
			h.Ports = []state.HardwarePort{port}
		}
		s.Devices = append(s.Devices, d)
	}
	return s
}

func TestCompare(t *testing.T) {
	t.Parallel()
	const all = "{devices: 2, active_ports: 2, rate: 400Gb/s, mtu: 4096, roce_v2_ipv4: true, memlock: unlimited, firmware: 28.43.*, driver: 24.10*}"
	for _, tc := range []struct {
		name, rules string
		host        []string
		// want are device, key and message of each difference.
		want []string
	}{
		{"as expected", all, []string{"a limit=-1", "b"}, nil},
		{"more than expected", "{devices: 1, active_ports: 1}", []string{"a", "b spare"}, nil},
		{"other forms", "{rate: 400 Gb/sec (4X NDR), memlock: 64K, driver: mlx5_core}", []string{"a limit=65536"}, nil},
		{"nothing", "{devices: 1}", nil, []string{"/devices: `devices: 1` is expected, but there are 0."}},
		{"one of two", "{devices: 2}", []string{"a"}, []string{"/devices: `devices: 2` is expected, but there is 1: a."}},
		{"none is expected", "{devices: 0}", []string{"a"}, nil},
		{"one vanished", "{devices: 2, active_ports: 2}", []string{"a", "b gone"}, nil},
		{"one left for a pod", "{devices: 2}", []string{"a", "b moved"}, []string{"/devices: `devices: 2` is expected, but there is 1: a."}},
		{"a virtual function is none of them", "{devices: 2, mtu: 4096}", []string{"a", "v role=vf mtu=1024", "s role=sf"}, []string{"/devices: `devices: 2` is expected, but there is 1: a."}},
		{"unless it is selected", "{device: '[av]', devices: 2, mtu: 4096}", []string{"a", "v role=vf mtu=1024", "other mtu=512"}, []string{"v/mtu: `mtu: 4096` is expected of [av], but port 1 has 1024."}},
		{"selected ones missing", "{device: a.*, devices: 2}", []string{"a", "b"}, []string{"/devices of a.*: `devices: 2` is expected of a.*, but there is 1: a."}},
		{"a selector that matches nothing", "{device: mlx9_.*, mtu: 4096}", []string{"a"}, []string{"/device of mlx9_.*: `device: mlx9_.*` is expected of mlx9_.*, but no device has such a name."}},
		{"one dead rail", "{active_ports: 2}", []string{"a", "b state=down"}, []string{"b/active_ports: `active_ports: 2` is expected, but 1 of 2 ports are active, port 1 is down."}},
		{"one dead rail, others are spare", "{active_ports: 2}", []string{"a spare", "b spare state=down"}, []string{"b/active_ports: `active_ports: 2` is expected, but 1 of 4 ports are active, port 1 is down, port 2 is down."}},
		{"one that is not cabled is not to blame", "{active_ports: 2}", []string{"a", "b state=down", "c state=polling"}, []string{"/active_ports: `active_ports: 2` is expected, but 1 of 3 ports are active, b port 1 is down, c port 1 is polling."}},
		{"an active port of a device that cannot be opened", "{active_ports: 1}", []string{"a closed"}, nil},
		{"no port is known", "{active_ports: 1}", []string{"a closed unread"}, []string{"a/active_ports?: `active_ports: 1` is expected, but 0 of 0 ports are active."}},
		{"too new to judge", all, []string{"a new", "b new"}, nil},
		{"hardware to be read", all, []string{"a later", "b later"}, nil},
		{"unread", "{rate: 400G, roce_v2_ipv4: true, driver: '*'}", []string{"a unread"}, []string{
			"a/rate?: `rate: 400G` is expected, but port 1 has an unknown one.", "a/roce_v2_ipv4?: `roce_v2_ipv4: true` is expected, but port 1 has an unknown one.", "a/driver?: `driver: *` is expected, but it is not known.",
		}},
		{"values", all, []string{"a rate=200 mtu=1024 noroce firmware=28.42.1 driver=6.1", "b"}, []string{
			"a/mtu: `mtu: 4096` is expected, but port 1 has 1024.", "a/firmware: `firmware: 28.43.*` is expected, but it is 28.42.1.",
			"a/rate: `rate: 400Gb/s` is expected, but port 1 has 200Gb/s.", "a/roce_v2_ipv4: `roce_v2_ipv4: true` is expected, but port 1 has no such GID.",
			"a/driver: `driver: 24.10*` is expected, but it is 6.1.",
		}},
		{"a port that is down has no values", "{rate: 400G, mtu: 4096}", []string{"a state=down rate=2.5 mtu=256"}, nil},
		{"a limit", "{memlock: unlimited}", []string{"a limit=65536"}, []string{"a/memlock: `memlock: unlimited` is expected, but pid 7 (train) may lock 64 KiB."}},
		{"a lower limit", "{memlock: 1MiB}", []string{"a limit=65536", "b limit=1048576"}, []string{"a/memlock: `memlock: 1MiB` is expected, but pid 7 (train) may lock 64 KiB."}},
		{"a process that is exempt", "{memlock: unlimited}", []string{"a limit=65536 pinned=65537"}, nil},
		{"two rules", "[{device: a, rate: 200G}, {device: b, rate: 400G}]", []string{"a", "b"}, []string{"a/rate: `rate: 200G` is expected of a, but port 1 has 400Gb/s."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, d := range rules(t, tc.rules).Compare(host(tc.host...), false, nil) {
				unread := map[bool]string{true: "?"}[d.Unread]
				got = append(got, d.Device+"/"+d.Subject+unread+": "+d.Message)
			}
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// TestOnce verifies that an audit has no later reading to wait for, and judges its own limit.
func TestOnce(t *testing.T) {
	t.Parallel()
	all := rules(t, "{active_ports: 1, rate: 400G, memlock: 1MiB}")
	for limit, want := range map[int64]int{-1: 2, 1 << 20: 2, 1<<20 - 1: 3} {
		if got := all.Compare(host("a new"), true, &limit); len(got) != want-1 {
			t.Errorf("limit %d: %+v", limit, got)
		}
		if got := all.Compare(host("a later"), true, &limit); len(got) != want-1 {
			t.Errorf("limit %d: %+v", limit, got)
		}
	}
}

func TestDevices(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]int{
		"{devices: 8}": 8, "[{device: a, devices: 2}, {device: b, devices: 3}, {mtu: 4096}]": 5, "[{device: a, devices: 2}, {devices: 3}]": 3, "{mtu: 4096}": -1,
	} {
		got := -1
		if n := rules(t, rule).Devices(); n != nil {
			got = *n
		}
		if got != want {
			t.Errorf("%s: got %d, want %d", rule, got, want)
		}
	}
}

// TestOf verifies that a host meets what was learnt of it, and that nothing less would do.
func TestOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		host []string
		want string
	}{
		{"alike", []string{"mlx5_0", "mlx5_1", "mlx5_2 role=vf rate=1"}, "- devices: 2\n  active_ports: 2\n  rate: 400Gb/s\n  mtu: 4096\n  roce_v2_ipv4: true\n  firmware: 28.43.2026\n  driver: 24.10-1.1.4\n"},
		{"two groups", []string{"a.0 rate=2.5 noroce", "b", "a+1 rate=2.5 noroce"}, "- device: a\\.0|a\\+1\n  devices: 2\n  active_ports: 2\n  rate: 2.5Gb/s\n  mtu: 4096\n  firmware: 28.43.2026\n  driver: 24.10-1.1.4\n- device: b\n  devices: 1\n  active_ports: 1\n  rate: 400Gb/s\n  mtu: 4096\n  roce_v2_ipv4: true\n  firmware: 28.43.2026\n  driver: 24.10-1.1.4\n"},
		{"signs", []string{`a firmware=2[8]*\?`}, "- devices: 1\n  active_ports: 1\n  rate: 400Gb/s\n  mtu: 4096\n  roce_v2_ipv4: true\n  firmware: 2\\[8]\\*\\\\\\?\n  driver: 24.10-1.1.4\n"},
		{"none", nil, "[]\n"},
	} {
		s := host(tc.host...)
		var b strings.Builder
		e := yaml.NewEncoder(&b)
		e.SetIndent(2)
		if err := e.Encode(expect.Of(s)); err != nil || b.String() != tc.want {
			t.Errorf("%s: got %v\n%s\nwant\n%s", tc.name, err, b.String(), tc.want)
		}
		if tc.host == nil {
			continue
		}
		if found := rules(t, b.String()).Compare(s, true, nil); found != nil {
			t.Errorf("%s: it differs from itself: %+v", tc.name, found)
		}
	}
}
