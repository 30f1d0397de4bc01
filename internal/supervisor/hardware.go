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

// refusedPause is how long counters that the kernel refused to read are left alone: a
// driver may log each attempt.
const refusedPause = 10 * time.Minute

// adapter is what is kept of the hardware of a device for the readings to come. It is
// guarded by Supervisor.mu, but for its journal, which is of the goroutine that reads.
type adapter struct {
	journal journal
	// due is when the device may be read again; zero for at any time.
	due     time.Time
	refused map[wire.SkipCounters]refusal
	// links are the device's ports by their numbers, and past which adapter they are of.
	links map[int]*link
	past  state.LinkPast
}

// refusal is that counters could not be read, which is not tried again until a time.
type refusal struct {
	state.RefusedCounters
	until time.Time
}

// newAdapter returns what is kept of a device that has appeared. The ports of one that was
// away were not active meanwhile.
func newAdapter(j journal, past state.LinkPast) adapter {
	a := adapter{journal: j, refused: make(map[wire.SkipCounters]refusal), links: make(map[int]*link), past: past}
	for _, was := range past.Links {
		l := &link{Link: was, looked: true}
		if !past.Away.IsZero() {
			l.turn(false, past.Away)
		}
		a.links[was.Port] = l
	}
	a.past.Links = nil // They are those now.
	return a
}

// take takes in which adapter was read, and which ports it has if it was read to the end:
// what is remembered of another, or of a port that is not there, is not its own.
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

// readHardware reads the hardware of all devices until ctx is done, with one child at a
// time, apart from such as cannot be killed.
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

// readOnce reads the hardware of those devices that are due. It returns the child if that
// cannot be killed.
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
		// Those whose reading came to its end do not hold the child.
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

// dueHardware returns the devices whose hardware is to be read now, and what the child is
// asked.
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

// takeHardware gives a finished reading to the sinks, as one run of each device, and puts
// it into the snapshot.
func (s *Supervisor) takeHardware(asked []*worker, res result) {
	runs := make([]*state.Run, len(asked))
	for i, w := range asked {
		runs[i] = runOf(res.run, w.name)
		w.adapter.journal.hardware(runs[i], res.stderr)
		w.observe(runs[i])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hardware = res.run.Kept()
	for i, w := range asked {
		if !w.gone {
			w.state.Hardware = s.after(w, runs[i])
		}
	}
	s.publish()
}

// observe hands the sinks a run that is not of the worker's own goroutine, unless the
// device is forgotten by then.
func (w *worker) observe(run *state.Run) {
	w.handing.Lock()
	defer w.handing.Unlock()
	w.s.mu.Lock()
	gone := w.gone
	w.s.mu.Unlock()
	if gone {
		return
	}
	for _, sink := range w.s.cfg.Sinks {
		sink.Observe(run)
	}
}

// runOf returns what a reading of all devices was for one of them.
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

// readingOf returns what was read of a device; nil if nothing was.
func readingOf(run *state.Run, device string) *state.Hardware {
	i := slices.IndexFunc(run.Hardware, func(h state.Hardware) bool { return h.Device == device })
	if i < 0 {
		return nil
	}
	return &run.Hardware[i]
}

// after returns what is known of the hardware of a device after a reading of it. It is
// called with mu held.
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
	// What was read in part is worth less than what was read to the end earlier.
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

// shown returns a copy of what is known with the links as they are; of nil, with no more
// than these.
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

// withRefused remembers which counters a reading was refused, and returns the reading with
// those that it left alone for that reason.
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

// refusals is withRefused for a port, 0 for the device as a whole.
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

// drops adds to what was known of counters that were lower than the time before.
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
			return // That was no count: it is what a driver tells that could not read one.
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
		// One that came to the end of its width went the shorter way over that.
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

// setHeld says which child holds devices so that they cannot be read, nil for none any
// more. It is called with mu held.
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
