package alerts_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/test/running"
)

// TestClusters verifies for each alert that another cluster, whose jobs, nodes and devices have the same names, neither
// raises nor masks it. The clusters a and c have the series of a test in which the alert fires, and b the series of a
// silent test.
func TestClusters(t *testing.T) {
	t.Parallel()
	tool := running.FindPrometheus(t, "promtool")
	covered := make(map[string]bool)
	for _, path := range testFiles(t) {
		var file testFile
		decode(t, path, &file)
		for n, rules := range file.RuleFiles {
			file.RuleFiles[n] = running.Must(filepath.Abs(filepath.Join("testdata", rules)))(t)
		}
		var pairs []testGroup
		for _, fires := range file.Tests {
			for _, alert := range fires.alerts() {
				if covered[alert] || !fires.raises(alert) {
					continue
				}
				n := slices.IndexFunc(file.Tests, func(g testGroup) bool {
					return g.Interval == fires.Interval && slices.Contains(g.alerts(), alert) && !g.raises(alert)
				})
				if n < 0 {
					continue
				}
				covered[alert] = true
				pairs = append(pairs, clustered(alert, fires, file.Tests[n]))
			}
		}
		if len(pairs) == 0 {
			continue
		}
		file.Tests = pairs
		generated := filepath.Join(t.TempDir(), filepath.Base(path))
		running.Check(t, os.WriteFile(generated, running.Must(yaml.Marshal(file))(t), 0o600))
		promtool(t, tool, path, "test", "rules", generated)
	}
	for _, r := range rules(t, alertsFile) {
		if !covered[r.Alert] {
			t.Errorf("%s: no file has both a test in which it fires and one, of the same interval, in which it does not", r.Alert)
		}
	}
}

// clustered returns a test of an alert with the series of a firing test in the clusters a and c, and of a silent one in b.
func clustered(alert string, fires, silent testGroup) testGroup {
	g := testGroup{Name: fmt.Sprintf("%s in a and c: %s; in b: %s", alert, fires.Name, silent.Name), Interval: fires.Interval}
	for cluster, all := range map[string][]series{"a": fires.InputSeries, "b": silent.InputSeries, "c": fires.InputSeries} {
		for _, s := range all {
			g.InputSeries = append(g.InputSeries, series{strings.Replace(s.Series, "{", fmt.Sprintf("{cluster=%q,", cluster), 1), s.Values})
		}
	}
	for _, test := range fires.AlertRuleTest {
		if test.Alertname != alert {
			continue
		}
		var expected []expAlert
		for _, cluster := range []string{"a", "c"} {
			for _, e := range test.ExpAlerts {
				labels, texts := maps.Clone(e.ExpLabels), maps.Clone(e.ExpAnnotations)
				labels["cluster"] = cluster
				texts["dashboard_url"] = strings.Replace(texts["dashboard_url"], "var-cluster=&", "var-cluster="+cluster+"&", 1)
				expected = append(expected, expAlert{labels, texts})
			}
		}
		test.ExpAlerts = expected
		g.AlertRuleTest = append(g.AlertRuleTest, test)
	}
	return g
}

func (g *testGroup) alerts() []string {
	names := make(map[string]bool)
	for _, test := range g.AlertRuleTest {
		names[test.Alertname] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (g *testGroup) raises(alert string) bool {
	return slices.ContainsFunc(g.AlertRuleTest, func(test alertTest) bool { return test.Alertname == alert && len(test.ExpAlerts) > 0 })
}
