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

// Witness is what was seen of an opened device and of the process that had it, so that it
// can be told whose it was once nobody has it any more.
type Witness struct {
	// Context is the opened device.
	Context state.Context `json:"context"`
	// PID is the process; 0 if it was never seen, or was a child of the exporter. Comm,
	// ContainerID and PodUID are those of state.Owner.
	PID         int    `json:"pid,omitempty"`
	Comm        string `json:"comm,omitempty"`
	ContainerID string `json:"container_id,omitempty"`
	PodUID      string `json:"pod_uid,omitempty"`
	// Run is what a child of the exporter did, and how that ended; empty for any other
	// process.
	Run string `json:"run,omitempty"`
	// First and Last are when the process was seen; zero if it never was.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Objects are what was left without an owner by the latest inventory that found some,
	// which LeftFirst and LeftLast are about; they are empty while it has an owner.
	Objects   []state.TypeCount `json:"objects,omitempty"`
	LeftFirst time.Time         `json:"left_first,omitzero"`
	LeftLast  time.Time         `json:"left_last,omitzero"`
}

const (
	// witnessed is for how long it is remembered whose an opened device was, and what was
	// left of it.
	witnessed = 24 * time.Hour
	// MaxWitnesses is the most opened devices of a device that are remembered.
	MaxWitnesses = 64
)

// Left returns those opened devices of which something was left, the latest first.
func Left(all []Witness) []Witness {
	left := slices.DeleteFunc(slices.Clone(all), func(w Witness) bool { return len(w.Objects) == 0 })
	slices.SortStableFunc(left, func(a, b Witness) int {
		return cmp.Or(b.LeftLast.Compare(a.LeftLast), b.LeftFirst.Compare(a.LeftFirst), cmp.Compare(a.Context.ID, b.Context.ID))
	})
	return left
}

// takeWitnesses takes in who has which opened device, and which nobody has.
func (p *Past) takeWitnesses(d *state.DeviceState) {
	if d.Resources == nil || d.Resources.Inventory == nil {
		return
	}
	i, now := d.Resources.Inventory, d.Resources.Taken
	all := slices.Clone(p.Witnesses[d.Name])
	of := func(id uint32) *Witness {
		context := state.Context{Index: i.Index, ID: id}
		n := slices.IndexFunc(all, func(w Witness) bool { return w.Context == context })
		if n < 0 {
			n, all = len(all), append(all, Witness{Context: context})
		}
		return &all[n]
	}
	for n := range i.Owners {
		o := &i.Owners[n]
		for _, id := range o.Contexts {
			w := of(id)
			first := w.First
			if w.PID != o.PID || first.IsZero() {
				first = now
			}
			*w = Witness{Context: w.Context, PID: o.PID, Comm: o.Comm, ContainerID: o.ContainerID, PodUID: o.PodUID, First: first, Last: now}
		}
	}
	leave := func(w *Witness, objects []state.TypeCount) {
		w.Objects, w.LeftLast = objects, now
		if w.LeftFirst.IsZero() {
			w.LeftFirst = now
		}
	}
	if i.PIDsVisible { // If not, they may have owners.
		for _, o := range i.Orphans {
			leave(of(o.Context), o.Objects)
		}
	}
	for _, by := range d.Resources.LeakedBy {
		if by.Context.Index != i.Index {
			continue
		}
		w := of(by.Context.ID)
		w.Run = fmt.Sprintf("%s run, %s", by.Kind, by.Outcome)
		if by.Verb != "" {
			w.Run += " in " + by.Verb
		}
		w.First, w.Last = by.Started, by.Started
		leave(w, by.Objects)
	}
	all = slices.DeleteFunc(all, func(w Witness) bool { return now.Sub(w.latest()) >= witnessed })
	if len(all) == 0 {
		delete(p.Witnesses, d.Name)
		return
	}
	if p.Witnesses[d.Name] == nil && len(p.Witnesses) >= MaxPastDevices {
		return
	}
	slices.SortStableFunc(all, func(a, b Witness) int {
		return cmp.Or(cmp.Compare(min(len(b.Objects), 1), min(len(a.Objects), 1)), b.latest().Compare(a.latest()), cmp.Compare(a.Context.ID, b.Context.ID))
	})
	p.Witnesses[d.Name] = slices.Clip(all[:min(len(all), MaxWitnesses)])
}

// latest is when anything was seen of it.
func (w *Witness) latest() time.Time {
	if w.LeftLast.After(w.Last) {
		return w.LeftLast
	}
	return w.Last
}

// Name says who had an opened device.
func (w *Witness) Name() string {
	switch {
	case w.Run != "":
		return fmt.Sprintf("a child of the exporter (%s)", word(w.Run))
	case w.PID > 0:
		return ownerName(&state.Owner{PID: w.PID, Comm: w.Comm}) + place(w.ContainerID, w.PodUID)
	default:
		return "a process that was never seen"
	}
}

// whose says whose objects without an owner were, as an addition to a message; empty if
// that is not known of any.
func (a *assessor) whose() string {
	var names []string
	for i := range a.left {
		w := &a.left[i]
		leaked := slices.ContainsFunc(a.resources.LeakedBy, func(by state.LeakedBy) bool { return by.Context == w.Context })
		if w.PID == 0 && w.Run == "" || leaked || !w.LeftLast.Equal(a.resources.Taken) {
			continue
		}
		counts, _ := total(w.Objects)
		names = append(names, fmt.Sprintf("%s, seen from %s to %s (%s)", w.Name(), text.Moment(w.First), text.Moment(w.Last), list(counts)))
	}
	if len(names) == 0 {
		return ""
	}
	return " They belonged to " + strings.TrimSuffix(text.Join(names, "; ", maxFew), ".") + "."
}
