package collector

import (
	"strconv"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

func declareInventory(t *table) {
	t.about("The inventory and its findings")
	t.gauge("rdma_findings", "findings",
		"Findings on the device, at most 64: everything that is or soon will be wrong. Zero if the device has none; absent before the first evaluation. Accepted ones are absent until there is one.", "device", "severity", "accepted")
	t.gauge("rdma_finding_first_seen_timestamp_seconds", "seconds since 1970",
		"When findings of this kind and severity were first seen, the earliest if there are several; 0 if not recorded. Absent without such a finding.", "device", "finding", "severity", "harm", "accepted")
	t.gauge("rdma_finding_info", "always 1",
		"Cause of a finding that is not accepted, as in the JSON: for each device the worst 16 that differ. A finding of the host has an empty device. Absent without a finding.", "device", "finding", "severity", "reason", "verb", "errno", "remedy")
	t.of(Inventory)
	t.gauge("rdma_inventory_success", "1 or 0",
		"Whether the last inventory was ok.", "device")
	t.gauge("rdma_inventory_stuck", "1 or 0",
		"1 while a killed child process of the inventory has not ended, 0 otherwise. It outlives the device.", "device")
	t.counter("rdma_inventory_runs_total", "runs",
		"Finished inventories.", "device", "outcome")
	t.gauge("rdma_inventory_duration_seconds", "seconds",
		"Duration of the last inventory, from the start of its child process to its end or until it was abandoned.", "device")
	t.gauge("rdma_inventory_timestamp_seconds", "seconds since 1970",
		"Start of the run whose inventory the resource metrics show.", "device")
	t.gauge("rdma_inventory_incomplete", "always 1",
		"An object type that could not be read object by object, and why; metrics that need that are absent for it.", "device", "type", "reason")
	t.gauge("rdma_inventory_pid_visibility", "1 or 0",
		"Whether the exporter sees all processes of the host; if not, owners and orphans are unknown. From the newest inventory of any device.")
}

func addInventory(b *builder, name string, r *state.Resources) {
	b.boolGauge("rdma_inventory_stuck", r.Stuck != nil, name)
	if r.Last != nil {
		b.boolGauge("rdma_inventory_success", r.Last.Outcome == state.OutcomeOK, name)
		b.gauge("rdma_inventory_duration_seconds", r.Last.Duration.Seconds(), name)
	}
	if r.Inventory != nil {
		b.timestamp("rdma_inventory_timestamp_seconds", r.Taken, name)
	}
}

// maxCauses limits the causes of findings with series, for each device.
const maxCauses = 16

// addCauses adds the causes of findings, which must have the worst first.
func addCauses(b *builder, name string, findings []health.Finding) {
	causes := make(map[string]bool)
	for i := range findings {
		f := &findings[i]
		if f.Accepted != nil {
			continue
		}
		labels := []string{name, string(f.Kind), string(f.Severity), f.Reason, f.Verb, f.Errno, string(f.Remedy)}
		if causes[seriesKey("rdma_finding_info", labels)] = true; len(causes) <= maxCauses {
			b.gauge("rdma_finding_info", 1, labels...)
		}
	}
}

// addFindings adds the number of findings of each severity, and since when there are some of each kind. Alerts need
// the zeros to see a change.
func addFindings(b *builder, name string, findings []health.Finding) {
	type group struct {
		kind     health.Kind
		severity health.Severity
		harm     health.Harm
		accepted bool
	}
	counts, first := make(map[group]int), make(map[group]time.Time)
	for n := range findings {
		f := &findings[n]
		g := group{f.Kind, f.Severity, f.Harm, f.Accepted != nil}
		counts[group{severity: g.severity, accepted: g.accepted}]++
		if since, known := first[g]; !known || f.Since.Before(since) {
			first[g] = f.Since
		}
	}
	for _, severity := range state.Severities() {
		b.gauge("rdma_findings", float64(counts[group{severity: severity}]), name, string(severity), "false")
		b.sparse("rdma_findings", float64(counts[group{severity: severity, accepted: true}]), name, string(severity), "true")
	}
	for g, since := range first {
		at := float64(max(since.UnixMilli(), 0)) / 1e3 // The zero time is before 1970.
		b.gauge("rdma_finding_first_seen_timestamp_seconds", at,
			name, string(g.kind), string(g.severity), string(g.harm), strconv.FormatBool(g.accepted))
	}
	addCauses(b, name, findings)
}
