//go:build drill

package drill_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"rdma_exporter/test/running"
)

// binary is the exporter under test.
var binary string

func TestMain(m *testing.M) {
	os.Exit(running.Exporter(m, &binary))
}

const (
	// healthyFor is how long all is well before anything breaks, so that rules know how it was.
	healthyFor = 5 * time.Minute
	// brokenFor is how long the troubles last. No alert is expected to take longer.
	brokenFor = 26 * time.Minute
	// leastBroken is the same for those that the scale does not shorten: windows of rules.
	leastBroken = 16 * time.Minute
)

// pace divides intervals.
type pace float64

// pacing returns the pace that the environment asks for.
func pacing(t testing.TB) pace {
	t.Helper()
	text := cmp.Or(os.Getenv("DRILL_SCALE"), "1")
	scale, err := strconv.ParseFloat(text, 64)
	if err != nil || scale < 1 || scale > 20 {
		t.Fatalf("DRILL_SCALE is %q: set it to a number from 1 to 20", text)
	}
	return pace(scale)
}

// root is the repository with the rules: this one, unless DRILL_ROOT names another.
func root() string { return cmp.Or(os.Getenv("DRILL_ROOT"), "../..") }

// of returns a duration at this pace, of a second at least.
func (p pace) of(d time.Duration) time.Duration {
	return max(time.Duration(float64(d)/float64(p)), time.Second).Round(time.Second)
}

// TestDrill breaks all that can break, and compares what was raised with what should be.
func TestDrill(t *testing.T) {
	pace := pacing(t)
	var nodes []*node
	var targets []any
	scenarios := scenarios()
	for _, s := range scenarios {
		name := 0
		for i, count := range s.nodes {
			n := s.start(t, i)
			nodes = append(nodes, n)
			for range count {
				name++
				targets = append(targets, map[string]any{
					"targets": []string{n.target},
					"labels":  map[string]string{"cluster": s.cluster, "instance": fmt.Sprintf("node%d", name)},
				})
			}
		}
	}
	// A busy machine takes its time to answer.
	scrapes := max(pace.of(30*time.Second), 15*time.Second)
	config := map[string]any{
		"global": map[string]any{
			"scrape_interval": scrapes.String(), "scrape_timeout": scrapes.String(),
			"evaluation_interval": pace.of(time.Minute).String(),
		},
		"rule_files":     pace.rules(t, filepath.Join(root(), "alerts")),
		"scrape_configs": []any{map[string]any{"job_name": "rdma_exporter", "static_configs": targets}},
	}
	prometheus := running.StartPrometheus(t, running.FindPrometheus(t, "prometheus"), config)
	w := &watch{prometheus: prometheus, seen: make(map[string]*alert)}
	t.Logf("%d nodes in %d clusters are well for %v", len(targets), len(scenarios), max(pace.of(healthyFor), 2*time.Minute))
	w.until(t, time.Now().Add(max(pace.of(healthyFor), 2*time.Minute)), nil)

	w.broken = time.Now()
	t.Logf("broken at %v", w.broken.Format(time.TimeOnly))
	w.until(t, w.broken.Add(max(pace.of(brokenFor), leastBroken)), func() {
		for _, n := range nodes {
			n.become(t, w.broken)
		}
	})

	fmt.Printf("\nNodes: %d, of %d exporters. Intervals and waits of alerts divided by %v. Alerts that have ended are in the table as well.\n\n", len(targets), len(nodes), pace)
	fmt.Println("| trouble | nodes × devices | alerts | expected | after | text | page | audit |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, s := range scenarios {
		raised := w.of(s.cluster)
		var names, after, texts []string
		for _, a := range raised {
			names = append(names, a.title())
			after = append(after, a.first.Sub(w.broken).Round(time.Second).String())
			texts = append(texts, a.Annotations["summary"]+". "+a.Annotations["description"])
		}
		page, audit := "–", "–"
		for _, n := range nodes {
			if s.state == nil && s.change != nil {
				page = "not simulated: only what is exposed is changed"
			}
			if n.cluster == s.cluster && page == "–" {
				page, audit = n.page(t), n.audit(t)
			}
		}
		row := []string{
			s.name, fmt.Sprintf("%d × %d", s.count(), s.devices), some(names), cmp.Or(s.alert, "none"), some(after), some(texts), page, audit,
		}
		for i := range row {
			row[i] = strings.ReplaceAll(row[i], "|", `\|`)
		}
		fmt.Println("| " + strings.Join(row, " | ") + " |")
		if ok := len(raised) == 0 && s.alert == "" || len(raised) == 1 && raised[0].Labels["alertname"] == s.alert; !ok {
			t.Errorf("%s: raised %s, want %s", s.name, some(names), cmp.Or(s.alert, "none"))
		}
	}
	if stray := w.of(""); len(stray) > 0 {
		t.Errorf("alerts without a cluster: %v", stray)
	}
}

// some returns the lines of a cell.
func some(lines []string) string {
	if len(lines) == 0 {
		return "none"
	}
	if len(lines) > 6 {
		lines = append(slices.Clone(lines[:6]), fmt.Sprintf("and %d more", len(lines)-6))
	}
	return strings.Join(lines, "<br>")
}

// rules writes the shipped rules at this pace, and returns their paths. No group waits longer
// than a minute.
func (p pace) rules(t testing.TB, folder string) (files []string) {
	t.Helper()
	for _, path := range running.Must(filepath.Glob(filepath.Join(folder, "*.yaml")))(t) {
		var content map[string][]map[string]any
		running.Check(t, yaml.Unmarshal(running.Must(os.ReadFile(path))(t), &content))
		for _, group := range content["groups"] {
			hurry(t, group, "interval", func(d time.Duration) time.Duration { return p.of(min(d, time.Minute)) })
			for _, rule := range group["rules"].([]any) {
				for _, key := range []string{"for", "keep_firing_for"} {
					hurry(t, rule.(map[string]any), key, p.of)
				}
			}
		}
		text := running.Must(yaml.Marshal(content))(t)
		files = append(files, running.File(t, filepath.Base(path), string(text)))
	}
	if len(files) == 0 {
		t.Fatalf("there are no rules in %s", folder)
	}
	return files
}

// hurry changes a duration of a rule or a group, if it has one.
func hurry(t testing.TB, of map[string]any, key string, change func(time.Duration) time.Duration) {
	t.Helper()
	if text, ok := of[key].(string); ok {
		d := running.Must(model.ParseDuration(text))(t)
		of[key] = model.Duration(change(time.Duration(d))).String()
	}
}

// alert is one that fired.
type alert struct {
	Labels, Annotations map[string]string
	State               string
	first               time.Time
}

// title is the name of the alert, with what it is about.
func (a *alert) title() string {
	text := fmt.Sprintf("%s (%s)", a.Labels["alertname"], a.Labels["severity"])
	for _, label := range []string{"instance", "device", "port"} {
		if a.Labels[label] != "" {
			text += " " + a.Labels[label]
		}
	}
	return text
}

// watch remembers which alerts fired.
type watch struct {
	prometheus *running.Prometheus
	broken     time.Time
	// seen has each alert by its labels.
	seen map[string]*alert
}

// until asks for alerts until a time, and does each time what is to be done.
func (w *watch) until(t testing.TB, end time.Time, do func()) {
	t.Helper()
	for ; time.Now().Before(end); time.Sleep(time.Second) {
		w.prometheus.MustRun(t)
		if do != nil {
			do()
		}
		var data struct{ Alerts []*alert }
		running.Check(t, w.prometheus.Ask("alerts", nil, &data))
		for _, a := range data.Alerts {
			key := fmt.Sprint(a.Labels) // maps are printed in order
			if a.State != "firing" {
				continue
			}
			if w.seen[key] == nil {
				a.first = time.Now()
				t.Logf("%s %s: %s", a.first.Format(time.TimeOnly), a.Labels["cluster"], a.title())
				w.seen[key] = a
			}
			// The text at last: a cause may come to be known.
			w.seen[key].Annotations = a.Annotations
		}
	}
}

// of returns the alerts of a cluster, the first first.
func (w *watch) of(cluster string) (all []*alert) {
	for _, a := range w.seen {
		if a.Labels["cluster"] == cluster {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *alert) int { return cmp.Or(a.first.Compare(b.first), cmp.Compare(a.title(), b.title())) })
	return all
}

// page returns what the status page says first.
func (n *node) page(t testing.TB) string {
	t.Helper()
	var status struct {
		Health   string
		Problem  *struct{ Message string }
		Findings []struct{ Kind, Message string }
		Devices  []struct{ Name, Health, Headline string }
	}
	running.Check(t, json.Unmarshal(running.Must(running.Get(nil, "http://"+n.address+"/api/v2/status"))(t), &status))
	text := status.Health
	if status.Problem != nil {
		text += "; " + status.Problem.Message
	}
	for _, f := range status.Findings {
		text += "; " + f.Kind + ": " + f.Message
	}
	if len(status.Devices) > 0 {
		text += fmt.Sprintf("; %s: %s", status.Devices[0].Name, status.Devices[0].Headline)
	}
	return text
}
