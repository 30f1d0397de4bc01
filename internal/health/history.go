package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/health/congestion"
	"rdma_exporter/internal/health/growth"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// History is what an Evaluator remembers. It can be saved over a restart. The maps have device names as keys.
// Their lists are shared: callers must not modify them.
type History struct {
	// Findings is when each finding was seen. Findings that vanished recently are included.
	Findings map[FindingKey]Seen
	// GUIDs identify the devices by their names.
	GUIDs map[string]string
	// Ports are the numbers of the ports that have been active.
	Ports map[string][]int
	// Links are the link state changes of ports.
	Links map[string]state.LinkHistory
	// Paths are the paths to peers.
	Paths map[string][]state.PathState
	// Bandwidth is what was measured on a schedule.
	Bandwidth map[string]*state.BandwidthState
	// Exhausted are the types of which a device refused an object.
	Exhausted map[string][]Exhausted
	// ContextHistories say which process last held each device context.
	ContextHistories map[string][]ContextHistory
	// BusErrors are the uncorrected PCI errors. They are not saved over a restart.
	BusErrors map[string]BusErrors
	// Congestion is that of ports by their numbers. It is not saved over a restart.
	Congestion map[string]map[int]congestion.Port
}

// BusErrors are the uncorrected PCI errors of an adapter.
type BusErrors struct {
	// First has the counts at the first look or after the counters were reset, and Latest the present counts.
	First, Latest state.AER
	// Grew is when a count last increased. Zero means never.
	Grew time.Time
}

type deviceHistory struct {
	activeOnce []int
	busErrors  BusErrors
	congestion map[int]congestion.Port
	grown      *growth.Growth
	exhausted  []Exhausted
	leftovers  []ContextHistory
}

func (h *History) of(d *state.DeviceState, c *Config) deviceHistory {
	// Those that still apply.
	exhausted := slices.DeleteFunc(slices.Clone(h.Exhausted[d.Name]), func(e Exhausted) bool { return e.Objects <= 0 })
	return deviceHistory{
		activeOnce: h.Ports[d.Name], busErrors: h.BusErrors[d.Name], congestion: h.Congestion[d.Name], grown: growthOf(d, exhausted, c.Growing),
		exhausted: exhausted, leftovers: leftovers(h.ContextHistories[d.Name]),
	}
}

// FindingKey identifies a finding over time.
type FindingKey struct {
	Device  string
	Kind    Kind
	Subject string
}

// Seen is when a finding was seen first and last, and what it was like.
type Seen struct {
	First, Last time.Time
	Severity    Severity
	Remedy      Remedy
}

const (
	// reappearWindow is how long a finding may be absent without losing its first-seen time. It keeps a flapping
	// finding from looking new.
	reappearWindow = 10 * time.Minute
	// maxDowntime limits how long the exporter may have been stopped for findings to keep their first-seen time.
	maxDowntime = 7 * 24 * time.Hour
	// maxHistoryDevices limits the devices in each map, whatever names come and go.
	maxHistoryDevices = 4096
	maxHistoryPorts   = 256 // Of each device.
)

// resumed returns a copy of a saved history. Findings do not count as absent in the time since the last save.
func (h *History) resumed(now time.Time) History {
	c := h.clone()
	clear(c.BusErrors)
	clear(c.Congestion)
	var latest time.Time
	for _, seen := range c.Findings {
		latest = later(latest, seen.Last)
	}
	stopped := now.Sub(latest)
	if now.IsZero() || stopped > maxDowntime {
		clear(c.Findings)
		return c
	}
	for key, seen := range c.Findings {
		seen.Last = seen.Last.Add(stopped)
		if seen.First.After(seen.Last) { // The clock was wrong then.
			seen.First = seen.Last
		}
		c.Findings[key] = seen
	}
	return c
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

func (h *History) recordSeen(key FindingKey, f *Finding, now time.Time) Seen {
	seen, ok := h.Findings[key]
	if !ok || now.Sub(seen.Last) >= reappearWindow || seen.First.After(now) {
		seen.First = now
	}
	seen.Last, seen.Severity, seen.Remedy = now, f.Severity, f.Remedy
	h.Findings[key] = seen
	return seen
}

// touch records that the findings of a host exist until now. Findings of kinds that could not be evaluated, and those
// of an unreadable device, are assumed to persist. It forgets those that have been absent for long.
func (h *History) touch(host *Host, now time.Time) {
	for key, seen := range h.Findings {
		unjudged := func(d *Device) bool { return d.State.Name == key.Device && !d.evaluated(key.Kind) }
		if host.has(key) || slices.ContainsFunc(host.Devices, unjudged) {
			seen.Last = now
			h.Findings[key] = seen
		}
	}
	maps.DeleteFunc(h.Findings, func(_ FindingKey, seen Seen) bool { return now.Sub(seen.Last) >= reappearWindow })
}

func (h *Host) has(key FindingKey) bool {
	is := func(f Finding) bool { return keyOf(key.Device, &f) == key }
	return slices.ContainsFunc(h.Devices, func(d *Device) bool { return d.State.Name == key.Device && slices.ContainsFunc(d.Findings, is) }) ||
		key.Device == "" && slices.ContainsFunc(h.Findings, is)
}

// follow moves what is known of a device that was renamed to its new name.
func (h *History) follow(s *state.Snapshot) {
	present := make(map[string]bool)
	for i := range s.Devices {
		present[s.Devices[i].Name] = s.Devices[i].Present
	}
	for i := range s.Devices {
		name, guid := s.Devices[i].Name, s.Devices[i].NodeGUID()
		if !present[name] || guid == "" || h.GUIDs[name] == guid { // One that has long been there may share its GUID.
			continue
		}
		for was, of := range h.GUIDs {
			if of == guid && was != name && !present[was] {
				h.rename(was, name)
			}
		}
		put(h.GUIDs, name, guid)
	}
}

func (h *History) rename(was, name string) {
	for key, seen := range h.Findings {
		if key.Device == was {
			delete(h.Findings, key)
			h.Findings[FindingKey{name, key.Kind, key.Subject}] = seen
		}
	}
	move(h.GUIDs, was, name)
	move(h.Ports, was, name)
	move(h.Links, was, name)
	move(h.Paths, was, name)
	move(h.Bandwidth, was, name)
	move(h.Exhausted, was, name)
	move(h.ContextHistories, was, name)
	move(h.BusErrors, was, name)
	move(h.Congestion, was, name)
}

func move[V any](m map[string]V, was, name string) {
	if v, ok := m[was]; ok {
		m[name] = v
		delete(m, was)
	}
}

func (h *History) clone() History {
	return History{
		copyOf(h.Findings), copyOf(h.GUIDs), copyOf(h.Ports), copyOf(h.Links), copyOf(h.Paths), copyOf(h.Bandwidth), copyOf(h.Exhausted), copyOf(h.ContextHistories),
		copyOf(h.BusErrors), copyOf(h.Congestion),
	}
}

func copyOf[K comparable, V any](m map[K]V) map[K]V {
	c := make(map[K]V, len(m))
	maps.Copy(c, m)
	return c
}

func keyOf(device string, f *Finding) FindingKey {
	return FindingKey{Device: device, Kind: f.Kind, Subject: cmp.Or(f.about, f.Subject)}
}

func put[V any](m map[string]V, device string, v V) {
	if _, ok := m[device]; ok || len(m) < maxHistoryDevices {
		m[device] = v
	}
}

func (h *History) record(d *state.DeviceState) {
	h.recordLinks(d)
	if d.Present && (len(d.Paths) > 0 || len(h.Paths[d.Name]) > 0) {
		put(h.Paths, d.Name, d.Paths)
	}
	if d.Present && (d.Bandwidth != nil || h.Bandwidth[d.Name] != nil) {
		put(h.Bandwidth, d.Name, d.Bandwidth)
	}
	h.recordBusErrors(d)
	h.recordCongestion(d)
	h.recordExhausted(d)
	h.recordContexts(d)
	for _, p := range lastPorts(d) {
		before := h.Ports[d.Name]
		if isActive(p) && !slices.Contains(before, p.Number) && len(before) < maxHistoryPorts {
			put(h.Ports, d.Name, slices.Sorted(slices.Values(append(slices.Clip(before), p.Number))))
		}
	}
}

func (h *History) recordLinks(d *state.DeviceState) {
	hw := cmp.Or(d.Hardware, new(state.HardwareState))
	if len(hw.Links) == 0 {
		return
	}
	before := h.Links[d.Name]
	is := cmp.Or(hw.Latest, new(state.Hardware)).Identity
	put(h.Links, d.Name, state.LinkHistory{
		Links: hw.Links, PCI: cmp.Or(is.PCI, before.PCI), BoardID: cmp.Or(is.BoardID, before.BoardID),
	})
}

// recordAbsent records since when devices are absent, and forgets the links of those absent for long.
func (h *History) recordAbsent(s *state.Snapshot, now time.Time) {
	if !s.Ready || s.DiscoveryError != "" || now.IsZero() {
		return
	}
	for name, past := range h.Links {
		switch {
		case slices.ContainsFunc(s.Devices, func(d state.DeviceState) bool { return d.Present && d.Name == name }):
			// recordLinks resets Away once the links are known.
		case past.Away.IsZero(), past.Away.After(now): // The clock was set back.
			past.Away = now
			h.Links[name] = past
		case past.Forgotten(now):
			delete(h.Links, name)
		}
	}
}

func (h *History) recordBusErrors(d *state.DeviceState) {
	if d.Hardware == nil || d.Hardware.Latest == nil || d.Hardware.Latest.Identity.AER == nil {
		return
	}
	now := *d.Hardware.Latest.Identity.AER
	before, ok := h.BusErrors[d.Name]
	switch was := before.Latest; {
	case !ok, now.Nonfatal < was.Nonfatal, now.Fatal < was.Fatal:
		before = BusErrors{First: now}
	case now.Nonfatal > was.Nonfatal, now.Fatal > was.Fatal:
		before.Grew = d.Hardware.Read
	}
	before.Latest = now
	put(h.BusErrors, d.Name, before)
}

func isActive(p state.Port) bool { return state.IsActive(p.State) }

// ContextHistory says which process last held a device context. It names the former owner of objects that have none.
type ContextHistory struct {
	Context state.Context `json:"context"`
	// PID is the process. Zero if it was never seen or was a child of the exporter. Comm, ContainerID and PodUID are
	// those of state.Owner.
	PID         int    `json:"pid,omitempty"`
	Comm        string `json:"comm,omitempty"`
	ContainerID string `json:"container_id,omitempty"`
	PodUID      string `json:"pod_uid,omitempty"`
	SlurmJobID  string `json:"slurm_job_id,omitempty"`
	// Run describes the run of a child of the exporter and its outcome. Empty for other processes.
	Run string `json:"run,omitempty"`
	// First and Last are when the process was seen. Zero means never.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Objects had no owner in the latest inventory that found some. Empty while the context has an owner.
	Objects   []state.TypeCount `json:"objects,omitempty"`
	LeftFirst time.Time         `json:"left_first,omitzero"`
	LeftLast  time.Time         `json:"left_last,omitzero"`
}

const (
	contextRetention = 24 * time.Hour
	// MaxContextHistories limits the contexts of each device.
	MaxContextHistories = 64
)

func leftovers(all []ContextHistory) []ContextHistory {
	left := slices.DeleteFunc(slices.Clone(all), func(c ContextHistory) bool { return len(c.Objects) == 0 })
	slices.SortStableFunc(left, func(a, b ContextHistory) int {
		return cmp.Or(b.LeftLast.Compare(a.LeftLast), b.LeftFirst.Compare(a.LeftFirst), cmp.Compare(a.Context.ID, b.Context.ID))
	})
	return left
}

func (h *History) recordContexts(d *state.DeviceState) {
	if d.Resources == nil || d.Resources.Inventory == nil {
		return
	}
	i, now := d.Resources.Inventory, d.Resources.Taken
	all := slices.Clone(h.ContextHistories[d.Name])
	find := func(id uint32) *ContextHistory {
		context := state.Context{Index: i.Index, ID: id}
		n := slices.IndexFunc(all, func(c ContextHistory) bool { return c.Context == context })
		if n < 0 {
			n, all = len(all), append(all, ContextHistory{Context: context})
		}
		return &all[n]
	}
	for _, o := range i.Owners {
		for _, id := range o.Contexts {
			c := find(id)
			first := now
			if c.PID == o.PID {
				first = cmp.Or(c.First, now)
			}
			*c = ContextHistory{
				Context: c.Context, PID: o.PID, Comm: o.Comm, First: first, Last: now,
				ContainerID: o.ContainerID, PodUID: o.PodUID, SlurmJobID: o.SlurmJobID,
			}
		}
	}
	leave := func(c *ContextHistory, objects []state.TypeCount) {
		c.Objects, c.LeftFirst, c.LeftLast = objects, cmp.Or(c.LeftFirst, now), now
	}
	if i.PIDsVisible { // Otherwise they may have owners.
		for _, o := range i.Orphans {
			leave(find(o.Context), o.Objects)
		}
	}
	for _, by := range d.Resources.LeakedBy {
		if by.Context.Index != i.Index {
			continue
		}
		c := find(by.Context.ID)
		c.Run = fmt.Sprintf("%s run, %s%s", by.Kind, by.Outcome, text.Around(" in ", by.Verb, ""))
		c.First, c.Last = by.Started, by.Started
		leave(c, by.Objects)
	}
	latest := func(c ContextHistory) time.Time { return later(c.Last, c.LeftLast) }
	all = slices.DeleteFunc(all, func(c ContextHistory) bool { return now.Sub(latest(c)) >= contextRetention })
	slices.SortStableFunc(all, func(a, b ContextHistory) int {
		left := min(len(b.Objects), 1) - min(len(a.Objects), 1)
		return cmp.Or(left, latest(b).Compare(latest(a)), cmp.Compare(a.Context.ID, b.Context.ID))
	})
	delete(h.ContextHistories, d.Name)
	if len(all) > 0 {
		put(h.ContextHistories, d.Name, slices.Clip(all[:min(len(all), MaxContextHistories)]))
	}
}

// Owner describes the process that held the context, without container and pod.
func (c *ContextHistory) Owner() string {
	switch {
	case c.Run != "":
		return "a child of the exporter (" + text.Name(c.Run) + ")"
	case c.PID > 0:
		return ownerName(c.PID, c.Comm)
	default:
		return "a process that was never seen"
	}
}

func (a *assessor) formerOwners() string {
	var names []string
	for _, c := range a.leftovers {
		leaked := slices.ContainsFunc(a.resources.LeakedBy, func(by state.LeakedBy) bool { return by.Context == c.Context })
		if c.PID == 0 && c.Run == "" || leaked || !c.LeftLast.Equal(a.resources.Taken) {
			continue
		}
		counts, _ := state.Totals(c.Objects)
		names = append(names, fmt.Sprintf("%s, seen from %s to %s (%s)", c.Owner()+place(c.ContainerID, c.PodUID, c.SlurmJobID), text.Moment(c.First), text.Moment(c.Last), list(counts)))
	}
	return text.Around(" They belonged to ", strings.TrimSuffix(text.Join(names, "; ", maxFew), "."), ".")
}
