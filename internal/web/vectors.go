package web

import (
	"fmt"
	"slices"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

type vectorView struct {
	*state.Latency
	Slow bool
	// Measured is when the run started that measured it.
	Measured time.Time
}

// Failed reports whether events or completions went wrong.
func (v vectorView) Failed() bool { return v.Errors() > 0 }

type vectorsView struct {
	// Measured counts those of All vectors that were measured.
	Measured, All int
	// Each are the measured vectors, Unusual those that are slow or had errors.
	Each, Unusual []vectorView
	// Usual is the usual median; 0 if the vectors were measured on several ports or paths.
	Usual time.Duration
}

// vectorsOf returns nil if no vector was measured.
func vectorsOf(d *api.Device) *vectorsView {
	all := d.Vectors()
	if len(all) == 0 {
		return nil
	}
	slow := state.SlowVectors(all)
	v := &vectorsView{Measured: len(all)}
	several := false
	for i := range all {
		one := vectorView{&all[i], slices.Contains(slow, all[i].Vector), d.Full.Started}
		v.Each = append(v.Each, one)
		v.All = max(v.All, one.Vector+1)
		if one.Slow || one.Failed() {
			v.Unusual = append(v.Unusual, one)
		}
		several = several || one.Path != all[0].Path || one.Port != all[0].Port
		v.Usual = state.UsualLatency(all, one.Path, one.Port)
	}
	if several {
		v.Usual = 0
	}
	if d.Info != nil {
		v.All = max(v.All, d.Info.CompletionVectors)
	}
	return v
}

func times(v vectorView) string {
	words := "no sample succeeded"
	if v.Count > 0 {
		words = fmt.Sprintf("median %s, p99 %s", text.Duration(v.P50), text.Duration(v.P99))
	}
	if v.Slow {
		words += ", slow"
	}
	if v.Failed() {
		words += ", " + text.Count(v.Errors(), "event or completion", "events or completions") + " went wrong"
	}
	return words
}

// Summary returns how many vectors were measured, and how many of them are unusual.
func (v *vectorsView) Summary() string {
	words := fmt.Sprintf("%s of %d measured", text.Number(v.Measured), v.All)
	if v.Usual > 0 {
		words += ", usually " + text.Duration(v.Usual)
	}
	slow, failed := 0, 0
	for _, one := range v.Unusual {
		if one.Slow {
			slow++
		}
		if one.Failed() {
			failed++
		}
	}
	if slow > 0 {
		words += fmt.Sprintf("; %d slow", slow)
	}
	if failed > 0 {
		words += fmt.Sprintf("; %d with errors", failed)
	}
	return words + "."
}
