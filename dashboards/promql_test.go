package dashboards_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
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
	docs, err := os.ReadFile("../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(rdma_[a-z0-9_]+)` \\| [^|]*\\| ([a-z]+)[^|]*\\| ([^|]*)\\|").FindAllStringSubmatch(string(docs), -1) {
		name, kind := row[1], row[2]
		labels := []string{"job", "instance"}
		for _, l := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[3], -1) {
			labels = append(labels, l[1])
		}
		v.documented[name] = true
		switch kind {
		case "histogram":
			v.labels[name+"_bucket"] = append(slices.Clone(labels), "le")
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
	text, err := os.ReadFile("../alerts/recording.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			// The level, which begins the name, says what tells its series apart.
			labels := []string{"job"}
			for _, s := range parse(r.Expr).selectors {
				labels = append(labels, v.labels[s.metric]...)
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

// parsed is what the checks need to know of an expression.
type parsed struct {
	selectors []selector
	grouped   []string   // labels of by and of group_left
	joins     [][]string // labels of each on
	made      []string   // labels that label_replace makes
	windows   []window
	functions []string // aggregations and keywords, too
	raw       []string // what stands behind the on of an operator that needs one series, and is no aggregation
}

// selector is a metric with its matchers.
type selector struct {
	metric   string
	matchers []matcher
}

// matcher is a matcher of a label.
type matcher struct {
	label, op, value string
}

// window is a range with the function that it is given to.
type window struct {
	function, span string
}

// token is a word, a string, or a mark.
type token struct {
	text   string
	quoted bool
}

// tokens splits an expression. It is not a parser of PromQL, which promtool has: it
// finds names.
func tokens(expr string) []token {
	var list []token
	for _, m := range regexp.MustCompile(`"([^"]*)"|\[([^\]]*)\]|[$a-zA-Z_:][$a-zA-Z0-9_:]*|[0-9][0-9a-zA-Z.]*|=~|!~|!=|==|>=|<=|\S`).FindAllStringSubmatch(expr, -1) {
		switch {
		case strings.HasPrefix(m[0], `"`):
			list = append(list, token{m[1], true})
		case strings.HasPrefix(m[0], "["):
			list = append(list, token{"[", false}, token{m[2], true})
		default:
			list = append(list, token{m[0], false})
		}
	}
	return list
}

// parse finds the names in an expression.
func parse(expr string) parsed {
	var p parsed
	list := tokens(expr)
	at := func(i int) string {
		if i < len(list) && !list[i].quoted {
			return list[i].text
		}
		return ""
	}
	word := regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	keywords := []string{"and", "or", "unless", "bool", "offset", "by", "without", "on", "ignoring", "group_left", "group_right", "Inf"}
	var functions []string // the open brackets, by the function before them
	last := ""
	for i := 0; i < len(list); i++ {
		name := at(i)
		switch {
		case name == "(":
			functions = append(functions, last)
		case name == ")":
			functions = functions[:max(len(functions)-1, 0)]
		case name == "[":
			p.windows = append(p.windows, window{functions[len(functions)-1], list[i+1].text})
		case slices.Contains([]string{"by", "without", "on", "ignoring", "group_left", "group_right"}, name) && at(i+1) == "(":
			var labels []string
			for i += 2; at(i) != ")"; i++ {
				if at(i) != "," {
					labels = append(labels, at(i))
				}
			}
			switch name {
			case "on":
				p.joins = append(p.joins, labels)
				if !slices.Contains([]string{"and", "or", "unless"}, last) {
					p.raw = append(p.raw, unaggregated(list[i+1:])...)
				}
			case "by", "group_left":
				p.grouped = append(p.grouped, labels...)
			}
			continue // the function before it keeps its name
		case word.MatchString(name) && (at(i+1) == "(" || slices.Contains(keywords, name) || at(i+1) == "by" || at(i+1) == "without"):
			if name == "label_replace" {
				p.made = append(p.made, madeLabel(list[i:]))
			}
			last = name
			p.functions = append(p.functions, name)
			continue
		case word.MatchString(name):
			s := selector{metric: name}
			if at(i+1) == "{" {
				for i += 2; at(i) != "}"; i++ {
					if at(i) == "," {
						continue
					}
					s.matchers = append(s.matchers, matcher{at(i), at(i + 1), list[i+2].text})
					i += 2
				}
			}
			p.selectors = append(p.selectors, s)
		}
		last = ""
	}
	return p
}

// unaggregated returns the name that the right side of a join begins with, unless it
// is an aggregation.
func unaggregated(list []token) []string {
	inLabels := false
	for _, t := range list {
		switch {
		case t.text == "group_left" || t.text == "group_right":
			inLabels = true
		case t.text == ")":
			inLabels = false
		case inLabels || t.text == "(":
		case slices.Contains([]string{"max", "min", "sum", "avg", "count", "group", "quantile"}, t.text):
			return nil
		default:
			return []string{t.text}
		}
	}
	return nil
}

// madeLabel is the second argument of label_replace, its first string that stands
// within its own brackets.
func madeLabel(list []token) string {
	depth := 0
	for _, t := range list {
		switch {
		case t.quoted && depth == 1:
			return t.text
		case t.quoted:
		case t.text == "(" || t.text == "{":
			depth++
		case t.text == ")" || t.text == "}":
			depth--
		}
	}
	return ""
}

// TestParse holds what the other tests rely on.
func TestParse(t *testing.T) {
	p := parse(`sum by (a, le) (rate(x_bucket{job="$job",b=~"c,d|e"}[$__rate_interval])) / on (a) group_left (f) ` +
		`label_replace(max(deriv(y[1h])), "g", "none", "g", "") or z > bool 3 unless up offset 5m == 1`)
	var metrics []string
	for _, s := range p.selectors {
		metrics = append(metrics, s.metric)
	}
	if want := []string{"x_bucket", "y", "z", "up"}; !slices.Equal(metrics, want) {
		t.Errorf("metrics %q, want %q", metrics, want)
	}
	if want := []matcher{{"job", "=", "$job"}, {"b", "=~", "c,d|e"}}; !slices.Equal(p.selectors[0].matchers, want) {
		t.Errorf("matchers %q, want %q", p.selectors[0].matchers, want)
	}
	if want := []window{{"rate", "$__rate_interval"}, {"deriv", "1h"}}; !slices.Equal(p.windows, want) {
		t.Errorf("windows %q, want %q", p.windows, want)
	}
	if want := []string{"a", "le", "f"}; !slices.Equal(p.grouped, want) {
		t.Errorf("labels %q, want %q", p.grouped, want)
	}
	if len(p.joins) != 1 || !slices.Equal(p.joins[0], []string{"a"}) || !slices.Equal(p.made, []string{"g"}) {
		t.Errorf("joins %q, made %q", p.joins, p.made)
	}
}
