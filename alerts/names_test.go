package alerts_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	metricsFile = "../docs/reference/metrics.md"
	// processStart is, of the metrics of the process, the one that alerts need.
	processStart = "process_start_time_seconds"
)

// selection is a metric of an expression, with the labels that its matchers name.
type selection struct {
	metric string
	labels []string
}

// expression is what an expression of PromQL names.
type expression struct {
	selections []selection
	// grouped are the labels in on, by, group_left and the like.
	grouped []string
	// words are all other identifiers: functions, operators, or misspelt metrics.
	words []string
}

// metrics returns the metrics that an expression names.
func (e expression) metrics() []string {
	var names []string
	for _, s := range e.selections {
		names = append(names, s.metric)
	}
	return names
}

// parse takes an expression apart. It knows as much of PromQL as the rules need.
func parse(text string) expression {
	token := regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[0-9][0-9.]*(?:e[-+]?[0-9]+|[a-z]+)?|[a-zA-Z_:][a-zA-Z0-9_:]*|\S`)
	tokens := token.FindAllString(text, -1)
	// labels returns the labels within the brackets that open at i: in {} the words
	// before a comparison, in () all.
	labels := func(i int) []string {
		var names []string
		for j := i + 1; j+1 < len(tokens) && tokens[j] != "}" && tokens[j] != ")"; j++ {
			compared := tokens[j+1] == "=" || tokens[j+1] == "!"
			if isName(tokens[j]) && (compared || tokens[i] == "(") {
				names = append(names, tokens[j])
			}
		}
		return names
	}
	var e expression
	for i := 0; i < len(tokens); i++ {
		word, next := tokens[i], ""
		if i+1 < len(tokens) {
			next = tokens[i+1]
		}
		switch {
		case word == "{" || !isName(word):
			continue
		case slices.Contains([]string{"on", "by", "without", "ignoring", "group_left", "group_right"}, word):
			names := labels(i + 1)
			e.grouped = append(e.grouped, names...)
			i += len(names) // No label is taken for a metric.
			for i < len(tokens) && tokens[i] != ")" {
				i++
			}
		case isMetric(word):
			s := selection{metric: word}
			if next == "{" {
				s.labels = labels(i + 1)
				for i < len(tokens) && tokens[i] != "}" {
					i++
				}
			}
			e.selections = append(e.selections, s)
		default:
			e.words = append(e.words, word)
		}
	}
	return e
}

// isMetric tells that a name is one of a metric: of the exporter, of a rule, or one that
// every exporter has.
func isMetric(name string) bool {
	return name == "up" || name == processStart || strings.HasPrefix(name, "rdma_") || strings.Contains(name, ":")
}

// isName tells that a token can be the name of a metric, label or function.
func isName(token string) bool {
	c := token[0]
	return c == '_' || c == ':' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func TestParse(t *testing.T) {
	got := parse(`sum without (port, le) (rate(rdma_a_total{path="x{y\"}",mode!="any"}[5m] offset 1h)) > 1.5e-6 and on (job) a:rdma_b:c == 1`)
	if want := []string{"rdma_a_total", "a:rdma_b:c"}; !slices.Equal(got.metrics(), want) {
		t.Errorf("got the metrics %q, want %q", got.metrics(), want)
	}
	if want := []string{"path", "mode"}; !slices.Equal(got.selections[0].labels, want) {
		t.Errorf("got the labels %q, want %q", got.selections[0].labels, want)
	}
	if want := []string{"port", "le", "job"}; !slices.Equal(got.grouped, want) {
		t.Errorf("got the grouped labels %q, want %q", got.grouped, want)
	}
	if want := []string{"sum", "rate", "offset", "and"}; !slices.Equal(got.words, want) {
		t.Errorf("got the words %q, want %q", got.words, want)
	}
}

// documented returns the labels of each metric in docs/reference/metrics.md, those of its target
// included.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `(rdma_[a-z0-9_]+)` \\| [^|]*\\| ([a-z]+)[^|]*\\|([^|]*)\\|")
	name := regexp.MustCompile("`([a-z_]+)`")
	target := []string{"job", "instance"}
	all := map[string][]string{"up": target, processStart: target}
	for _, m := range row.FindAllStringSubmatch(string(read(t, metricsFile)), -1) {
		labels := slices.Clone(target)
		for _, l := range name.FindAllStringSubmatch(m[3], -1) {
			labels = append(labels, l[1])
		}
		switch m[2] {
		case "histogram":
			all[m[1]+"_bucket"] = append(slices.Clone(labels), "le")
			all[m[1]+"_sum"], all[m[1]+"_count"] = labels, labels
		case "summary":
			all[m[1]] = labels
			all[m[1]+"_sum"], all[m[1]+"_count"] = labels, labels
		default:
			all[m[1]] = labels
		}
	}
	if len(all) < 50 {
		t.Fatalf("%s has %d metrics only: its form has changed", metricsFile, len(all))
	}
	return all
}

// TestNames makes sure that each metric and label in the rules, their texts and their
// tests is one that the exporter has.
func TestNames(t *testing.T) {
	known := documented(t)
	labels := make(map[string]bool)
	for _, names := range known {
		for _, name := range names {
			labels[name] = true
		}
	}
	all := append(rules(t, recordingFile), rules(t, alertsFile)...)
	for _, r := range all {
		if r.Record != "" {
			known[r.Record] = []string{"job", "instance"}
			for name := range labels {
				known[r.Record] = append(known[r.Record], name)
			}
		}
	}
	selects := func(where string, e expression, more ...string) {
		t.Helper()
		for _, s := range e.selections {
			if known[s.metric] == nil {
				t.Errorf("%s: nothing is named %s", where, s.metric)
				continue
			}
			for _, l := range s.labels {
				if !slices.Contains(known[s.metric], l) && !slices.Contains(more, l) {
					t.Errorf("%s: %s has no label %s", where, s.metric, l)
				}
			}
		}
	}
	words := []string{
		"absent", "and", "bool", "changes", "clamp_max", "clamp_min", "count", "count_over_time", "deriv", "group", "histogram_quantile", "increase",
		"label_replace", "last_over_time", "max", "max_over_time", "min_over_time", "or", "offset", "predict_linear", "quantile", "quantile_over_time", "rate",
		"sum", "time", "timestamp", "topk", "unless",
	}
	inText, inQuery := regexp.MustCompile(`\$labels\.([a-zA-Z_]+)`), regexp.MustCompile(`"(rdma_[a-z_]+\{[^}]*\}[^"]*)"`)
	for _, r := range all {
		where, e := r.Record+r.Alert, parse(r.Expr)
		if len(e.selections) == 0 {
			t.Errorf("%s names no metric", where)
		}
		selects(where, e)
		for _, l := range e.grouped {
			if !labels[l] {
				t.Errorf("%s: no metric has the label %s", where, l)
			}
		}
		for _, w := range e.words {
			if !slices.Contains(words, w) {
				t.Errorf("%s: %q is neither a metric nor a known word of PromQL", where, w)
			}
		}
		for _, text := range r.Annotations {
			for _, m := range inText.FindAllStringSubmatch(text, -1) {
				if !labels[m[1]] {
					t.Errorf("%s: no metric has the label %s", where, m[1])
				}
			}
			for _, m := range inQuery.FindAllStringSubmatch(text, -1) {
				selects(where, parse(m[1]))
			}
		}
	}
	for _, g := range testGroups(t) {
		for _, s := range g.InputSeries {
			// Of the labels that a target may have besides, the tests use two: one that
			// stays, and one that changes.
			selects(g.Name, parse(s.Series), "rack", "pod")
		}
	}
}
