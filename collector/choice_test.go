package collector_test

import (
	"slices"
	"strings"
	"testing"

	"rdma_exporter/collector"
)

// TestOnly verifies that a scrape gets the collectors that it requests, and what is always on.
func TestOnly(t *testing.T) {
	t.Parallel()
	c := adapter().leanly().collector()
	const core, cq, limit, vector, verdicts = "rdma_device_info", "rdma_probe_cq_entries_actual", "rdma_device_limit", "rdma_notification_vector_latency_seconds", "rdma_contract_verdicts"
	for _, tc := range []struct {
		collect, exclude []string
		want             []string
		problem          string
	}{
		{nil, nil, []string{core, cq, vector, verdicts}, ""},
		{[]string{"sizes"}, nil, []string{core, cq}, ""},
		{[]string{"vectors", "sizes", "vectors"}, nil, []string{core, cq, vector}, ""},
		{nil, []string{"sizes", "contracts"}, []string{core, vector}, ""},
		{nil, []string{"limits"}, []string{core, cq, vector, verdicts}, ""},
		{[]string{"sizes"}, []string{"vectors"}, nil, "not both"},
		{[]string{"limits"}, nil, nil, "--collector.limits"},
		{[]string{"sizes", "size\n"}, nil, nil, "adapter, cgroups, contracts, counters, gids, interrupts, inventory, latency, limits, links, memory, owner-pids, owners, raw-counters, sizes, vectors, verb-histograms, verbs"},
		{nil, []string{"x"}, nil, `"x"`},
	} {
		only, err := c.Only(tc.collect, tc.exclude)
		if tc.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tc.problem) || strings.Contains(err.Error(), "\n") {
				t.Errorf("collect %q, exclude %q: %v", tc.collect, tc.exclude, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := expose(t, pedantic(t, only))
		for _, name := range []string{core, cq, limit, vector, verdicts} {
			if has := strings.Contains(got, "\n"+name+"{"); has != slices.Contains(tc.want, name) {
				t.Errorf("collect %q, exclude %q: %s is there: %t", tc.collect, tc.exclude, name, has)
			}
		}
	}
}

// TestOff verifies that the series of a collector that is off are absent, and no others.
func TestOff(t *testing.T) {
	t.Parallel()
	for _, p := range collector.Parts() {
		s := adapter()
		s.on = collector.Everything()
		before := values(t, s.collector())
		s.on[p.Name] = false
		after := values(t, s.collector())
		if p.Name == collector.OwnersPID || p.Name == collector.Cgroups || p.Name == collector.Owners {
			continue // There are no owners.
		}
		if len(after) >= len(before) {
			t.Errorf("%s makes no series", p.Name)
		}
		for series := range after {
			if _, ok := before[series]; !ok {
				t.Errorf("%s is there without %s alone", series, p.Name)
			}
		}
	}
}
