package dashboards_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"rdma_exporter/test/promql"
	"rdma_exporter/test/running"
)

// vocabulary is what expressions may use.
type vocabulary struct {
	labels map[string][]string // of each metric and recording rule
	name   map[string]string   // in docs/reference/metrics.md, of each metric
}

// readVocabulary reads docs/reference/metrics.md and the recording rules.
func readVocabulary(t *testing.T) vocabulary {
	t.Helper()
	var v vocabulary
	v.labels, v.name = promql.Documented(t, "../docs/reference/metrics.md")
	target := []string{"cluster", "job", "instance"}
	v.labels["up"], v.labels["process_start_time_seconds"] = target, target
	v.labels["rdma_exporter_build_info"] = append(slices.Clone(target), "version")
	v.labels["kube_pod_info"] = append(slices.Clone(target), "uid", "namespace", "pod")
	var rules struct {
		Groups []struct {
			Rules []struct{ Record, Expr string }
		}
	}
	groups := rules.Groups
	for _, file := range []string{"recording.yaml", "recording-kubernetes.yaml"} {
		text := running.Must(os.ReadFile("../alerts/" + file))(t)
		running.Check(t, yaml.Unmarshal(text, &rules))
		groups = append(groups, rules.Groups...)
	}
	for _, g := range groups {
		for _, r := range g.Rules {
			// The level, which begins the name, says what tells its series apart.
			labels := []string{"cluster", "job"}
			for _, s := range parse(r.Expr).Selectors {
				labels = append(labels, v.labels[s.Metric]...)
			}
			level, _, _ := strings.Cut(r.Record, ":")
			labels = slices.DeleteFunc(labels, func(l string) bool {
				return (l == "instance" || l == "device") && !strings.Contains("_"+level+"_", "_"+l+"_")
			})
			v.labels[r.Record] = labels
		}
	}
	return v
}

// parse lists the names in an expression. The checker reports one that is not PromQL.
func parse(expr string) promql.Expression {
	e, _ := promql.Parse(expr)
	return e
}
