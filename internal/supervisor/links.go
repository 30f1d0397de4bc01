package supervisor

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/state"
)

// LinkEvent is what the kernel told of a network device.
type LinkEvent struct {
	// Ifindex and Name are its own, and Gone tells that there is none of that number any
	// more.
	Ifindex int
	Name    string
	Gone    bool
	// Up tells whether it can carry packets.
	Up bool
	// CarrierUps and CarrierDowns are how often its carrier came and went, by the kernel's
	// count, if HasCounts.
	CarrierUps, CarrierDowns uint64
	HasCounts                bool
	// Lost tells of no device, but that events were lost before this one.
	Lost bool
}

// link follows the state of a port. Readings tell of it, and of ports with a network
// device events, too; and there is a count of the kernel's that makes up for what neither
// saw. Whatever tells of a change, and however often, it is counted once.
type link struct {
	state.Link
	// looked tells that the state is known.
	looked bool
	// ifindex and netdev are the network device whose events tell of the port, 0 for none; up
	// is what the last of them said, nil for nothing, and heard when that was. A number of
	// another name may be another network device, since numbers are used again.
	ifindex int
	netdev  string
	up      *bool
	heard   time.Time
	// gids are the addresses of the port when they were last read to the end.
	gids []state.GID

	// kernel is the kernel's count when it was last looked at, if counted, and changes and
	// downs are the changes since, and those of them to down.
	kernel         uint64
	counted        bool
	changes, downs int
	// owed is what the kernel counted and nobody saw yet. It may be −1, where a change was
	// seen before it was counted.
	owed int
}

// ofPair is how much the count of a network device's carrier grows with each time that it
// goes and comes back, and ofDown the same of the count of an InfiniBand port.
const (
	ofPair = 2
	ofDown = 1
)

// read takes in a reading of the port that began at a time.
func (l *link) read(p *state.HardwarePort, whole bool, began, now time.Time) {
	if whole && p.LinkLayer != "" { // or that may not have been read
		ifindex := 0
		// What IP over InfiniBand does is not what the port does. The port of a bonded network
		// device goes by the bond where the adapter has made it one (RoCE LAG), else by its own
		// part, and nothing that everybody may read tells which.
		if p.LinkLayer == "Ethernet" && p.Bond == "" {
			ifindex = p.Ifindex
		}
		if ifindex != l.ifindex || p.Netdev != l.netdev {
			l.follow(ifindex, p.Netdev)
		}
	}
	if whole {
		if l.gids != nil && !slices.Equal(l.gids, p.GIDs) {
			l.GIDChanges++
		}
		// An empty list is a list, too.
		l.gids = append(make([]state.GID, 0, len(p.GIDs)), p.GIDs...)
	}
	if isActive(p) {
		l.MaxRate = max(l.MaxRate, p.Rate)
	}
	if p.State == "" || l.ifindex != 0 && !l.heard.Before(began) {
		return // What an event told is newer.
	}
	l.turn(isActive(p), now)
	switch {
	case l.ifindex != 0 && l.ifindex == p.Ifindex && p.CarrierChanges != nil:
		l.count(*p.CarrierChanges, ofPair, now)
	case l.ifindex == 0 && p.LinkLayer == "InfiniBand":
		i := slices.IndexFunc(p.Counters, func(c state.Counter) bool { return c.Group == state.GroupPort && c.Name == "link_downed" })
		if i >= 0 {
			l.count(p.Counters[i].Value, ofDown, now)
		}
	}
}

// isActive tells whether a port can be used.
func isActive(p *state.HardwarePort) bool { return p.State == "active" || p.State == "active_defer" }

// event takes in what the kernel told of the port's network device.
func (l *link) event(e LinkEvent, now time.Time) {
	total := e.CarrierUps + e.CarrierDowns
	switch {
	case e.Gone:
		l.follow(0, "")
		return
	case e.Name != l.netdev:
		return // Another has the number now, or a name was changed, as the next reading tells.
	case e.HasCounts && l.counted && total < l.kernel:
		return // A reading was faster.
	}
	l.heard = now
	// Of a port that is not as its network device, for a reason of its own, events that
	// repeat themselves say nothing, nor does the first if nothing was counted since the
	// reading.
	same := l.up != nil && *l.up == e.Up || l.up == nil && e.HasCounts && l.counted && total == l.kernel && l.owed == 0
	if !same {
		l.turn(e.Up, now)
	}
	l.up = &e.Up
	if e.HasCounts {
		l.count(total, ofPair, now)
	}
}

// follow makes another network device the port's.
func (l *link) follow(ifindex int, netdev string) {
	l.ifindex, l.netdev, l.up, l.heard, l.counted = ifindex, netdev, nil, time.Time{}, false
}

// turn takes in what the state is. What it is at first is no change.
func (l *link) turn(active bool, now time.Time) {
	if !l.looked {
		l.looked, l.Active = true, active
		return
	}
	if l.Active == active {
		return
	}
	l.Active, l.Since = active, now
	l.changes++
	if active {
		l.Ups++
		return
	}
	l.downs++
	l.down(1, now)
}

// count takes in the kernel's count, which grows by each as much with every time that the
// link goes down and comes back. Of a change in one direction the state tells.
func (l *link) count(total uint64, each int, now time.Time) {
	seen := l.changes
	if each == ofDown {
		seen = l.downs
	}
	grown := total - l.kernel
	// A count that is lower, or larger by more than can be, began anew.
	anew := !l.counted || total < l.kernel || grown > math.MaxInt32
	l.kernel, l.counted, l.changes, l.downs = total, true, 0, 0
	switch {
	case anew, grown == 0 && seen == 0:
		l.owed = 0
		return
	}
	l.owed = max(l.owed+int(grown)-seen, -1)
	if missed := l.owed / each; missed > 0 {
		l.owed -= missed * each
		l.Ups += uint64(missed)
		l.Since = now
		l.down(missed, now)
	}
}

// down counts that the link went down n times.
func (l *link) down(n int, now time.Time) {
	l.Downs += uint64(n)
	recent := append(slices.Clone(l.Recent), slices.Repeat([]time.Time{now}, min(n, state.MaxRecent))...)
	l.Recent = recent[max(0, len(recent)-state.MaxRecent):]
}

// maxLinksAway is the most devices that are not there whose links are remembered, whatever
// names come and go.
const maxLinksAway = 1024

// leaveLinks remembers how the links of a device went that vanishes. It is called with mu
// held.
func (s *Supervisor) leaveLinks(w *worker) {
	past := w.adapter.past
	past.Links = w.adapter.shown(nil).Links
	past.Away = time.Now()
	if len(past.Links) == 0 {
		return
	}
	if len(s.links) >= maxLinksAway {
		longest := slices.MinFunc(slices.Collect(maps.Keys(s.links)), func(a, b string) int {
			return cmp.Or(s.links[a].Away.Compare(s.links[b].Away), strings.Compare(a, b))
		})
		delete(s.links, longest)
	}
	s.links[w.name] = past
}

// takeLinks returns how the links of a device went that appears, and remembers it no longer.
// It is called with mu held.
func (s *Supervisor) takeLinks(name string) state.LinkPast {
	past := s.links[name]
	delete(s.links, name)
	if past.Forgotten(time.Now()) {
		return state.LinkPast{}
	}
	return past
}

// watchLinks takes in what the kernel tells of network devices until ctx is done. While it
// does not, what readings tell is all that is known.
func (s *Supervisor) watchLinks(ctx context.Context) {
	for told := false; ; told = true {
		err := s.cfg.WatchLinks(ctx, s.linkEvent)
		if ctx.Err() != nil {
			return
		}
		if !told {
			s.cfg.Logger.Warn("The kernel does not report link changes of network devices; links are read together with the hardware", "err", err)
		}
		if !pause(ctx, s.cfg.Backoff) {
			return
		}
	}
}

// linkEvent takes in what the kernel told of a network device.
func (s *Supervisor) linkEvent(e LinkEvent) {
	if e.Ifindex == 0 {
		return // Counts and readings make up for what was lost.
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := false
	for _, w := range s.workers {
		for _, l := range w.adapter.links {
			if w.gone || l.ifindex != e.Ifindex {
				continue
			}
			before := l.Ups + l.Downs
			l.event(e, now)
			if l.Ups+l.Downs != before {
				changed = true
				w.state.Hardware = w.adapter.shown(w.state.Hardware)
				w.portTurned()
			}
		}
	}
	if changed {
		s.publish()
	}
}
