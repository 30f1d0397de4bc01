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

// Host is a judged snapshot. It is shared: nobody changes it, nor what it leads to.
type Host struct {
	// Snapshot is what was judged; nil if nothing is known.
	Snapshot *state.Snapshot
	// Problem is what is wrong with the host rather than with a device; nil if nothing is.
	Problem *Problem
	// Devices are those of the snapshot, the worst first, those that are as bad by name.
	Devices []*Device
	// Findings are those of the host itself: acceptances that match nothing any more.
	Findings []Finding
	// Troubles are what is wrong with the devices, or worth knowing, the worst first.
	Troubles []Trouble
	// DocsURL goes before the paths of documents; empty if it is not known where they are.
	DocsURL string
}

// Device is a judged device.
type Device struct {
	// State is what was judged.
	State state.DeviceState
	// Findings have the worst first, and what is accepted last; nil while nothing is known
	// that could be judged.
	Findings []Finding
	// Growth is how the objects on it grow.
	Growth *Growth
	// Exhausted is what the device had no more of when the exporter asked for it.
	Exhausted []Exhausted
	// Left is what was left of opened devices within a day, the latest first.
	Left []Witness
	// trouble is how the device is if it is in trouble, whatever the time; zero if not.
	trouble    verdict
	staleAfter map[state.Kind]time.Duration
}

// Judge judges snapshots. It remembers what came of the latest one, and of each of its
// devices, so that nothing is judged twice. All its methods may be called concurrently.
//
// It remembers as well when each finding was seen first. One that was gone for less than
// ten minutes is the same one. Where everything is done once, nothing new is remembered: a
// finding is since when the past says, if that knows it.
type Judge struct {
	find finder

	mu          sync.Mutex
	config      Config
	acceptances []*acceptance
	past        Past
	latest      *Host
	// changed tells that the latest is judged by what does not hold any more.
	changed bool
	// again is when acceptances expire, so that all is to be judged again; zero for never.
	again time.Time
}

// finder finds what is wrong with a device, or worth knowing: by what is remembered of it,
// and whether no port of the host is active where there is no past.
type finder func(c *Config, d *state.DeviceState, of remembered, unplugged bool) []Finding

// New returns a Judge by a configuration, which must be valid, that goes on from a past.
func New(c Config, past Past) *Judge {
	catalogue := entries()
	return newJudge(c, past, func(c *Config, d *state.DeviceState, of remembered, unplugged bool) []Finding {
		a := assessor{t: c, catalogue: catalogue, remembered: of, unplugged: unplugged}
		return a.assess(d)
	})
}

// Finder is New for findings that are not those of this package, as tests have them.
// Find returns those of a device, the worst first, and nil if it cannot be judged. It is
// called again only when something has changed.
func Finder(c Config, find func(*state.DeviceState) []Finding) *Judge {
	return FinderSince(c, Past{}, find)
}

// FinderSince is Finder that goes on from a past.
func FinderSince(c Config, past Past, find func(*state.DeviceState) []Finding) *Judge {
	return newJudge(c, past, func(_ *Config, d *state.DeviceState, _ remembered, _ bool) []Finding { return find(d) })
}

func newJudge(c Config, past Past, find finder) *Judge {
	j := &Judge{find: find, config: c, acceptances: acceptancesOf(c.Accept)}
	j.past = past.resumed(j.now())
	return j
}

// now returns the time; zero without a clock.
func (j *Judge) now() time.Time {
	if j.config.Now == nil {
		return time.Time{}
	}
	return j.config.Now()
}

// Configure has everything be judged by another configuration from now on, which must be
// valid. What is remembered stays.
func (j *Judge) Configure(c Config) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.config, j.acceptances, j.changed = c, acceptancesOf(c.Accept), true
}

// Past returns what is remembered now.
func (j *Judge) Past() Past {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	if j.stay(now) {
		j.past.forget(now)
	}
	return j.past.clone()
}

// stay remembers that what was found of the latest snapshot was there until now, and
// returns whether anything could be said of that.
func (j *Judge) stay(now time.Time) bool {
	if j.latest == nil || j.latest.Snapshot == nil || now.IsZero() || j.config.Once {
		return false
	}
	j.past.stay(j.latest, now)
	return true
}

// Of judges a snapshot, or has done so already. The snapshot may be nil while nothing is
// known, and is not changed; nobody else may change it any more.
func (j *Judge) Of(s *state.Snapshot) *Host {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	if !j.again.IsZero() && now.After(j.again) {
		j.changed = true
	}
	if j.latest == nil || j.latest.Snapshot != s || j.changed {
		j.latest, j.changed = j.judge(s, now), false
	}
	return j.latest
}

// judge judges a snapshot, with what has not changed in it since the latest one.
func (j *Judge) judge(s *state.Snapshot, now time.Time) *Host {
	j.stay(now)
	h := &Host{Snapshot: s, Problem: problemOf(s, &j.config), DocsURL: j.config.DocsURL}
	if s == nil {
		return h
	}
	known := make(map[string]*Device)
	unplugged := false
	if j.config.Once {
		all, active := portsOf(s)
		unplugged = all > 0 && active == 0
	} else if j.latest != nil && !j.changed { // Where there is no past, all depends on all.
		for _, d := range j.latest.Devices {
			known[d.State.Name] = d
		}
	}
	h.Devices = make([]*Device, 0, len(s.Devices))
	for i := range s.Devices {
		d := known[s.Devices[i].Name]
		if d == nil || d.State != s.Devices[i] {
			j.past.take(&s.Devices[i])
			of := j.past.of(s.Devices[i].Name)
			// Inventories are rarer than what else changes.
			if d != nil && d.State.Resources == s.Devices[i].Resources && d.State.Info == s.Devices[i].Info && slices.Equal(d.Exhausted, of.exhausted) {
				of.growth = d.Growth
			} else {
				of.growth = GrowthOf(&s.Devices[i], of.exhausted, j.config.Growing)
			}
			// Whoever found them may keep them.
			found := slices.Clone(j.find(&j.config, &s.Devices[i], of, unplugged))
			d = &Device{State: s.Devices[i], Findings: found, staleAfter: j.config.StaleAfter, Growth: of.growth, Exhausted: of.exhausted, Left: of.left}
			j.date(d, now)
			j.accept(d.State.Name, d.Findings, now)
			d.trouble = d.inTrouble()
		}
		h.Devices = append(h.Devices, d)
	}
	if !j.config.Once {
		j.past.away(s, now)
	}
	slices.SortStableFunc(h.Devices, func(a, b *Device) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.State.Name, b.State.Name))
	})
	h.Troubles = troublesOf(h.Devices)
	h.Findings = j.unused(h, now)
	j.again = time.Time{}
	for _, a := range j.acceptances {
		if until := a.given.Until; !until.IsZero() && !a.expired(now) && (j.again.IsZero() || until.Before(j.again)) {
			j.again = until
		}
	}
	return h
}

// date says since when the findings of a device are there.
func (j *Judge) date(d *Device, now time.Time) {
	if now.IsZero() {
		return
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		key := keyOf(d.State.Name, f)
		if _, known := j.past.Findings[key]; j.config.Once && !known {
			continue
		}
		seen := j.past.see(key, now)
		f.Since, f.LastSeen = seen.First, seen.Last
	}
}

// rank returns how bad a device is whatever the time, from 0 for the worst: that of which
// nothing is known comes before that which is well.
func (d *Device) rank() int {
	unknown := slices.Index(Harms(), HarmNote)
	switch {
	case len(d.Findings) > 0 && d.Findings[0].Severity != SeverityInfo && d.Findings[0].Accepted == nil:
		f := &d.Findings[0]
		return slices.Index(Harms(), f.Harm)*len(Severities()) + slices.Index(Severities(), f.Severity)
	case d.trouble.health == Critical:
		return 0
	case d.trouble.health == Warning:
		return slices.Index(Harms(), HarmDegradation) * len(Severities())
	case !d.State.Present || d.State.Last == nil || d.State.OutOfTime != nil:
		return unknown * len(Severities())
	default:
		return unknown*len(Severities()) + 1
	}
}

// At returns the worst of the host and of all devices at a moment.
func (h *Host) At(now time.Time) Health {
	worst := OK
	if h.Problem != nil {
		worst = h.Problem.Health
	}
	for _, d := range h.Devices {
		of, _ := d.At(now)
		worst = worse(worst, of)
	}
	return worst
}

// Fails tells whether a device of the host is at a moment as bad as a severity, or
// worse. One of which too little is known is not known to be well, and fails as a warning
// does; one whose probes there was no time for fails in any case, and so does a host of
// which fewer ports are active than have to be.
func (h *Host) Fails(least Severity, now time.Time) bool {
	if h.Problem != nil && h.Problem.Kind == ProblemPorts {
		return true
	}
	for _, d := range h.Devices {
		if out := d.State.OutOfTime; out != nil && slices.Contains(out.Kinds, state.KindProbe) {
			return true
		}
		health, _ := d.At(now)
		switch health {
		case OK:
			continue
		case Unknown:
			health = Warning
		}
		if bySeverity(Severity(health), least) <= 0 {
			return true
		}
	}
	return false
}

// Health sums up how a device is, from best to worst.
type Health string

// The healths.
const (
	// OK: no action is needed. Findings of severity info do not count.
	OK Health = "ok"
	// Unknown: it has not been probed yet, or not lately, or is gone.
	Unknown Health = "unknown"
	// Warning: the worst finding is a warning, or the last run failed.
	Warning Health = "warning"
	// Critical: the worst finding is critical.
	Critical Health = "critical"
)

// Healths returns every health, from best to worst.
func Healths() []Health { return []Health{OK, Unknown, Warning, Critical} }

// worse returns the worse of two healths.
func worse(a, b Health) Health {
	if slices.Index(Healths(), b) > slices.Index(Healths(), a) {
		return b
	}
	return a
}

// Trouble is what is wrong in one way, or worth knowing, on one device or on several.
type Trouble struct {
	Severity Severity
	Harm     Harm
	// Kind is empty if no finding says what is wrong, but how the device is.
	Kind Kind
	// Meaning and Action are those of the findings. If the action names a device and there
	// is trouble on several, For is the one that it names, else −1.
	Meaning, Action string
	For             int
	Places          []Place
}

// Place is where trouble is.
type Place struct {
	// Device is the place of the device among those of the host.
	Device int
	// Finding is the place of the finding among those of the device; −1 for none.
	Finding int
}

// troublesOf collects what is wrong, the worst first, and each kind of trouble once if
// the same is to be done about it. What is accepted is not.
func troublesOf(devices []*Device) []Trouble {
	type key struct {
		severity                 Severity
		harm                     Harm
		kind                     Kind
		subject, meaning, action string
	}
	var all []Trouble
	known := make(map[key]int)
	add := func(device, finding int, f *Finding) {
		k := key{severity: f.Severity, harm: f.Harm, kind: f.Kind, meaning: f.Meaning, action: anywhere(f.Action, devices[device].State.Name)}
		if f.Kind == FindingContract {
			k.subject = f.Subject
		}
		i, ok := known[k]
		if !ok {
			i = len(all)
			known[k] = i
			all = append(all, Trouble{Severity: f.Severity, Harm: f.Harm, Kind: f.Kind, Meaning: f.Meaning, Action: f.Action, For: -1})
		}
		t := &all[i]
		if ok && t.Places[0].Device != device && k.action != t.Action {
			t.For = t.Places[0].Device
		}
		t.Places = append(t.Places, Place{Device: device, Finding: finding})
	}
	for i, d := range devices {
		explained := false
		for n := range d.Findings {
			f := &d.Findings[n]
			if f.Accepted == nil {
				add(i, n, f)
			}
			explained = explained || f.Severity != SeverityInfo
		}
		if !explained && d.trouble != (verdict{}) {
			add(i, -1, &Finding{Severity: SeverityWarning, Harm: HarmDegradation})
		}
	}
	slices.SortStableFunc(all, func(a, b Trouble) int { return byHarm(a.Harm, b.Harm, a.Severity, b.Severity) })
	return all
}

// anywhere returns what is to be done on a device as it is on any: with a sign that no
// text has for its name, which a shell may need in quotes.
func anywhere(action, device string) string {
	if device = word(device); device == "" {
		return action
	}
	const anyName = "\x00"
	return strings.NewReplacer(text.Quoted(device), anyName, device, anyName).Replace(action)
}
