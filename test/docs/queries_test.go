package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/promql"
	"rdma_exporter/test/running"
)

var (
	// span is code within a line.
	span = regexp.MustCompile("`([^`]+)`")
	// query is what an expression of PromQL has, and no other code of the pages: a
	// metric with labels or an operator, or a function of one.
	query = regexp.MustCompile(`^(rdma_[a-z_]+|[a-z_:]+:rdma_[a-z_:]+)( *[{<>=/]| (\*|or|unless) )|^(sum|avg|max|min|count|topk|rate|increase|histogram_quantile)( by \([a-z_, ]+\))? ?\(.+\)`)
)

// TestQueriesKeepApart verifies that the queries of docs/queries.md add up nothing of
// several clusters, jobs or instances.
func TestQueriesKeepApart(t *testing.T) {
	asks := regexp.MustCompile(`^(8 \* )?[a-z_]+( by )?[ (]|^rdma_[a-z_]+(\{|$)`)
	text := running.Must(os.ReadFile(filepath.Join(root, "docs/queries.md")))(t)
	found := 0
	for line := range strings.Lines(string(text)) {
		_, cells, _ := strings.Cut(line, " | ")
		for _, m := range span.FindAllStringSubmatch(cells, -1) {
			if !asks.MatchString(m[1]) {
				continue
			}
			found++
			e, err := promql.Parse(strings.ReplaceAll(m[1], `\|`, "|"))
			if err != nil {
				t.Errorf("%s: %v", m[1], err)
			}
			sums := slices.ContainsFunc(e.Functions, func(f string) bool {
				return slices.Contains([]string{"sum", "max", "min", "avg", "count"}, f)
			})
			for _, label := range []string{"cluster", "job", "instance"} {
				if (sums && !strings.Contains(m[1], " without ") || len(e.Grouped) > 0) && !slices.Contains(e.Grouped, label) {
					t.Errorf("%s does not keep %s", m[1], label)
				}
			}
		}
	}
	if found < 25 {
		t.Errorf("only %d queries were found", found)
	}
}

// TestQueries makes sure that Prometheus understands each expression of the pages.
func TestQueries(t *testing.T) {
	promtool := running.FindPrometheus(t, "promtool")
	// A group is one expression, and its name says where it stands.
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	type group struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}
	var all struct {
		Groups []group `json:"groups"`
	}
	for _, p := range pages(t) {
		for i, line := range p.prose() {
			for j, m := range span.FindAllStringSubmatch(line, -1) {
				if query.MatchString(m[1]) && !strings.HasPrefix(m[1], "rdma_exporter ") {
					expr := strings.ReplaceAll(m[1], `\|`, "|") // as in the cell of a table
					all.Groups = append(all.Groups, group{fmt.Sprintf("%s:%d, code %d", p.path, i+1, j+1), []rule{{"x", expr}}})
				}
			}
		}
	}
	if len(all.Groups) < 40 {
		t.Errorf("only %d expressions were found", len(all.Groups))
	}
	// YAML takes JSON.
	text := running.Must(json.Marshal(all))(t)
	file := running.File(t, "rules.yaml", string(text))
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "--lint=none", file).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
}
