package collector

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// TestDeclarations makes sure that each row of the table is whole.
func TestDeclarations(t *testing.T) {
	meanings := labelMeanings()
	used := make(map[string]bool)
	names := make(map[string]bool)
	for f, d := range declarations() {
		if d.subject == "" || d.name == "" || d.unit == "" || d.help == "" {
			t.Errorf("row %d is not whole: %+v", f, d)
		}
		if !strings.HasPrefix(d.name, "rdma_") || names[d.name] {
			t.Errorf("%s is there twice or lacks the prefix", d.name)
		}
		names[d.name] = true
		if (d.kind == dto.MetricType_HISTOGRAM) != (d.buckets != nil) {
			t.Errorf("%s: type %v with buckets %v", d.name, d.kind, d.buckets)
		}
		if strings.ContainsAny(d.help+d.unit, "|\n") {
			t.Errorf("%s: the text would break the table of docs/metrics.md", d.name)
		}
		for _, l := range d.labels {
			used[l] = true
			if meanings[l] == "" {
				t.Errorf("%s: label %s has no meaning", d.name, l)
			}
		}
	}
	for l := range meanings {
		if !used[l] {
			t.Errorf("no metric has the label %s", l)
		}
	}
}

// TestDocs compares docs/metrics.md with the declarations.
func TestDocs(t *testing.T) {
	const path = "../docs/metrics.md"
	got := docs()
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the declarations say; go test ./collector -update rewrites it", path)
	}
}

// docs returns docs/metrics.md.
func docs() string {
	var out strings.Builder
	out.WriteString(`# Metrics

This page follows from the table in ` + "`collector/declare.go`" + `; ` + "`go test ./collector -update`" + ` rewrites it.

Gauges tell of the last finished run of the probes on a device and are absent
while there is nothing to tell; a device that vanishes takes its series along.
Counters and histograms sum up the runs since the exporter was started or the
device appeared, whichever was later. Beside the metrics below there are
` + "`rdma_exporter_build_info`, `go_*`, `process_*` and `promhttp_*`" + `.
`)
	labels := make(map[string]bool)
	var last subject
	for _, d := range declarations() {
		if d.subject != last {
			last = d.subject
			fmt.Fprintf(&out, "\n## %s\n\n| metric | type | labels | unit | meaning |\n|---|---|---|---|---|\n", d.subject)
		}
		names := make([]string, len(d.labels))
		for i, l := range d.labels {
			names[i] = "`" + l + "`"
			labels[l] = true
		}
		kind := strings.ToLower(d.kind.String())
		if d.kind == dto.MetricType_HISTOGRAM {
			kind += " (classic and native)"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", d.name, kind, strings.Join(names, ", "), d.unit, d.help)
	}

	out.WriteString("\n## Labels\n\n| label | meaning |\n|---|---|\n")
	meanings := labelMeanings()
	sorted := make([]string, 0, len(labels))
	for l := range labels {
		sorted = append(sorted, l)
	}
	slices.Sort(sorted)
	for _, l := range sorted {
		fmt.Fprintf(&out, "| `%s` | %s |\n", l, meanings[l])
	}

	fmt.Fprintf(&out, `
## How many series

A device makes some 430 samples with the default profiles, more than half of them
the buckets of `+"`rdma_verbs_call_duration_seconds`"+`. A child process that tells of
more than any sane one cannot fill the server: the last run of a device makes at
most %d series, beyond which `+"`rdma_exporter_dropped_series`"+` counts them, and at
most %d verbs and %d errnos are told apart.
`, maxSeries, maxVerbs, maxErrnos)
	return out.String()
}
