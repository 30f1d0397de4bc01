package health

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"rdma_exporter/internal/state"
)

// Evaluator evaluates snapshots. It keeps the latest result, and evaluates a device again only when its state has
// changed. All methods may be called concurrently.
//
// It also remembers when each finding was seen first. With Config.Once it remembers nothing new: only the history
// that it started with says since when a finding exists.
type Evaluator struct {
	find finder

	mu          sync.Mutex
	config      Config
	acceptances []*acceptance
	history     History
	latest      *Host
	// outdated is true if the configuration has changed or an acceptance has expired since the latest evaluation.
	outdated bool
	// expires is when the next acceptance expires. Zero means never.
	expires time.Time
}

// finder returns the findings of a device, the worst first, or nil if too little is known. unplugged is true if no
// port of the host is active; it is used only with Config.Once.
type finder func(c *Config, d *state.DeviceState, h *deviceHistory, unplugged bool) []Finding

// New returns an Evaluator that continues a history. The configuration must be valid.
func New(c Config, history History) *Evaluator {
	catalogue := Catalogue()
	return newEvaluator(c, history, func(c *Config, d *state.DeviceState, h *deviceHistory, unplugged bool) []Finding {
		a := assessor{config: c, catalogue: catalogue, deviceHistory: *h, unplugged: unplugged}
		return a.assess(d)
	})
}

// NewFinder returns an Evaluator for tests, with the findings that find returns instead of those of this package.
// It calls find again only when something has changed.
func NewFinder(c Config, history History, find func(*state.DeviceState) []Finding) *Evaluator {
	return newEvaluator(c, history, func(_ *Config, d *state.DeviceState, _ *deviceHistory, _ bool) []Finding { return find(d) })
}

func newEvaluator(c Config, history History, find finder) *Evaluator {
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
	now := e.now()
	if e.touch(now) {
		e.history.forget(now)
	}
	return e.history.clone()
}

// touch records that the findings of the latest snapshot still exist. It reports whether it could.
func (e *Evaluator) touch(now time.Time) bool {
	if e.latest == nil || e.latest.Snapshot == nil || now.IsZero() || e.config.Once {
		return false
	}
	e.history.touch(e.latest, now)
	return true
}

// Evaluate returns the evaluated snapshot. The snapshot may be nil. Callers must not modify it afterwards.
func (e *Evaluator) Evaluate(s *state.Snapshot) *Host {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	if !e.expires.IsZero() && now.After(e.expires) {
		e.outdated = true
	}
	if e.latest == nil || e.latest.Snapshot != s || e.outdated {
		e.latest, e.outdated = e.evaluate(s, now), false
	}
	return e.latest
}

// evaluate evaluates a snapshot. It reuses devices that have not changed. Caller holds mu.
func (e *Evaluator) evaluate(s *state.Snapshot, now time.Time) *Host {
	e.touch(now)
	h := &Host{Snapshot: s, Problem: problemOf(s, &e.config), DocsURL: e.config.DocsURL}
	if s == nil {
		return h
	}
	unchanged := make(map[string]*Device)
	unplugged := false
	if e.config.Once {
		// Without a history, the findings of a device depend on all other devices.
		all, active := portsOf(s)
		unplugged = all > 0 && active == 0
	} else if e.latest != nil && !e.outdated {
		for _, d := range e.latest.Devices {
			unchanged[d.State.Name] = d
		}
	}
	h.Devices = make([]*Device, 0, len(s.Devices))
	for i := range s.Devices {
		d := unchanged[s.Devices[i].Name]
		if d == nil || d.State != s.Devices[i] {
			d = e.device(&s.Devices[i], unplugged, now)
		}
		h.Devices = append(h.Devices, d)
	}
	if !e.config.Once {
		e.history.recordAbsent(s, now)
	}
	slices.SortStableFunc(h.Devices, func(a, b *Device) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.State.Name, b.State.Name))
	})
	h.Issues = issuesOf(h.Devices)
	h.Findings = e.unusedAcceptances(h, now)
	e.expires = time.Time{}
	for _, a := range e.acceptances {
		if until := a.applied.Until; !until.IsZero() && !a.expired(now) && (e.expires.IsZero() || until.Before(e.expires)) {
			e.expires = until
		}
	}
	return h
}

// device evaluates one device. Caller holds mu.
func (e *Evaluator) device(s *state.DeviceState, unplugged bool, now time.Time) *Device {
	e.history.record(s)
	h := e.history.of(s, &e.config)
	// A clone, because find may return a list that it keeps.
	found := slices.Clone(e.find(&e.config, s, h, unplugged))
	d := &Device{State: *s, Findings: found, Growth: h.growth, Exhausted: h.exhausted, Leftover: h.leftovers, staleAfter: e.config.StaleAfter}
	for i := range d.Findings {
		f := &d.Findings[i]
		key := keyOf(s.Name, f)
		if _, known := e.history.Findings[key]; now.IsZero() || e.config.Once && !known {
			continue
		}
		seen := e.history.recordSeen(key, now)
		f.Since, f.LastSeen = seen.First, seen.Last
	}
	e.accept(s.Name, d.Findings, now)
	d.fixed = d.unhealthy()
	return d
}
