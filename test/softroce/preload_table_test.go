//go:build vm

package softroce

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

const (
	reliabilityFile = "../../docs/reference/reliability.md"
	tableBegin      = "<!-- What follows is written by make reliability. -->"
	tableEnd        = "<!-- Here ends what make reliability writes. -->"
)

// compareTable makes sure that the documentation has what was seen.
func compareTable(t *testing.T, cells []preloadCell) {
	t.Helper()
	table := tableBegin + "\n" + tableOf(cells) + tableEnd + "\n"
	if *preloadPrint {
		fmt.Print(table)
		return
	}
	doc := running.Must(os.ReadFile(reliabilityFile))(t)
	if !strings.Contains(string(doc), table) {
		t.Errorf("%s has another table than\n%s\nIf this is right, run make reliability.", reliabilityFile, table)
	}
}

// tableOf returns what was seen. Cells of a verb that differ only in the outcome share a row.
func tableOf(cells []preloadCell) string {
	type row struct {
		verb, seen       string
		faults, outcomes []string
	}
	var rows []row
	verbs := make(map[string]bool)
	for _, c := range cells {
		verb, text := string(c.verb.Verb), c.columns()
		verbs[verb] = true
		i := slices.IndexFunc(rows, func(r row) bool { return r.verb == verb && r.seen == text })
		if i < 0 {
			i = len(rows)
			rows = append(rows, row{verb: verb, seen: text})
		}
		rows[i].faults = append(rows[i].faults, c.fault)
		rows[i].outcomes = append(rows[i].outcomes, c.want.outcome)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d cells, of %d verbs:\n\n", len(cells), len(verbs))
	b.WriteString("| verb | fault | outcome | probes that fail | probes without a result | what shows it |\n")
	b.WriteString("|---|---|---|---|---|---|\n")
	for _, r := range rows {
		outcomes := slices.Compact(slices.Clone(r.outcomes))
		if len(outcomes) > 1 {
			outcomes = r.outcomes
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.verb, strings.Join(r.faults, ", "), strings.Join(outcomes, ", "), r.seen)
	}
	return b.String()
}

// columns are those after the outcome. The injected errno is called so.
func (c preloadCell) columns() string {
	var signs []string
	for _, sign := range c.want.signs {
		name, labels, _ := strings.Cut(sign, " ")
		if slices.Contains([]string{"EBUSY", "ENOMEM", "EIO"}, c.fault) {
			for _, own := range []string{callFailure(string(c.verb.Verb), c.fault), undestroyed(c.verb.Object, c.fault)} {
				if sign == own {
					labels = strings.TrimSuffix(labels, c.fault) + "that errno"
				}
			}
		}
		signs = append(signs, strings.TrimSuffix("`"+name+"` "+labels, " "))
	}
	return strings.Join([]string{
		strings.Join(c.want.failed, ", "), strings.Join(c.want.unjudged, ", "), strings.Join(signs, "; "),
	}, " | ")
}
