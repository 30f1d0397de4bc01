package health

import (
	"fmt"
	"slices"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// measurement is a latency measurement. earlier is the start of its run, if that is not the last run.
type measurement struct {
	*state.Latency
	earlier time.Time
}

// measurements returns those of the last run, and those of the last full run. What is wrong with a vector is wrong
// until a full run has measured it again.
func (a *assessor) measurements() []measurement {
	var all []measurement
	add := func(run *state.Run, earlier time.Time) {
		for i := range run.Probes {
			for j := range run.Probes[i].Latencies {
				all = append(all, measurement{&run.Probes[i].Latencies[j], earlier})
			}
		}
	}
	add(a.last, time.Time{})
	if full := a.state.Full; full != nil && full != a.state.Last {
		add(full, full.Started)
	}
	return all
}

// notification adds one finding for each failure mode of events and completions.
func (a *assessor) notification() {
	measurements := a.measurements()
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
			n := w.count(m.Latency)
			if n <= 0 {
				continue
			}
			all = sum(all, int64(n))
			a.wrongNow = a.wrongNow || m.earlier.IsZero()
			line := fmt.Sprintf("%s %s on port %d, vector %d: %d", word(string(m.Path)), word(string(m.Mode)), m.Port, m.Vector, n)
			if w.entry == caseUnsuccessful {
				line += " (" + statuses(m.Unsuccessful) + ")"
			}
			line += fmt.Sprintf(", while %s succeeded", text.Plural(m.Count, "sample"))
			if !m.earlier.IsZero() {
				line += ", last measured at " + text.Moment(m.earlier)
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

// slowVectors adds one finding for all slow completion vectors, which usually share the cause.
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
