package collector

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/state"
)

// armVerb is the verb that asks for an event.
const armVerb = "ibv_req_notify_cq"

// observeLatencies counts the measurements of completions of a run.
func (h *history) observeLatencies(run *state.Run) {
	for i := range run.Probes {
		for j := range run.Probes[i].Latencies {
			l := &run.Probes[i].Latencies[j]
			if !slices.Contains(state.LatencyPaths(), l.Path) || !slices.Contains(state.LatencyModes(), l.Mode) {
				continue
			}
			h.observeLatency(l)
		}
	}
	for _, l := range run.Vectors() {
		h.observeVector(l.Vector, &l)
	}
	if run.Info != nil {
		maps.DeleteFunc(h.vectors, func(number int, _ *vector) bool { return number >= run.Info.CompletionVectors })
	}
}

// observeLatency counts one measurement. Its series all appear now, so that the
// first thing to go wrong later is not hidden from rate().
func (h *history) observeLatency(l *state.Latency) {
	port, path, mode := h.known(h.ports, maxPorts, strconv.Itoa(l.Port)), string(l.Path), string(l.Mode)

	if l.Mode == state.ModePoll {
		observe(h.histogram(completionLatency, port, path), l.Samples)
	} else {
		observe(h.histogram(notificationLatency, port, path, mode), l.Samples)
		if len(l.Arms) > 0 {
			observe(h.histogram(callDuration, h.known(h.verbs, maxVerbs, armVerb)), l.Arms)
		}
		add(h.counter(notificationsMissed, port, path, mode), l.Missed)
		add(h.counter(notificationsSpurious, port, path, mode), l.Spurious)
		add(h.counter(notificationsMisdirected, port, path, mode), l.Misdirected)
	}
	add(h.counter(completionsMissing, port, path, mode), l.Missing)
	for _, s := range usualStatuses(l.Path) {
		h.counter(completionsUnsuccessful, port, path, h.known(h.statuses, maxStatuses, s))
	}
	for _, s := range l.Unsuccessful {
		h.counter(completionsUnsuccessful, port, path, h.known(h.statuses, maxStatuses, s)).Inc()
	}
}

// usualStatuses returns the statuses that a path brings when it goes wrong. There
// are too many others to show them all before they occur.
func usualStatuses(p state.LatencyPath) []string {
	if p == state.PathFlush {
		return []string{"success"}
	}
	return []string{"retry_exc_err", "rnr_retry_exc_err", "wr_flush_err"}
}

func observe(h prometheus.Histogram, samples []time.Duration) {
	for _, s := range samples {
		h.Observe(s.Seconds())
	}
}

// add adds n, unless it is less than nothing, at which a counter panics.
func add(c prometheus.Counter, n int) {
	if n > 0 {
		c.Add(float64(n))
	}
}

// vector is what was measured on one completion vector.
type vector struct {
	// p50 and p99 are of the last run that measured the vector, if good: nothing
	// has quantiles where nothing went well.
	good     bool
	p50, p99 time.Duration
	// count and sum are of the samples of all runs, in seconds.
	count uint64
	sum   float64
}

// observeVector keeps the measurement that stands for a vector.
func (h *history) observeVector(number int, l *state.Latency) {
	v, ok := h.vectors[number]
	if !ok {
		// Vectors that have no series are kept too, to tell how many there are.
		if len(h.vectors) >= maxSeries {
			return
		}
		v = new(vector)
		h.vectors[number] = v
	}
	v.good, v.p50, v.p99 = l.Count > 0, l.P50, l.P99
	v.count += uint64(len(l.Samples))
	for _, s := range l.Samples {
		v.sum += s.Seconds()
	}
}

// buildVectors adds the series of the completion vectors to a block, and returns
// how many it left out.
func (h *history) buildVectors(b *block) (hidden int) {
	shared := make(pairs)
	for i, number := range slices.Sorted(maps.Keys(h.vectors)) {
		s := h.vectors[number].summary()
		if i >= state.MaxVectors {
			hidden += len(s.Quantile) + 2 // sum and count
			continue
		}
		b[vectorLatency] = append(b[vectorLatency], &dto.Metric{
			Label:   shared.labels(&h.schema[vectorLatency], []string{h.device, strconv.Itoa(number)}),
			Summary: s,
		})
	}
	return hidden
}

// summary returns the series of a vector. Without a good last measurement there
// are no quantiles: older ones would pass for its result.
func (v *vector) summary() *dto.Summary {
	count, sum := v.count, v.sum
	s := &dto.Summary{SampleCount: &count, SampleSum: &sum}
	if v.good {
		s.Quantile = []*dto.Quantile{quantile(0.5, v.p50), quantile(0.99, v.p99)}
	}
	return s
}

func quantile(q float64, value time.Duration) *dto.Quantile {
	seconds := value.Seconds()
	return &dto.Quantile{Quantile: &q, Value: &seconds}
}
