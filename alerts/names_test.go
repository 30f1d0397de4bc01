package alerts_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/promql"
	"rdma_exporter/test/running"
)

func parse(t *testing.T, expr string) *promql.Expression {
	t.Helper()
	e := running.Must(promql.Parse(expr))(t)
	return &e
}

// documented returns the labels of each metric in docs/reference/metrics.md, with those of its target.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	all, _ := promql.Documented(t, "../docs/reference/metrics.md")
	all["up"], all["process_start_time_seconds"] = []string{"job", "instance"}, []string{"job", "instance"}
	return all
}

// TestNames verifies that the exporter has each metric and label in the rules, their texts and their tests.
func TestNames(t *testing.T) {
	known := documented(t)
	labels := make(map[string]bool)
	for _, names := range known {
		for _, name := range names {
			labels[name] = true
		}
	}
	all := append(rules(t, recordingFile), rules(t, alertsFile)...)
	for _, r := range all {
		if r.Record != "" {
			known[r.Record] = slices.Collect(maps.Keys(labels))
		}
	}
	selects := func(where string, e *promql.Expression, more ...string) {
		t.Helper()
		for _, s := range e.Selectors {
			if known[s.Metric] == nil {
				t.Errorf("%s: nothing is named %s", where, s.Metric)
				continue
			}
			for _, m := range s.Matchers {
				if !slices.Contains(append(more, known[s.Metric]...), m.Label) {
					t.Errorf("%s: %s has no label %s", where, s.Metric, m.Label)
				}
			}
		}
	}
	inText, inQuery := regexp.MustCompile(`\$labels\.([a-zA-Z_]+)`), regexp.MustCompile(`"(rdma_[a-z_]+\{[^}]*\}[^"]*)"`)
	for _, r := range all {
		where, e := r.Record+r.Alert, parse(t, r.Expr)
		if len(e.Selectors) == 0 {
			t.Errorf("%s names no metric", where)
		}
		selects(where, e)
		for _, l := range e.Labels {
			if !labels[l] {
				t.Errorf("%s: no metric has the label %s", where, l)
			}
		}
		for _, text := range r.Annotations {
			for _, m := range inText.FindAllStringSubmatch(text, -1) {
				if !labels[m[1]] {
					t.Errorf("%s: no metric has the label %s", where, m[1])
				}
			}
			for _, m := range inQuery.FindAllStringSubmatch(text, -1) {
				selects(where, parse(t, strings.ReplaceAll(m[1], "%q", `""`)))
			}
		}
	}
	for _, g := range testGroups(t) {
		for _, s := range g.InputSeries {
			// Two more labels of targets: one that stays, and one that changes.
			selects(g.Name, parse(t, s.Series), "rack", "pod")
		}
	}
}
