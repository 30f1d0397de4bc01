package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

var (
	// metric is a word that has the form of a metric's name.
	metric = regexp.MustCompile(`\brdma_(?:adapter|device|devices|hardware|port|probe|vector|verbs|notification|notifications|completion|completions|contract|resource|cgroup|owner|inventory|findings|exporter)_[a-z0-9_]+[a-z]\b`)
	// ruleName is the name of a group of rules.
	ruleName = regexp.MustCompile(`(?m)^ *- name: (rdma_[a-z_]+)$`)
	// metricRow is a row of a table of docs/reference/metrics.md.
	metricRow = regexp.MustCompile("(?m)^\\| `(rdma_[a-z0-9_]+)` \\|")
)

// foreignMetrics are metrics of another exporter that docs/migration.md names.
func foreignMetrics() []string {
	return []string{"rdma_port_rcv_data_total", "rdma_port_xmit_data_total"}
}

// TestMetrics makes sure that the metrics that pages name are there.
func TestMetrics(t *testing.T) {
	table := running.Must(os.ReadFile(filepath.Join(root, "docs/reference/metrics.md")))(t)
	known := []string{"rdma_exporter_build_info"}
	for _, m := range metricRow.FindAllSubmatch(table, -1) {
		known = append(known, string(m[1]))
	}
	if len(known) < 50 {
		t.Fatalf("docs/reference/metrics.md has only %v", known)
	}
	for _, file := range []string{"alerts/recording.yaml", "alerts/recording-kubernetes.yaml", "alerts/alerts.yaml"} {
		rules := running.Must(os.ReadFile(filepath.Join(root, file)))(t)
		for _, m := range ruleName.FindAllSubmatch(rules, -1) {
			known = append(known, string(m[1]))
		}
	}
	for _, p := range pages(t) {
		// The changelog names metrics that no longer exist. A test of alerts checks the runbook.
		if p.path == "CHANGELOG.md" || p.path == "docs/alerts.md" {
			continue
		}
		for i, line := range strings.Split(p.text, "\n") {
			for _, at := range metric.FindAllStringIndex(line, -1) {
				name := line[at[0]:at[1]]
				if p.path == "docs/migration.md" && slices.Contains(foreignMetrics(), name) {
					continue
				}
				// rdma_contract_* and the like stand for all that begin so.
				if rest := line[at[1]:]; strings.HasPrefix(rest, "_*") || strings.HasPrefix(rest, "*") || strings.HasPrefix(rest, "_…") {
					continue
				}
				if !slices.ContainsFunc([]string{"", "_bucket", "_sum", "_count"}, func(suffix string) bool {
					base, ok := strings.CutSuffix(name, suffix)
					return ok && slices.Contains(known, base)
				}) {
					t.Errorf("%s:%d: there is no metric %s", p.path, i+1, name)
				}
			}
		}
	}
}
