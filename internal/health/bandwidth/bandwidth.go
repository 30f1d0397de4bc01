// Package bandwidth says which devices are slower than they should be, by the scheduled measurements.
package bandwidth

import (
	"slices"

	judge "rdma_exporter/internal/bandwidth"
	"rdma_exporter/internal/state"
)

// Of returns what is wrong with a device, at most one finding of each kind. host has all devices of the
// host, which are its siblings. It modifies neither.
func Of(d *state.DeviceState, host []state.DeviceState) (found []judge.Finding) {
	b := measured(d)
	if b == nil {
		return nil
	}
	all := []state.Bandwidth{*b}
	for i := range host {
		if o := measured(&host[i]); o != nil && host[i].Name != d.Name {
			all = append(all, *o)
		}
	}
	found = slices.DeleteFunc(judge.Evaluate(all), func(f judge.Finding) bool { return f.Device != d.Name })
	isLow := func(f judge.Finding) bool { return f.Kind == "bandwidth_low" }
	if f, low := judge.EvaluatePast(b, d.Bandwidth.Best); low && !slices.ContainsFunc(found, isLow) {
		found = slices.Insert(found, 0, f)
	}
	return found
}

// measured returns a copy of the last measurement of a device. Nil if there is none of its adapter. A
// file of --state.dir may have any.
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
