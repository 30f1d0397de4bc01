package api

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/health/growth"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Summary returns facts about a healthy device, a few words each.
func (d *Device) Summary() []string {
	var facts []string
	if n := len(d.Contracts.With(state.VerdictHolds)); n > 0 {
		facts = append(facts, text.Plural(n, "contract")+" kept")
		if known := d.Contracts.KnownViolated(); known > 0 {
			facts = append(facts, fmt.Sprintf("%d broken as known", known))
		}
	}
	if median, measured := d.NotificationTime(); measured {
		facts = append(facts, "notified in "+text.Duration(median))
	}
	return facts
}

// HealthCounts returns how many devices have each health, the worst first.
func (s *Status) HealthCounts() string {
	count := make(map[health.Health]int)
	for i := range s.Devices {
		count[s.Devices[i].Health]++
	}
	var words []string
	for _, h := range slices.Backward(health.Healths()) {
		words = append(words, text.Some(count[h], string(h)))
	}
	return text.JoinWords(", ", words...)
}

// FindingWords returns how many findings have each severity, and how many are accepted.
func (s *Status) FindingWords() string {
	var words []string
	accepted := 0
	for _, c := range s.FindingCounts {
		accepted += c.Accepted
		words = append(words, text.Some(c.Count, string(c.Severity)))
	}
	return text.JoinWords(", ", append(words, text.Some(accepted, "accepted"))...)
}

// Fact is a property of an adapter. Unusual is true if it is not as it should be.
type Fact struct {
	Name, Value string
	Unusual     bool
}

// Adapter returns which adapter it is, and where in the host.
func Adapter(h *state.Hardware) []Fact {
	a := &h.Identity
	var facts []Fact
	add := func(unusual bool, name, value string) {
		if value != "" {
			facts = append(facts, Fact{name, value, unusual})
		}
	}
	add(false, "PCI address", a.PCI)
	add(false, "Slot", a.Slot)
	if a.PCI != "" && a.NUMANode >= 0 {
		add(false, "NUMA node", strconv.Itoa(a.NUMANode))
	}
	if a.Link != nil {
		add(a.Link.Degraded(), "PCI link", PCILink(a.Link))
	}
	if a.Bottleneck != nil {
		add(true, "PCI bottleneck", text.JoinWords(", at ", PCILink(a.Bottleneck), a.Bottleneck.Address))
	}
	add(false, "Kernel driver", text.JoinWords(" ", h.Driver, a.DriverVersion))
	add(false, "Board", text.JoinWords(", ", a.BoardID, a.Model))
	add(false, "Function", Function(a))
	if e := a.AER; e != nil {
		add(e.Nonfatal+e.Fatal > 0, "PCI errors", fmt.Sprintf("%s correctable, %s nonfatal, %s fatal",
			text.Number(e.Correctable), text.Number(e.Nonfatal), text.Number(e.Fatal)))
	}
	add(false, "Network namespaces", a.NetnsMode)
	return facts
}

// Together is a finding on the devices where it says the same. Finding is nil if the issue is
// none; the message is then the headline.
type Together struct {
	Places           []health.Place
	Finding          *health.Finding
	Subject, Message string
	// Since is the earliest of them.
	Since time.Time
}

// Together groups places of an issue by what they say.
func (s *Status) Together(places []health.Place) []Together {
	var all []Together
	for _, at := range places {
		d := &s.Devices[at.Device]
		t := Together{Places: []health.Place{at}, Message: d.Headline}
		if at.Finding >= 0 {
			f := &d.Findings[at.Finding]
			t.Finding, t.Subject, t.Message, t.Since = f, f.Subject, f.Message, f.Since
		}
		i := slices.IndexFunc(all, func(o Together) bool {
			return o.Subject == t.Subject && o.Message == t.Message && (o.Finding == nil) == (t.Finding == nil) &&
				(t.Finding == nil || Consequences(o.Finding, 1) == Consequences(t.Finding, 1))
		})
		if i < 0 {
			all = append(all, t)
			continue
		}
		all[i].Places = append(all[i].Places, at)
		if t.Since.Before(all[i].Since) {
			all[i].Since = t.Since
		}
	}
	return all
}

// Consequences returns the findings with the same root cause as f, in words.
func Consequences(f *health.Finding, most int) string {
	var others []string
	for _, c := range f.Consequences {
		others = append(others, fmt.Sprintf("%s (%s)", c.Subject, c.Kind))
	}
	return text.Join(others, ", ", most)
}

// Method returns how completions were measured on a path, in words.
func Method(m state.Method) string {
	return cmp.Or(m.By, "no way found") + text.Around(", not ", m.InsteadOf, "")
}

// Memlock returns the locked memory of a process in words.
func Memlock(m state.Memlock) string {
	limit := "no limit"
	if m.Limit >= 0 {
		limit = fmt.Sprintf("each of %s (%s)", text.Bytes(m.Limit), text.Percent(max(m.Pinned, m.Locked), m.Limit))
	}
	return fmt.Sprintf("%s pinned, %s locked, %s", text.Bytes(m.Pinned), text.Bytes(m.Locked), limit)
}

// Growers returns the types that grow, of all owners together, then the ten owners that grow
// fastest. The former have no PID.
func (d *Device) Growers() []growth.Owner {
	if d.Growth == nil {
		return nil
	}
	var all []growth.Owner
	for _, t := range d.Growth.All {
		all = append(all, growth.Owner{Trend: t})
	}
	return append(all, d.Growth.Growers[:min(len(d.Growth.Growers), 10)]...)
}

// Event returns asynchronous events in words.
func Event(e state.Events) string {
	words := strconv.Itoa(e.Count) + " × " + e.Type
	if e.Port > 0 {
		words += " of port " + strconv.Itoa(e.Port)
	}
	return words
}

// Inline returns the maximum inline data of a QP type in words.
func Inline(s state.InlineSend) string {
	meaning := "accepted, not tried"
	switch {
	case s.Result == state.InlineSent:
		meaning = "sent"
	case s.Result == state.InlineFailed:
		meaning = "accepted, and cannot be sent"
	case s.Detail != "":
		meaning += ": " + s.Detail
	}
	return fmt.Sprintf("%s %s bytes (%s)", s.Type, text.Number(s.Bytes), meaning)
}

// Registration returns the result of registering memory in words.
func Registration(r state.Registration) string {
	name := cmp.Or(map[state.RegisteredMemory]string{state.MemoryPage: "4 KiB", state.MemoryMany: "2 MiB"}[r.Memory], string(r.Memory))
	switch r.Result {
	case state.MemoryRegistered:
		return name + " in " + text.Duration(r.Duration)
	case state.MemoryRefused:
		by := map[state.RefusedBy]string{state.RefusedByMemlock: "limit on locked memory"}[r.By]
		return fmt.Sprintf("%s refused by the %s (%s)", name, cmp.Or(by, string(r.By)), r.Detail)
	default:
		return fmt.Sprintf("%s %s (%s)", name, strings.ReplaceAll(string(r.Result), "_", " "), r.Detail)
	}
}

// LatencyErrors returns what went wrong in a measurement in words; empty if nothing did.
func LatencyErrors(l state.Latency) string {
	return text.JoinWords(", ", text.Some(l.Missed, "missed"), text.Some(l.Spurious, "spurious"), text.Some(l.Misdirected, "misdirected"),
		text.Some(l.Missing, "missing"), text.Some(len(l.Unsuccessful), "unsuccessful"))
}

// Speed returns a bandwidth in bits per second, as rates of ports are.
func Speed(bytesPerSecond float64) string { return text.Rate(int64(8*bytesPerSecond), "b/s") }

// Counts returns counts of objects in words.
func Counts(all []state.TypeCount) string {
	var words []string
	for _, c := range all {
		words = append(words, text.Number(c.Objects)+" "+c.Type)
	}
	return strings.Join(words, ", ")
}

// Growth returns a trend in words: 400 → 1000 in 58 min, 10 a minute.
func Growth(t growth.Trend) string {
	return fmt.Sprintf("%s → %s in %s, %s", text.Number(t.From), text.Number(t.To), text.Age(t.Over), text.Pace(t.Rounded()))
}

// Steadiness returns how steady a trend is in words.
func Steadiness(t growth.Trend) string {
	switch {
	case t.Steady && t.OnlyGrows:
		return "all the time, never fewer"
	case t.Steady:
		return "all the time"
	case t.OnlyGrows:
		return "never fewer"
	default:
		return "up and down"
	}
}

// PCILink returns speed and width of a link to the PCI bus, and its maximum if that is more.
func PCILink(l *state.PCILink) string {
	words := func(speed float64, width int) string {
		if speed <= 0 || width <= 0 {
			return "not known"
		}
		return text.Rate(int64(speed), "T/s") + " × " + text.Number(width)
	}
	if l.Degraded() {
		return words(l.Speed, l.Width) + " of " + words(l.MaxSpeed, l.MaxWidth)
	}
	return words(l.Speed, l.Width)
}

// Function returns which function of the adapter a device is; empty if that is not known.
func Function(a *state.Adapter) string {
	words := cmp.Or(map[string]string{"pf": "physical (pf)", "vf": "virtual (vf)", "sf": "scalable (sf)"}[a.Role], a.Role)
	words += text.Around(" of ", a.Parent, "")
	if a.VFs > 0 {
		words += " with " + text.Plural(a.VFs, "virtual function")
	}
	return strings.TrimSpace(words)
}

// Link is a port as the kernel shows it.
type Link struct {
	*state.HardwarePort
	// Now is its state, since Since. Last is when it last went down.
	Now, Layer, Rate, Addresses string
	Since, Last                 time.Time
	// Known is true if changes are counted.
	Known      bool
	Ups, Downs uint64
	// Slow is true if it is active at less than its maximum rate.
	Slow bool
}

// Links returns the ports of the last reading.
func Links(h *state.HardwareState) []Link {
	if h == nil || h.Latest == nil {
		return nil
	}
	var all []Link
	for i := range h.Latest.Ports {
		p := &h.Latest.Ports[i]
		l := Link{HardwarePort: p, Now: h.PortState(p), Layer: cmp.Or(p.LinkLayer, "not known"), Rate: portRate(p), Addresses: text.Number(len(p.GIDs))}
		l.Slow = l.Now == "active" && p.Rate < p.MaxRate
		if t := p.TemperatureCelsius; t != nil {
			l.Layer += fmt.Sprintf(", module %.0f °C", *t)
		}
		switch {
		case p.RoCEv2IPv4 != nil:
			l.Addresses += fmt.Sprintf(", RoCE v2 over IPv4 at index %d", *p.RoCEv2IPv4)
		case p.LinkLayer == "Ethernet":
			l.Addresses += ", no RoCE v2 over IPv4"
		}
		if c := h.Link(p.Number); c != nil {
			l.Known, l.Since, l.Ups, l.Downs = true, c.Since, c.Ups, c.Downs
			if len(c.Recent) > 0 {
				l.Last = slices.MaxFunc(c.Recent, time.Time.Compare)
			}
			if c.GIDChanges > 0 {
				l.Addresses += fmt.Sprintf(", changed %s", text.Count(int64(c.GIDChanges), "time", "times"))
			}
		}
		all = append(all, l)
	}
	return all
}

// portRate returns the rate of a port, and its maximum if that is more.
func portRate(p *state.HardwarePort) string {
	if p.Rate <= 0 {
		return "not known"
	}
	words := text.Rate(int64(p.Rate), "b/s")
	if p.Rate < p.MaxRate {
		words += " of " + text.Rate(int64(p.MaxRate), "b/s")
	}
	if p.Width > 0 {
		words += ", " + text.Plural(p.Width, "lane")
	}
	return words
}
