package health

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"rdma_exporter/internal/health/expect"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Evaluator evaluates snapshots, and remembers when each finding was seen first. All methods may be called concurrently.
//
// With Config.Once it remembers nothing new. Only the history that it started with says since when a finding exists.
type Evaluator struct {
	// find replaces the assessment in tests.
	find func(*state.DeviceState) []Finding

	mu          sync.Mutex
	config      Config
	acceptances []*acceptance
	history     History
	// latest is the result of the latest evaluation, and evaluated its time.
	latest    *Host
	evaluated time.Time
	// began is when it began to evaluate.
	began time.Time
	// outdated is true if the configuration has changed since then.
	outdated bool
}

// New returns an Evaluator that continues a history. The configuration must be valid.
func New(c Config, history History) *Evaluator { return NewFinder(c, history, nil) }

// NewFinder returns an Evaluator for tests, with the findings that find returns.
func NewFinder(c Config, history History, find func(*state.DeviceState) []Finding) *Evaluator {
	e := &Evaluator{find: find, config: c, acceptances: acceptancesOf(c.Accept)}
	e.began = e.now()
	e.history = history.resumed(e.began)
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
	h := &Host{Snapshot: s, Problem: problemOf(s), DocsURL: e.config.DocsURL, Began: e.began}
	if s == nil {
		return h
	}
	e.history.follow(s)
	h.ExpectedDevices = e.config.Expect.Devices()
	differences := make(map[string][]expect.Difference)
	if (s.Ready || e.config.Once) && s.DiscoveryError == "" && s.StartError == "" {
		for _, d := range e.config.Expect.Compare(s, e.config.Once, e.config.Memlock) {
			differences[d.Device] = append(differences[d.Device], d)
		}
	}
	down := unplugged(s)
	h.Devices = make([]*Device, 0, len(s.Devices))
	for i := range s.Devices {
		d := &s.Devices[i]
		h.Devices = append(h.Devices, e.device(d, assessor{state: d, unplugged: down, host: s.Devices, differences: differences[d.Name]}, now))
	}
	if !e.config.Once {
		e.history.recordAbsent(s, now)
	}
	slices.SortStableFunc(h.Devices, func(a, b *Device) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.State.Name, b.State.Name))
	})
	h.Issues = issuesOf(h.Devices)
	a := assessor{config: &e.config, differences: differences[""]}
	a.unexpected()
	h.Findings = a.sorted()
	e.dated("", h.Findings, now)
	if p := h.Problem; p != nil && p.Kind == ProblemNoDevices && (h.ExpectedDevices != nil || h.Fails(SeverityCritical, now)) {
		h.Problem = nil // It is as expected, or the finding says more.
	}
	h.Findings = slices.Concat(h.Findings, netnsBlind(s, &e.config), e.unusedAcceptances(h, now))
	h.Past = e.past(h, now)
	return h
}

// past returns what the history has beside the findings of a host.
func (e *Evaluator) past(h *Host, now time.Time) (all []Past) {
	for key, seen := range e.history.Findings {
		if h.has(key) {
			continue
		}
		f := []Finding{{Kind: key.Kind, Subject: key.Subject, Severity: seen.Severity, Remedy: seen.Remedy, Since: seen.First, LastSeen: seen.Last}}
		e.accept(key.Device, f, now)
		all = append(all, Past{key.Device, f[0]})
	}
	return all
}

func (e *Evaluator) device(s *state.DeviceState, a assessor, now time.Time) *Device {
	e.history.record(s)
	a.config, a.deviceHistory = &e.config, e.history.of(s, &e.config)
	d := &Device{State: *s, Growth: a.grown, Exhausted: a.exhausted, Leftover: a.leftovers, staleAfter: e.config.StaleAfter, never: e.config.Never}
	d.Findings = a.assess()
	if e.find != nil {
		d.Findings = slices.Clone(e.find(s))
	}
	e.dated(s.Name, d.Findings, now)
	return d
}

// dated adds since when findings exist, and which are accepted.
func (e *Evaluator) dated(device string, findings []Finding, now time.Time) {
	for i := range findings {
		f := &findings[i]
		key := keyOf(device, f)
		if _, ok := e.history.Findings[key]; now.IsZero() || e.config.Once && !ok {
			continue
		}
		seen := e.history.recordSeen(key, f, now)
		f.Since, f.LastSeen = seen.First, seen.Last
	}
	e.accept(device, findings, now)
}
