package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// severity returns the level that used has reached, or "". A limit of zero allows none.
func (l Levels) severity(used, limit int64) (severity Severity, ratio float64) {
	if used <= 0 || limit < 0 {
		return "", 0
	}
	ratio = float64(used) / float64(limit) // Infinite if none is allowed.
	switch {
	case ratio >= l.Critical:
		severity = SeverityCritical
	case ratio >= l.Warning:
		severity = SeverityWarning
	}
	return severity, ratio
}

func (a *assessor) nearLimit() {
	for _, kind := range state.ResourceTypes() {
		limit, limited := a.info.LimitOf(kind)
		objects := a.inventory.Count(kind)
		severity, ratio := a.config.NearLimit.severity(objects, limit)
		if !limited || severity == "" {
			continue
		}
		o := observation{
			kind: FindingNearLimit, severity: severity, subject: kind, size: ratio,
			message: fmt.Sprintf("The device has %s and allows %s (max_%s): %s.", text.Objects(objects, kind), text.Number(limit), kind, text.Percent(objects, limit)),
			replace: []string{"{show}", a.show(kind, 0), "{type}", kind},
		}
		var kernel, held int64
		for _, c := range a.inventory.Objects {
			if c.Type == kind && c.Owner == state.OwnerKernel {
				kernel = state.Sum(kernel, c.Objects)
			}
		}
		var owner *state.Owner
		for _, o := range a.inventory.Owners {
			if n := state.CountOf(o.Objects, kind); n > held {
				owner, held = &o, n
			}
		}
		switch {
		case kernel > held:
			o.message += fmt.Sprintf(" The kernel itself has most of them: %s.", text.Number(kernel))
		case owner != nil:
			o.message += fmt.Sprintf(" The largest owner has %s: %s%s.", text.Number(held), ownerName(owner.PID, owner.Comm), place(owner.ContainerID, owner.PodUID, owner.SlurmJobID))
			o.replace[1] = a.show(kind, owner.PID)
		}
		a.add(o)
	}
}

func (a *assessor) cgroups() {
	for _, g := range a.inventory.Cgroups {
		severity, ratio := a.config.CgroupNearLimit.severity(g.Current, g.Limit)
		if severity == "" {
			continue
		}
		subject := "cgroup " + text.Name(g.Cgroup)
		if g.ContainerID != "" {
			subject = "container " + text.ShortID(g.ContainerID)
		}
		who, resource := subject+place("", g.PodUID, g.SlurmJobID), text.Name(g.Resource)
		message := fmt.Sprintf("In use by %s: %s %s; none is allowed (rdma.max).", who, text.Number(g.Current), resource)
		if g.Limit > 0 {
			message = fmt.Sprintf("In use by %s: %s of %s %s allowed (rdma.max), %s.",
				who, text.Number(g.Current), text.Number(g.Limit), resource, text.Percent(g.Current, g.Limit))
		}
		a.add(observation{
			kind: FindingCgroupNearLimit, severity: severity, size: ratio,
			subject: subject + " " + resource, message: message,
			replace: []string{"{cgroup}", text.Quoted(g.Cgroup), "{resource}", resource},
		})
	}
}

func (a *assessor) memlock() {
	for _, o := range a.inventory.Owners {
		m := o.Memlock
		if m == nil {
			continue
		}
		held, how := m.Pinned, "pinned (VmPin) for"
		if m.Locked > held {
			held, how = m.Locked, "locked (VmLck) by"
		}
		severity, ratio := a.config.MemlockNearLimit.severity(held, m.Limit)
		// Only a process with CAP_IPC_LOCK can exceed its limit. This is common where jobs run as root.
		if severity == "" || held > m.Limit {
			continue
		}
		who := ownerName(o.PID, o.Comm)
		a.add(observation{
			kind: FindingMemlock, severity: severity, subject: who, size: ratio,
			message: fmt.Sprintf("%s are %s %s%s, of the %s allowed (RLIMIT_MEMLOCK): %s.",
				text.Bytes(held), how, who, place(o.ContainerID, o.PodUID, o.SlurmJobID), text.Bytes(m.Limit), text.Percent(held, m.Limit)),
			replace: []string{"{pid}", fmt.Sprint(o.PID)},
		})
	}
}

// Exhausted is a type of object of which a device refused to create more.
type Exhausted struct {
	// Type is the type of object, as rdma(8) names it.
	Type string `json:"type"`
	// Objects is how many existed by the kernel's count, of all owners. Zero if the refusal no longer applies: the
	// adapter or firmware is another one, or the device has created more since.
	Objects int64 `json:"objects"`
	// At is when the refused run of the exporter started.
	At    time.Time `json:"at"`
	Verb  string    `json:"verb"`
	Errno string    `json:"errno"`
	// Firmware and NodeGUID identify the device. Another adapter may have its name and its firmware.
	Firmware string `json:"firmware,omitempty"`
	NodeGUID string `json:"node_guid,omitempty"`
}

const exhaustedRetention = 24 * time.Hour

// recordExhausted records refusals. One that no longer applies stays with zero objects, so that the same run is not
// recorded again.
func (h *History) recordExhausted(d *state.DeviceState) {
	all, info := slices.Clone(h.Exhausted[d.Name]), cmp.Or(d.Info, new(state.Device))
	firmware, guid := info.Firmware, info.NodeGUID
	for _, run := range refusedRuns(d) {
		for _, r := range run.Refused {
			i := slices.IndexFunc(all, func(e Exhausted) bool { return e.Type == r.Type })
			if i < 0 {
				i, all = len(all), append(all, Exhausted{})
			}
			if all[i].Type == "" || run.Started.After(all[i].At) {
				all[i] = Exhausted{r.Type, r.Objects, run.Started, r.Verb, r.Errno, firmware, guid}
			}
		}
	}
	for i := range all {
		e := &all[i]
		if d.Info != nil && e.Firmware != firmware || guid != "" && e.NodeGUID != "" && guid != e.NodeGUID || exceeded(d, e) {
			e.Objects = 0
		}
	}
	if len(all) > 0 {
		slices.SortFunc(all, func(a, b Exhausted) int { return strings.Compare(a.Type, b.Type) })
		put(h.Exhausted, d.Name, all)
	}
}

func refusedRuns(d *state.DeviceState) []*state.Run {
	runs := []*state.Run{d.Last, cmp.Or(d.Contracts, new(state.Contracts)).Last}
	return slices.DeleteFunc(runs, func(r *state.Run) bool { return r == nil })
}

// exceeded reports whether an inventory has counted more objects since, or a run has created some at the same count.
func exceeded(d *state.DeviceState, e *Exhausted) bool {
	if d.Resources == nil || d.Resources.Inventory == nil || !d.Resources.Taken.After(e.At) {
		return false
	}
	created := d.Last != nil && d.Last.Outcome == state.OutcomeOK && d.Last.Reduced == nil && d.Last.Started.After(d.Resources.Taken)
	objects := d.Resources.Inventory.Count(e.Type)
	return objects > e.Objects || created && objects == e.Objects
}

func (a *assessor) exhaustion() {
	for _, e := range a.exhausted {
		kind, held, root := text.Name(e.Type), a.inventory.Count(e.Type), ""
		severity, _ := a.config.NearLimit.severity(held, e.Objects)
		switch {
		case slices.ContainsFunc(refusedRuns(a.state), func(run *state.Run) bool {
			return run.Started.Equal(e.At) && slices.ContainsFunc(run.Refused, func(r state.Refused) bool { return r.Type == e.Type })
		}):
			severity, root = SeverityCritical, text.Name(e.Verb)+" "+text.Name(e.Errno)
		case slices.ContainsFunc(a.found, func(f found) bool { return f.Kind == FindingNearLimit && f.Subject == e.Type }):
			continue
		case severity != "":
			severity = SeverityWarning
		case a.state.Last == nil || a.last.Started.Sub(e.At) >= exhaustedRetention:
			continue
		default:
			severity = SeverityInfo
		}
		message := fmt.Sprintf("At %s the device refused %s with %s, while the kernel counted %s",
			text.Moment(e.At), text.Name(e.Verb), text.Name(e.Errno), text.Objects(e.Objects, e.Type))
		if limit, limited := a.info.LimitOf(e.Type); limited {
			message += fmt.Sprintf("; it claims %s (max_%s)", text.Number(limit), kind)
		}
		if held > 0 {
			message += ". Now there are " + text.Number(held)
		}
		a.add(observation{
			kind: FindingExhausted, severity: severity, subject: kind, size: float64(held) / float64(e.Objects), root: root, verb: e.Verb, errno: e.Errno,
			message: message + ".", replace: []string{"{show}", a.show(e.Type, 0), "{type}", kind},
		})
	}
}
