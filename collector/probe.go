package collector

import (
	"cmp"
	"slices"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// noVerb stands for a run that was ended while it was in no verb.
const noVerb = "none"

// observeRun counts a run.
func (h *history) observeRun(runs family, run *state.Run) {
	if slices.Contains(state.Outcomes(), run.Outcome) {
		h.counter(runs, string(run.Outcome)).Inc()
	}
}

// observeAbort counts what a run was in that did not go to its end.
func (h *history) observeAbort(aborts family, run *state.Run) {
	if run.Outcome == state.OutcomeTimeout || run.Outcome == state.OutcomeCrashed {
		h.counter(aborts, string(run.Outcome), h.known(h.verbs, maxVerbs, cmp.Or(run.Verb, noVerb))).Inc()
	}
}

// addStuck adds whether a killed child process of a device is still there.
func addStuck(b *builder, name string, stuck *state.Stuck) {
	if stuck == nil {
		b.truth(probeStuck, false, name, "")
		return
	}
	b.truth(probeStuck, true, name, stuck.Verb)
}

// addRun adds what the last run of a device found.
func addRun(b *builder, name string, run *state.Run) {
	addTime(b, probeLastRun, name, run.Started)
	b.gauge(probeDuration, run.Duration.Seconds(), name)
	// What is not known of a child that has not ended.
	if run.CPU > 0 {
		b.gauge(probeChildCPU, run.CPU.Seconds(), name)
	}
	if run.MaxRSS > 0 {
		b.gauge(probeChildMaxResident, float64(run.MaxRSS), name)
	}

	if run.Info != nil {
		addPorts(b, name, run.Info)
	}
	for _, p := range run.Probes {
		switch p.Status {
		case state.StatusOK:
			b.truth(probeSuccess, true, name, p.Name)
		case state.StatusFailed:
			b.truth(probeSuccess, false, name, p.Name)
		case state.StatusSkipped:
			// Neither success nor failure: its reason is among the skips.
		}
		for _, s := range p.Skips {
			b.gauge(probeSkipped, 1, name, p.Name, s.Subject, string(s.Reason))
		}
		for _, c := range p.Clamps {
			b.gauge(probeSizeClamped, 1, name, p.Name, c.Profile, c.Subject, c.Attribute, c.Limit)
		}
		addSizes(b, name, &p)
	}
}

// addUndestroyed counts the objects that the last runs of each kind could not
// destroy.
func addUndestroyed(b *builder, s *state.DeviceState) {
	var objects []state.Undestroyed
	if s.Last != nil {
		objects = s.Last.Undestroyed
	}
	if s.Contracts != nil && s.Contracts.Last != nil {
		objects = slices.Concat(objects, s.Contracts.Last.Undestroyed)
	}
	type key struct{ kind, errno string }
	counts := make(map[key]int)
	for _, u := range objects {
		k := key{text.Valid(u.Type), text.Valid(u.Errno)}
		counts[k]++
		b.gauge(probeUndestroyed, float64(counts[k]), s.Name, k.kind, k.errno)
	}
}

// addTime adds a moment, unless it is zero.
func addTime(b *builder, f family, name string, t time.Time) {
	if !t.IsZero() {
		b.gauge(f, float64(t.UnixMilli())/1e3, name)
	}
}
