// Package bandwidth says which devices are slower than they should be, by the scheduled measurements.
package bandwidth

import (
	"fmt"

	judge "rdma_exporter/internal/bandwidth"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

const maxDetail = 500 // Characters.

// Problems reports what is wrong with a device, at most one finding of each kind. host has all devices of
// the host, which are its siblings. It modifies neither.
func Problems(d *state.DeviceState, host []state.DeviceState, report func(kind, entry, subject, message string, warning bool)) {
	var all []state.Bandwidth
	for i := range host {
		// A file of --state.dir may have the measurement of another adapter.
		if o := &host[i]; o.Present && o.Bandwidth != nil && o.Bandwidth.Measured != nil && o.Bandwidth.Measured.Hardware != nil &&
			(o.Hardware == nil || o.Hardware.Latest == nil || o.Bandwidth.Measured.Of(&o.Hardware.Latest.Identity)) {
			b := *o.Bandwidth.Measured
			b.Device, b.Cells = o.Name, o.Bandwidth.Large
			all = append(all, b)
		}
	}
	for _, f := range judge.Evaluate(all) {
		if f.Device == d.Name {
			detail := text.Truncate(text.Clean(f.Detail), maxDetail)
			report(f.Kind, "", "bandwidth", fmt.Sprintf("By the measurement at %s, %s.", text.Moment(d.Bandwidth.Measured.Time), detail), true)
		}
	}
}
