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
	for _, name := range []string{"up", "process_start_time_seconds"} {
		all[name] = []string{"cluster", "job", "instance"}
	}
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
	// Rules make two more: in which quarter of an hour something began, and on which rail.
	labels["window"], labels["rail"] = true, true
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
	inText, inQuery := regexp.MustCompile(`\$labels\.([a-zA-Z_]+)`), regexp.MustCompile(`"([^"]*rdma_[a-z_:]+[a-z0-9_]*\{[^}]*\}[^"]*(?:\\"[^"]*)*)"`)
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
				selects(where, parse(t, strings.NewReplacer("%q", `""`, `\"`, `"`).Replace(m[1])))
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

// TestCluster verifies that whatever rules and texts match by job is matched by the label cluster first, and that the
// rules use the word for nothing else, so that another label can take its place.
func TestCluster(t *testing.T) {
	lists := regexp.MustCompile(`\b(by|on|ignoring|without|group_left|group_right) \(([^)]*)\)`)
	for _, r := range append(rules(t, recordingFile), rules(t, alertsFile)...) {
		for _, list := range lists.FindAllStringSubmatch(r.Expr, -1) {
			switch names := strings.Split(list[2], ", "); {
			case list[1] == "without" || !slices.Contains(names, "job"):
			case !slices.Equal(names[:2], []string{"cluster", "job"}):
				t.Errorf("%s: %s does not begin with cluster, job", r.Record+r.Alert, list[0])
			}
		}
		for _, text := range append(slices.Collect(maps.Values(r.Annotations)), r.Expr) {
			if n, jobs := strings.Count(text, "cluster=%q"), strings.Count(text, "job=%q"); n != jobs {
				t.Errorf("%s: %d of %d queries have the label cluster: %s", r.Record+r.Alert, n, jobs, text)
			}
			for word := range strings.FieldsSeq(regexp.MustCompile(`[^a-zA-Z_$.%]+`).ReplaceAllString(text, " ")) {
				if strings.Contains(word, "cluster") && !slices.Contains([]string{"cluster", "$labels.cluster", "var-cluster", "cluster%q", "%q"}, word) {
					t.Errorf("%s: %q is not the label", r.Record+r.Alert, word)
				}
			}
		}
	}
}
