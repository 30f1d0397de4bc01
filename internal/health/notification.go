package health

import (
	"fmt"
	"slices"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// measurement is a measurement of completions. Of one of an earlier run than the last,
// earlier is when that was started.
type measurement struct {
	*state.Latency
	earlier time.Time
}

// measurements returns those of the last run, and of the completion vectors that it did
// not come to the latest: what is wrong with a vector is wrong until it was measured
// again.
func (a *assessor) measurements() []measurement {
	last := a.state.Last
	if last == nil {
		return nil
	}
	var all []measurement
	for i := range last.Probes {
		for j := range last.Probes[i].Latencies {
			all = append(all, measurement{Latency: &last.Probes[i].Latencies[j]})
		}
	}
	if a.state.Notification != nil {
		for i := range a.state.Notification.Vectors {
			if v := &a.state.Notification.Vectors[i]; v.Measured.Before(last.Started) {
				all = append(all, measurement{Latency: &v.Latency, earlier: v.Measured})
			}
		}
	}
	return all
}

// notification finds what went wrong with events and completions when they were last
// measured: one finding for each way to go wrong.
func (a *assessor) notification() {
	measurements := a.measurements()
	for _, w := range []struct {
		entry, subject string
		// thing went wrong, and in which way.
		thing, way string
		count      func(*state.Latency) int
	}{
		{caseMissed, "missed events", "completion", "whose event did not come by the deadline", func(l *state.Latency) int { return l.Missed }},
		{caseMisdirected, "misdirected events", "event", "on a wrong channel or for a wrong queue", func(l *state.Latency) int { return l.Misdirected }},
		{caseMissing, "missing completions", "completion", "that did not come by the deadline", func(l *state.Latency) int { return l.Missing }},
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
			line += fmt.Sprintf(", while %s went well", text.Plural(m.Count, "sample"))
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
			message: text.Plural(all, w.thing) + " " + w.way + ". Where: " + text.Join(where, "; ", maxFew) + ".",
		})
	}
}

// statuses lists statuses of completions, each once.
func statuses(all []string) string {
	var texts []string
	for _, s := range slices.Compact(slices.Sorted(slices.Values(all))) {
		texts = append(texts, word(s))
	}
	return text.Join(texts, ", ", maxFew)
}

// slowVectors finds the completion vectors that are slow beside the others. It is one
// finding: what makes one slow is mostly the same for the next.
func (a *assessor) slowVectors() {
	if a.state.Notification == nil {
		return
	}
	vectors := a.state.Notification.Vectors
	slow := state.SlowVectors(vectors)
	if len(slow) == 0 {
		return
	}
	var numbers, texts []string
	for i := range vectors {
		v := &vectors[i]
		if !slices.Contains(slow, v.Vector) {
			continue
		}
		numbers = append(numbers, fmt.Sprint(v.Vector))
		line := fmt.Sprintf("vector %d takes %s in the median and %s at the 99th percentile", v.Vector, text.Duration(v.P50), text.Duration(v.P99))
		if len(texts) < maxFew { // What is usual takes a while to find out, and no more are told.
			usual := state.UsualLatency(vectors, v.Path, v.Port)
			line += fmt.Sprintf(", against the usual %s (%s on port %d, measured at %s)", text.Duration(usual), word(string(v.Path)), v.Port, text.Moment(v.Measured))
		}
		texts = append(texts, line)
	}
	subject := "vector "
	if len(numbers) > 1 {
		subject = "vectors "
	}
	a.add(observation{
		kind: FindingSlowVector, subject: subject + text.Join(numbers, ", ", maxFew), size: float64(len(numbers)),
		message: fmt.Sprintf("%d of %s measured are slow: %s.", len(numbers), text.Plural(len(vectors), "completion vector"), text.Join(texts, "; ", maxFew)),
	})
}
