package check_test

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// ruleFiles are those of the repository, by the names of the objects.
func ruleFiles(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"rdma-exporter-recording":            read(t, "alerts/recording.yaml"),
		"rdma-exporter-recording-kubernetes": read(t, "alerts/recording-kubernetes.yaml"),
		"rdma-exporter-alerts":               read(t, "alerts/alerts.yaml"),
	}
}

// checkRules compares the rendered groups with those of the files.
func checkRules(t *testing.T, want map[string]string, objects []object) {
	t.Helper()
	rules := every[*monitoringv1.PrometheusRule](objects)
	if len(rules) != len(want) {
		t.Fatalf("%d rule objects", len(rules))
	}
	for _, rule := range rules {
		var spec monitoringv1.PrometheusRuleSpec
		check(t, yaml.UnmarshalStrict([]byte(want[rule.Name]), &spec))
		if len(spec.Groups) == 0 || !reflect.DeepEqual(rule.Spec, spec) {
			t.Errorf("%s has other groups than the file in alerts/", rule.Name)
		}
	}
}

func TestRules(t *testing.T) {
	checkRules(t, ruleFiles(t), chartObjects(t, "service-monitor"))
}

// TestRulesAdapted: the rules about the exporter itself follow the label job, and the
// runbook has an address.
func TestRulesAdapted(t *testing.T) {
	want := ruleFiles(t)
	n := 0
	for name, rules := range want {
		n += strings.Count(rules, `{job="rdma_exporter"}`)
		rules = strings.ReplaceAll(rules, `{job="rdma_exporter"}`, `{job="cluster-1"}`)
		rules = strings.ReplaceAll(rules, "dashboard_url: ", "dashboard_url: https://grafana.example/")
		want[name] = strings.ReplaceAll(rules, "runbook_url: ", "runbook_url: https://git.example/")
	}
	if n == 0 {
		t.Error("no rule goes by the name of the job, so there is nothing to adapt")
	}
	checkRules(t, want, chartObjects(t, "service-monitor", "--set", "monitor.job=cluster-1,prometheusRule.runbookURL=https://git.example/,prometheusRule.dashboardURL=https://grafana.example/"))
}

// alertRules returns the rules that raise alerts, by their names.
func alertRules(objects []object) map[string]monitoringv1.Rule {
	all := make(map[string]monitoringv1.Rule)
	for _, o := range every[*monitoringv1.PrometheusRule](objects) {
		for _, g := range o.Spec.Groups {
			for _, r := range g.Rules {
				if r.Alert != "" {
					all[r.Alert] = r
				}
			}
		}
	}
	return all
}

// TestAlertsRetuned: single alerts are left out or changed, and no others.
func TestAlertsRetuned(t *testing.T) {
	want := alertRules(chartObjects(t, "service-monitor"))
	changed := want["RDMAPortDown"]
	changed.Labels = map[string]string{"severity": "info"}
	changed.For, changed.KeepFiringFor = new(monitoringv1.Duration("5m")), new(monitoringv1.NonEmptyDuration("1h"))
	changed.Expr.StrVal = "rdma_port_state_id == 1"
	want["RDMAPortDown"] = changed
	got := alertRules(chartObjects(t, "service-monitor", "--set-json",
		`prometheusRule.disabled=["RDMAPortFlapping","RDMAExporterAbsent"]`, "--set-json",
		`prometheusRule.overrides={"RDMAPortDown":{"severity":"info","for":"5m","keep_firing_for":"1h","expr":"rdma_port_state_id == 1"}}`))
	for _, name := range []string{"RDMAPortFlapping", "RDMAExporterAbsent"} {
		if _, there := want[name]; !there {
			t.Errorf("there is no %s", name)
		}
		delete(want, name)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the alerts are %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// TestClusterLabel: rules, inhibitions and dashboards go by the site's own label, in the chart and by make rules.
func TestClusterLabel(t *testing.T) {
	word := regexp.MustCompile(`\bcluster\b`)
	folder := filepath.Join(t.TempDir(), "rules")
	if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "tools/rules"), folder, "", "", "rdma_exporter", "region").CombinedOutput(); err != nil {
		t.Fatalf("tools/rules: %v\n%s", err, out)
	}
	for _, kind := range []string{"alerts/*.yaml", "dashboards/*.json"} {
		files, err := filepath.Glob(filepath.Join(root, kind))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			name := filepath.Join(filepath.Dir(kind), filepath.Base(file))
			made, err := os.ReadFile(filepath.Join(folder, filepath.Base(file)))
			if err != nil || string(made) != word.ReplaceAllString(read(t, name), "region") {
				t.Errorf("tools/rules does not write %s with another label (%v)", name, err)
			}
		}
	}
	args := []string{"--set", "alertmanagerConfig.enabled=true,prometheusRule.clusterLabel="}
	got := rendered(t, "--values", valuesFile("service-monitor"), args[0], args[1]+"region")
	want := word.ReplaceAllString(rendered(t, "--values", valuesFile("service-monitor"), args[0], args[1]+"cluster"), "region")
	if !reflect.DeepEqual(decode(t, got), decode(t, want)) {
		t.Error("the chart does not render everything with another label")
	}
	if !strings.Contains(want, "region") {
		t.Error("nothing goes by the label, so there is nothing to adapt")
	}
}

// TestInhibitRules: the inhibitions of the chart are those of docs/alerts.md.
func TestInhibitRules(t *testing.T) {
	const name = "deploy/helm/rdma-exporter/files/inhibit-rules.yaml"
	_, block, _ := strings.Cut(read(t, "docs/alerts.md"), "```yaml\ninhibit_rules:\n")
	block, _, found := strings.Cut(block, "```")
	want := "# Written by make generate, from docs/alerts.md.\ninhibit_rules:\n" + block
	if !found {
		t.Fatal("docs/alerts.md has no inhibit_rules")
	}
	if *update {
		check(t, os.WriteFile(filepath.Join(root, name), []byte(want), 0o644))
	}
	if read(t, name) != want {
		t.Errorf("%s is not that of docs/alerts.md; run: make generate", name)
	}

	var config struct {
		InhibitRules []struct {
			SourceMatchers []string `json:"source_matchers"`
			TargetMatchers []string `json:"target_matchers"`
			Equal          []string `json:"equal"`
		} `json:"inhibit_rules"`
	}
	check(t, yaml.UnmarshalStrict([]byte(want), &config))
	matchers := func(all []monitoringv1alpha1.Matcher) []string {
		var texts []string
		for _, m := range all {
			texts = append(texts, m.Name+" "+string(m.MatchType)+" "+m.Value)
		}
		return texts
	}
	plain := func(all []string) []string {
		var texts []string
		for _, m := range all {
			texts = append(texts, strings.ReplaceAll(m, `"`, ""))
		}
		return texts
	}
	alerts := alertRules(chartObjects(t, "service-monitor"))
	spec := only[*monitoringv1alpha1.AlertmanagerConfig](t, chartObjects(t, "service-monitor", "--set", "alertmanagerConfig.enabled=true")).Spec
	if len(spec.InhibitRules) != len(config.InhibitRules) || len(config.InhibitRules) == 0 {
		t.Fatalf("%d rules, want %d", len(spec.InhibitRules), len(config.InhibitRules))
	}
	for i, want := range config.InhibitRules {
		got := spec.InhibitRules[i]
		if source, target := matchers(got.SourceMatch), matchers(got.TargetMatch); !slices.Equal(source, plain(want.SourceMatchers)) ||
			!slices.Equal(target, plain(want.TargetMatchers)) || !slices.Equal(got.Equal, want.Equal) {
			t.Errorf("the inhibition is %q, %q, %q, want %v", source, target, got.Equal, want)
		}
		for _, m := range slices.Concat(got.SourceMatch, got.TargetMatch) {
			if err := m.Validate(); err != nil {
				t.Error(err)
			}
			for _, name := range strings.Split(m.Value, "|") {
				if _, there := alerts[name]; m.Name == "alertname" && !there {
					t.Errorf("an inhibition names %s, which is no alert", name)
				}
			}
		}
	}
}

// TestDashboards verifies that each dashboard is unchanged in a ConfigMap of its own.
func TestDashboards(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "dashboards", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	boards := every[*corev1.ConfigMap](chartObjects(t, "service-monitor"))
	if len(boards) != len(files) {
		t.Errorf("%d dashboards in %d ConfigMaps", len(files), len(boards))
	}
	for _, board := range boards {
		if board.Labels["grafana_dashboard"] != "1" || board.Annotations["grafana_folder"] != "RDMA" || len(board.Data) != 1 {
			t.Errorf("%s has the labels %v and the annotations %v", board.Name, board.Labels, board.Annotations)
		}
		for name, content := range board.Data {
			if strings.TrimSpace(content) != strings.TrimSpace(read(t, "dashboards/"+name)) {
				t.Errorf("%s in the ConfigMap differs from the file", name)
			}
		}
	}
}

// unpacked is the chart as a package has it, without links to what is outside of it.
func unpacked(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	loaded := must(loader.LoadDir(chart))(t)
	archive := must(chartutil.Save(loaded, dir))(t)
	if out, err := exec.CommandContext(t.Context(), "tar", "--extract", "--file", archive, "--directory", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "rdma-exporter")
}

// TestPackage: a package of the chart has the rules and dashboards, which in the
// repository are beside it, and nothing else of their folders.
func TestPackage(t *testing.T) {
	dir := unpacked(t)
	var want, got []string
	for _, kind := range []string{"alerts/*.yaml", "dashboards/*.json"} {
		files := must(filepath.Glob(filepath.Join(root, kind)))(t)
		for _, file := range files {
			want = append(want, filepath.Join(filepath.Dir(kind), filepath.Base(file)))
		}
	}
	err := fs.WalkDir(os.DirFS(filepath.Join(dir, "files")), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && path != "retired-flags.yaml" && path != "inhibit-rules.yaml" {
			got = append(got, path)
		}
		return err
	})
	slices.Sort(want)
	if err != nil || len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the package has %v, want %v (%v)", got, want, err)
	}
	for _, path := range want {
		if content, err := os.ReadFile(filepath.Join(dir, "files", path)); err != nil || string(content) != read(t, path) {
			t.Errorf("%s in the package differs from the file (%v)", path, err)
		}
	}
}
