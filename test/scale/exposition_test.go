//go:build scale

package scale_test

import (
	"strings"
	"testing"
)

// sample is one line of an exposition.
type sample struct {
	name   string
	labels map[string]string
}

// parseExposition returns the samples of an exposition, in the text format or in that of
// OpenMetrics.
func parseExposition(t testing.TB, text string) []sample {
	t.Helper()
	var all []sample
	for line := range strings.Lines(text) {
		if line[0] == '#' {
			continue
		}
		end := strings.IndexAny(line, "{ ")
		if end < 0 {
			t.Fatalf("%q is no sample", line)
		}
		s := sample{name: line[:end], labels: map[string]string{"__name__": line[:end]}}
		rest := line[end:]
		for rest[0] == '{' || rest[0] == ',' {
			name, value, ok := strings.Cut(rest[1:], `="`)
			// No value of the simulated devices has a quotation mark in it.
			text, after, closed := strings.Cut(value, `"`)
			if !ok || !closed || after == "" {
				t.Fatalf("%q is no sample", line)
			}
			s.labels[name], rest = text, after
		}
		all = append(all, s)
	}
	return all
}

// family returns the metric that a sample is of: without the suffix that those of
// histograms and summaries have.
func (s sample) family(composed map[string]bool) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(s.name, suffix); ok && composed[base] {
			return base
		}
	}
	return s.name
}
