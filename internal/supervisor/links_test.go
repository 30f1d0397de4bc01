package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rdma_exporter/internal/state"
)

// step is a reading of a port.
type step func(l *link, at time.Time)

// reading returns a reading of an Ethernet port, with a count unless carrier is empty. It was given up
// unless it is whole. The function may be nil.
func reading(active, whole bool, carrier []uint64, change func(p *state.HardwarePort)) step {
	return func(l *link, at time.Time) {
		p := state.HardwarePort{Number: 1, LinkLayer: "Ethernet", Ifindex: 3, State: word(active)}
		if carrier != nil {
			p.CarrierChanges = &carrier[0]
		}
		if change != nil {
			change(&p)
		}
		l.read(&p, whole, at)
	}
}

func port(active bool, carrier ...uint64) step { return reading(active, true, carrier, nil) }

// other is a reading of the port with another network device, reused of one with the same number, and
// bonded while its network device is a bond, or a part of one.
func other(active bool, carrier ...uint64) step {
	return reading(active, true, carrier, func(p *state.HardwarePort) { p.Ifindex = 4 })
}

func reused(active bool, carrier ...uint64) step {
	return reading(active, true, carrier, func(p *state.HardwarePort) { p.Netdev = "eth9" })
}

func bonded(active bool, ifindex int, carrier ...uint64) step {
	return reading(active, true, carrier, func(p *state.HardwarePort) { p.Ifindex, p.Bond = ifindex, "bond0" })
}

// unread is a reading of the port in which nothing could be read, and cut one that was given up.
func unread(l *link, at time.Time) { l.read(&state.HardwarePort{Number: 1}, true, at) }

func cut(active bool, ifindex int, carrier ...uint64) step {
	return reading(active, false, carrier, func(p *state.HardwarePort) { p.Ifindex = ifindex })
}

func word(active bool) string {
	if active {
		return "active"
	}
	return "down"
}

// infiniband is a reading of an InfiniBand port, whose network device does not matter.
func infiniband(active bool, downed ...uint64) step {
	return func(l *link, at time.Time) {
		changes := uint64(7 * at.Second())
		p := state.HardwarePort{Number: 1, LinkLayer: "InfiniBand", Ifindex: 3, State: word(active), CarrierChanges: &changes}
		for _, n := range downed {
			p.Counters = []state.Counter{{Group: state.GroupHardware, Name: "link_downed", Value: 99 * n}, {Group: state.GroupPort, Name: "link_downed", Value: n}}
		}
		l.read(&p, true, at)
	}
}

// TestLinks verifies that each change of a port counts once, whether readings or counts show it.
func TestLinks(t *testing.T) {
	t.Parallel()
	const up, down = true, false
	for _, tc := range []struct {
		name       string
		steps      []step
		active     bool
		ups, downs uint64
	}{
		{"the first look is no change", []step{port(up)}, up, 0, 0},
		{"nor is it of one that is down", []step{port(down)}, down, 0, 0},
		{"readings alone", []step{port(up), port(down), port(down), port(up)}, up, 1, 1},
		{"readings with the count", []step{port(up, 4), port(down, 5), port(up, 6)}, up, 1, 1},
		{"between two readings", []step{port(up, 4), port(up, 10)}, up, 3, 3},
		{"between two readings, and it stays down", []step{port(up, 4), port(down, 9)}, down, 2, 3},
		{"a count that is read before the state", []step{port(up, 4), port(down, 4), port(up, 6)}, up, 1, 1},
		{"a count that is read after the state", []step{port(up, 4), port(up, 5), port(down, 5), port(up, 6)}, up, 1, 1},
		{"then another pair", []step{port(up, 4), port(up, 5), port(down, 7)}, down, 1, 2},
		{"a count that begins anew", []step{port(up, 4), port(up, 0), port(up, 2)}, up, 1, 1},
		{"a count that makes no sense", []step{port(up, 4), port(up, 1<<64-1), port(up, 4), port(up, 6)}, up, 1, 1},
		{"a state without a count is no debt for ever", []step{port(up, 4), port(down, 4), port(up, 4), port(up, 4), port(up, 6)}, up, 2, 2},

		{"another network device", []step{port(up, 4), other(up, 1000), other(up, 1002)}, up, 1, 1},
		{"another one with its number", []step{port(up, 4), reused(up, 1000), reused(down, 1001)}, down, 0, 1},
		{"a reading that was cut", []step{port(up, 4), cut(up, 0), port(up, 8)}, up, 2, 2},
		{"a reading that was cut, of another network device", []step{port(up, 4), cut(up, 4, 1000), other(up, 1002)}, up, 0, 0},
		{"a reading of nothing", []step{port(up, 4), unread, port(up, 8)}, up, 2, 2},

		{"a part of a bond", []step{port(up, 4), bonded(up, 3, 6), bonded(up, 3, 40), bonded(down, 3, 41)}, down, 0, 1},
		{"a bond in its place", []step{port(up, 4), bonded(up, 5, 1000), bonded(up, 5, 2000)}, up, 0, 0},
		{"and back", []step{port(up, 4), bonded(up, 3, 6), port(up, 40), port(up, 42)}, up, 1, 1},

		{"InfiniBand", []step{infiniband(up), infiniband(down), infiniband(up)}, up, 1, 1},
		{"InfiniBand with the count", []step{infiniband(up, 4), infiniband(down, 5), infiniband(up, 5)}, up, 1, 1},
		{"InfiniBand between two readings", []step{infiniband(up, 4), infiniband(up, 7)}, up, 3, 3},
		{"InfiniBand, and it stays down", []step{infiniband(up, 4), infiniband(down, 7)}, down, 2, 3},
		{"InfiniBand that is switched off", []step{infiniband(up, 4), infiniband(down, 4), infiniband(up, 4), infiniband(up, 4), infiniband(up, 5)}, up, 2, 2},
		{"InfiniBand whose count is full", []step{infiniband(up, 255), infiniband(down, 255), infiniband(up, 255)}, up, 1, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			var l link
			for _, s := range tc.steps {
				at = at.Add(15 * time.Second)
				s(&l, at)
			}
			if l.Active != tc.active || l.Ups != tc.ups || l.Downs != tc.downs {
				t.Errorf("active %t after %d ups and %d downs, want %t, %d and %d", l.Active, l.Ups, l.Downs, tc.active, tc.ups, tc.downs)
			}
			if n := min(int(l.Downs), state.MaxRecent); len(l.Recent) != n || l.Since.IsZero() != (l.Ups+l.Downs == 0) {
				t.Errorf("%d recent changes of %d, since %s", len(l.Recent), n, l.Since)
			}
		})
	}
}

func TestLinkKeepsTheLatest(t *testing.T) {
	t.Parallel()
	var l link
	began, at := time.Now(), time.Duration(0)
	for _, total := range []uint64{0, 2, 2 + 2*(state.MaxRecent-1), 4 + 2*(state.MaxRecent-1), 1 << 20} {
		port(true, total)(&l, began.Add(at))
		if n := len(l.Recent); n != min(int(l.Downs), state.MaxRecent) || n > 0 && !l.Recent[n-1].Equal(began.Add(at)) {
			t.Errorf("%d downs, recent %v", l.Downs, l.Recent)
		}
		at += time.Second
	}
}

func TestGIDChanges(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var l link
	for _, tc := range []struct {
		gids  []string
		whole bool
		want  uint64
	}{
		{nil, true, 0},
		{nil, true, 0},
		{[]string{"fe80::1"}, true, 1},
		{[]string{"fe80::1"}, true, 1},
		{nil, false, 1},
		{[]string{"fe80::1", "fe80::2"}, true, 2},
		{[]string{"fe80::2", "fe80::1"}, true, 3},
		{nil, true, 4},
	} {
		p := state.HardwarePort{Number: 1, State: "active"}
		for i, g := range tc.gids {
			p.GIDs = append(p.GIDs, state.GID{Index: i, GID: g})
		}
		l.read(&p, tc.whole, at)
		if l.GIDChanges != tc.want {
			t.Errorf("%d changes after %v, want %d", l.GIDChanges, tc.gids, tc.want)
		}
	}
}

// TestLinksOfDevices verifies that events cause readings, and that counts go on after a restart
// and after a device was away.
func TestLinksOfDevices(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var carrier atomic.Uint64
		carrier.Store(2)
		events := make(chan int)
		past := time.Date(1999, 3, 1, 12, 0, 0, 0, time.UTC)
		b := newHardwareBench(t, func(devices []string, n int) script {
			return withPorts(0, devices,
				state.HardwarePort{Number: 1, LinkLayer: "Ethernet", Ifindex: 3, State: "active", CarrierChanges: new(carrier.Load())},
				state.HardwarePort{Number: 2, LinkLayer: "InfiniBand", State: "down"})
		}, func(c *Config) {
			c.Links = map[string]state.LinkHistory{"a": {Links: []state.Link{{Port: 1, Active: true, Ups: 6, Downs: 6, Recent: []time.Time{past}}, {Port: 2, Active: true}}}, "z": {Links: []state.Link{{Port: 1}}}}
			c.Discovery = time.Second
			c.WatchLinks = func(ctx context.Context, handle func(int)) error {
				for {
					select {
					case e := <-events:
						handle(e)
					case <-ctx.Done():
						return ctx.Err()
					}
				}
			}
		}, "a", "b")
		b.after(time.Second)
		show := func(device string) string {
			var all string
			for _, l := range b.hardware(device).Links {
				all += fmt.Sprint(l.Port, " ", l.Active, " ", l.Ups, " ", l.Downs, " ", len(l.Recent), ", ")
			}
			return all
		}
		wantEqual(t, "a", show("a"), "1 true 6 6 1, 2 false 0 1 1, ")
		wantEqual(t, "b", show("b"), "1 true 0 0 0, 2 false 0 0 0, ")
		before, read := b.hardware("a"), len(b.kids.startsOf(allHardware))
		events <- 4
		b.after(2 * time.Second)
		wantEqual(t, "readings after an event of no port", len(b.kids.startsOf(allHardware)), read)
		for _, e := range []int{0, 3} {
			carrier.Add(10)
			events <- e
			b.after(2 * time.Second)
		}
		if before.Links[0].Downs != 6 {
			t.Error("what was published before has changed")
		}
		wantEqual(t, "a", show("a"), "1 true 16 16 11, 2 false 0 1 1, ")
		wantEqual(t, "b", show("b"), "1 true 10 10 10, 2 false 0 0 0, ")
		b.host(nil, "b")
		b.after(5 * time.Second)
		b.host(nil, "a", "b")
		b.after(20 * time.Second)
		wantEqual(t, "a", show("a"), "1 true 17 17 12, 2 false 0 1 1, ")
		if l := b.hardware("a").Links[0]; l.Since.Sub(l.Recent[11]) < 5*time.Second {
			t.Errorf("it was away from %s to %s", l.Recent[11], l.Since)
		}
	})
}

// TestMaxRate verifies that the maximum rate is the highest one while active, or the reported
// one if higher.
func TestMaxRate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		readings := []state.HardwarePort{
			{State: "down", Rate: 800e9},
			{State: "active", Rate: 200e9},
			{State: "active", Rate: 400e9},
			{State: "active", Rate: 100e9},
			{State: "down", Rate: 10e9},
			{State: "active", Rate: 100e9, MaxRate: 600e9},
			{State: "active", RateFrom: "netdev"},
			{State: "active", Rate: 16e9, RateFrom: "netdev"},
		}
		b := newHardwareBench(t, func(devices []string, n int) script {
			p := readings[min(n, len(readings)-1)]
			p.Number = 1
			return withPorts(0, devices, p)
		}, func(c *Config) {
			c.Links = map[string]state.LinkHistory{"a": {Links: []state.Link{{Port: 1, Active: true, MaxRate: 300e9}}}}
		}, "a", "b")
		b.after(time.Second)
		for n, want := range [][2]float64{{300e9, 0}, {300e9, 200e9}, {400e9, 400e9}, {400e9, 400e9}, {400e9, 400e9}, {600e9, 600e9}, {400e9, 400e9}, {16e9, 16e9}} {
			got := [2]float64{b.hardware("a").Latest.Ports[0].MaxRate, b.hardware("b").Latest.Ports[0].MaxRate}
			wantEqual(t, fmt.Sprint("reading ", n), got, want)
			b.after(15 * time.Second)
		}
		wantEqual(t, "kept", b.hardware("b").Links[0].MaxRate, 16e9)
	})
}

// TestLinksNotTold verifies that missing events are logged once and tried again.
func TestLinksNotTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var tried atomic.Int32
		b := newHardwareBench(t, allOf, func(c *Config) {
			c.WatchLinks = func(context.Context, func(int)) error { tried.Add(1); return errors.New("no netlink") }
		}, "a")
		b.after(11 * time.Minute)
		wantEqual(t, "warnings", b.logs("The kernel does not report link changes of network devices"), 1)
		if tried.Load() < 2 {
			t.Errorf("%d attempts", tried.Load())
		}
	})
}

// TestLinksOfThePast verifies that links go on for the same adapter and port, unless it was
// away too long.
func TestLinksOfThePast(t *testing.T) {
	t.Parallel()
	was := []state.Link{{Port: 1, Active: true, Ups: 6, Downs: 6, MaxRate: 400e9}, {Port: 2, Downs: 3}}
	for _, tc := range []struct {
		name string
		past state.LinkHistory
		away time.Duration // if it was
		want string
	}{
		{"nothing", state.LinkHistory{}, 0, "1 true 0 0 1e+11"},
		{"there to the last", state.LinkHistory{Links: was}, 0, "1 true 6 6 4e+11"},
		{"the same adapter", state.LinkHistory{Links: was, PCI: "0000:3b:00.0", BoardID: "MT_1"}, 0, "1 true 6 6 4e+11"},
		{"another place", state.LinkHistory{Links: was, PCI: "0000:5e:00.0", BoardID: "MT_1"}, 0, "1 true 0 0 1e+11"},
		{"another model in its place", state.LinkHistory{Links: was, PCI: "0000:3b:00.0", BoardID: "MT_2"}, 0, "1 true 0 0 1e+11"},
		{"away", state.LinkHistory{Links: was}, state.MaxAway, "1 true 7 7 4e+11"},
		{"away for too long", state.LinkHistory{Links: was}, state.MaxAway + time.Second, "1 true 0 0 1e+11"},
		{"away by a clock that was ahead", state.LinkHistory{Links: was}, -time.Hour, "1 true 7 7 4e+11"},
	} {
		subtest(t, tc.name, func(t *testing.T) {
			b := newHardwareBench(t, func(devices []string, _ int) script {
				return telling(0, state.Hardware{
					Device: devices[0], Identity: state.Adapter{PCI: "0000:3b:00.0", BoardID: "MT_1"},
					Ports: []state.HardwarePort{{Number: 1, LinkLayer: "InfiniBand", State: "active", Rate: 100e9}},
				})
			}, func(c *Config) {
				if tc.away != 0 {
					tc.past.Away = time.Now().Add(-tc.away)
				}
				c.Links = map[string]state.LinkHistory{"a": tc.past}
			}, "a")
			b.after(time.Second)
			var all []string
			for _, l := range b.hardware("a").Links {
				all = append(all, fmt.Sprint(l.Port, l.Active, l.Ups, l.Downs, l.MaxRate))
			}
			wantEqual(t, "links", strings.Join(all, ", "), tc.want)
		})
	}
}

// TestLinksAwayAreForgotten verifies that links of absent devices do not pile up.
func TestLinksAwayAreForgotten(t *testing.T) {
	t.Parallel()
	s := &Supervisor{links: map[string]state.LinkHistory{
		"b": {Away: time.Now().Add(-time.Minute)}, "c": {Away: time.Now().Add(-2 * state.MaxAway)},
	}}
	for name, links := range map[string][]state.Link{"unread": nil, "d": {{Port: 1}}} {
		s.leaveLinks(&worker{name: name, adapter: newAdapter(nil, state.LinkHistory{Links: links})})
	}
	wantEqual(t, "remembered", slices.Sorted(maps.Keys(s.links)), []string{"b", "d"})
	if got := s.takeLinks("d"); len(got.Links) != 1 || got.Away.IsZero() || len(s.links) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestPortExpeditesProbes verifies that a probe run follows soon on a change of a port, at most
// twice as often as else.
func TestPortExpeditesProbes(t *testing.T) {
	t.Parallel()
	const second = time.Second
	var storm []time.Duration
	for at := 5 * second; at < 100*second; at += 10 * time.Millisecond {
		storm = append(storm, at)
	}
	for _, tt := range []struct {
		name  string
		probe script
		// silent is true if no event reports the changes, which come at these times.
		silent  bool
		changes []time.Duration
		want    []time.Duration
	}{
		{"nothing happens", scriptOK(0), false, nil, []time.Duration{0, 60 * second, 120 * second}},
		{"an event", scriptOK(0), false, []time.Duration{40 * second}, []time.Duration{0, 41 * second, 101 * second}},
		{"a reading", scriptOK(0), true, []time.Duration{40 * second}, []time.Duration{0, 45 * second, 105 * second}},
		{"soon after a run", scriptOK(0), false, []time.Duration{2 * second}, []time.Duration{0, 30 * second, 90 * second}},
		{"during a run", scriptOK(5 * second), false, []time.Duration{2 * second}, []time.Duration{0, 30 * second, 90 * second}},
		{"again and again", scriptOK(0), false, []time.Duration{5 * second, 10 * second, 31 * second, 40 * second, 70 * second}, []time.Duration{0, 30 * second, 60 * second, 90 * second}},
		{"a hundred times a second", scriptOK(9 * second), false, storm, []time.Duration{0, 30 * second, 60 * second, 90 * second, 120 * second}},
		{"as often after failures", scriptFail(), false, storm, []time.Duration{0, 30 * second}},
		{"after a failure", scriptFail(), false, []time.Duration{40 * second}, []time.Duration{0, 41 * second}},
	} {
		subtest(t, tt.name, func(t *testing.T) {
			var changes atomic.Uint64
			b := newHardwareBench(t, func(devices []string, _ int) script {
				n := changes.Load()
				p := state.HardwarePort{Number: 1, LinkLayer: "Ethernet", Ifindex: 3, State: word(n%2 == 0), CarrierChanges: &n}
				return withPorts(0, devices, p)
			}, func(c *Config) {
				c.WatchLinks = func(ctx context.Context, handle func(int)) error {
					began := time.Now()
					for _, at := range tt.changes {
						if !pause(ctx, at-time.Since(began)) {
							break
						}
						changes.Add(1)
						if !tt.silent {
							handle(3)
						}
					}
					<-ctx.Done()
					return ctx.Err()
				}
			}, "a")
			b.kids.next = always(tt.probe)
			b.after(125 * second)
			wantEqual(t, "probe runs", b.kids.startsOf("a"), tt.want)
		})
	}
}
