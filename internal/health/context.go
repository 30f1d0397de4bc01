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

// ContextHistory says which process last held a device context. It names the former owner of objects that have none.
type ContextHistory struct {
	Context state.Context `json:"context"`
	// PID is the process. Zero if it was never seen or was a child of the exporter. Comm, ContainerID and PodUID are
	// those of state.Owner.
	PID         int    `json:"pid,omitempty"`
	Comm        string `json:"comm,omitempty"`
	ContainerID string `json:"container_id,omitempty"`
	PodUID      string `json:"pod_uid,omitempty"`
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

// recordContexts records who holds which context, and which contexts have no owner.
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
				Context: c.Context, PID: o.PID, Comm: o.Comm, ContainerID: o.ContainerID, PodUID: o.PodUID, First: first, Last: now,
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
		c.Run = fmt.Sprintf("%s run, %s%s", by.Kind, by.Outcome, around(" in ", by.Verb, ""))
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
		return "a child of the exporter (" + word(c.Run) + ")"
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
		counts, _ := total(c.Objects)
		names = append(names, fmt.Sprintf("%s, seen from %s to %s (%s)", c.Owner()+place(c.ContainerID, c.PodUID), text.Moment(c.First), text.Moment(c.Last), list(counts)))
	}
	return around(" They belonged to ", strings.TrimSuffix(text.Join(names, "; ", maxFew), "."), ".")
}
