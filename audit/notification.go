package audit

import (
	"fmt"
	"slices"
	"time"

	"rdma_exporter/report"
)

// notification finds what went wrong with events and completions in the last run: one
// finding for each way to go wrong.
func (a *assessor) notification() {
	if a.state.Last == nil {
		return
	}
	for _, w := range []struct {
		entry, subject string
		// message has the number of them.
		message string
		count   func(*report.Latency) int
	}{
		{caseMissed, "missed events", "Events that had not come by the deadline, of completions that had: %d", func(l *report.Latency) int { return l.Missed }},
		{caseMisdirected, "misdirected events", "Events on a wrong channel or for a wrong queue: %d", func(l *report.Latency) int { return l.Misdirected }},
		{caseMissing, "missing completions", "Completions that had not come by the deadline: %d", func(l *report.Latency) int { return l.Missing }},
		{caseSpurious, "spurious events", "Events without a completion: %d", func(l *report.Latency) int { return l.Spurious }},
		{caseUnsuccessful, "unsuccessful completions", "Completions with a wrong status: %d", func(l *report.Latency) int { return len(l.Unsuccessful) }},
	} {
		var all int64
		var where []string
		for i := range a.state.Last.Probes {
			latencies := a.state.Last.Probes[i].Latencies
			for j := range latencies {
				l := &latencies[j]
				n := w.count(l)
				if n <= 0 {
					continue
				}
				all = sum(all, int64(n))
				text := fmt.Sprintf("%s %s on port %d, vector %d: %d", word(string(l.Path)), word(string(l.Mode)), l.Port, l.Vector, n)
				if w.entry == caseUnsuccessful {
					text += " (" + statuses(l.Unsuccessful) + ")"
				}
				where = append(where, text+fmt.Sprintf(", while %s went well", plural(l.Count, "sample")))
			}
		}
		if all == 0 {
			continue
		}
		a.add(observation{
			kind: report.FindingNotification, entry: w.entry, subject: w.subject, size: float64(all),
			message: fmt.Sprintf(w.message, all) + ". By measurement: " + few(where, "; ") + ".",
		})
	}
}

// statuses lists statuses of completions, each once.
func statuses(all []string) string {
	var texts []string
	for _, s := range slices.Compact(slices.Sorted(slices.Values(all))) {
		texts = append(texts, word(s))
	}
	return few(texts, ", ")
}

// slowVectors finds the completion vectors that are slow beside the others. It is one
// finding: what makes one slow is mostly the same for the next.
func (a *assessor) slowVectors() {
	if a.state.Notification == nil {
		return
	}
	vectors := a.state.Notification.Vectors
	slow := report.SlowVectors(vectors)
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
		text := fmt.Sprintf("vector %d takes %s in the median and %s at the 99th percentile", v.Vector, latency(v.P50), latency(v.P99))
		if len(texts) < maxFew { // What is usual takes a while to find out, and no more are told.
			usual := report.UsualLatency(vectors, v.Path, v.Port)
			text += fmt.Sprintf(", where %s are usual (%s on port %d, measured at %s)", latency(usual), word(string(v.Path)), v.Port, moment(v.Measured))
		}
		texts = append(texts, text)
	}
	subject := "vector "
	if len(numbers) > 1 {
		subject = "vectors "
	}
	a.add(observation{
		kind: report.FindingSlowVector, subject: subject + few(numbers, ", "), size: float64(len(numbers)),
		message: fmt.Sprintf("Of %s that were measured, %d slow: %s.", plural(len(vectors), "completion vector"), len(numbers), few(texts, "; ")),
	})
}

// latency returns a short time for people.
func latency(d time.Duration) string { return max(d, 0).Round(100 * time.Nanosecond).String() }
