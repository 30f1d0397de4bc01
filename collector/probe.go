package collector

import (
	"cmp"
	"slices"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

func declareRun(t *table) {
	t.about("Probe runs")
	t.gauge("rdma_probe_success", "1 or 0",
		"Whether a probe succeeded in the last run; absent if it was skipped or the run ended before it.", "device", "probe")
	t.gauge("rdma_probe_skipped", "always 1",
		"What the last run could not probe, and why; subject is empty for the whole probe.", "device", "probe", "subject", "reason")
	t.gauge("rdma_probe_size_clamped", "what the size counts",
		"Size that the last run requested instead of a configured one above a limit of the device.", "device", "probe", "profile", "subject", "attribute", "limit")
	t.counter("rdma_probe_runs_total", "runs",
		"Finished probe runs.", "device", "outcome")
	t.counter("rdma_probe_aborts_total", "runs",
		"Runs cut short, by the verb they were in (none if in none).", "device", "outcome", "verb")
	t.gauge("rdma_probe_last_run_timestamp_seconds", "seconds since 1970",
		"Start of the last finished run.", "device")
	t.gauge("rdma_probe_last_success_timestamp_seconds", "seconds since 1970",
		"Start of the last run with outcome ok; absent until there is one.", "device")
	t.gauge("rdma_probe_duration_seconds", "seconds",
		"Duration of the last run, from the start of its child process to its end or until it was abandoned.", "device")
	t.gauge("rdma_probe_child_cpu_seconds", "seconds",
		"CPU time, user and system, of the last run's child process.", "device")
	t.gauge("rdma_probe_child_max_resident_bytes", "bytes",
		"Peak resident memory of the last run's child process.", "device")
	t.gauge("rdma_probe_stuck", "1 or 0",
		"1 while a killed child process has not ended, with the verb it is in (empty if in none); 0 otherwise. It outlives the device.", "device", "verb")
	t.gauge("rdma_probe_undestroyed_objects", "objects",
		"Objects that the device refused to destroy in the last probe run plus the last contract run, by the errno of the last refusal. Absent until there is one.", "device", "type", "errno")
	t.gauge("rdma_probe_light", "1 or 0",
		"Whether the last run was reduced because the device was, or may have been, in use. Only with --probe.when=idle.", "device")
}

func (h *history) observeRun(runs string, run *state.Run) {
	if slices.Contains(state.Outcomes(), run.Outcome) {
		h.counter(runs, string(run.Outcome)).Inc()
	}
}

func (h *history) observeAbort(aborts string, run *state.Run) {
	if run.Outcome == state.OutcomeTimeout || run.Outcome == state.OutcomeCrashed {
		h.counter(aborts, string(run.Outcome), h.known("verb", maxVerbs, cmp.Or(run.Verb, "none"))).Inc()
	}
}

func addStuck(b *builder, name string, stuck *state.Stuck) {
	b.boolGauge("rdma_probe_stuck", stuck != nil, name, cmp.Or(stuck, new(state.Stuck)).Verb)
}

func addRun(b *builder, name string, dev *state.DeviceState, sizes string) {
	run := dev.Last
	b.timestamp("rdma_probe_last_run_timestamp_seconds", run.Started, name)
	b.gauge("rdma_probe_duration_seconds", run.Duration.Seconds(), name)
	// A child that has not ended has neither.
	b.positive("rdma_probe_child_cpu_seconds", run.CPU.Seconds(), name)
	b.positive("rdma_probe_child_max_resident_bytes", float64(run.MaxRSS), name)
	if run.Info != nil {
		addPorts(b, name, run.Info)
	}
	for _, p := range dev.Probes() {
		if p.Status == state.StatusOK || p.Status == state.StatusFailed {
			b.boolGauge("rdma_probe_success", p.Status == state.StatusOK, name, p.Name)
		}
		for _, s := range p.Skips() {
			b.gauge("rdma_probe_skipped", 1, name, p.Name, s.Subject.String(), string(s.Reason))
		}
		for _, c := range p.Detail.Clamps {
			b.gauge("rdma_probe_size_clamped", float64(c.Used), name, p.Name, c.Subject.Profile, c.Subject.Kind(), c.Attribute, c.Limit)
		}
		// After a reload, the sizes wait for a full run that requests the new ones.
		if dev.ShowsSizes(sizes) {
			addSizes(b, name, p.Detail)
		}
		addRegistrations(b, name, p.Runs()[0])
	}
}

func addUndestroyed(b *builder, s *state.DeviceState) {
	type key struct{ kind, errno string }
	counts := make(map[key]int)
	for _, r := range []*state.Run{s.Last, cmp.Or(s.Contracts, new(state.Contracts)).Last} {
		for _, u := range cmp.Or(r, new(state.Run)).Undestroyed {
			k := key{text.Valid(u.Type), text.Valid(u.Errno)}
			counts[k]++
			b.sparse("rdma_probe_undestroyed_objects", float64(counts[k]), s.Name, k.kind, k.errno)
		}
	}
	b.ended("rdma_probe_undestroyed_objects")
}
