package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/hardware/counters"
	"rdma_exporter/internal/health/congestion"
	"rdma_exporter/internal/health/gpudirect"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const (
	// busErrorRetention is how long PCI errors are reported.
	busErrorRetention = 24 * time.Hour
	// minVectors is the number of vectors from which sharing a CPU is a finding.
	minVectors                = 4
	pausedInfo, pausedWarning = 0.01, 0.1 // shares of the time
)

func (a *assessor) hardware() {
	h := a.state.Hardware
	if h == nil {
		return
	}
	a.unreadable(h)
	a.flapping(h)
	r := currentHardware(h)
	if r == nil {
		return
	}
	for i := range r.Ports {
		p, before := &r.Ports[i], len(a.found)
		of := fmt.Sprint("port ", p.Number)
		a.refused(r, of, p.Refused)
		a.saturated(of, r.Table, p.Counters)
		a.slowPort(of, p)
		a.congested(of, p.Number)
		a.unaddressed(of, p)
		for n := range a.found[before:] {
			a.found[before+n].Port = p.Number
		}
	}
	a.refused(r, "the device", r.Refused)
	a.saturated("the device", r.Table, r.Counters)
	a.bus(&r.Identity, h.Read)
	a.interrupts(r.Interrupts)
	gpudirect.Problems(r, a.problem)
}

// currentHardware returns the last reading. Nil if it failed altogether.
func currentHardware(h *state.HardwareState) *state.Hardware {
	if h == nil || h.Latest == nil || h.Failures > 0 && h.Latest.Failure == "" {
		return nil
	}
	return h.Latest
}

func (a *assessor) unreadable(h *state.HardwareState) {
	if h.Failures <= 0 {
		return
	}
	o := observation{kind: FindingUnreadable, entry: "failed", subject: "hardware", run: true, root: rootHardware}
	o.message = fmt.Sprintf("The adapter could not be read completely: %s.", strings.TrimSuffix(reason(h.Failure), "."))
	if h.Reading != "" {
		o.entry = "hang"
		o.message = fmt.Sprintf("Reading the hardware timed out: %s did not return.", text.Name(h.Reading))
		o.evidence = prose(h.Failure)
	}
	if h.Failures > 1 {
		o.message += fmt.Sprintf(" %d attempts in a row have failed.", h.Failures)
	}
	a.add(o)
}

func (a *assessor) flapping(h *state.HardwareState) {
	for _, l := range h.Links {
		now := slices.MaxFunc(append(slices.Clone(l.Recent), h.Read), time.Time.Compare)
		if a.config.Now != nil {
			now = a.config.Now()
		}
		// A saved time may be in the future if the clock was wrong.
		downs := slices.DeleteFunc(slices.Clone(l.Recent), func(at time.Time) bool {
			return at.After(now) || now.Sub(at) >= a.config.PortFlapping.Window
		})
		if len(downs) == 0 || int64(len(downs)) < a.config.PortFlapping.Downs {
			continue
		}
		times := text.Count(len(downs), "time", "times")
		if len(downs) == state.MaxRecent {
			times = "at least " + times
		}
		active := map[bool]string{true: "active", false: "not active"}[l.Active]
		a.add(observation{
			kind: FindingFlapping, subject: fmt.Sprint("port ", l.Port), port: l.Port, size: float64(len(downs)), root: a.portRoots[l.Port],
			message: fmt.Sprintf("Port %d went down %s within %s, last at %s. It is %s now.", l.Port, times,
				text.Age(a.config.PortFlapping.Window), text.Moment(slices.MaxFunc(downs, time.Time.Compare)), active),
		})
	}
}

func (a *assessor) refused(h *state.Hardware, of string, all []state.RefusedCounters) {
	var groups []string
	pause := ""
	for _, r := range all {
		if r.Errno == "EINVAL" || r.Errno == "EIO" {
			pause = " They are read again only after a while."
		}
		groups = append(groups, text.Name(string(r.Group))+text.Around(" (", cmp.Or(text.Name(r.Errno), prose(r.Detail)), ")"))
	}
	if len(groups) == 0 {
		return
	}
	intended := h.Identity.Role == "vf" || h.Identity.Role == "sf" || h.Table == ""
	a.add(observation{
		kind: FindingRefused, severity: warningIf(!intended), subject: of,
		message: fmt.Sprintf("Counters of %s cannot be read: %s.", of, text.Join(groups, ", ", maxFew)) + pause,
	})
}

func (a *assessor) saturated(of, table string, all []state.Counter) {
	var names []string
	for _, c := range all {
		if counters.Saturated(table, c) {
			names = append(names, text.Name(c.Name))
		}
	}
	if len(names) == 0 {
		return
	}
	a.add(observation{
		kind: FindingSaturated, subject: of, size: float64(len(names)),
		message: fmt.Sprintf("At %s maximum: %s of %s.", text.Either(len(names), "its", "their"), text.Join(names, ", ", maxFew), of),
	})
}

func (a *assessor) slowPort(of string, p *state.HardwarePort) {
	if p.State != "active" || !(p.Rate > 0) || !(p.Rate < p.MaxRate) {
		return
	}
	message := fmt.Sprintf("Port %d runs at %s Gb/s and has run at %s Gb/s", p.Number, giga(p.Rate), giga(p.MaxRate))
	if p.Width > 0 {
		message += ", on " + text.Plural(p.Width, "lane")
	}
	a.add(observation{kind: FindingSlowPort, subject: of, message: message + ".", size: p.MaxRate - p.Rate, root: a.differs("rate")})
}

func giga(n float64) string { return strconv.FormatFloat(n/1e9, 'g', 4, 64) }

func (a *assessor) unaddressed(of string, p *state.HardwarePort) {
	roce := slices.ContainsFunc(p.GIDs, func(g state.GID) bool { return strings.HasPrefix(g.Type, "roce_") })
	// The kernel gives iWARP GIDs a RoCE type too.
	if !roce || a.info.Transport != "InfiniBand" || p.State != "active" || p.Netdev == "" ||
		p.RoCEv2IPv4 != nil || len(p.GIDs) >= state.MaxGIDs {
		return
	}
	a.add(observation{
		kind: FindingUnaddressed, subject: of, root: a.differs("roce_v2_ipv4"),
		message: fmt.Sprintf("None of the %s of %s (network device %s) is RoCE v2 with IPv4.", text.Plural(len(p.GIDs), "GID"), of, text.Name(p.Netdev)),
	})
}

func (a *assessor) bus(i *state.Adapter, now time.Time) {
	if l := i.Link; l != nil && (l.Width > 0 && l.Width < l.MaxWidth || l.Speed > 0 && l.Speed < l.MaxSpeed) {
		a.add(observation{
			kind: FindingSlowBus, entry: "adapter", subject: cmp.Or(text.Name(l.Address), text.Name(i.PCI), "the adapter"),
			message: fmt.Sprintf("The adapter's PCI link has %s; it supports %s.", lanes(l.Width, l.Speed), lanes(l.MaxWidth, l.MaxSpeed)),
		})
	}
	if l := i.Bottleneck; l != nil {
		message := fmt.Sprintf("A PCI link on the way to the adapter, at %s, has %s", cmp.Or(text.Name(l.Address), "an unknown address"), lanes(l.Width, l.Speed))
		if own := i.Link; own != nil {
			message += ", less than the adapter's own with " + lanes(own.Width, own.Speed)
		}
		a.add(observation{kind: FindingSlowBus, entry: "bottleneck", subject: cmp.Or(text.Name(l.Address), "bottleneck"), message: message + "."})
	}
	e, seen := i.AER, a.busErrors
	if e == nil || seen.Grew.IsZero() || now.Sub(seen.Grew) >= busErrorRetention {
		return
	}
	// The counters restart if the driver is reloaded.
	grown := func(from, to uint64) int64 { return int64(min(max(to, from)-from, 1<<62)) }
	a.add(observation{
		kind: FindingBusErrors, subject: cmp.Or(text.Name(i.PCI), "the adapter"),
		message: fmt.Sprintf("The PCI bus has reported %s and %s of the adapter since the exporter first looked, last at %s. It has corrected %s since the kernel started.",
			text.Plural(grown(seen.First.Nonfatal, e.Nonfatal), "uncorrected error"), text.Plural(grown(seen.First.Fatal, e.Fatal), "fatal one"),
			text.Moment(seen.Grew), text.Number(e.Correctable)),
	})
}

func lanes(width int, speed float64) string {
	return fmt.Sprintf("%s of %s GT/s", text.Plural(width, "lane"), giga(speed))
}

// netnsBlind returns a finding if the exporter's network namespace hides network devices or counters of ports.
func netnsBlind(s *state.Snapshot, c *Config) []Finding {
	var netdevs, dirs []string
	seen := false
	for _, d := range s.Devices {
		h := currentHardware(d.Hardware)
		if h == nil || h.Identity.PCI == "" {
			continue
		}
		for i := range h.Ports {
			p := &h.Ports[i]
			name := fmt.Sprintf("%s port %d", text.Name(d.Name), p.Number)
			if p.LinkLayer == "Ethernet" && p.Netdev != "" && p.Ifindex == 0 {
				netdevs = append(netdevs, name+" ("+text.Name(p.Netdev)+")")
			}
			// Only the device's own network namespace has counters/, as hidesCounters says.
			seen = seen || p.LinkLayer == "Ethernet" && p.Ifindex > 0 ||
				slices.ContainsFunc(p.Counters, func(c state.Counter) bool { return c.Group == state.GroupPort })
			if hidesCounters(h, p) {
				dirs = append(dirs, name)
			}
		}
	}
	if seen {
		netdevs = nil // Pods have them: this is the host's network namespace, or that of a pod with one.
	}
	if len(netdevs)+len(dirs) == 0 || s.Simulated() {
		return nil
	}
	a := assessor{config: c}
	a.add(observation{kind: FindingNetnsBlind, subject: "network namespace", message: text.JoinWords(" ",
		text.Around("In another network namespace are the network devices of ", text.Join(netdevs, ", ", maxFew), "."),
		text.Around("The kernel hides `counters/` and `hw_counters/` of ", text.Join(dirs, ", ", maxFew), "."))})
	return []Finding{a.found[0].Finding}
}

// hidesCounters reports whether only netlink has counters of a port, as outside the device's namespace (setup_port).
func hidesCounters(h *state.Hardware, p *state.HardwarePort) bool {
	of := func(g state.CounterGroup) bool {
		return slices.ContainsFunc(p.Counters, func(c state.Counter) bool { return c.Group == g }) ||
			slices.ContainsFunc(p.Refused, func(r state.RefusedCounters) bool { return r.Group == g })
	}
	// Only representors have counters of the device, and no counters/ anywhere.
	return slices.Contains([]string{"hfi1", "mlx4", "mlx5"}, h.Table) && len(h.Counters) == 0 &&
		of(state.GroupHardware) && !of(state.GroupPort)
}

func (a *assessor) interrupts(all []state.Interrupt) {
	on := make(map[string]int)
	isolated := 0
	for _, i := range all {
		// A list of one CPU is a number.
		if cpu, err := strconv.Atoi(cmp.Or(i.Effective, i.CPUs)); err == nil {
			on[strconv.Itoa(cpu)]++
		}
		if i.Isolated {
			isolated++
		}
	}
	for _, cpu := range slices.Sorted(maps.Keys(on)) {
		if n := on[cpu]; len(all) >= minVectors && 2*n > len(all) {
			a.add(observation{
				kind: FindingTogether, subject: "CPU " + cpu,
				message: fmt.Sprintf("The interrupts of %d of %d completion vectors run on CPU %s.", n, len(all), cpu),
			})
		}
	}
	if isolated > 0 {
		a.add(observation{
			kind: FindingIsolated, severity: warningIf(2*isolated > len(all)), subject: "isolated CPUs",
			message: fmt.Sprintf("The interrupts of %d of %d completion vectors run on CPUs that are isolated from the scheduler.", isolated, len(all)),
		})
	}
}

func (h *History) recordCongestion(d *state.DeviceState) {
	if r := currentHardware(d.Hardware); r != nil {
		put(h.Congestion, d.Name, congestion.Next(h.Congestion[d.Name], d.Hardware.Read, r))
	}
}

func (a *assessor) congested(of string, port int) {
	c := a.congestion[port]
	var pauses, notified string
	if c.Paused >= pausedInfo {
		pauses = fmt.Sprintf("priority %s of %s was paused for %s of the time", text.Name(c.Priority), of, text.Percent(int64(c.Paused*1e6), 1e6))
	}
	if c.Unusual() {
		notified = fmt.Sprintf("%s got %.2g CNPs for a thousand packets sent, usually %.2g", of, c.CNPs*1e3, c.Usual*1e3)
	}
	if what := text.JoinWords("; ", pauses, notified); what != "" {
		a.add(observation{
			kind: FindingCongested, severity: warningIf(c.Paused >= pausedWarning), subject: of, size: c.Paused + c.CNPs,
			message: fmt.Sprintf("In the %s up to %s %s.", text.Age(c.Over), text.Moment(c.At), what),
		})
	}
}
