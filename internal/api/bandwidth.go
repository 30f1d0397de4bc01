package api

import (
	"fmt"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Bandwidth is what the scheduled measurements of a device found, for readers.
type Bandwidth struct {
	Device string
	// Words say when the device was measured, and why that failed since then.
	Words string
	// Columns are the names of the cells of a row. Rows are the ports and NUMA nodes.
	Columns []string
	Rows    [][]string
}

// NewBandwidth returns nil if the device is not measured on a schedule.
func NewBandwidth(d *state.DeviceState, now time.Time) *Bandwidth {
	s := d.Bandwidth
	if s == nil {
		return nil
	}
	v := &Bandwidth{Device: d.Name, Words: "Never measured.", Columns: []string{"port", "NUMA node", "write", "read", "best write", "best read"}}
	if s.Measured != nil {
		v.Words = fmt.Sprintf("In Gb/s, measured %s.", text.Ago(now, s.Measured.Time)) + text.Around(" Left out: ", s.Measured.Skipped, ".")
		v.rows(s.Measured.Best(), s.Best)
	}
	if s.Failures > 0 {
		v.Words += fmt.Sprintf(" Tried %s since then, last %s: %s", text.Count(s.Failures, "time", "times"), text.Ago(now, s.Tried), s.Result) +
			text.Around(" (", s.Detail, ")") + "."
	}
	return v
}

func (v *Bandwidth) rows(cells, best []state.BandwidthCell) {
	for i, c := range cells {
		if i > 0 && cells[i-1].Port == c.Port && cells[i-1].Node == c.Node {
			continue
		}
		row := []string{fmt.Sprint(c.Port), fmt.Sprint(c.Node)}
		for _, all := range [][]state.BandwidthCell{cells, best} {
			for _, operation := range []string{"write", "read"} {
				value := ""
				for _, o := range all {
					if c.Operation = operation; o.SameAs(&c) {
						value = fmt.Sprintf("%.4g", o.BytesPerSecond*8/1e9) //nolint:mnd // bits, giga
					}
				}
				row = append(row, value)
			}
		}
		v.Rows = append(v.Rows, row)
	}
}
