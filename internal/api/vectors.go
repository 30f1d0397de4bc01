package api

import (
	"fmt"
	"slices"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Vector is the measurement of a completion vector.
type Vector struct {
	state.Latency
	Slow bool
}

// String returns its times, and what is unusual, in words.
func (v Vector) String() string {
	words := "no sample succeeded"
	if v.Count > 0 {
		words = fmt.Sprintf("median %s, p99 %s", text.Duration(v.P50), text.Duration(v.P99))
	}
	if v.Slow {
		words += ", slow"
	}
	if v.Wrong() {
		words += ", " + text.Count(v.Errors(), "event or completion", "events or completions") + " went wrong"
	}
	return words
}

// Vectors are the completion vectors of a device that were measured. Unusual are those that are slow
// or had errors.
type Vectors struct {
	Each, Unusual []Vector
	// Summary says how many of all were measured, and how many are unusual.
	Summary string
	// Full is a long time on this device: that of the slowest vector, and at least what is slow.
	Full time.Duration
}

// MeasuredVectors returns the vectors that the last full run measured. Nil means none.
func (d *Device) MeasuredVectors() *Vectors {
	all := d.Vectors()
	if len(all) == 0 {
		return nil
	}
	v := new(Vectors)
	slow := state.SlowVectors(all)
	of, failed, isComparable := all[len(all)-1].Vector+1, 0, true
	for _, l := range all {
		one := Vector{l, slices.Contains(slow, l.Vector)}
		v.Full = max(v.Full, l.P50, state.SlowFrom(state.UsualLatency(all, l.Path, l.Port)))
		v.Each = append(v.Each, one)
		if one.Slow || one.Wrong() {
			v.Unusual = append(v.Unusual, one)
		}
		if one.Wrong() {
			failed++
		}
		isComparable = isComparable && l.Path == all[0].Path && l.Port == all[0].Port
	}
	if d.Info != nil {
		of = max(of, d.Info.CompletionVectors)
	}
	v.Summary = fmt.Sprintf("%s of %d measured", text.Number(len(all)), of)
	if usual := state.UsualLatency(all, all[0].Path, all[0].Port); usual > 0 && isComparable {
		v.Summary += ", usually " + text.Duration(usual)
	}
	v.Summary = text.JoinWords("; ", v.Summary, text.Some(len(slow), "slow"), text.Some(failed, "with errors"))
	return v
}
