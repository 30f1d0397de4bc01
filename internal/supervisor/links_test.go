package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/state"
)

// step is what is told of a port.
type step func(l *link, at time.Time)

// port is a reading of a port with a network device of the number 3. It began a second ago.
func port(active bool, carrier ...uint64) step { return portSince(time.Second, active, carrier...) }

func portSince(d time.Duration, active bool, carrier ...uint64) step {
	return func(l *link, at time.Time) {
		p := state.HardwarePort{Number: 1, LinkLayer: "Ethernet", Ifindex: 3, State: word(active)}
		if carrier != nil {
			p.CarrierChanges = &carrier[0]
		}
		l.read(&p, true, at.Add(-d), at)
	}
}

// other is a reading of the port with a network device of the number 4.
func other(active bool, carrier uint64) step {
	return func(l *link, at time.Time) {
		p := state.HardwarePort{Number: 1, LinkLayer: "Ethernet", Ifindex: 4, State: word(active), CarrierChanges: &carrier}
		l.read(&p, true, at.Add(-time.Second), at)
	}
}

// reused is a reading of the port with a network device of the number 3 and another name.
func reused(active bool, carrier uint64) step {
	return func(l *link, at time.Time) {
		p := state.HardwarePort{Number: 1, LinkLayer: "Ethernet", Netdev: "eth9", Ifindex: 3, State: word(active), CarrierChanges: &carrier}
		l.read(&p, true, at.Add(-time.Second), at)
	}
}

// bonded is a reading of the port while its network device, or what stands for that, is a
// bond of the number 5 or a part of one.
func bonded(active bool, ifindex int, carrier uint64) step {
	return func(l *link, at time.Time) {
		p := state.HardwarePort{Number: 1, LinkLayer: "Ethernet", Ifindex: ifindex, Bond: "bond0", State: word(active), CarrierChanges: &carrier}
		l.read(&p, true, at.Add(-time.Second), at)
	}
}

// cut is a reading of the port that was given up after the state.
func cut(active bool) step {
	return func(l *link, at time.Time) {
		p := state.HardwarePort{Number: 1, LinkLayer: "Ethernet", State: word(active)}
		l.read(&p, false, at.Add(-time.Second), at)
	}
}

// cutOther is a reading of the port, which has another network device by now, that was given
// up after that.
func cutOther(carrier uint64) step {
	return func(l *link, at time.Time) {
		p := state.HardwarePort{Number: 1, LinkLayer: "Ethernet", Ifindex: 4, State: "active", CarrierChanges: &carrier}
		l.read(&p, false, at.Add(-time.Second), at)
	}
}

// unread is a whole reading of the port of which nothing could be read.
func unread(l *link, at time.Time) {
	l.read(&state.HardwarePort{Number: 1}, true, at.Add(-time.Second), at)
}

// stranger is an event of a network device of the number 3 and another name.
func stranger(up bool, ups, downs uint64) step {
	return func(l *link, at time.Time) {
		l.event(state.LinkEvent{Ifindex: 3, Name: "eth9", Up: up, CarrierUps: ups, CarrierDowns: downs, HasCounts: true}, at)
	}
}

// goneAs is what the kernel tells of a network device of the number 3 that is gone, and had
// another name at last.
func goneAs(l *link, at time.Time) {
	l.event(state.LinkEvent{Ifindex: 3, Name: "eth9", Removed: true}, at)
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
		l.read(&p, true, at.Add(-time.Second), at)
	}
}

// event is what the kernel tells of the network device, with its counts of ups and downs.
func event(up bool, counts ...uint64) step {
	return func(l *link, at time.Time) {
		e := state.LinkEvent{Ifindex: 3, Up: up}
		if counts != nil {
			e.CarrierUps, e.CarrierDowns, e.HasCounts = counts[0], counts[1], true
		}
		if l.ifindex == e.Ifindex { // or nobody would tell it
			l.event(e, at)
		}
	}
}

func gone(l *link, at time.Time) { l.event(state.LinkEvent{Ifindex: 3, Removed: true}, at) }

// Each change of a port is counted once, whatever told of it, in whatever order, and how
// often.
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

		{"events alone", []step{port(up), event(down), event(up), event(down)}, down, 1, 2},
		{"events of before the first reading", []step{event(down), event(up), port(up)}, up, 0, 0},
		{"events that repeat themselves", []step{port(up), event(down), event(down), event(up), event(up)}, up, 1, 1},
		{"event and reading", []step{port(up, 4), event(down), port(down, 5), event(up), port(up, 6)}, up, 1, 1},
		{"event with counts and reading", []step{port(up, 4), event(down, 2, 3), port(down, 5), event(up, 3, 3), port(up, 6)}, up, 1, 1},
		{"reading and event that comes late", []step{port(up, 4), port(down, 5), event(down, 2, 3), event(up, 3, 3)}, up, 1, 1},
		{"reading of two changes and events that come late", []step{port(up, 4), port(up, 6), event(down, 2, 3), event(up, 3, 3)}, up, 1, 1},
		{"an event while it is read", []step{port(up, 4), event(down, 2, 3), portSince(time.Hour, up, 4), port(down, 5)}, down, 0, 1},
		{"two events while it is read", []step{port(up, 4), event(down, 2, 3), event(up, 3, 3), portSince(time.Hour, down, 5), port(up, 6)}, up, 1, 1},
		{"the same without counts", []step{port(up, 4), event(down), event(up), portSince(time.Hour, down, 5), port(up, 6)}, up, 1, 1},
		{"events that stand for several", []step{port(up, 4), event(up, 7, 7)}, up, 5, 5},
		{"events that stand for several, down at last", []step{port(up, 4), event(down, 2, 5)}, down, 1, 2},
		{"an event whose state is behind its counts", []step{port(up, 4), event(up, 2, 3), event(down, 2, 3)}, down, 0, 1},
		{"the same of three changes", []step{port(up, 4), event(up, 3, 4), event(down, 3, 4)}, down, 1, 2},
		{"lost events", []step{port(up, 4), event(down, 2, 3), port(up, 24)}, up, 10, 10},
		{"lost events, and a reading before the next", []step{port(up, 4), event(up, 2, 2), port(down, 5), event(up, 3, 3), port(up, 6)}, up, 1, 1},
		{"the same, and the next reading is down again", []step{port(up, 4), event(up, 2, 2), port(down, 5), event(up, 3, 3), port(down, 7)}, down, 1, 2},
		{"the same without counts", []step{port(up), event(up), port(down), event(up), port(up)}, up, 1, 1},
		{"a port that is not as its network device", []step{port(down, 4), event(up, 2, 2), port(down, 4), event(up, 2, 2), port(down, 4), event(up, 2, 2)}, down, 0, 0},
		{"the same without counts", []step{port(down), event(up), port(down), event(up)}, down, 1, 1},
		{"another network device", []step{port(up, 4), gone, event(down, 2, 3), port(up, 1000)}, up, 0, 0},
		{"another network device, whose coming and going was lost", []step{port(up, 4), event(down, 2, 3), other(up, 1000), event(down, 9, 9), other(up, 1002)}, up, 2, 2},
		{"an event while the other is read for the first time", []step{port(up, 4), event(up, 2, 2), func(l *link, at time.Time) {
			changes := uint64(7)
			l.read(&state.HardwarePort{Number: 1, LinkLayer: "Ethernet", Ifindex: 4, State: "down", CarrierChanges: &changes}, true, at.Add(-time.Hour), at)
		}, other(down, 9)}, down, 1, 2},
		{"its number is another's now, which the events of before say nothing of", []step{port(up, 4), stranger(down, 2, 3), stranger(up, 9, 9), port(up, 4)}, up, 0, 0},
		{"the same, and the port has the other", []step{port(up, 4), stranger(down, 9, 9), reused(up, 1000), stranger(down, 500, 501), reused(down, 1001)}, down, 0, 1},
		{"its name is another", []step{port(up, 4), stranger(down, 2, 3), stranger(up, 3, 3), reused(up, 6), stranger(up, 4, 4)}, up, 1, 1},
		{"it is gone under another name", []step{port(up, 4), goneAs, event(down, 2, 3), port(up, 4)}, up, 0, 0},
		{"a reading that was cut", []step{port(up, 4), cut(up), event(down, 2, 3), event(up, 3, 3), cut(up), port(up, 8)}, up, 2, 2},
		{"a reading that was cut, of another network device", []step{port(up, 4), cutOther(1000), other(up, 1002)}, up, 0, 0},
		{"a reading of nothing", []step{port(up, 4), unread, event(down, 2, 3), event(up, 3, 3), unread, port(up, 8)}, up, 2, 2},

		{"a part of a bond", []step{port(up, 4), bonded(up, 3, 6), event(down, 3, 4), bonded(up, 3, 40), bonded(down, 3, 41)}, down, 0, 1},
		{"a bond in its place", []step{port(up, 4), bonded(up, 5, 1000), bonded(up, 5, 2000)}, up, 0, 0},
		{"and back", []step{port(up, 4), bonded(up, 3, 6), port(up, 40), event(down, 20, 21), port(up, 42)}, up, 1, 1},

		{"InfiniBand", []step{infiniband(up), infiniband(down), infiniband(up)}, up, 1, 1},
		{"InfiniBand with the count", []step{infiniband(up, 4), infiniband(down, 5), infiniband(up, 5)}, up, 1, 1},
		{"InfiniBand between two readings", []step{infiniband(up, 4), infiniband(up, 7)}, up, 3, 3},
		{"InfiniBand, and it stays down", []step{infiniband(up, 4), infiniband(down, 7)}, down, 2, 3},
		{"InfiniBand that is switched off", []step{infiniband(up, 4), infiniband(down, 4), infiniband(up, 4), infiniband(up, 4), infiniband(up, 5)}, up, 2, 2},
		{"InfiniBand whose count is full", []step{infiniband(up, 255), infiniband(down, 255), infiniband(up, 255)}, up, 1, 1},
		{"InfiniBand has no events", []step{infiniband(up, 4), event(down, 0, 1), infiniband(up, 4)}, up, 0, 0},
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

// Of changes without end the latest are kept.
func TestLinkKeepsTheLatest(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var l link
	port(true, 0)(&l, at)
	const n = 3 * state.MaxRecent
	for i := range uint64(n) {
		at = at.Add(15 * time.Second)
		port(true, 2*i+2)(&l, at)
	}
	if l.Downs != n || len(l.Recent) != state.MaxRecent || !l.Recent[state.MaxRecent-1].Equal(at) || !l.Recent[0].Equal(at.Add(-15*(state.MaxRecent-1)*time.Second)) {
		t.Errorf("%d downs, %d recent ones, the last at %s", l.Downs, len(l.Recent), l.Recent[len(l.Recent)-1])
	}
	port(true, 1<<20)(&l, at)
	if len(l.Recent) != state.MaxRecent {
		t.Errorf("%d recent ones", len(l.Recent))
	}
}

// A list of addresses that is another than before is counted, if all was read.
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
		l.read(&p, tc.whole, at, at)
		if l.GIDChanges != tc.want {
			t.Errorf("%d changes after %v, want %d", l.GIDChanges, tc.gids, tc.want)
		}
	}
}

// A port flaps twenty times between two readings, told by events that are lost in part, and
// what was before the start goes on, and so it does for a device that comes back, whose ports
// were not active meanwhile.
func TestLinksOfDevices(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var carrier atomic.Uint64
		carrier.Store(2)
		events := make(chan state.LinkEvent)
		past := time.Date(1999, 3, 1, 12, 0, 0, 0, time.UTC)
		b := newHardwareBench(t, func(devices []string, n int) script {
			var all []state.Hardware
			for _, d := range devices {
				changes := carrier.Load()
				all = append(all, state.Hardware{Device: d, Ports: []state.HardwarePort{
					{Number: 1, LinkLayer: "Ethernet", Ifindex: 3, State: "active", CarrierChanges: &changes},
					{Number: 2, LinkLayer: "InfiniBand", State: "down"},
				}})
			}
			return telling(0, all...)
		}, func(c *Config) {
			c.Links = map[string]state.LinkHistory{"a": {Links: []state.Link{{Port: 1, Active: true, Ups: 6, Downs: 6, Recent: []time.Time{past}}, {Port: 2, Active: true}}}, "z": {Links: []state.Link{{Port: 1}}}}
			c.Discovery = time.Second
			c.WatchLinks = func(ctx context.Context, tell func(state.LinkEvent)) error {
				for {
					select {
					case e := <-events:
						tell(e)
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
		before := b.hardware("a")
		events <- state.LinkEvent{Ifindex: 3}
		events <- state.LinkEvent{Lost: true}
		events <- state.LinkEvent{Ifindex: 4, Up: false}
		synctest.Wait()
		wantEqual(t, "b at once", show("b"), "1 false 0 1 1, 2 false 0 0 0, ")
		if before.Links[0].Downs != 6 {
			t.Error("what was published before has changed")
		}
		carrier.Add(20)
		events <- state.LinkEvent{Ifindex: 3, Up: true}
		synctest.Wait()
		wantEqual(t, "b at once", show("b"), "1 true 1 1 1, 2 false 0 0 0, ")
		b.after(15 * time.Second)
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

// No driver tells which rate a port could have, so that is the highest that it had while it
// was active, and the one that is told if that is higher.
func TestMaxRate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		readings := []state.HardwarePort{
			{State: "down", Rate: 800e9},
			{State: "active", Rate: 200e9},
			{State: "active", Rate: 400e9},
			{State: "active", Rate: 100e9},
			{State: "down", Rate: 10e9},
			{State: "active", Rate: 100e9, MaxRate: 600e9},
		}
		b := newHardwareBench(t, func(devices []string, n int) script {
			var all []state.Hardware
			for _, d := range devices {
				p := readings[min(n, len(readings)-1)]
				p.Number = 1
				all = append(all, state.Hardware{Device: d, Ports: []state.HardwarePort{p}})
			}
			return telling(0, all...)
		}, func(c *Config) {
			c.Links = map[string]state.LinkHistory{"a": {Links: []state.Link{{Port: 1, Active: true, MaxRate: 300e9}}}}
		}, "a", "b")
		b.after(time.Second)
		for n, want := range [][2]float64{{300e9, 0}, {300e9, 200e9}, {400e9, 400e9}, {400e9, 400e9}, {400e9, 400e9}, {600e9, 600e9}} {
			got := [2]float64{b.hardware("a").Latest.Ports[0].MaxRate, b.hardware("b").Latest.Ports[0].MaxRate}
			wantEqual(t, fmt.Sprint("reading ", n), got, want)
			b.after(15 * time.Second)
		}
		wantEqual(t, "kept", b.hardware("b").Links[0].MaxRate, 400e9)
	})
}

// Where the kernel tells nothing, that is told once, and tried again.
func TestLinksNotTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var tried atomic.Int32
		b := newHardwareBench(t, allOf, func(c *Config) {
			c.WatchLinks = func(context.Context, func(state.LinkEvent)) error { tried.Add(1); return errors.New("no netlink") }
		}, "a")
		b.after(11 * time.Minute)
		wantEqual(t, "warnings", b.logs("The kernel does not report link changes of network devices"), 1)
		if tried.Load() < 2 {
			t.Errorf("%d attempts", tried.Load())
		}
	})
}

// What is remembered of a device goes on if it is the same adapter, and was not away for too
// long; what is remembered of a port that is not there does not.
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

// Names that come and go without end are forgotten, those first that are away longest.
func TestLinksAwayAreBounded(t *testing.T) {
	t.Parallel()
	s := &Supervisor{links: make(map[string]state.LinkHistory)}
	leave := func(name string, links ...state.Link) {
		s.leaveLinks(&worker{name: name, adapter: newAdapter(journal{}, state.LinkHistory{Links: links})})
	}
	s.links["b"] = state.LinkHistory{Away: time.Now().Add(-time.Minute)}
	s.links["c"] = state.LinkHistory{Away: time.Now().Add(-time.Hour)}
	leave("unread")
	for n := range maxLinksAway - 1 {
		leave(fmt.Sprint(n), state.Link{Port: 1})
	}
	_, b := s.links["b"]
	_, c := s.links["c"]
	if _, unread := s.links["unread"]; len(s.links) != maxLinksAway || !b || c || unread {
		t.Errorf("%d are remembered: b %t, c %t, unread %t", len(s.links), b, c, unread)
	}
	if got := s.takeLinks("0"); len(got.Links) != 1 || got.Away.IsZero() || len(s.links) != maxLinksAway-1 {
		t.Errorf("%+v", got)
	}
}

// What is told of a port is what a run of the probes found: when one goes down or comes back
// there is a run soon, whoever tells of it. Runs come twice as often as else at most.
func TestPortHastensProbes(t *testing.T) {
	t.Parallel()
	const second = time.Second
	var storm []time.Duration
	for at := 5 * second; at < 100*second; at += 10 * time.Millisecond {
		storm = append(storm, at)
	}
	for _, tt := range []struct {
		name string
		// probe is what each run of the probes does.
		probe script
		// read is what the first readings of the hardware, every 15 seconds, tell of an
		// InfiniBand port, the last of them again and again; told is when the kernel tells of
		// the port's network device.
		read []bool
		told []time.Duration
		want []time.Duration
	}{
		{"nothing happens", scriptOK(0), []bool{true}, nil, []time.Duration{0, 60 * second, 120 * second}},
		{"an event", scriptOK(0), nil, []time.Duration{40 * second}, []time.Duration{0, 41 * second, 101 * second}},
		{"a reading", scriptOK(0), []bool{true, true, true, false}, nil, []time.Duration{0, 46 * second, 106 * second}},
		{"soon after a run", scriptOK(0), nil, []time.Duration{2 * second}, []time.Duration{0, 30 * second, 90 * second}},
		{"during a run", scriptOK(5 * second), nil, []time.Duration{2 * second}, []time.Duration{0, 30 * second, 90 * second}},
		{"just before a run", scriptOK(0), nil, []time.Duration{59500 * time.Millisecond}, []time.Duration{0, 60 * second, 90 * second}},
		{"again and again", scriptOK(0), nil, []time.Duration{5 * second, 10 * second, 31 * second, 40 * second, 70 * second}, []time.Duration{0, 30 * second, 60 * second, 90 * second}},
		{"a hundred times a second", scriptOK(0), nil, storm, []time.Duration{0, 30 * second, 60 * second, 90 * second, 120 * second}},
		{"as often during long runs", scriptOK(9 * second), nil, storm, []time.Duration{0, 30 * second, 60 * second, 90 * second, 120 * second}},
		{"as often after failures", scriptFail(), nil, storm, []time.Duration{0, 30 * second}},
		{"after a failure", scriptFail(), nil, []time.Duration{40 * second}, []time.Duration{0, 41 * second}},
		{"of a device that keeps failing", scriptFail(), nil, []time.Duration{5 * second, 40 * second, 50 * second}, []time.Duration{0, 30 * second}},
	} {
		subtest(t, tt.name, func(t *testing.T) {
			b := newHardwareBench(t, func(devices []string, n int) script {
				p := state.HardwarePort{Number: 1, LinkLayer: "Ethernet", Ifindex: 3, State: "active"}
				if tt.read != nil {
					p = state.HardwarePort{Number: 1, LinkLayer: "InfiniBand", State: word(tt.read[min(n, len(tt.read)-1)])}
				} else if n > 0 { // of which events tell
					p.State = ""
				}
				return telling(0, state.Hardware{Device: devices[0], Ports: []state.HardwarePort{p}})
			}, func(c *Config) {
				c.WatchLinks = func(ctx context.Context, tell func(state.LinkEvent)) error {
					began := time.Now()
					for i, at := range tt.told {
						if !pause(ctx, at-time.Since(began)) {
							break
						}
						tell(state.LinkEvent{Ifindex: 3, Up: i%2 == 1})
					}
					<-ctx.Done()
					return ctx.Err()
				}
			}, "a")
			b.kids.next = always(tt.probe)
			b.after(125 * second)
			wantEqual(t, "runs of the probes", b.kids.startsOf("a"), tt.want)
		})
	}
}
