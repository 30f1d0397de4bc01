package check_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// ruleFiles are those of the repository, by the names of the objects.
func ruleFiles(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"rdma-exporter-recording": read(t, "alerts/recording.yaml"),
		"rdma-exporter-alerts":    read(t, "alerts/alerts.yaml"),
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
		if err := yaml.UnmarshalStrict([]byte(want[rule.Name]), &spec); err != nil {
			t.Fatal(err)
		}
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
	loaded, err := loader.LoadDir(chart)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := chartutil.Save(loaded, dir)
	if err != nil {
		t.Fatal(err)
	}
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
		files, err := filepath.Glob(filepath.Join(root, kind))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			want = append(want, filepath.Join(filepath.Dir(kind), filepath.Base(file)))
		}
	}
	err := fs.WalkDir(os.DirFS(filepath.Join(dir, "files")), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && path != "retired-flags.yaml" {
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
