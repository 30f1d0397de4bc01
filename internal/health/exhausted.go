package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Exhausted is how many objects of a type there were on a device when it had no more of them
// to give.
type Exhausted struct {
	// Type is the type of object, as rdma(8) names it.
	Type string `json:"type"`
	// Objects is how many there were by the kernel's account, whoever had them. It is 0 of
	// what does not hold any more: the device is another adapter, has another firmware, or
	// gave more since.
	Objects int64 `json:"objects"`
	// At is when the run of the exporter was started that was refused one more.
	At time.Time `json:"at"`
	// Verb and Errno are how it was refused.
	Verb  string `json:"verb"`
	Errno string `json:"errno"`
	// Firmware and NodeGUID are those of the device then. Another adapter may have its name
	// and its firmware.
	Firmware string `json:"firmware,omitempty"`
	NodeGUID string `json:"node_guid,omitempty"`
}

// exhaustedTold is for how long it is told that a device had no more objects to give.
const exhaustedTold = 24 * time.Hour

// takeExhausted takes in what the device had no more of. What does not hold any more is
// marked and stays, lest it be taken in again from the same run.
func (p *Past) takeExhausted(d *state.DeviceState) {
	all, firmware, guid := slices.Clone(p.Exhausted[d.Name]), "", ""
	if d.Info != nil {
		firmware, guid = d.Info.Firmware, d.Info.NodeGUID
	}
	take := func(run *state.Run) {
		if run == nil {
			return
		}
		for _, r := range run.Refused {
			e := Exhausted{Type: r.Type, Objects: r.Objects, At: run.Started, Verb: r.Verb, Errno: r.Errno, Firmware: firmware, NodeGUID: guid}
			i := slices.IndexFunc(all, func(e Exhausted) bool { return e.Type == r.Type })
			switch {
			case i < 0:
				all = append(all, e)
			case e.At.After(all[i].At):
				all[i] = e
			}
		}
	}
	take(d.Last)
	if d.Contracts != nil {
		take(d.Contracts.Last)
	}
	for i := range all {
		e := &all[i]
		if d.Info != nil && e.Firmware != firmware || guid != "" && e.NodeGUID != "" && guid != e.NodeGUID || moreSince(d, e) {
			e.Objects = 0
		}
	}
	if len(all) == 0 || p.Exhausted[d.Name] == nil && len(p.Exhausted) >= MaxPastDevices {
		return
	}
	slices.SortFunc(all, func(a, b Exhausted) int { return strings.Compare(a.Type, b.Type) })
	p.Exhausted[d.Name] = all
}

// moreSince tells whether a device has given more objects since: an inventory counts more,
// or a run has created some while there were as many.
func moreSince(d *state.DeviceState, e *Exhausted) bool {
	if d.Resources == nil || d.Resources.Inventory == nil || !d.Resources.Taken.After(e.At) {
		return false
	}
	created := d.Last != nil && d.Last.Outcome == state.OutcomeOK && d.Last.Light == nil && d.Last.Started.After(d.Resources.Taken)
	objects := d.Resources.Inventory.Count(e.Type)
	return objects > e.Objects || created && objects == e.Objects
}

// Holding returns those that hold still.
func Holding(all []Exhausted) []Exhausted {
	return slices.DeleteFunc(slices.Clone(all), func(e Exhausted) bool { return e.Objects <= 0 })
}

// exhaustion finds the types of which the device had no more to give.
func (a *assessor) exhaustion() {
	for _, e := range a.exhausted {
		kind, held := word(e.Type), a.inventory.Count(e.Type)
		severity, _ := a.t.NearLimit.judge(held, e.Objects)
		root := ""
		switch {
		case a.refusedNow(&e):
			severity, root = SeverityCritical, word(e.Verb)+" "+word(e.Errno)
		case slices.ContainsFunc(a.found, func(f found) bool { return f.Kind == FindingNearLimit && f.Subject == e.Type }):
			continue
		case severity != "":
			severity = SeverityWarning
		case a.state.Last == nil || a.state.Last.Started.Sub(e.At) >= exhaustedTold:
			continue
		default:
			severity = SeverityInfo
		}
		message := fmt.Sprintf("At %s the device refused %s with %s, while the kernel counted %s",
			text.Moment(e.At), word(e.Verb), word(e.Errno), text.Objects(e.Objects, e.Type))
		if limit, limited := a.limit(e.Type); limited {
			message += fmt.Sprintf("; it claims %s (%s)", text.Number(limit), "max_"+kind)
		}
		if held > 0 {
			message += fmt.Sprintf(". Now there are %s", text.Number(held))
		}
		a.add(observation{
			kind: FindingExhausted, severity: severity, subject: kind, size: float64(held) / float64(e.Objects), root: root,
			message: message + ".", replace: []string{"{show}", a.show(e.Type, 0), "{type}", kind},
		})
	}
}

// refusedNow tells whether the last run of the probes, or the last contract run, is the one
// that was refused.
func (a *assessor) refusedNow(e *Exhausted) bool {
	is := func(run *state.Run) bool {
		return run != nil && run.Started.Equal(e.At) && slices.ContainsFunc(run.Refused, func(r state.Refused) bool { return r.Type == e.Type })
	}
	return is(a.state.Last) || a.state.Contracts != nil && is(a.state.Contracts.Last)
}

// limit returns how many objects of a type the device claims to allow.
func (a *assessor) limit(kind string) (int64, bool) {
	if a.state.Info == nil {
		return 0, false
	}
	return a.state.Info.LimitOf(kind)
}
