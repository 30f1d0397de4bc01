package health

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Evaluator evaluates snapshots, and remembers when each finding was seen first. All methods may be called concurrently.
//
// With Config.Once it remembers nothing new. Only the history that it started with says since when a finding exists.
type Evaluator struct {
	// find replaces Assess in tests.
	find func(*state.DeviceState) []Finding

	mu          sync.Mutex
	config      Config
	acceptances []*acceptance
	history     History
	// latest is the result of the latest evaluation, and evaluated its time.
	latest    *Host
	evaluated time.Time
	// outdated is true if the configuration has changed since then.
	outdated bool
}

// New returns an Evaluator that continues a history. The configuration must be valid.
func New(c Config, history History) *Evaluator { return NewFinder(c, history, nil) }

// NewFinder returns an Evaluator for tests, with the findings that find returns instead of those of Assess.
func NewFinder(c Config, history History, find func(*state.DeviceState) []Finding) *Evaluator {
	e := &Evaluator{find: find, config: c, acceptances: acceptancesOf(c.Accept)}
	e.history = history.resumed(e.now())
	return e
}

func (e *Evaluator) now() time.Time {
	if e.config.Now == nil {
		return time.Time{}
	}
	return e.config.Now()
}

// Configure sets another valid configuration. The history stays.
func (e *Evaluator) Configure(c Config) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.config, e.acceptances, e.outdated = c, acceptancesOf(c.Accept), true
}

// History returns a copy of what the Evaluator remembers.
func (e *Evaluator) History() History {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.touch(e.now())
	return e.history.clone()
}

func (e *Evaluator) touch(now time.Time) {
	if e.latest != nil && e.latest.Snapshot != nil && !now.IsZero() && !e.config.Once {
		e.history.touch(e.latest, now)
	}
}

// Evaluate returns the evaluated snapshot. The snapshot may be nil. Callers must not modify it afterwards.
func (e *Evaluator) Evaluate(s *state.Snapshot) *Host {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	// Acceptances expire at the end of a day.
	newDay := text.Date(now) != text.Date(e.evaluated)
	if e.latest == nil || e.latest.Snapshot != s || e.outdated || newDay {
		e.touch(now)
		e.latest, e.evaluated, e.outdated = e.evaluate(s, now), now, false
	}
	return e.latest
}

// Caller holds mu.
func (e *Evaluator) evaluate(s *state.Snapshot, now time.Time) *Host {
	h := &Host{Snapshot: s, Problem: problemOf(s, &e.config), DocsURL: e.config.DocsURL}
	if s == nil {
		return h
	}
	// Without a history, the findings of a device depend on all other devices.
	all, active := portsOf(s)
	unplugged := e.config.Once && all > 0 && active == 0
	h.Devices = make([]*Device, 0, len(s.Devices))
	for i := range s.Devices {
		h.Devices = append(h.Devices, e.device(&s.Devices[i], unplugged, now))
	}
	if !e.config.Once {
		e.history.recordAbsent(s, now)
	}
	slices.SortStableFunc(h.Devices, func(a, b *Device) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.State.Name, b.State.Name))
	})
	h.Issues = issuesOf(h.Devices)
	h.Findings = append(netnsBlind(s, &e.config), e.unusedAcceptances(h, now)...)
	return h
}

func (e *Evaluator) device(s *state.DeviceState, unplugged bool, now time.Time) *Device {
	e.history.record(s)
	a := assessor{state: s, config: &e.config, deviceHistory: e.history.of(s, &e.config), unplugged: unplugged}
	d := &Device{State: *s, Growth: a.growth, Exhausted: a.exhausted, Leftover: a.leftovers, staleAfter: e.config.StaleAfter}
	d.Findings = a.assess()
	if e.find != nil {
		d.Findings = slices.Clone(e.find(s))
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		key := keyOf(s.Name, f)
		if _, ok := e.history.Findings[key]; now.IsZero() || e.config.Once && !ok {
			continue
		}
		seen := e.history.recordSeen(key, now)
		f.Since, f.LastSeen = seen.First, seen.Last
	}
	e.accept(s.Name, d.Findings, now)
	return d
}
