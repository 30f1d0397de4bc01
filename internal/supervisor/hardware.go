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
	"rdma_exporter/internal/wire"
)

// refusedPause is how long counters that the kernel refused are not read. A driver may log
// each attempt.
const refusedPause = 10 * time.Minute

// adapter carries the hardware of a device from one reading to the next. Supervisor.mu guards
// it, except the journal, which only the goroutine that reads uses.
type adapter struct {
	journal journal
	// due is when the device may be read again. Zero means at any time.
	due     time.Time
	refused map[wire.SkipCounters]refusal
	// links are the device's ports by number. past identifies their adapter.
	links map[int]*link
	past  state.LinkHistory
}

// refusal is a group of counters that is not read until a time.
type refusal struct {
	state.RefusedCounters
	until time.Time
}

// newAdapter returns the adapter of a device that appeared. While it was absent, its ports were
// not active.
func newAdapter(j journal, past state.LinkHistory) adapter {
	a := adapter{journal: j, refused: make(map[wire.SkipCounters]refusal), links: make(map[int]*link), past: past}
	for _, was := range past.Links {
		l := &link{Link: was, looked: true}
		if !past.Away.IsZero() {
			l.setActive(false, past.Away)
		}
		a.links[was.Port] = l
	}
	a.past.Links = nil // They are those now.
	return a
}

// take forgets the links of another adapter and, if the reading is complete, those of ports
// that the adapter does not have.
func (a *adapter) take(h *state.Hardware, whole bool) {
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
// time, not counting those that cannot be killed.
func (s *Supervisor) readHardware(ctx context.Context) {
	if !pause(ctx, s.firstDelay()) {
		return
	}
	for {
		began := time.Now()
		if left := s.readOnce(ctx); left != nil {
			s.leave(left, s.cfg.Logger.With("devices", left.devices), func() { s.setHeld(left.devices, left.stuck) }, func() { s.setHeld(left.devices, nil) })
		}
		if !pause(ctx, s.regular(began, s.cfg.Hardware.Interval)) {
			return
		}
	}
}

// readOnce reads the hardware of the devices that are due. It returns the child if it cannot
// be killed.
func (s *Supervisor) readOnce(ctx context.Context) *leftover {
	asked, request := s.dueHardware()
	if len(asked) == 0 {
		return nil
	}
	res := s.runChild(ctx, task{kind: state.KindHardware, timeout: s.cfg.Hardware.Timeout, command: func() Command {
		return s.cfg.Command(state.KindHardware, "", wire.Request{Hardware: &request})
	}})
	if res.run != nil {
		s.takeHardware(asked, res)
	}
	if res.left == nil {
		return nil
	}
	left := &leftover{process: res.left, stuck: stuckState(res), devices: request.Devices}
	if run := res.run; run != nil {
		// A device whose reading completed does not hold the child.
		done := func(name string) bool {
			h := readingOf(run, name)
			return h != nil && h.Reading == ""
		}
		if unfinished := slices.DeleteFunc(slices.Clone(request.Devices), done); len(unfinished) > 0 {
			left.devices = unfinished
		}
	}
	told := journal{log: s.cfg.Logger.With("devices", left.devices)}
	told.stuck(left.stuck)
	return left
}

// dueHardware returns the devices that are due, and the request for the child.
func (s *Supervisor) dueHardware() (due []*worker, r wire.HardwareRequest) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		if !w.gone && s.held[w.name] == nil && !now.Before(w.adapter.due) {
			due = append(due, w)
		}
	}
	slices.SortFunc(due, func(a, b *worker) int { return strings.Compare(a.name, b.name) })
	due = due[:min(len(due), wire.MaxDevices)]
	for _, w := range due {
		r.Devices = append(r.Devices, w.name)
		maps.DeleteFunc(w.adapter.refused, func(_ wire.SkipCounters, f refusal) bool { return !now.Before(f.until) })
		r.Skip = slices.AppendSeq(r.Skip, maps.Keys(w.adapter.refused))
	}
	return due, r
}

// takeHardware gives a finished reading to the sinks, as one run of each device, and adds it
// to the snapshot.
func (s *Supervisor) takeHardware(asked []*worker, res result) {
	runs := make([]*state.Run, len(asked))
	for i, w := range asked {
		runs[i] = runOf(res.run, w.name)
		w.adapter.journal.hardware(runs[i], res.stderr)
		w.observe(runs[i])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hardware = res.run.Compact()
	for i, w := range asked {
		if !w.gone {
			w.state.Hardware = s.after(w, runs[i])
		}
	}
	s.publish()
}

// observe hands the sinks a run from outside the worker's goroutine, unless the device was
// forgotten in the meantime.
func (w *worker) observe(run *state.Run) {
	w.handing.Lock()
	defer w.handing.Unlock()
	w.s.mu.Lock()
	gone := w.gone
	w.s.mu.Unlock()
	if gone {
		return
	}
	for _, sink := range w.s.cfg.Observers {
		sink.Observe(run)
	}
}

// runOf returns the part of a reading that is about one device, as a run.
func runOf(all *state.Run, device string) *state.Run {
	run := *all
	run.Device, run.CPU, run.MaxRSS, run.Hardware = device, 0, 0, nil
	h := readingOf(all, device)
	switch {
	case h == nil && run.Outcome == state.OutcomeOK:
		run.Outcome, run.Error = state.OutcomeFailed, "the child reported nothing on the device"
	case h == nil:
	case h.Failure == "":
		run.Outcome, run.Error = state.OutcomeOK, ""
	case h.Reading == "" && !h.Late:
		run.Outcome, run.Error = state.OutcomeFailed, oneLine(h.Failure, maxError)
	default:
		run.Outcome, run.Error = state.OutcomeTimeout, oneLine(h.Failure, maxError)
	}
	if h != nil {
		run.Hardware = []state.Hardware{*h}
	}
	return &run
}

// readingOf returns the reading of a device. Nil if absent.
func readingOf(run *state.Run, device string) *state.Hardware {
	i := slices.IndexFunc(run.Hardware, func(h state.Hardware) bool { return h.Device == device })
	if i < 0 {
		return nil
	}
	return &run.Hardware[i]
}

// after returns the state of a device's hardware after a reading. Caller holds mu.
func (s *Supervisor) after(w *worker, run *state.Run) *state.HardwareState {
	a, now := &w.adapter, time.Now()
	var before state.HardwareState
	if w.state.Hardware != nil {
		before = *w.state.Hardware
	}
	next := before
	next.Failures, next.Failure, next.Reading, next.Next, next.Stuck = 0, run.Error, "", time.Time{}, nil
	if run.Outcome != state.OutcomeOK {
		interval := s.cfg.Hardware.Interval
		next.Failures = before.Failures + 1
		next.Next = now.Add(backoff(interval, max(s.cfg.Backoff, interval), next.Failures) + s.jitter(interval))
	}
	a.due = next.Next
	if len(run.Hardware) == 0 {
		return a.shown(&next)
	}
	h, whole := &run.Hardware[0], run.Outcome == state.OutcomeOK
	next.Reading = h.Reading
	latest := a.withRefused(h, now)
	if whole && before.Latest != nil {
		next.Drops = s.drops(before.Drops, before.Latest, latest)
	}
	// A partial reading does not replace a complete one.
	if whole || before.Latest == nil || before.Latest.Failure != "" {
		next.Latest, next.Read = latest, run.Started
	}
	a.take(h, whole)
	for i := range h.Ports {
		p := &h.Ports[i]
		if a.links[p.Number] == nil {
			a.links[p.Number] = &link{Link: state.Link{Port: p.Number}}
		}
		l := a.links[p.Number]
		turns := l.Ups + l.Downs
		l.read(p, whole, run.Started, now)
		if l.Ups+l.Downs != turns {
			w.portTurned()
		}
		// No driver tells the most that a port could have.
		latest.Ports[i].MaxRate = max(p.MaxRate, l.MaxRate)
	}
	return a.shown(&next)
}

// shown returns a copy of h with the current links. h may be nil.
func (a *adapter) shown(h *state.HardwareState) *state.HardwareState {
	next := new(state.HardwareState)
	if h != nil {
		*next = *h
	}
	next.Links = nil
	for _, port := range slices.Sorted(maps.Keys(a.links)) {
		if l := a.links[port]; l.looked {
			next.Links = append(next.Links, l.Link)
		}
	}
	return next
}

// withRefused remembers the counters that the kernel refused. It returns the reading with
// those that it skipped for that reason.
func (a *adapter) withRefused(h *state.Hardware, now time.Time) *state.Hardware {
	with := *h
	with.Refused = a.refusals(h.Device, 0, h.Refused, now)
	with.Ports = slices.Clone(h.Ports)
	for i := range with.Ports {
		p := &with.Ports[i]
		p.Refused = a.refusals(h.Device, p.Number, p.Refused, now)
	}
	return &with
}

// refusals is withRefused for a port. Port 0 is the device as a whole.
func (a *adapter) refusals(device string, port int, told []state.RefusedCounters, now time.Time) []state.RefusedCounters {
	told = slices.Clone(told)
	for _, group := range state.CounterGroups() {
		key := wire.SkipCounters{Device: device, Port: port, Group: group}
		known, skipped := a.refused[key]
		i := slices.IndexFunc(told, func(r state.RefusedCounters) bool { return r.Group == group })
		switch {
		case i < 0 && skipped:
			told = append(told, known.RefusedCounters)
		case i >= 0 && !skipped && (told[i].Errno == "EINVAL" || told[i].Errno == "EIO"):
			a.refused[key] = refusal{told[i], now.Add(refusedPause)}
		}
	}
	return told
}

// drops counts the counters that are lower than before.
func (s *Supervisor) drops(known []state.CounterDrop, before, now *state.Hardware) []state.CounterDrop {
	type counter struct {
		port  int
		group state.CounterGroup
		name  string
	}
	values := make(map[counter]uint64)
	each(before, func(port int, c state.Counter) { values[counter{port, c.Group, c.Name}] = c.Value })
	after := slices.Clone(known)
	each(now, func(port int, c state.Counter) {
		was, width := values[counter{port, c.Group, c.Name}], 64
		if was == math.MaxUint64 {
			return // A driver reports this value if it cannot read the counter.
		}
		if c.Value < was && s.cfg.CounterWidth != nil {
			width = s.cfg.CounterWidth(now.Table, c.Group, c.Name)
		}
		if c.Value >= was || width < 1 || width > 64 {
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
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name))
	})
	return after
}

// each calls f with each counter of a device.
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

// setHeld sets the stuck child that keeps devices from being read. Nil means that it has
// ended. Caller holds mu.
func (s *Supervisor) setHeld(devices []string, stuck *state.Stuck) {
	for _, name := range devices {
		s.held[name] = stuck
		if stuck == nil {
			delete(s.held, name)
		}
		if w := s.workers[name]; w != nil && !w.gone {
			w.state.Hardware = w.adapter.shown(w.state.Hardware)
			w.state.Hardware.Stuck = stuck
		}
	}
}
