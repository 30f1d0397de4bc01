//go:build scale

package scale_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// relabelling is a rule of metric_relabel_configs.
type relabelling struct {
	SourceLabels []string `yaml:"source_labels"`
	Regex        string   `yaml:"regex"`
	Action       string   `yaml:"action"`
}

// readRelabellings returns the rules of the page that drop series, in order.
func readRelabellings(t *testing.T, text string) []relabelling {
	t.Helper()
	for _, block := range blocks(text) {
		var config struct {
			Jobs []struct {
				Rules []relabelling `yaml:"metric_relabel_configs"`
			} `yaml:"scrape_configs"`
		}
		if err := yaml.Unmarshal([]byte(block), &config); err != nil {
			t.Fatalf("docs/reference/scaling.md: %v", err)
		}
		if len(config.Jobs) > 0 && len(config.Jobs[0].Rules) > 0 {
			return config.Jobs[0].Rules
		}
	}
	t.Fatal("docs/reference/scaling.md has no metric_relabel_configs")
	return nil
}

// drops tells whether a rule drops a series, as Prometheus decides it.
func (r relabelling) drops(s sample) bool {
	var values []string
	for _, label := range r.SourceLabels {
		values = append(values, s.labels[label])
	}
	return r.Action == "drop" && regexp.MustCompile("^(?:"+r.Regex+")$").MatchString(strings.Join(values, ";"))
}

// selector is a metric with its matchers in an expression.
type selector struct {
	metric   string
	matchers [][]string // label, operator, value
}

// selectors returns what may be selectors in a text: names, with matchers if there are
// any.
func selectors(text string) []selector {
	var all []selector
	for _, m := range regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([^{}]*)\})?`).FindAllStringSubmatch(text, -1) {
		s := selector{metric: m[1]}
		for _, one := range regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*\\?"([^"\\]*)`).FindAllStringSubmatch(m[2], -1) {
			s.matchers = append(s.matchers, one[1:])
		}
		all = append(all, s)
	}
	return all
}

// selects tells whether a selector can select a series. What a variable stands for, or
// a label of the target is, is not known.
func (s selector) selects(x sample) bool {
	if s.metric != x.name {
		return false
	}
	for _, m := range s.matchers {
		label, op, want := m[0], m[1], m[2]
		got, known := x.labels[label]
		if !known || strings.Contains(want, "$") || strings.Contains(want, "%") {
			continue
		}
		match := got == want
		if strings.HasSuffix(op, "~") {
			match = regexp.MustCompile("^(?:" + want + ")$").MatchString(got)
		}
		if match == (op[0] == '!') {
			return false
		}
	}
	return true
}

// user is a rule or a panel that uses series.
type user struct {
	name   string
	record string
	uses   []selector
	// expr is the expression of a rule, and every how often it is evaluated, where its
	// group says.
	expr  string
	every time.Duration
}

// readRules returns the recording rules and the alerts.
func readRules(t *testing.T) []user {
	t.Helper()
	var all []user
	for _, name := range []string{"recording.yaml", "alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join(repository, "alerts", name))
		if err != nil {
			t.Fatal(err)
		}
		var content struct {
			Groups []struct {
				Interval string
				Rules    []struct {
					Record, Alert, Expr string
					Annotations         map[string]string
				}
			}
		}
		if err := yaml.Unmarshal(text, &content); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, g := range content.Groups {
			every := scraped
			if g.Interval != "" {
				var err error
				if every, err = time.ParseDuration(g.Interval); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			for _, r := range g.Rules {
				u := user{name: r.Record + r.Alert, record: r.Record, uses: selectors(r.Expr), expr: r.Expr, every: every}
				for _, text := range r.Annotations {
					u.uses = append(u.uses, selectors(text)...)
				}
				all = append(all, u)
			}
		}
	}
	if len(all) < 20 {
		t.Fatalf("there are %d rules only", len(all))
	}
	return all
}

// readUsers returns the panels of the dashboards.
func readUsers(t *testing.T) []user {
	t.Helper()
	var all []user
	for _, board := range []struct{ file, title string }{{"rdma-fleet", "Fleet"}, {"rdma-device", "Device"}, {"rdma-resources", "Resources"}} {
		for _, p := range readPanels(t, board.file) {
			u := user{name: board.title + ": " + p.Title}
			for _, target := range p.Targets {
				u.uses = append(u.uses, selectors(target.Expr)...)
			}
			all = append(all, u)
		}
	}
	return all
}

// using returns the names of those that use any of the series that are gone, and marks
// them that find others with each of their selectors: those that are left.
func using(users []user, gone, left []sample) []string {
	var names []string
	gone = slices.Clone(gone)
	for _, u := range users {
		used, part := false, true
		for _, s := range u.uses {
			if slices.ContainsFunc(gone, s.selects) {
				used = true
				part = part && slices.ContainsFunc(left, s.selects)
			}
		}
		switch {
		case used && part:
			names = append(names, u.name+inPart)
		case used:
			names = append(names, u.name)
			if u.record != "" {
				// Who uses what it records comes after it.
				gone = append(gone, sample{name: u.record})
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// inPart marks what has other series left.
const inPart = " (in part)"

// everySeries returns the series of a host, and beside them one of each metric that a
// healthy host has none of.
func everySeries(t *testing.T, h *host) []sample {
	t.Helper()
	names, composed := documented(t)
	have := make(map[string]bool)
	for _, s := range h.samples {
		have[s.family(composed)] = true
	}
	all := slices.Clone(h.samples)
	for _, name := range names {
		if !have[name] {
			all = append(all, sample{name: name, labels: map[string]string{"__name__": name}})
		}
	}
	return all
}

// freeDrops is how many of the rules that drop series, from the first on, no rule and no
// alert may miss.
const freeDrops = 3

// drops returns what each of the rules that drop series saves on a host, and who misses
// it.
func drops(t *testing.T, text string, h *host) string {
	t.Helper()
	rules, panels := readRules(t), readUsers(t)
	left := everySeries(t, h)
	total := len(h.samples)
	var rows [][]string
	kept := total
	for i, r := range readRelabellings(t, text) {
		var gone, rest []sample
		for _, s := range left {
			if r.drops(s) {
				gone = append(gone, s)
			} else {
				rest = append(rest, s)
			}
		}
		left = rest
		saved := min(len(gone), kept)
		kept -= saved
		missed, blank := using(rules, gone, rest), using(panels, gone, rest)
		if saved == 0 {
			t.Errorf("docs/reference/scaling.md: the %dth rule drops nothing", i+1)
		}
		if i < freeDrops && len(missed) > 0 {
			t.Errorf("docs/reference/scaling.md: the %dth rule is free by what the page says, and these use what it drops: %s", i+1, strings.Join(missed, ", "))
		}
		name := func(names []string) string {
			if len(names) == 0 {
				return "none"
			}
			return strings.Join(names, "; ")
		}
		rows = append(rows, []string{
			fmt.Sprint(i + 1), thousands(saved), fmt.Sprintf("%.1f %%", 100*float64(saved)/float64(total)), thousands(kept),
			name(missed), name(blank),
		})
	}
	return tableOf([]string{"rule", "saves", "of all", "leaves", "rules that use it", "panels that use it"}, rows)
}
