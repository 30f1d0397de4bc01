package e2e_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/health"
	"rdma_exporter/test/running"
)

// inventoried waits until an inventory of each device was ok, and returns a scrape
// from then.
func (e *exporter) inventoried(t *testing.T, devices ...string) metrics {
	t.Helper()
	running.Eventually(t, "each device is looked at", func() bool {
		m := e.counts(t)
		return !slices.ContainsFunc(devices, func(device string) bool {
			return m.sum("rdma_inventory_runs_total", "device", device, "outcome", "ok") < 1
		})
	})
	return e.scrape(t)
}

// found returns the kinds of finding about the resources of a device, sorted.
// Others, of what its probes find, are left out.
func (m metrics) found(device string) []string {
	kinds := []string{}
	for _, s := range m.all("rdma_finding_first_seen_timestamp_seconds", "device", device) {
		switch kind := health.Kind(s.labels["finding"]); kind {
		case health.FindingNearLimit, health.FindingCgroupNearLimit, health.FindingMemlock, health.FindingOrphaned, health.FindingLeaked,
			health.FindingExhausted, health.FindingQPError, health.FindingCQUnfillable, health.FindingIncomplete, health.FindingPIDsInvisible:
			kinds = append(kinds, string(kind))
		}
	}
	slices.Sort(kinds)
	return kinds
}

// Without a word in the flags, the resources of simulated devices are looked at like
// those of real ones: who owns what, of how much, and nothing is wrong.
func TestResources(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated", "--contract.interval=0s", "--notification.samples=0")
	devices := []string{"sim_rxe0", "sim_siw0", "sim_ib0"}
	e.inventoried(t, devices...)
	e.ready(t) // what limits there are is known from the probes
	text, m := e.exposition(t)
	checkExposition(t, text)
	m.want(t, 1, "rdma_inventory_pid_visibility")
	for _, device := range devices {
		m.want(t, 1, "rdma_inventory_success", "device", device)
		m.absent(t, "rdma_inventory_incomplete", "device", device)
		for _, typ := range []string{"pd", "cq", "qp", "mr"} {
			for _, owner := range []string{"user", "kernel"} {
				n, limit := m.sum("rdma_resource_objects", "device", device, "type", typ, "owner", owner), m.sum("rdma_resource_limit", "device", device, "type", typ)
				if n < 0 || limit <= n || n == 0 && (owner == "user" || typ == "pd") {
					t.Errorf("%s has %v of %v %s of owner %s", device, n, limit, typ, owner)
				}
			}
		}
		if found := m.found(device); len(found) != 0 || len(m.all("rdma_findings", "device", device)) == 0 {
			t.Errorf("%s has the findings %q", device, found)
		}
	}
	// Two processes of the same pod.
	m.want(t, 2050, "rdma_resource_owner_objects", "device", "sim_ib0", "type", "qp", "comm", "python3",
		"pod_uid", "7e41b9a8-03cd-4d5f-8a16-c2f9e0d7b354")
	m.want(t, 10, "rdma_resource_queue_pairs", "device", "sim_siw0", "qp_type", "rc", "state", "rts")
}

// What profiles say is wrong with resources is found, and nothing else.
func TestResourceTrouble(t *testing.T) {
	t.Parallel()
	// Each device is named after what is found, with the reason if that is not all.
	const profile = `devices:
  - {name: none, like: sim_rxe0, async_events: [gid_change, comm_est], resources: {holders: []}}
  - {name: near_limit, like: sim_rxe0, limits: {max_pd: 100}, resources: {holders: [{pid: 7, comm: greedy, objects: {pd: 96}}]}}
  - {name: resource_exhausted, like: sim_rxe0, faults: [{verb: ibv_create_srq, errno: ENOMEM}], resources: {holders: [{pid: 7, comm: greedy, objects: {srq: 96}}]}}
  - {name: cgroup_near_limit, like: sim_rxe0, resources: {holders: [{pid: 7, cgroup: /a, objects: {pd: 1}, rdma_max: {hca_handle: 1}}]}}
  - {name: memlock_near_limit, like: sim_rxe0, resources: {holders: [{pid: 7, objects: {mr: 9}, memlock: {limit: 40000}}]}}
  - {name: orphaned, like: sim_rxe0, resources: {holders: [{dead: true, objects: {qp: 3}}]}}
  - {name: leaked, like: sim_rxe0, resources: {holders: [], leak: {objects: {qp: 1}, times: 2}}}
  - {name: qp_error, like: sim_rxe0, resources: {holders: [{pid: 7, queue_pairs: [{type: rc, state: err, objects: 5}]}]}}
  - {name: cq_unfillable, like: sim_rxe0, resources: {holders: [{pid: 7, objects: {cq: 1}, cq_entries: 65536}]}}
  - {name: inventory_incomplete, like: sim_rxe0, resources: {holders: [{pid: 7, objects: {srq: 2}}], incomplete: {srq: not_supported}}}
  - {name: inventory_incomplete.hang, like: sim_rxe0, resources: {holders: [{pid: 7, objects: {qp: 2}}], incomplete: {qp: hang}}}
  - {name: inventory_incomplete.gone, like: sim_rxe0, vanish: true}
  - {name: pids_invisible, like: sim_rxe0, resources: {holders: [{pid: 7, objects: {qp: 1}}], pids_invisible: true}}
`
	e := start(t, "--provider=simulated", "--simulated.profile="+running.File(t, "profile.yaml", profile),
		"--config.file="+running.File(t, "config.yaml", "findings: {orphan_age: 1ms}"),
		"--contract.interval=0s", "--notification.samples=0", "--probe.interval=2s", "--probe.concurrency=4",
		"--inventory.interval=1s", "--inventory.timeout=5s", "--collector.cgroups")
	var devices []string
	for line := range strings.Lines(profile) {
		if rest, ok := strings.CutPrefix(line, "  - {name: "); ok {
			name, _, _ := strings.Cut(rest, ",")
			devices = append(devices, name)
		}
	}
	wanted := func(device string) []string {
		kind, _, _ := strings.Cut(device, ".")
		if device == "none" {
			return []string{}
		}
		return []string{kind}
	}
	running.Eventually(t, "each device has been found out", func() bool {
		m := e.scrape(t, "rdma_findings", "rdma_finding_first_seen_timestamp_seconds")
		return !slices.ContainsFunc(devices, func(device string) bool {
			return len(m.all("rdma_findings", "device", device)) == 0 || !slices.Equal(m.found(device), wanted(device))
		})
	})
	text, _ := e.exposition(t)
	checkExposition(t, text)
	// Two children each left a queue pair and what that cannot be without.
	running.Eventually(t, "two children have left something", func() bool {
		return e.scrape(t, "rdma_probe_leaked_objects").sum("rdma_probe_leaked_objects", "device", "leaked", "type", "qp") == 2
	})
	running.Eventually(t, "more children have left nothing more", func() bool {
		return e.counts(t).runs("leaked", "ok") >= 4
	})
	m := e.scrape(t)
	for _, typ := range []string{"ctx", "pd", "cq", "qp"} {
		m.want(t, 2, "rdma_probe_leaked_objects", "device", "leaked", "type", typ)
	}
	if n := m.sum("rdma_probe_leaked_objects", "device", "none"); n != 0 {
		t.Errorf("%v objects are left on the device that leaks nothing", n)
	}
	// Each run has the device open once; the event of a connection is the run's own.
	if runs := m.runs("none", "ok"); runs == 0 || len(m.all("rdma_async_events_total")) != 1 {
		t.Errorf("%v runs, and the events %v", runs, m.all("rdma_async_events_total"))
	} else {
		m.want(t, runs, "rdma_async_events_total", "device", "none", "event", "gid_change")
	}
	// Where a device really ended is told beside what it claims.
	m.want(t, 96, "rdma_resource_exhausted_objects", "device", "resource_exhausted", "type", "srq")
	if m.sum("rdma_resource_limit", "device", "resource_exhausted", "type", "srq") <= 96 || len(m.all("rdma_resource_exhausted_objects")) != 1 {
		t.Errorf("exhausted: %v", m.all("rdma_resource_exhausted_objects"))
	}
	// The kernel's count is known even where the rest hangs.
	m.want(t, 2, "rdma_resource_objects", "device", "inventory_incomplete.hang", "type", "qp", "owner", "unknown")
	if m.sum("rdma_inventory_runs_total", "device", "inventory_incomplete.hang", "outcome", "timeout") == 0 {
		t.Error("the inventory that hangs was not killed")
	}
}

// A process that ends while what it held stays is named by what was seen of it before, and
// be it by an exporter before this one.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	const cgroup = "/kubepods.slice/kubepods-pod0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0.slice/cri-containerd-3f2a1b2c3d4e5f60718293a4b5c6d7e8f90112233445566778899aabbccddeef.scope"
	dir := t.TempDir()
	began := func(ends string) *exporter {
		profile := "devices:\n  - {name: sim0, like: sim_rxe0, resources: {holders: [{pid: 4711, comm: trainer, cgroup: " + cgroup + ", objects: {qp: 3}, ends: " + ends + "}]}}\n"
		e := start(t, "--provider=simulated", "--simulated.profile="+running.File(t, "profile.yaml", profile), "--state.dir="+dir,
			"--contract.interval=0s", "--notification.samples=0", "--inventory.interval=1s")
		e.inventoried(t, "sim0")
		return e
	}
	began("2038-01-19T03:14:07Z").stop(t)
	e := began("2026-03-01T12:00:00Z")
	_, body := e.get(t, "/api/v2/status")
	var status api.Status
	running.Check(t, json.Unmarshal([]byte(body), &status))
	left := status.Devices[0].Leftover
	if len(left) != 1 {
		t.Fatalf("left: %+v", left)
	}
	l := left[0]
	if l.PID != 4711 || l.Comm != "trainer" || l.PodUID != "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0" || l.First.IsZero() || l.Last.Before(l.First) || l.LeftFirst.Before(l.Last) {
		t.Errorf("left: %+v", l)
	}
}
