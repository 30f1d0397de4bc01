package dashboards_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"rdma_exporter/dashboards"
	"rdma_exporter/test/golden"
)

// TestFiles compares the JSON files with what is declared.
func TestFiles(t *testing.T) {
	for folder, all := range map[string][]dashboards.Dashboard{".": dashboards.All(), "native": dashboards.Native()} {
		var want []string
		for _, d := range all {
			path := filepath.Join(folder, d.UID+".json")
			want = append(want, path)
			declared, err := d.JSON()
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, path, declared)
		}
		files, err := filepath.Glob(filepath.Join(folder, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		if !slices.Equal(files, want) {
			t.Errorf("there are the files %q, declared are %q", files, want)
		}
	}
}

// TestNative makes sure that no classic histogram is left in the dashboards for native ones.
func TestNative(t *testing.T) {
	all := dashboards.Native()
	if len(all) != 1 || all[0].UID != "rdma-device" {
		t.Fatalf("%d dashboards are others, want that of the device", len(all))
	}
	for _, e := range expressions(all[0]) {
		if regexp.MustCompile(`_bucket\b|\ble\b`).MatchString(e.expr) {
			t.Errorf("%s: %s", e.place, e.expr)
		}
	}
	for classic, native := range map[string]string{
		`histogram_quantile(0.99, sum by (path, le) (rate(rdma_notification_latency_seconds_bucket{a="b"}[5m])))`: `histogram_quantile(0.99, sum by (path) (rate(rdma_notification_latency_seconds{a="b"}[5m])))`,
		`sum by (le) (increase(rdma_notification_latency_seconds_bucket[5m]))`:                                    `sum(increase(rdma_notification_latency_seconds[5m]))`,
		`sum by (path) (rate(rdma_notification_latency_seconds_sum{a="b"}[5m]))`:                                  `sum by (path) (histogram_sum(rate(rdma_notification_latency_seconds{a="b"}[5m])))`,
		`rate(rdma_completion_latency_seconds_sum[5m])`:                                                           `rate(rdma_completion_latency_seconds_sum[5m])`,
	} {
		if got := dashboards.NativeExpression(classic); got != native {
			t.Errorf("%s\nis\n%s, want\n%s", classic, got, native)
		}
	}
}

// TestDashboards checks each dashboard by itself.
func TestDashboards(t *testing.T) {
	v := readVocabulary(t)
	all := dashboards.All()
	for _, d := range all {
		t.Run(d.UID, func(t *testing.T) {
			for _, problem := range check(d, all, v) {
				t.Error(problem)
			}
		})
	}
}

// TestDocs makes sure that docs/dashboards.md tells of each row, and of no other.
func TestDocs(t *testing.T) {
	docs, err := os.ReadFile("../docs/dashboards.md")
	if err != nil {
		t.Fatal(err)
	}
	var told, want []string
	for _, m := range regexp.MustCompile(`(?m)^- \*\*(.+?)\*\*( \(collapsed\))?: [a-z]`).FindAllStringSubmatch(string(docs), -1) {
		told = append(told, m[1]+m[2])
	}
	for _, d := range dashboards.All() {
		rows, _ := elements(d)
		for _, r := range rows {
			title := r.Title
			if r.Collapsed {
				title += " (collapsed)"
			}
			want = append(want, title)
		}
	}
	if len(told) < len(want) || !slices.Equal(told[len(told)-len(want):], want) {
		t.Errorf("docs/dashboards.md tells of the rows %q, there are %q", told, want)
	}
}

// TestEveryMetricIsShown makes sure that no metric is forgotten.
func TestEveryMetricIsShown(t *testing.T) {
	v := readVocabulary(t)
	shown := make(map[string]bool)
	for _, d := range dashboards.All() {
		for _, e := range expressions(d) {
			for _, s := range parse(e.expr).selectors {
				shown[v.base(s.metric)] = true
			}
		}
	}
	for metric := range v.documented {
		if !shown[metric] {
			t.Errorf("%s is on no dashboard", metric)
		}
	}
}

// TestFaultsAreFound breaks a dashboard in every way that the checks are for.
func TestFaultsAreFound(t *testing.T) {
	v := readVocabulary(t)
	all := dashboards.All()
	deviceBoard := func() dashboards.Dashboard { return dashboards.All()[1] }
	// first returns the first panel of a type, to be changed in place.
	first := func(d *dashboards.Dashboard, kind string) *dashboards.Panel {
		t.Helper()
		for i, e := range d.Panels {
			if p, ok := e.(dashboards.Panel); ok && p.Type == kind {
				d.Panels[i] = &p
				return &p
			}
		}
		t.Fatalf("no panel of the type %s", kind)
		return nil
	}
	expr := func(e string) func(*dashboards.Dashboard) {
		return func(d *dashboards.Dashboard) { first(d, "stat").Targets[0].Expr = e }
	}
	const device = `job="$job",instance="$instance",device="$device"`
	for name, test := range map[string]struct {
		spoil func(*dashboards.Dashboard)
		want  string
	}{
		"no uid":           {func(d *dashboards.Dashboard) { d.UID = "" }, "no uid"},
		"no tags":          {func(d *dashboards.Dashboard) { d.Tags = nil }, "no tags"},
		"no refresh":       {func(d *dashboards.Dashboard) { d.Refresh = "" }, "no refresh"},
		"no title":         {func(d *dashboards.Dashboard) { first(d, "stat").Title = "" }, "no title"},
		"no description":   {func(d *dashboards.Dashboard) { first(d, "table").Description = "" }, "no description"},
		"no unit":          {func(d *dashboards.Dashboard) { first(d, "timeseries").FieldConfig.Defaults.Unit = "" }, "no unit"},
		"no thresholds":    {func(d *dashboards.Dashboard) { first(d, "heatmap").FieldConfig.Defaults.Thresholds.Steps = nil }, "no thresholds"},
		"thresholds fall":  {func(d *dashboards.Dashboard) { slices.Reverse(first(d, "stat").FieldConfig.Defaults.Thresholds.Steps) }, "thresholds do not rise"},
		"data source":      {func(d *dashboards.Dashboard) { first(d, "stat").DataSource.UID = "prometheus" }, "data source"},
		"its data source":  {func(d *dashboards.Dashboard) { first(d, "stat").Targets[0].DataSource.UID = "x" }, "data source"},
		"no targets":       {func(d *dashboards.Dashboard) { first(d, "stat").Targets = nil }, "no targets"},
		"no expression":    {expr(""), "no expression"},
		"refId twice":      {func(d *dashboards.Dashboard) { p := first(d, "table"); p.Targets[1].RefID = p.Targets[0].RefID }, "refId A twice"},
		"id twice":         {func(d *dashboards.Dashboard) { first(d, "stat").ID = 1 }, "id 1 twice"},
		"too wide":         {func(d *dashboards.Dashboard) { first(d, "table").GridPos.X = 5 }, "outside of the grid"},
		"overlap":          {func(d *dashboards.Dashboard) { first(d, "table").GridPos.Y -= 2 }, "overlaps"},
		"unknown metric":   {expr(`rdma_port_states{` + device + `}`), "unknown metric rdma_port_states"},
		"no such suffix":   {expr(`rdma_port_state_bucket{` + device + `}`), "unknown metric rdma_port_state_bucket"},
		"unknown matcher":  {expr(`rdma_port_state_id{` + device + `,verb="x"}`), "has no label verb"},
		"unknown grouping": {expr(`sum by (verb) (rdma_port_state_id{` + device + `})`), "nothing has the label verb"},
		"unknown legend":   {func(d *dashboards.Dashboard) { first(d, "stat").Targets[0].LegendFormat = "{{errno}}" }, "legend has {{errno}}"},
		"unknown column": {func(d *dashboards.Dashboard) {
			first(d, "table").Targets[0].Expr = `rdma_port_state_id{` + device + `}`
		}, "column provider"},
		"no job":              {expr(`rdma_port_state_id{instance="$instance",device="$device"}`), "is not selected by job"},
		"no instance":         {expr(`rdma_port_state_id{job="$job",device="$device"}`), "is not selected by instance"},
		"no device":           {expr(`rdma_port_state_id{job="$job",instance="$instance"}`), "is not selected by device"},
		"no selector":         {expr(`sum(rdma_port_state_id)`), "is not selected by job"},
		"single with a regex": {expr(`rdma_port_state_id{job="$job",instance=~"$instance",device="$device"}`), "instance=~"},
		"fixed window":        {expr(`sum(rate(rdma_probe_runs_total{` + device + `}[5m]))`), "rate over 5m"},
		"interval as window":  {expr(`sum(rate(rdma_probe_runs_total{` + device + `}[$__interval]))`), "rate over $__interval"},
		"no such variable":    {expr(`sum(rdma_port_state_id{` + device + `,port="$port"})`), "variable port"},
		"join across hosts":   {expr(`rdma_port_state_id{` + device + `} * on (device) group_left () rdma_device_completion_vectors{` + device + `}`), "joins without job"},
		"join of targets":     {expr(`rdma_port_state_id{` + device + `} * on (job, instance, device) group_left () rdma_device_completion_vectors{` + device + `}`), "there may be two series"},
		"rounded up":          {expr(`ceil(sum(increase(rdma_probe_runs_total{` + device + `}[$__range])))`), "one event would be two"},
		"well if not known":   {expr(`sum(rdma_probe_stuck{` + device + `}) or vector(0)`), "where nothing is known"},
		"colour of nothing":   {func(d *dashboards.Dashboard) { first(d, "stat").FieldConfig.Defaults.Mappings = nil }, "where nothing is known"},
		"hour of minutes":     {expr(`3600 * sum(rate(rdma_probe_runs_total{` + device + `}[$__rate_interval]))`), "an hour by a few minutes"},
		"not bound": {
			expr(`max(rdma_owner_locked_bytes{job="$job",instance="$instance"} / ignoring (kind) rdma_owner_locked_limit_bytes{job="$job",instance="$instance"})`),
			"no limit binds",
		},
		"a fleet over time": {func(d *dashboards.Dashboard) {
			*d = dashboards.All()[0]
			first(d, "timeseries").Targets[0].Expr = `sum(rdma_finding_first_seen_timestamp_seconds{job=~"$job",instance=~"$instance",device=~"$device"})`
		}, "needs a recording rule"},
		"restart as news": {func(d *dashboards.Dashboard) {
			d.Annotations.List[1].Expr = `rdma_device_info{` + device + `} unless rdma_device_info{` + device + `} offset $__rate_interval`
		}, "not known before"},
		"no filter": {func(d *dashboards.Dashboard) { first(d, "table").Description += " Filter by a column." }, "can be filtered"},
		"filter not told": {func(d *dashboards.Dashboard) {
			first(d, "table").FieldConfig.Defaults.Custom = dashboards.TableField{Filterable: true}
		}, "can be filtered"},
		"one query limited": {func(d *dashboards.Dashboard) {
			p := first(d, "table")
			p.Targets[0].Expr = "topk(5, " + p.Targets[0].Expr + ")"
		}, "B has all rows"},
		"link keeps several": {func(d *dashboards.Dashboard) {
			*d = dashboards.All()[0]
			d.Links[0].IncludeVars = true
		}, "keeps device, of which only one"},
		"link keeps all": {func(d *dashboards.Dashboard) {
			*d = dashboards.All()[2]
			d.Links[1].URL += "&${device:queryparam}"
		}, "keeps device, of which only one"},
		"link loses job": {func(d *dashboards.Dashboard) {
			*d = dashboards.All()[2]
			d.Links[1].URL = "/d/rdma-device?${datasource:queryparam}"
		}, "does not keep job"},
		"variable used early": {func(d *dashboards.Dashboard) {
			slices.Reverse(d.Templating.List)
		}, "before it is declared"},
		"link to nowhere": {func(d *dashboards.Dashboard) { d.Links[0].URL = "/d/rdma-nowhere" }, "no dashboard rdma-nowhere"},
		"link loses time": {func(d *dashboards.Dashboard) { d.Links[0].KeepTime = false }, "does not keep the time"},
		"link loses":      {func(d *dashboards.Dashboard) { d.Links[1].IncludeVars = false }, "does not keep"},
		"link sets none":  {func(d *dashboards.Dashboard) { d.Links[0].URL = "/d/rdma-fleet?var-port=1&${job:queryparam}" }, "has no variable port"},
		"no link":         {func(d *dashboards.Dashboard) { d.Links = d.Links[:1] }, "no link to"},
		"no annotations":  {func(d *dashboards.Dashboard) { d.Annotations.List = d.Annotations.List[:1] }, "no annotations"},
		"no such query":   {func(d *dashboards.Dashboard) { p := first(d, "table"); p.Targets = p.Targets[:1] }, "Value #B"},
		"sorted by nothing": {func(d *dashboards.Dashboard) {
			p := first(d, "table")
			p.Options = dashboards.TableOptions{SortBy: []dashboards.TableSort{{DisplayName: "port"}}}
		}, "sorted by port"},
	} {
		t.Run(name, func(t *testing.T) {
			d := deviceBoard()
			test.spoil(&d)
			problems := check(d, all, v)
			if !slices.ContainsFunc(problems, func(p string) bool { return contains(p, test.want) }) {
				t.Errorf("no problem tells of %q: %q", test.want, problems)
			}
		})
	}
}
