package collector

import (
	"cmp"
	"slices"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// runMetrics are the metrics of how runs of the probes went.
type runMetrics struct {
	probeSuccess          *family
	probeSkipped          *family
	probeSizeClamped      *family
	probeRuns             *family
	probeAborts           *family
	probeLastRun          *family
	probeLastSuccess      *family
	probeDuration         *family
	probeChildCPU         *family
	probeChildMaxResident *family
	probeStuck            *family
	probeUndestroyed      *family
	probeLight            *family
}

func (m *runMetrics) declare(t *table) {
	t.about("Runs of the probes")
	m.probeSuccess = t.gauge("rdma_probe_success", "1 or 0",
		"Whether a probe succeeded in the last run; absent if it was skipped or the run ended before it.", "device", "probe")
	m.probeSkipped = t.gauge("rdma_probe_skipped", "always 1",
		"What the last run could not probe, and why; subject is empty for the whole probe.", "device", "probe", "subject", "reason")
	m.probeSizeClamped = t.gauge("rdma_probe_size_clamped", "what the size counts",
		"Size that the last run asked for instead of a configured one above a limit of the device.", "device", "probe", "profile", "subject", "attribute", "limit")
	m.probeRuns = t.counter("rdma_probe_runs_total", "runs",
		"Finished runs of the probes.", "device", "outcome")
	m.probeAborts = t.counter("rdma_probe_aborts_total", "runs",
		"Runs cut short, by the verb they were in (none if in none).", "device", "outcome", "verb")
	m.probeLastRun = t.gauge("rdma_probe_last_run_timestamp_seconds", "seconds since 1970",
		"Start of the last finished run.", "device")
	m.probeLastSuccess = t.gauge("rdma_probe_last_success_timestamp_seconds", "seconds since 1970",
		"Start of the last run with outcome ok; absent until there is one.", "device")
	m.probeDuration = t.gauge("rdma_probe_duration_seconds", "seconds",
		"Duration of the last run, from the start of its child process to its end or until it was abandoned.", "device")
	m.probeChildCPU = t.gauge("rdma_probe_child_cpu_seconds", "seconds",
		"CPU time, user and system, of the last run's child process.", "device")
	m.probeChildMaxResident = t.gauge("rdma_probe_child_max_resident_bytes", "bytes",
		"Peak resident memory of the last run's child process.", "device")
	m.probeStuck = t.gauge("rdma_probe_stuck", "1 or 0",
		"1 while a killed child process has not ended, with the verb it is in (empty if in none); 0 otherwise. It outlives the device.", "device", "verb")
	m.probeUndestroyed = t.gauge("rdma_probe_undestroyed_objects", "objects",
		"Objects that the device refused to destroy in the last run of the probes plus the last contract run, by the errno of the last refusal. Absent until there is one.", "device", "type", "errno")
	m.probeLight = t.gauge("rdma_probe_light", "1 or 0",
		"Whether the last run created next to nothing, because another program holds queue pairs on the device or the kernel does not say. Only with --probe.when=idle.", "device")
}

// noVerb stands for a run that was ended while it was in no verb.
const noVerb = "none"

// observeRun counts a run.
func (h *history) observeRun(runs *family, run *state.Run) {
	if slices.Contains(state.Outcomes(), run.Outcome) {
		h.counter(runs, string(run.Outcome)).add(1)
	}
}

// observeAbort counts what a run was in that did not go to its end.
func (h *history) observeAbort(aborts *family, run *state.Run) {
	if run.Outcome == state.OutcomeTimeout || run.Outcome == state.OutcomeCrashed {
		h.counter(aborts, string(run.Outcome), h.known(h.verbs, maxVerbs, cmp.Or(run.Verb, noVerb))).add(1)
	}
}

// addStuck adds whether a killed child process of a device is still there.
func addStuck(b *builder, name string, stuck *state.Stuck) {
	if stuck == nil {
		b.truth(b.probeStuck, false, name, "")
		return
	}
	b.truth(b.probeStuck, true, name, stuck.Verb)
}

// addRun adds what the last run of a device found.
func addRun(b *builder, name string, run *state.Run) {
	addTime(b, b.probeLastRun, name, run.Started)
	b.gauge(b.probeDuration, run.Duration.Seconds(), name)
	// What is not known of a child that has not ended.
	if run.CPU > 0 {
		b.gauge(b.probeChildCPU, run.CPU.Seconds(), name)
	}
	if run.MaxRSS > 0 {
		b.gauge(b.probeChildMaxResident, float64(run.MaxRSS), name)
	}

	if run.Info != nil {
		addPorts(b, name, run.Info)
	}
	for _, p := range run.Probes {
		switch p.Status {
		case state.StatusOK:
			b.truth(b.probeSuccess, true, name, p.Name)
		case state.StatusFailed:
			b.truth(b.probeSuccess, false, name, p.Name)
		case state.StatusSkipped:
			// Neither success nor failure: its reason is among the skips.
		}
		for _, s := range p.Skips {
			b.gauge(b.probeSkipped, 1, name, p.Name, s.Subject, string(s.Reason))
		}
		for _, c := range p.Clamps {
			b.gauge(b.probeSizeClamped, float64(c.Used), name, p.Name, c.Profile, c.Subject, c.Attribute, c.Limit)
		}
		addSizes(b, name, &p)
		addRegistrations(b, name, &p)
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
		b.sparse(b.probeUndestroyed, float64(counts[k]), s.Name, k.kind, k.errno)
	}
	b.ended(b.probeUndestroyed)
}

// addTime adds a moment, unless it is zero.
func addTime(b *builder, f *family, name string, t time.Time) {
	if !t.IsZero() {
		b.gauge(f, float64(t.UnixMilli())/1e3, name)
	}
}
