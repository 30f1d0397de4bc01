package state

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// Detail returns the probes of the run whose sizes, latencies and memory are shown.
func (d *DeviceState) Detail() []Probe {
	return cmp.Or(d.Full, d.Last, new(Run)).Probes
}

// Size is one size of an object, as requested and as the device gave it.
type Size struct {
	// Object is cq, srq or a QP type such as qp_rc.
	Object, Profile string
	// Attribute is the name of the size, such as entries or send_work_requests.
	Attribute         string
	Requested, Actual int64
	// Queried is the size that a query of the object reported. Nil means that it was not queried.
	Queried *int64
	// Clamp is why less than the configured size was requested. Nil means that it was not clamped.
	Clamp *Clamp
	// Known is true if the device gave less, or reported another size, as a known erratum of
	// its driver.
	Known bool
}

// Short reports whether the device gave less than was requested.
func (s *Size) Short() bool { return s.Actual < s.Requested }

// Misreported reports whether a query returned another size than the creation.
func (s *Size) Misreported() bool { return s.Queried != nil && *s.Queried != s.Actual }

// Kind returns the kind of object without the type of a queue pair.
func (s *Size) Kind() string {
	kind, _, _ := strings.Cut(s.Object, "_")
	return kind
}

// Sizes returns every size that was requested, in the order of the probes.
func (d *DeviceState) Sizes() []Size {
	var all []Size
	probes := d.Detail()
	for i := range probes {
		all = append(all, probes[i].sizes()...)
	}
	errata := d.Errata()
	breaks := func(contract string) bool {
		return slices.ContainsFunc(errata, func(c Contract) bool { return c.Name == contract && c.Verdict == VerdictViolated })
	}
	for i := range all {
		s := &all[i]
		s.Known = (s.Short() || s.Misreported()) && (!s.Short() || breaks(s.Kind()+"_at_least_requested")) &&
			(!s.Misreported() || breaks(s.Kind()+"_reports_actual"))
	}
	return all
}

func (p *Probe) sizes() []Size {
	var all []Size
	// add adds one size; name is what the verb calls it.
	add := func(object, profile, attribute, name string, requested, actual int64, queried *int64) {
		s := Size{Object: object, Profile: profile, Attribute: attribute, Requested: requested, Actual: actual, Queried: queried}
		for i := range p.Clamps {
			if c := &p.Clamps[i]; c.Subject.Profile == profile && c.Subject.Kind() == object && c.Attribute == name {
				s.Clamp = c
			}
		}
		all = append(all, s)
	}
	for _, c := range p.CQs {
		add("cq", c.Profile, "entries", "cqe", c.Requested, c.Actual, nil)
	}
	for _, s := range p.SRQs {
		var requests, elements *int64
		if s.Queried != nil {
			requests, elements = &s.Queried.WorkRequests, &s.Queried.ScatterGather
		}
		add("srq", s.Profile, "work_requests", "max_wr", s.Requested.WorkRequests, s.Actual.WorkRequests, requests)
		add("srq", s.Profile, "scatter_gather_entries", "max_sge", s.Requested.ScatterGather, s.Actual.ScatterGather, elements)
	}
	for _, q := range p.QPs {
		object, r, a := "qp_"+q.Type, q.Requested, q.Actual
		add(object, q.Profile, "send_work_requests", "max_send_wr", r.SendWorkRequests, a.SendWorkRequests, nil)
		add(object, q.Profile, "recv_work_requests", "max_recv_wr", r.RecvWorkRequests, a.RecvWorkRequests, nil)
		add(object, q.Profile, "send_scatter_gather_entries", "max_send_sge", r.SendScatterGather, a.SendScatterGather, nil)
		add(object, q.Profile, "recv_scatter_gather_entries", "max_recv_sge", r.RecvScatterGather, a.RecvScatterGather, nil)
		add(object, q.Profile, "inline_bytes", "max_inline_data", r.InlineBytes, a.InlineBytes, nil)
	}
	return all
}

// InlineResults returns the maximum inline data of each QP type, and the result of sending
// that much.
func (d *DeviceState) InlineResults() []InlineSend {
	var all []InlineSend
	for _, p := range d.Detail() {
		for _, m := range p.Inline {
			all = append(all, InlineSend{Type: m.Type, Bytes: m.Bytes, Result: InlineUntried})
		}
	}
	for _, p := range d.Detail() {
		for _, s := range p.InlineSends {
			if i := slices.IndexFunc(all, func(m InlineSend) bool { return m.Type == s.Type && m.Bytes == s.Bytes }); i >= 0 {
				all[i] = s
			}
		}
	}
	return all
}

// Latencies returns the measurements by port, path and mode, each over all completion vectors.
func (d *DeviceState) Latencies() []Latency {
	var all []Latency
	merged := make(map[int]bool)
	for _, p := range d.Detail() {
		for i := range p.Latencies {
			l := p.Latencies[i]
			n := slices.IndexFunc(all, func(o Latency) bool { return o.Port == l.Port && o.Path == l.Path && o.Mode == l.Mode })
			if n < 0 {
				l.Bins = slices.Clone(l.Bins)
				all = append(all, l)
				continue
			}
			all[n].add(&l)
			merged[n] = true
		}
	}
	for n := range merged {
		all[n].P50, all[n].P99 = binQuantile(all[n].Bins, 0.5), binQuantile(all[n].Bins, 0.99)
	}
	slices.SortStableFunc(all, func(a, b Latency) int {
		return cmp.Or(
			cmp.Compare(a.Port, b.Port),
			cmp.Compare(slices.Index(LatencyPaths(), a.Path), slices.Index(LatencyPaths(), b.Path)),
			cmp.Compare(slices.Index(LatencyModes(), a.Mode), slices.Index(LatencyModes(), b.Mode)),
		)
	})
	return all
}

// add adds another measurement, but for the quantiles.
func (l *Latency) add(other *Latency) {
	l.Count += other.Count
	l.Missed += other.Missed
	l.Spurious += other.Spurious
	l.Misdirected += other.Misdirected
	l.Missing += other.Missing
	l.Unsuccessful = slices.Concat(l.Unsuccessful, other.Unsuccessful)
	for _, b := range other.Bins {
		i, found := slices.BinarySearchFunc(l.Bins, b.To, func(o Bin, to time.Duration) int { return cmp.Compare(o.To, to) })
		if found {
			l.Bins[i].Samples += b.Samples
		} else {
			l.Bins = slices.Insert(l.Bins, i, b)
		}
	}
}

// binQuantile returns a quantile by the nearest rank, as the geometric middle of its bin. It
// is right to about 15 %.
func binQuantile(bins []Bin, q float64) time.Duration {
	all := 0
	for _, b := range bins {
		all += b.Samples
	}
	rank, seen := math.Ceil(q*float64(all)), 0
	for _, b := range bins {
		if seen += b.Samples; float64(seen) >= rank {
			return time.Duration(math.Sqrt(float64(max(b.From, 1)) * float64(b.To)))
		}
	}
	return 0
}

// NotificationTime returns the median time of an event, by the path that is nearest to what
// programs do; false if it was not measured.
func (d *DeviceState) NotificationTime() (median time.Duration, measured bool) {
	latencies := d.Latencies()
	for _, path := range LatencyPaths() {
		for _, l := range latencies {
			if l.Path == path && l.Mode == ModeAny && l.Count > 0 {
				return l.P50, true
			}
		}
	}
	return 0, false
}

// With returns the contracts with a verdict, the worst first. Known errata are not among the
// violated ones. The contracts may be nil.
func (c *Contracts) With(v Verdict) []Contract {
	all := slices.DeleteFunc(slices.Clone(cmp.Or(c, new(Contracts)).Verdicts), func(c Contract) bool {
		return c.Verdict != v || c.Known && v == VerdictViolated
	})
	if v == VerdictViolated {
		slices.SortStableFunc(all, func(a, b Contract) int {
			return cmp.Compare(slices.Index(Severities(), a.Severity), slices.Index(Severities(), b.Severity))
		})
	}
	return all
}

// known returns the contracts with a verdict that the driver is known to break.
func (c *Contracts) known(v Verdict) []Contract {
	all := slices.Clone(cmp.Or(c, new(Contracts)).Verdicts)
	return slices.DeleteFunc(all, func(c Contract) bool { return !c.Known || c.Verdict != v })
}

// KnownViolated returns how many contracts the device violates as a known erratum of its
// driver. The contracts may be nil.
func (c *Contracts) KnownViolated() int {
	return len(c.known(VerdictViolated))
}

// Errata returns the contracts that the driver is known to break, the violated ones first,
// then those that the device keeps nevertheless. Shortfalls of the probes are among them.
func (d *DeviceState) Errata() []Contract {
	all := slices.Concat(d.Contracts.known(VerdictViolated), d.Contracts.known(VerdictHolds))
	for _, p := range d.Detail() {
		for _, k := range p.Known {
			if slices.ContainsFunc(all, func(o Contract) bool { return o.Name == k.Contract && o.Fact == k.Fact }) {
				continue
			}
			all = append(all, Contract{
				Name: k.Contract, Verdict: VerdictViolated, Observed: k.Subject.String() + ": " + k.Message, Known: true, Fact: k.Fact, Source: k.Source,
			})
		}
	}
	return all
}

// StuckChild is a stuck child with the kind of its run.
type StuckChild struct {
	Kind Kind
	Stuck
}

// StuckChildren returns the children of all kinds of run that were killed and have not exited.
func (d *DeviceState) StuckChildren() []StuckChild {
	var all []StuckChild
	if d.Stuck != nil {
		all = append(all, StuckChild{KindProbe, *d.Stuck})
	}
	if d.Resources != nil && d.Resources.Stuck != nil {
		all = append(all, StuckChild{KindInventory, *d.Resources.Stuck})
	}
	if d.Hardware != nil && d.Hardware.Stuck != nil {
		all = append(all, StuckChild{KindHardware, *d.Hardware.Stuck})
	}
	return all
}

// Link returns how the state of a port changed; nil if that is not known.
func (h *HardwareState) Link(port int) *Link {
	i := slices.IndexFunc(h.Links, func(l Link) bool { return l.Port == port })
	if i < 0 {
		return nil
	}
	return &h.Links[i]
}

// PortState returns the state that a port is in now: that of its last change, if it came
// after the reading.
func (h *HardwareState) PortState(p *HardwarePort) string {
	l := h.Link(p.Number)
	switch {
	case l == nil || l.Active == (p.State == "active"):
		return p.State
	case l.Active:
		return "active"
	default:
		return "down"
	}
}

// Degraded reports whether a link has less than the device at its lower end supports.
func (l *PCILink) Degraded() bool {
	return l.Speed > 0 && l.Speed < l.MaxSpeed || l.Width > 0 && l.Width < l.MaxWidth
}

// LargestOwners returns the owners, those with most objects first. The inventory may be nil.
func (i *Inventory) LargestOwners() []Owner {
	all := func(o Owner) (objects int64) {
		for _, c := range o.Objects {
			objects += c.Objects
		}
		return objects
	}
	owners := slices.Clone(cmp.Or(i, new(Inventory)).Owners)
	slices.SortStableFunc(owners, func(a, b Owner) int { return cmp.Or(cmp.Compare(all(b), all(a)), cmp.Compare(a.PID, b.PID)) })
	return owners
}
