// Package bandwidth says which devices are slower than they should be, by the scheduled measurements.
package bandwidth

import (
	"fmt"
	"slices"

	judge "rdma_exporter/internal/bandwidth"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const maxDetail = 500 // Characters.

// Problems reports what is wrong with a device, at most one finding of each kind. host has all devices of
// the host, which are its siblings. It modifies neither.
func Problems(d *state.DeviceState, host []state.DeviceState, report func(kind, entry, subject, message string, warning bool)) {
	b := measured(d)
	if b == nil {
		return
	}
	all := []state.Bandwidth{*b}
	for i := range host {
		if o := measured(&host[i]); o != nil && host[i].Name != d.Name {
			all = append(all, *o)
		}
	}
	found := slices.DeleteFunc(judge.Evaluate(all), func(f judge.Finding) bool { return f.Device != d.Name })
	isLow := func(f judge.Finding) bool { return f.Kind == "bandwidth_low" }
	if f, low := judge.EvaluatePast(b, d.Bandwidth.Large); low && !slices.ContainsFunc(found, isLow) {
		found = append(found, f)
	}
	for _, f := range found {
		detail := text.Truncate(text.Clean(f.Detail), maxDetail)
		report(f.Kind, "", "bandwidth", fmt.Sprintf("By the measurement at %s, %s.", text.Moment(b.Time), detail), true)
	}
}

// measured returns a copy of the last measurement of a device, or nil. A file of --state.dir may have
// that of another adapter.
func measured(d *state.DeviceState) *state.Bandwidth {
	if !d.Present || d.Bandwidth == nil || d.Bandwidth.Measured == nil || d.Bandwidth.Measured.Hardware == nil {
		return nil
	}
	b := *d.Bandwidth.Measured
	if h := d.Hardware; h != nil && h.Latest != nil && !b.Of(&h.Latest.Identity) {
		return nil
	}
	b.Device = d.Name
	return &b
}
