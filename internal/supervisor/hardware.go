package supervisor

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
	"rdma_exporter/internal/wire"
)

const (
	// refusedPause is how long counters that the kernel refused are not read. A driver may log
	// each attempt.
	refusedPause = 10 * time.Minute
	// linkSettles is how long after an event of a network device the hardware is read. The
	// driver may show the change on the port later.
	linkSettles = time.Second
)

// adapter carries the hardware of a device from one reading to the next. Supervisor.mu guards
// it, except the log, which only the goroutine that reads uses.
type adapter struct {
	log changeLogger
	// due is when the device may be read again after a failure. Zero means at any time.
	due time.Time
	// retry is when refused counters are read again, and skipped are those that the current
	// reading skips, by port. Port 0 is the device as a whole.
	retry   time.Time
	skipped map[int][]state.RefusedCounters
	// links are the device's ports by number. past identifies their adapter.
	links map[int]*link
	past  state.LinkHistory
}

// newAdapter returns the adapter of a device that appeared. While it was absent, its ports were
// not active.
func newAdapter(log *slog.Logger, past state.LinkHistory) adapter {
	a := adapter{log: changeLogger{log: log}, links: make(map[int]*link), past: past}
	for _, was := range past.Links {
		l := &link{Link: was, looked: true}
		if !past.Away.IsZero() {
			l.setActive(false, past.Away)
		}
		a.links[was.Port] = l
	}
	a.past.Links = nil // They are in links.
	return a
}

// identify forgets the links of another adapter and, if the reading is complete, those of ports
// that the adapter does not have.
func (a *adapter) identify(h *state.Hardware, whole bool) {
	if !a.past.Of(&h.Identity) {
		clear(a.links)
	}
	a.past.PCI, a.past.BoardID = cmp.Or(h.Identity.PCI, a.past.PCI), cmp.Or(h.Identity.BoardID, a.past.BoardID)
	if whole {
		maps.DeleteFunc(a.links, func(port int, _ *link) bool {
			return !slices.ContainsFunc(h.Ports, func(p state.HardwarePort) bool { return p.Number == port })
		})
	}
}

// readHardware reads the hardware of all devices until ctx is done. It runs one child at a
// time, not counting stuck ones. An event of a network device makes the next reading come soon.
func (s *Supervisor) readHardware(ctx context.Context) {
	interval := s.cfg.Hardware.Interval
	if !pause(ctx, s.firstDelay()) {
		return
	}
	for {
		began := time.Now()
		s.readOnce(ctx)
		least := interval/minPause - time.Since(began)
		if !waitOrWake(ctx, s.delay(interval, began, 0), s.linkChanged, least, min(linkSettles, interval/minPause)) {
			return
		}
	}
}

func (s *Supervisor) readOnce(ctx context.Context) {
	due, request := s.dueHardware()
	if len(due) == 0 {
		return
	}
	res := s.runChild(ctx, task{kind: state.KindHardware, timeout: s.cfg.Hardware.Timeout, request: wire.Request{Hardware: &request}})
	if res.run != nil {
		s.takeHardware(due, res)
	}
	if res.left == nil {
		return
	}
	// The child does not hold a device whose reading completed.
	held := slices.DeleteFunc(slices.Clone(request.Devices), func(name string) bool {
		h := readingOf(res.run, name)
		return h != nil && h.Reading == ""
	})
	if len(held) == 0 {
		held = request.Devices
	}
	s.leave(state.KindHardware, held, res, s.cfg.Logger.With("devices", held))
}

func (s *Supervisor) dueHardware() (due []*worker, r wire.HardwareRequest) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.workers)) {
		w := s.workers[name]
		held := s.leftovers[leftoverKey{state.KindHardware, name}] != nil
		if w.vanished || held || now.Before(w.adapter.due) || len(due) == wire.MaxDevices {
			continue
		}
		due, r.Devices = append(due, w), append(r.Devices, name)
		r.Skip = append(r.Skip, w.adapter.skip(w.state.Hardware, now)...)
	}
	return due, r
}

// skip returns the counters that the next reading skips, because the kernel refused them
// recently. before may be nil.
func (a *adapter) skip(before *state.HardwareState, now time.Time) (skip []wire.SkipCounters) {
	a.skipped = make(map[int][]state.RefusedCounters)
	if !now.Before(a.retry) {
		a.retry = now.Add(refusedPause)
		return nil
	}
	if before == nil || before.Latest == nil {
		return nil
	}
	h := before.Latest
	add := func(port int, refused []state.RefusedCounters) {
		for _, r := range refused {
			if r.Errno == "EINVAL" || r.Errno == "EIO" {
				a.skipped[port] = append(a.skipped[port], r)
				skip = append(skip, wire.SkipCounters{Device: h.Device, Port: port, Group: r.Group})
			}
		}
	}
	add(0, h.Refused)
	for i := range h.Ports {
		add(h.Ports[i].Number, h.Ports[i].Refused)
	}
	return skip
}

// withSkipped returns a reading in which the counters that it skipped are refused.
func (a *adapter) withSkipped(h *state.Hardware) *state.Hardware {
	with := *h
	with.Refused = slices.Concat(h.Refused, a.skipped[0])
	with.Ports = slices.Clone(h.Ports)
	for i := range with.Ports {
		p := &with.Ports[i]
		p.Refused = slices.Concat(p.Refused, a.skipped[p.Number])
	}
	return &with
}

// takeHardware gives a finished reading to the observers, as one run of each device, and adds
// it to the snapshot.
func (s *Supervisor) takeHardware(due []*worker, res result) {
	runs := make([]*state.Run, len(due))
	for i, w := range due {
		runs[i] = runOf(res.run, w.name)
		w.adapter.log.run(runs[i], res.stderr,
			"Hardware of device could not be read", "Hardware of device can be read again", "Hardware of device read")
		w.observe(runs[i])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hardware = res.run.Compact()
	for i, w := range due {
		if !w.vanished {
			w.state.Hardware = w.hardwareAfter(runs[i])
		}
	}
	s.publish()
}

// runOf returns the part of a reading that is about one device, as a run.
func runOf(all *state.Run, device string) *state.Run {
	run := *all
	run.Device, run.CPU, run.MaxRSS, run.Hardware = device, 0, 0, nil
	h := readingOf(all, device)
	if h == nil {
		if run.Outcome == state.OutcomeOK {
			run.Outcome, run.Error = state.OutcomeFailed, "the child reported nothing on the device"
		}
		return &run
	}
	run.Hardware = []state.Hardware{*h}
	run.Outcome, run.Error = state.OutcomeOK, text.OneLine(h.Failure, maxError)
	switch {
	case h.Failure == "":
	case h.Reading == "" && !h.Late:
		run.Outcome = state.OutcomeFailed
	default:
		run.Outcome = state.OutcomeTimeout
	}
	return &run
}

// readingOf returns the reading of a device. Nil if absent. run may be nil.
func readingOf(run *state.Run, device string) *state.Hardware {
	if run == nil {
		return nil
	}
	i := slices.IndexFunc(run.Hardware, func(h state.Hardware) bool { return h.Device == device })
	if i < 0 {
		return nil
	}
	return &run.Hardware[i]
}

// hardwareAfter returns the state of the device's hardware after a reading. Caller holds mu.
func (w *worker) hardwareAfter(run *state.Run) *state.HardwareState {
	a, s, now, whole := &w.adapter, w.s, time.Now(), run.Outcome == state.OutcomeOK
	before, next := copied(w.state.Hardware), copied(w.state.Hardware)
	next.Failures, next.Failure, next.Reading, next.Next = 0, run.Error, "", time.Time{}
	if !whole {
		next.Failures = before.Failures + 1
		next.Next = now.Add(s.delay(s.cfg.Hardware.Interval, now, next.Failures))
	}
	a.due = next.Next
	if len(run.Hardware) == 0 {
		next.Links = a.current()
		return next
	}
	h := &run.Hardware[0]
	next.Reading = h.Reading
	latest := a.withSkipped(h)
	if whole && before.Latest != nil {
		next.Drops = s.drops(before.Drops, before.Latest, latest)
	}
	// A partial reading does not replace a complete one.
	if whole || before.Latest == nil || before.Latest.Failure != "" {
		next.Latest, next.Read = latest, run.Started
	}
	a.identify(h, whole)
	for i := range h.Ports {
		p := &h.Ports[i]
		if a.links[p.Number] == nil {
			a.links[p.Number] = &link{Link: state.Link{Port: p.Number}}
		}
		l := a.links[p.Number]
		changes := l.Ups + l.Downs
		l.read(p, whole, now)
		if l.Ups+l.Downs != changes {
			notify(w.portChanged)
		}
		// No driver reports the maximum rate that a port could have.
		latest.Ports[i].MaxRate = max(p.MaxRate, l.MaxRate)
	}
	next.Links = a.current()
	return next
}

// current returns the links whose state is known, by port.
func (a *adapter) current() (links []state.Link) {
	for _, port := range slices.Sorted(maps.Keys(a.links)) {
		if l := a.links[port]; l.looked {
			links = append(links, l.Link)
		}
	}
	return links
}

// drops counts the counters that are lower than before.
func (s *Supervisor) drops(known []state.CounterDrop, before, now *state.Hardware) []state.CounterDrop {
	type counter struct {
		port  int
		group state.CounterGroup
		name  string
	}
	values := make(map[counter]uint64)
	each(before, func(port int, c state.Counter) {
		// A sum over other members of a bond is another counter.
		if c.Group != state.GroupEthtool || slices.Equal(members(before, port), members(now, port)) {
			values[counter{port, c.Group, c.Name}] = c.Value
		}
	})
	after := slices.Clone(known)
	each(now, func(port int, c state.Counter) {
		was, width := values[counter{port, c.Group, c.Name}], 64
		if c.Value >= was || was == math.MaxUint64 {
			return // A driver reports the maximum if it cannot read the counter.
		}
		if s.cfg.CounterWidth != nil {
			width = s.cfg.CounterWidth(now.Table, c.Group, c.Name)
		}
		if width < 1 || width > 64 {
			return
		}
		i := slices.IndexFunc(after, func(d state.CounterDrop) bool { return d.Port == port && d.Group == c.Group && d.Name == c.Name })
		if i < 0 {
			i = len(after)
			after = append(after, state.CounterDrop{Port: port, Group: c.Group, Name: c.Name})
		}
		// A counter that wrapped took the shorter way over the end of its width.
		if ones := ^uint64(0) >> (64 - width); was <= ones && (c.Value-was)&ones <= ones/2 {
			after[i].Wraps++
		} else {
			after[i].Resets++
		}
	})
	slices.SortFunc(after, func(a, b state.CounterDrop) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name))
	})
	return after
}

func members(h *state.Hardware, port int) []string {
	i := slices.IndexFunc(h.Ports, func(p state.HardwarePort) bool { return p.Number == port })
	if i < 0 {
		return nil
	}
	return h.Ports[i].Members
}

func each(h *state.Hardware, f func(port int, c state.Counter)) {
	for _, c := range h.Counters {
		f(0, c)
	}
	for i := range h.Ports {
		for _, c := range h.Ports[i].Counters {
			f(h.Ports[i].Number, c)
		}
	}
}
