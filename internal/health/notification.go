package health

import (
	"cmp"
	"fmt"
	"slices"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// notification adds one finding for each failure mode of events and completions. A vector that failed in the last full
// run counts as failing until a full run has measured it again.
func (a *assessor) notification() {
	type measurement struct {
		state.Latency
		run *state.Run
	}
	var measurements []measurement
	for _, run := range slices.Compact([]*state.Run{a.last, cmp.Or(a.state.Full, a.last)}) {
		for _, p := range run.Probes {
			for _, l := range p.Latencies {
				measurements = append(measurements, measurement{l, run})
			}
		}
	}
	for _, w := range []struct {
		entry, subject, thing, mode string
		count                       func(*state.Latency) int
	}{
		{caseMissed, "missed events", "completion", "whose event missed the deadline", func(l *state.Latency) int { return l.Missed }},
		{caseMisdirected, "misdirected events", "event", "on a wrong channel or for a wrong queue", func(l *state.Latency) int { return l.Misdirected }},
		{caseMissing, "missing completions", "completion", "that missed the deadline", func(l *state.Latency) int { return l.Missing }},
		{caseSpurious, "spurious events", "event", "without a completion", func(l *state.Latency) int { return l.Spurious }},
		{caseUnsuccessful, "unsuccessful completions", "completion", "with a wrong status", func(l *state.Latency) int { return len(l.Unsuccessful) }},
	} {
		var all int64
		var where []string
		for _, m := range measurements {
			n, now := w.count(&m.Latency), m.run == a.last
			if n <= 0 {
				continue
			}
			all = sum(all, int64(n))
			a.wrongNow = a.wrongNow || now
			line := fmt.Sprintf("%s %s on port %d, vector %d: %d", word(string(m.Path)), word(string(m.Mode)), m.Port, m.Vector, n)
			if w.entry == caseUnsuccessful {
				line += " (" + statuses(m.Unsuccessful) + ")"
			}
			line += fmt.Sprintf(", while %s succeeded", text.Plural(m.Count, "sample"))
			if !now {
				line += ", last measured at " + text.Moment(m.run.Started)
			}
			where = append(where, line)
		}
		if all == 0 {
			continue
		}
		a.add(observation{
			kind: FindingNotification, entry: w.entry, subject: w.subject, size: float64(all), run: true,
			message: text.Plural(all, w.thing) + " " + w.mode + ". Where: " + text.Join(where, "; ", maxFew) + ".",
		})
	}
}

func statuses(all []string) string {
	var texts []string
	for _, s := range slices.Compact(slices.Sorted(slices.Values(all))) {
		texts = append(texts, word(s))
	}
	return text.Join(texts, ", ", maxFew)
}

func (a *assessor) slowVectors() {
	vectors := a.state.Vectors()
	slow := state.SlowVectors(vectors)
	var numbers, texts []string
	for _, v := range vectors {
		if !slices.Contains(slow, v.Vector) {
			continue
		}
		numbers = append(numbers, fmt.Sprint(v.Vector))
		line := fmt.Sprintf("vector %d takes %s in the median and %s at the 99th percentile", v.Vector, text.Duration(v.P50), text.Duration(v.P99))
		if len(texts) < maxFew {
			usual := state.UsualLatency(vectors, v.Path, v.Port)
			line += fmt.Sprintf(", against the usual %s (%s on port %d, measured at %s)", text.Duration(usual), word(string(v.Path)), v.Port, text.Moment(a.state.Full.Started))
		}
		texts = append(texts, line)
	}
	if n := len(numbers); n > 0 {
		a.add(observation{
			kind: FindingSlowVector, size: float64(n),
			subject: text.Either(n, "vector ", "vectors ") + text.Join(numbers, ", ", maxFew),
			message: fmt.Sprintf("%d of %s measured are slow: %s.", n, text.Plural(len(vectors), "completion vector"), text.Join(texts, "; ", maxFew)),
		})
	}
}
