// Package alerts_test checks the rules of this folder, their tests and their runbook.
package alerts_test

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/test/running"
)

const (
	recordingFile = "recording.yaml"
	alertsFile    = "alerts.yaml"
)

// ruleFile is a file of rules, as Prometheus reads it.
type ruleFile struct {
	Groups []struct {
		Name     string
		Interval string
		Rules    []rule
	}
}

type rule struct {
	Record, Alert, Expr, For string
	KeepFiringFor            string `yaml:"keep_firing_for"`
	Labels, Annotations      map[string]string
}

// testFile is a file of tests, as promtool reads it.
type testFile struct {
	RuleFiles          []string    `yaml:"rule_files"`
	EvaluationInterval string      `yaml:"evaluation_interval"`
	GroupEvalOrder     []string    `yaml:"group_eval_order"`
	Tests              []testGroup `yaml:"tests"`
}

type testGroup struct {
	Name           string      `yaml:"name"`
	Interval       string      `yaml:"interval"`
	InputSeries    []series    `yaml:"input_series"`
	AlertRuleTest  []alertTest `yaml:"alert_rule_test,omitempty"`
	PromqlExprTest []exprTest  `yaml:"promql_expr_test,omitempty"`
}

type series struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type alertTest struct {
	EvalTime  string     `yaml:"eval_time"`
	Alertname string     `yaml:"alertname"`
	ExpAlerts []expAlert `yaml:"exp_alerts,omitempty"`
}

type expAlert struct {
	ExpLabels      map[string]string `yaml:"exp_labels"`
	ExpAnnotations map[string]string `yaml:"exp_annotations"`
}

type exprTest struct {
	Expr       string      `yaml:"expr"`
	EvalTime   string      `yaml:"eval_time"`
	ExpSamples []expSample `yaml:"exp_samples,omitempty"`
}

type expSample struct {
	Labels string  `yaml:"labels"`
	Value  float64 `yaml:"value"`
}

func (g *testGroup) metrics() map[string]bool {
	names := make(map[string]bool)
	for _, s := range g.InputSeries {
		name, _, _ := strings.Cut(s.Series, "{")
		names[name] = true
	}
	return names
}

func rules(t *testing.T, path string) []rule {
	t.Helper()
	var file ruleFile
	decode(t, path, &file)
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no rules", path)
	}
	return all
}

// maxAlerts is the number of alerts that a person on call can know.
const maxAlerts = 40

func testFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no tests: %v", err)
	}
	return paths
}

func testGroups(t *testing.T) []testGroup {
	t.Helper()
	var all []testGroup
	for _, path := range testFiles(t) {
		var file testFile
		decode(t, path, &file)
		all = append(all, file.Tests...)
	}
	return all
}

func decode(t *testing.T, path string, into any) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader(running.Must(os.ReadFile(path))(t)))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func TestPromtool(t *testing.T) {
	t.Parallel()
	tool := running.FindPrometheus(t, "promtool")
	promtool(t, tool, "rules", "check", "rules", "--lint=all", "--lint-fatal", recordingFile, alertsFile)
	for _, path := range testFiles(t) {
		promtool(t, tool, path, "test", "rules", path)
	}
	native := running.FindNativePrometheus(t, "promtool")
	promtool(t, native, "native histograms", "test", "rules", "testdata/native/recording.yaml")
}

// promtool runs it as a test of its own.
func promtool(t *testing.T, tool, name string, args ...string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), tool, args...)
		// It lives for seconds: it needs no garbage collector and no second thread.
		cmd.Env = append(os.Environ(), "GOGC=800", "GOMAXPROCS=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	})
}

// TestGroups verifies that the names of the groups have the exporter's prefix, and that the tests evaluate them in
// order. By default promtool takes any order.
func TestGroups(t *testing.T) {
	groups := make(map[string][]string)
	seen := make(map[string]bool)
	for _, path := range []string{recordingFile, alertsFile} {
		var file ruleFile
		decode(t, path, &file)
		for _, g := range file.Groups {
			if !strings.HasPrefix(g.Name, "rdma_exporter_") || seen[g.Name] {
				t.Errorf("%s: the group %q is there twice, or not named rdma_exporter_…", path, g.Name)
			}
			seen[g.Name] = true
			groups[path] = append(groups[path], g.Name)
		}
	}
	for _, path := range testFiles(t) {
		var file testFile
		decode(t, path, &file)
		var want []string
		for _, rules := range file.RuleFiles {
			want = append(want, groups[filepath.Base(rules)]...)
		}
		if !slices.Equal(file.GroupEvalOrder, want) {
			t.Errorf("%s: the groups are evaluated in the order %q, want %q", path, file.GroupEvalOrder, want)
		}
	}
}

// TestRecordingRules verifies that each rule is named level:metric:operations, and that a test compares its values.
func TestRecordingRules(t *testing.T) {
	level := regexp.MustCompile(`^[a-z]+(_[a-z]+)*:rdma_[a-z_]+:[a-z0-9_]+$`)
	compared := make(map[string]bool)
	for _, g := range testGroups(t) {
		for _, e := range g.PromqlExprTest {
			for _, name := range parse(t, e.Expr).Metrics() {
				compared[name] = compared[name] || len(e.ExpSamples) > 0
			}
		}
	}
	for _, r := range rules(t, recordingFile) {
		if !level.MatchString(r.Record) {
			t.Errorf("the name %q is not level:metric:operations", r.Record)
		}
		if !compared[r.Record] {
			t.Errorf("no test compares the values of %s", r.Record)
		}
	}
}

func TestAlerts(t *testing.T) {
	name := regexp.MustCompile(`^RDMA([A-Z]+[a-z]+)+$`)
	dashboard := regexp.MustCompile(`^d/(rdma-fleet|rdma-device|rdma-resources|rdma-paths)\?var-cluster=\{\{ \$labels\.cluster \| urlquery \}\}` +
		`&var-job=\{\{ \$labels\.job \| urlquery \}\}(&var-instance=\{\{ \$labels\.instance \| urlquery \}\})?$`)
	seen := make(map[string]bool)
	if n := len(rules(t, alertsFile)); n > maxAlerts {
		t.Errorf("%d alerts, want at most %d: merge those that ask for the same action", n, maxAlerts)
	}
	for _, r := range rules(t, alertsFile) {
		if !name.MatchString(r.Alert) || seen[r.Alert] {
			t.Errorf("the alert %q is there twice, or not named RDMA…", r.Alert)
		}
		seen[r.Alert] = true
		if r.For == "" || r.For == "0s" {
			t.Errorf("%s has no duration for which it must be so", r.Alert)
		}
		severities := []string{"critical", "warning", "info", "{{ $labels.severity }}"}
		if len(r.Labels) != 1 || !slices.Contains(severities, r.Labels["severity"]) {
			t.Errorf("%s: the labels are %v; want severity alone, one of %q", r.Alert, r.Labels, severities)
		}
		if got := slices.Sorted(maps.Keys(r.Annotations)); !slices.Equal(got, []string{"dashboard_url", "description", "runbook_url", "summary"}) {
			t.Errorf("%s has the annotations %q", r.Alert, got)
		}
		if got, want := r.Annotations["runbook_url"], "docs/alerts.md#"+strings.ToLower(r.Alert); got != want {
			t.Errorf("%s: the runbook is %q, want %q", r.Alert, got, want)
		}
		if got := r.Annotations["dashboard_url"]; !dashboard.MatchString(got) {
			t.Errorf("%s: the dashboard is %q, want one that matches %v", r.Alert, got, dashboard)
		}
		for _, text := range []string{r.Annotations["summary"], r.Annotations["description"]} {
			if text == "" || strings.Contains(text, "\n") {
				t.Errorf("%s: not one line of text: %q", r.Alert, text)
			}
		}
	}
}

// TestKeepFiring verifies that alerts about devices that notify continue while the exporter is restarted. Those that
// a restart may fix end with it.
func TestKeepFiring(t *testing.T) {
	var file ruleFile
	decode(t, alertsFile, &file)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			want := ""
			if g.Name != "rdma_exporter_itself" && r.Labels["severity"] != "info" {
				want = "10m"
			}
			if r.KeepFiringFor != want {
				t.Errorf("%s goes on firing for %q, want %q", r.Alert, r.KeepFiringFor, want)
			}
		}
	}
}

// TestAlertTests verifies that each alert has a test in which it fires, and one in which it has all its metrics and
// does not fire, and that the annotations are well formed.
func TestAlertTests(t *testing.T) {
	recorded := make(map[string][]rule)
	for _, r := range rules(t, recordingFile) {
		recorded[r.Record] = append(recorded[r.Record], r)
	}
	tests := testGroups(t)
	for _, r := range rules(t, alertsFile) {
		var fires, silent bool
		fed, near := make(map[string]bool), make(map[string]bool)
		for i := range tests {
			g := &tests[i]
			asked, fired := false, false
			for _, a := range g.AlertRuleTest {
				if a.Alertname != r.Alert {
					continue
				}
				asked = true
				for _, e := range a.ExpAlerts {
					fired = true
					readable(t, g.Name, e.ExpAnnotations)
				}
			}
			switch {
			case fired:
				fires = true
				maps.Copy(fed, g.metrics())
			case asked:
				silent = true
				maps.Copy(near, g.metrics())
			}
			if asked && strings.HasPrefix(g.Name, r.Alert+" ") && strings.HasPrefix(g.Name, r.Alert+" does not") == fired {
				t.Errorf("the name does not say what is tested: %q", g.Name)
			}
		}
		if !fires || !silent {
			t.Errorf("%s: there is a test in which it fires: %t, in which it does not: %t", r.Alert, fires, silent)
			continue
		}
		for _, name := range needed(t, r.Expr, recorded) {
			if fed[name] && !near[name] {
				t.Errorf("%s: where it does not fire there is no %s at all", r.Alert, name)
			}
		}
	}
}

// needed returns the metrics of the exporter on which an alert depends, by way of the recorded ones. Of those that
// collect what is found it follows the rules of the findings that the alert names.
func needed(t *testing.T, expression string, recorded map[string][]rule) []string {
	t.Helper()
	var names []string
	seen := make(map[string]bool)
	findings := make(map[string]bool)
	for _, m := range regexp.MustCompile(`finding=~?"([^"]*)"`).FindAllStringSubmatch(expression, -1) {
		for name := range strings.SplitSeq(m[1], "|") {
			findings[name] = true
		}
	}
	for queue := []string{expression}; len(queue) > 0; queue = queue[1:] {
		for _, name := range parse(t, queue[0]).Metrics() {
			switch {
			case seen[name]:
			case strings.Contains(name, ":rdma_finding:"):
				for _, r := range recorded["instance_device_finding:rdma_finding:found"] {
					if findings[r.Labels["finding"]] {
						queue = append(queue, r.Expr)
					}
				}
				findings = nil
			case recorded[name] != nil:
				for _, r := range recorded[name] {
					queue = append(queue, r.Expr)
				}
			default:
				names = append(names, name)
			}
			seen[name] = true
		}
	}
	return names
}

func readable(t *testing.T, where string, annotations map[string]string) {
	t.Helper()
	for key, text := range annotations {
		for _, wrong := range []string{"<no value>", "<error", "NaN", "Inf", "  ", " .", " ,", "{{", "\n"} {
			if strings.Contains(text, wrong) {
				t.Errorf("%s: the %s has %q: %s", where, key, wrong, text)
			}
		}
	}
	if !strings.HasSuffix(annotations["description"], ".") || strings.HasSuffix(annotations["summary"], ".") {
		t.Errorf("%s: the description is a sentence, the summary a headline: %v", where, annotations)
	}
}
