package promql

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"rdma_exporter/test/running"
)

// Documented reads docs/reference/metrics.md. It returns the labels of each metric, with those of its
// target, and the documented name of each: rdma_x for rdma_x_bucket.
func Documented(t testing.TB, file string) (labels map[string][]string, name map[string]string) {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `(rdma_[a-z0-9_]+)` \\| [^|]*\\| ([a-z]+)[^|]*\\|([^|]*)\\|")
	label := regexp.MustCompile("`([a-z_]+)`")
	labels, name = make(map[string][]string), make(map[string]string)
	text := running.Must(os.ReadFile(file))(t)
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		metric, kind, all := m[1], m[2], []string{"cluster", "job", "instance"}
		for _, l := range label.FindAllStringSubmatch(m[3], -1) {
			all = append(all, l[1])
		}
		labels[metric], name[metric] = all, metric
		if kind != "histogram" && kind != "summary" {
			continue
		}
		if kind == "histogram" {
			labels[metric+"_bucket"], name[metric+"_bucket"] = append(slices.Clone(all), "le"), metric
		}
		for _, series := range []string{metric + "_sum", metric + "_count"} {
			labels[series] = slices.DeleteFunc(slices.Clone(all), func(l string) bool { return l == "quantile" })
			name[series] = metric
		}
	}
	if len(labels) < 50 {
		t.Fatalf("%s has %d metrics only: its form has changed", file, len(labels))
	}
	return labels, name
}
