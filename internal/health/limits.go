package health

import (
	"fmt"
	"math"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// severity returns the level that used has reached, or "". A limit of zero allows none.
func (l Levels) severity(used, limit int64) (severity Severity, ratio float64) {
	switch {
	case used <= 0 || limit < 0:
		return "", 0
	case limit == 0:
		ratio = math.Inf(1)
	default:
		ratio = float64(used) / float64(limit)
	}
	switch {
	case ratio >= l.Critical:
		return SeverityCritical, ratio
	case ratio >= l.Warning:
		return SeverityWarning, ratio
	default:
		return "", ratio
	}
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
			replace: []string{"{show}", a.show(kind, 0)},
		}
		var kernel int64
		for _, c := range a.inventory.Objects {
			if c.Type == kind && c.Owner == state.OwnerKernel {
				kernel = sum(kernel, c.Objects)
			}
		}
		owner, held := a.largest(kind)
		switch {
		case kernel > held:
			o.message += fmt.Sprintf(" The kernel itself has most of them: %s.", text.Number(kernel))
		case owner != nil:
			o.message += fmt.Sprintf(" The largest owner has %s: %s%s.", text.Number(held), ownerName(owner.PID, owner.Comm), place(owner.ContainerID, owner.PodUID))
			o.replace = []string{"{show}", a.show(kind, owner.PID)}
		}
		a.add(o)
	}
}

func (a *assessor) largest(kind string) (owner *state.Owner, held int64) {
	for _, o := range a.inventory.Owners {
		if n := state.CountOf(o.Objects, kind); n > held {
			owner, held = &o, n
		}
	}
	return owner, held
}

func (a *assessor) cgroups() {
	for _, g := range a.inventory.Cgroups {
		severity, ratio := a.config.CgroupNearLimit.severity(g.Current, g.Limit)
		if severity == "" {
			continue
		}
		subject := "cgroup " + word(g.Cgroup)
		if g.ContainerID != "" {
			subject = "container " + text.ShortID(g.ContainerID)
		}
		who, resource := subject+place("", g.PodUID), word(g.Resource)
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
				text.Bytes(held), how, who, place(o.ContainerID, o.PodUID), text.Bytes(m.Limit), text.Percent(held, m.Limit)),
			replace: []string{"{pid}", fmt.Sprint(o.PID)},
		})
	}
}
