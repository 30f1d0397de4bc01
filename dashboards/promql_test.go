package dashboards_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"rdma_exporter/test/promql"
	"rdma_exporter/test/running"
)

// vocabulary is what expressions may speak of.
type vocabulary struct {
	labels     map[string][]string // of each metric and recording rule
	documented map[string]bool     // the metrics of docs/reference/metrics.md
	suffixed   map[string]string   // rdma_x_bucket → rdma_x
}

// base is the name that docs/reference/metrics.md has for a metric.
func (v vocabulary) base(metric string) string {
	if b, ok := v.suffixed[metric]; ok {
		return b
	}
	return metric
}

// readVocabulary reads docs/reference/metrics.md and the recording rules.
func readVocabulary(t *testing.T) vocabulary {
	t.Helper()
	v := vocabulary{
		labels: map[string][]string{
			// Of Prometheus, and of every exporter.
			"up":                         {"job", "instance"},
			"process_start_time_seconds": {"job", "instance"},
			"rdma_exporter_build_info":   {"job", "instance", "version"},
		},
		documented: make(map[string]bool),
		suffixed:   make(map[string]string),
	}
	docs := running.Must(os.ReadFile("../docs/reference/metrics.md"))(t)
	for _, row := range regexp.MustCompile("(?m)^\\| `(rdma_[a-z0-9_]+)` \\| [^|]*\\| ([a-z]+)[^|]*\\| ([^|]*)\\|").FindAllStringSubmatch(string(docs), -1) {
		name, kind := row[1], row[2]
		labels := []string{"job", "instance"}
		for _, l := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[3], -1) {
			labels = append(labels, l[1])
		}
		v.documented[name] = true
		switch kind {
		case "histogram":
			v.labels[name], v.labels[name+"_bucket"] = labels, append(slices.Clone(labels), "le")
		case "summary":
			v.labels[name] = labels
			labels = slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return l == "quantile" })
		default:
			v.labels[name] = labels
			continue
		}
		v.labels[name+"_sum"], v.labels[name+"_count"] = labels, labels
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			v.suffixed[name+suffix] = name
		}
	}
	if len(v.documented) < 50 {
		t.Fatalf("docs/reference/metrics.md has %d metrics only: its form has changed", len(v.documented))
	}

	var rules struct {
		Groups []struct {
			Rules []struct{ Record, Expr string }
		}
	}
	text := running.Must(os.ReadFile("../alerts/recording.yaml"))(t)
	running.Check(t, yaml.Unmarshal(text, &rules))
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			// The level, which begins the name, says what tells its series apart.
			labels := []string{"job"}
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
