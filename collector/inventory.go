package collector

import (
	"strconv"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// inventoryMetrics are the metrics of how inventories went, and what is wrong.
type inventoryMetrics struct {
	findingsOf             *family
	findingSince           *family
	inventorySuccess       *family
	inventoryStuck         *family
	inventoryRuns          *family
	inventoryLastRun       *family
	inventoryDuration      *family
	inventoryTaken         *family
	inventoryIncomplete    *family
	inventoryPIDVisibility *family
}

func (m *inventoryMetrics) declare(t *table) {
	t.about("The inventory and its findings")
	m.findingsOf = t.gauge("rdma_findings", "findings",
		"Findings about the device, at most 64: all that is wrong with it or soon will be. Those that are accepted do not count. Zero if there are none; absent before there was anything to judge.", "device", "finding", "severity")
	m.findingSince = t.gauge("rdma_finding_first_seen_timestamp_seconds", "seconds since 1970",
		"When the findings of a kind and severity were first seen, the earliest if there are several: kept over a restart with --state.dir. Absent if there is none.", "device", "finding", "severity", "accepted")
	m.inventorySuccess = t.gauge("rdma_inventory_success", "1 or 0",
		"Whether the last inventory was ok.", "device")
	m.inventoryStuck = t.gauge("rdma_inventory_stuck", "1 or 0",
		"1 while a killed child process of the inventory has not ended, 0 otherwise. It outlives the device.", "device")
	m.inventoryRuns = t.counter("rdma_inventory_runs_total", "runs",
		"Finished inventories.", "device", "outcome")
	m.inventoryLastRun = t.gauge("rdma_inventory_last_run_timestamp_seconds", "seconds since 1970",
		"When the last finished inventory was started.", "device")
	m.inventoryDuration = t.gauge("rdma_inventory_duration_seconds", "seconds",
		"Duration of the last inventory, from the start of its child process to its end or to the moment it was given up.", "device")
	m.inventoryTaken = t.gauge("rdma_inventory_timestamp_seconds", "seconds since 1970",
		"When the run was started that took the inventory from which the metrics of resources are: older than the last run if that took none.", "device")
	m.inventoryIncomplete = t.gauge("rdma_inventory_incomplete", "always 1",
		"A type of object that could not be looked at one by one, and why: what only that tells is absent for it.", "device", "type", "reason")
	m.inventoryPIDVisibility = t.gauge("rdma_inventory_pid_visibility", "1 or 0",
		"Whether the exporter sees the processes of the whole host; if not, owners and orphans are not known. By the newest inventory of any device.")
}

// addInventory adds how the last inventory went.
func addInventory(b *builder, name string, r *state.Resources) {
	b.truth(b.inventoryStuck, r.Stuck != nil, name)
	if r.Last != nil {
		b.truth(b.inventorySuccess, r.Last.Outcome == state.OutcomeOK, name)
		b.gauge(b.inventoryDuration, r.Last.Duration.Seconds(), name)
		addTime(b, b.inventoryLastRun, name, r.Last.Started)
	}
	if r.Inventory != nil {
		addTime(b, b.inventoryTaken, name, r.Taken)
	}
}

// addFindings counts the findings about a device. There is zero for all others that
// there could be, so that alerts see the change: for a device that is not present, for
// which none are named, there is only what still holds.
func addFindings(b *builder, name string, findings []health.Finding, all ...health.Finding) {
	for _, f := range all {
		b.gauge(b.findingsOf, 0, name, string(f.Kind), string(f.Severity))
	}
	type key struct {
		kind     health.Kind
		severity health.Severity
	}
	counts := make(map[key]int)
	for n := range findings {
		if findings[n].Accepted != nil {
			continue
		}
		k := key{findings[n].Kind, findings[n].Severity}
		counts[k]++
		b.gauge(b.findingsOf, float64(counts[k]), name, string(k.kind), string(k.severity))
	}
}

// addSince tells since when there are findings about a device, accepted or not.
func addSince(b *builder, name string, findings []health.Finding) {
	type key struct {
		kind     health.Kind
		severity health.Severity
		accepted bool
	}
	first := make(map[key]time.Time)
	for n := range findings {
		f := &findings[n]
		k := key{f.Kind, f.Severity, f.Accepted != nil}
		if since, known := first[k]; !f.Since.IsZero() && (!known || f.Since.Before(since)) {
			first[k] = f.Since
		}
	}
	for n := range findings {
		f := &findings[n]
		k := key{f.Kind, f.Severity, f.Accepted != nil}
		if since, known := first[k]; known {
			b.gauge(b.findingSince, float64(since.UnixMilli())/1e3, name, string(k.kind), string(k.severity), strconv.FormatBool(k.accepted))
			delete(first, k) // once for all of them
		}
	}
}
