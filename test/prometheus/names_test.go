//go:build prometheus

package prometheus_test

import (
	"maps"
	"regexp"
	"slices"
	"testing"
)

// checkNames makes sure that the labels that the names of series, and the texts of
// annotations, are made of exist. What is listed as empty has none.
func (p *proof) checkNames(t testing.TB) {
	t.Helper()
	for _, e := range p.expressions {
		for _, legend := range e.legends {
			for _, label := range legendLabels(legend) {
				if e.labels != nil && !e.labels[label] {
					t.Errorf("%s shows {{%s}}, but its series have only %q", e.id(), label, slices.Sorted(maps.Keys(e.labels)))
				}
			}
		}
	}
}

func legendLabels(legend string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`\{\{\s*(.+?)\s*\}\}`).FindAllStringSubmatch(legend, -1) {
		all = append(all, m[1])
	}
	return all
}
