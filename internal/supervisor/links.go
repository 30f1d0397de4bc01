package supervisor

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"rdma_exporter/internal/state"
)

// link follows the state of a port by readings, and by a count of the kernel, which includes
// changes between two readings. Each change counts once.
type link struct {
	state.Link
	// looked is true if the state is known.
	looked bool
	// ifindex and netdev are the network device whose carrier the kernel counts. Zero means
	// none. The kernel reuses numbers, so both must match.
	ifindex int
	netdev  string
	// gids are the addresses in the last complete reading.
	gids []state.GID

	// kernel is the last known count of the kernel, if counted. changes are the changes
	// since, and downs those to down.
	kernel         uint64
	counted        bool
	changes, downs int
	// unseenChanges are those that the kernel counted and that no reading showed yet. It may
	// be −1 if a change was seen before it was counted.
	unseenChanges int
}

// A link that goes down and comes back adds ofPair to the count of its network device's
// carrier, or ofDown to the count of an InfiniBand port.
const (
	ofPair = 2
	ofDown = 1
)

func (l *link) read(p *state.HardwarePort, whole bool, now time.Time) {
	if whole && p.LinkLayer != "" { // or that may not have been read
		ifindex := 0
		// What IP over InfiniBand does is not what the port does. The port of a bonded network
		// device goes by the bond where the adapter has made it one (RoCE LAG), else by its own
		// part. Nothing that is readable without privileges shows which.
		if p.LinkLayer == "Ethernet" && p.Bond == "" {
			ifindex = p.Ifindex
		}
		if ifindex != l.ifindex || p.Netdev != l.netdev {
			l.ifindex, l.netdev, l.counted = ifindex, p.Netdev, false
		}
	}
	if whole {
		if l.gids != nil && !slices.Equal(l.gids, p.GIDs) {
			l.GIDChanges++
		}
		// An empty list is a list, too.
		l.gids = append(make([]state.GID, 0, len(p.GIDs)), p.GIDs...)
	}
	if p.State == "" {
		return
	}
	active := state.IsActive(p.State)
	if active && p.Rate > 0 {
		if cmp.Or(l.RateFrom, "rdma") != cmp.Or(p.RateFrom, "rdma") {
			l.MaxRate = 0 // The other source may have been wrong.
		}
		l.RateFrom, l.MaxRate = p.RateFrom, max(l.MaxRate, p.Rate)
	}
	l.setActive(active, now)
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

// setActive records the state. The first one is not a change.
func (l *link) setActive(active bool, now time.Time) {
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

// count processes the kernel's count, which grows by each whenever the link goes down and
// comes back. A change in one direction shows in the state.
func (l *link) count(total uint64, each int, now time.Time) {
	seen := l.changes
	if each == ofDown {
		seen = l.downs
	}
	grown := total - l.kernel
	// A count that is lower, or implausibly higher, was reset.
	reset := !l.counted || total < l.kernel || grown > math.MaxInt32
	l.kernel, l.counted, l.changes, l.downs = total, true, 0, 0
	if reset || grown == 0 && seen == 0 {
		l.unseenChanges = 0
		return
	}
	l.unseenChanges = max(l.unseenChanges+int(grown)-seen, -1)
	if missed := l.unseenChanges / each; missed > 0 {
		l.unseenChanges -= missed * each
		l.Ups += uint64(missed)
		l.Since = now
		l.down(missed, now)
	}
}

func (l *link) down(n int, now time.Time) {
	l.Downs += uint64(n)
	recent := append(slices.Clone(l.Recent), slices.Repeat([]time.Time{now}, min(n, state.MaxRecent))...)
	l.Recent = recent[max(0, len(recent)-state.MaxRecent):]
}

// leaveLinks remembers the links of a device that vanishes. Caller holds mu.
func (s *Supervisor) leaveLinks(w *worker) {
	past := w.adapter.past
	past.Links, past.Away = w.adapter.current(), time.Now()
	if len(past.Links) == 0 {
		return
	}
	maps.DeleteFunc(s.links, func(_ string, p state.LinkHistory) bool { return p.Forgotten(past.Away) })
	s.links[w.name] = past
}

// takeLinks returns the remembered links of a device that appears, and forgets them. Caller
// holds mu.
func (s *Supervisor) takeLinks(name string) state.LinkHistory {
	past := s.links[name]
	delete(s.links, name)
	if past.Forgotten(time.Now()) {
		return state.LinkHistory{}
	}
	return past
}

// watchLinks reads the hardware soon after events of network devices, until ctx is done.
func (s *Supervisor) watchLinks(ctx context.Context) {
	for warned := false; ; warned = true {
		err := s.cfg.WatchLinks(ctx, s.linkEvent)
		if ctx.Err() != nil {
			return
		}
		if !warned {
			s.cfg.Logger.Warn("The kernel does not report link changes of network devices; links are read together with the hardware", "err", err)
		}
		if !pause(ctx, s.cfg.Backoff) {
			return
		}
	}
}

// linkEvent makes the next reading of the hardware come soon, if ifindex is the network device
// of a port, or zero because events were lost.
func (s *Supervisor) linkEvent(ifindex int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	relevant := ifindex == 0
	for _, w := range s.workers {
		for _, l := range w.adapter.links {
			relevant = relevant || l.ifindex == ifindex
		}
	}
	if relevant {
		notify(s.linkChanged)
	}
}
