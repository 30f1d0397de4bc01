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
	// Troubles are what is wrong with the devices, or worth knowing, the worst first.
	Troubles []Trouble
}

// Device is a judged device.
type Device struct {
	// State is what was judged.
	State state.DeviceState
	// Findings have the worst first; nil while nothing is known that could be judged.
	Findings []Finding
	// trouble is how the device is if it is in trouble, whatever the time; zero if not.
	trouble    verdict
	staleAfter map[state.Kind]time.Duration
}

// Judge judges snapshots. It remembers what came of the latest one, and of each of its
// devices, so that nothing is judged twice. All its methods may be called concurrently.
type Judge struct {
	config Config
	find   func(d *state.DeviceState, unplugged bool) []Finding

	mu     sync.Mutex
	latest *Host
	past   Past
}

// New returns a Judge by a configuration, which must be valid, and by what was before,
// of which it keeps a copy.
func New(c Config, past Past) *Judge {
	catalogue := entries()
	j := &Judge{config: c, past: past.clone()}
	j.find = func(d *state.DeviceState, unplugged bool) []Finding {
		a := assessor{t: &c, catalogue: catalogue, activeOnce: j.past.Ports[d.Name], unplugged: unplugged}
		return a.assess(d)
	}
	return j
}

// Finder is New for findings that are not those of this package, as tests have them.
// Find returns those of a device, the worst first, and nil if it cannot be judged. It is
// called again only when something has changed.
func Finder(c Config, find func(*state.DeviceState) []Finding) *Judge {
	return &Judge{config: c, past: Past{}.clone(), find: func(d *state.DeviceState, _ bool) []Finding { return find(d) }}
}

// Of judges a snapshot, or has done so already. The snapshot may be nil while nothing is
// known, and is not changed; nobody else may change it any more.
func (j *Judge) Of(s *state.Snapshot) *Host {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.latest == nil || j.latest.Snapshot != s {
		j.latest = j.judge(s)
	}
	return j.latest
}

// judge judges a snapshot, with what has not changed in it since the latest one.
func (j *Judge) judge(s *state.Snapshot) *Host {
	h := &Host{Snapshot: s, Problem: problemOf(s, &j.config)}
	if s == nil {
		return h
	}
	known := make(map[string]*Device)
	unplugged := false
	if j.config.Once {
		all, active := portsOf(s)
		unplugged = all > 0 && active == 0
	} else if j.latest != nil { // Where there is no past, all depends on all.
		for _, d := range j.latest.Devices {
			known[d.State.Name] = d
		}
	}
	h.Devices = make([]*Device, 0, len(s.Devices))
	for i := range s.Devices {
		d := known[s.Devices[i].Name]
		if d == nil || d.State != s.Devices[i] {
			j.past.take(&s.Devices[i])
			d = &Device{State: s.Devices[i], Findings: j.find(&s.Devices[i], unplugged), staleAfter: j.config.StaleAfter}
			d.trouble = d.inTrouble()
		}
		h.Devices = append(h.Devices, d)
	}
	slices.SortStableFunc(h.Devices, func(a, b *Device) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.State.Name, b.State.Name))
	})
	h.Troubles = troublesOf(h.Devices)
	return h
}

// rank returns how bad a device is whatever the time, from 0 for the worst: that of which
// nothing is known comes before that which is well.
func (d *Device) rank() int {
	unknown := slices.Index(Harms(), HarmNote)
	switch {
	case len(d.Findings) > 0 && d.Findings[0].Severity != SeverityInfo:
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
// worse, apart from findings that are accepted: by kind, or by kind, slash and subject.
// One of which too little is known is not known to be well, and fails as a warning does.
// That fewer ports are active than have to be cannot be accepted.
func (h *Host) Fails(least Severity, accepted []string, now time.Time) bool {
	fails := func(s Severity) bool { return bySeverity(s, least) <= 0 }
	if h.Problem != nil && h.Problem.Kind == ProblemPorts {
		return true
	}
	for _, d := range h.Devices {
		explained := false
		for _, f := range d.Findings {
			if f.Severity == SeverityInfo {
				continue
			}
			explained = true
			known := slices.Contains(accepted, string(f.Kind)) || slices.Contains(accepted, string(f.Kind)+"/"+f.Subject)
			if fails(f.Severity) && !known {
				return true
			}
		}
		switch health, _ := d.At(now); {
		case health == OK:
		case health == Unknown:
			if fails(SeverityWarning) {
				return true
			}
		case !explained && fails(Severity(health)):
			return true
		}
	}
	return false
}

// Health sums up how a device is, from best to worst.
type Health string

// The healths.
const (
	// OK: there is nothing to be done. Findings of severity info do not count.
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
// the same is to be done about it.
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
			add(i, n, &d.Findings[n])
			explained = explained || d.Findings[n].Severity != SeverityInfo
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
