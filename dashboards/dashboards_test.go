package dashboards_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/dashboards"
	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

// TestFiles compares the JSON files with what is declared.
func TestFiles(t *testing.T) {
	all := running.Must(dashboards.All())(t)
	for uid, text := range all {
		golden.Check(t, uid+".json", text)
	}
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) != len(all) {
		t.Errorf("the files are %q (%v), want %d", files, err, len(all))
	}
}

// TestHistograms verifies that each expression that reads a classic histogram reads the native one as well.
func TestHistograms(t *testing.T) {
	classic := regexp.MustCompile(`(rdma_notification_latency_seconds|rdma_verbs_call_latency_seconds)_(bucket|sum|count)\b`)
	for _, d := range declared(t) {
		for _, e := range expressions(d) {
			m := classic.FindStringSubmatch(e.expr)
			if m != nil && !strings.Contains(e.expr, m[1]+"{") {
				t.Errorf("%s of %s reads the classic histogram alone: %s", e.place, d.UID, e.expr)
			}
		}
	}
}

func TestDashboards(t *testing.T) {
	v := readVocabulary(t)
	all := declared(t)
	for _, d := range all {
		t.Run(d.UID, func(t *testing.T) {
			for _, problem := range check(d, all, v) {
				t.Error(problem)
			}
		})
	}
}

// TestDocs verifies that docs/dashboards.md describes each row, and no other.
func TestDocs(t *testing.T) {
	docs := running.Must(os.ReadFile("../docs/dashboards.md"))(t)
	var described, want []string
	for _, m := range regexp.MustCompile(`(?m)^- \*\*(.+?)\*\*( \(collapsed\))?: [a-z]`).FindAllStringSubmatch(string(docs), -1) {
		described = append(described, m[1]+m[2])
	}
	for _, d := range declared(t) {
		rows, _ := elements(d)
		for _, r := range rows {
			title := r.Title
			if r.Collapsed {
				title += " (collapsed)"
			}
			want = append(want, title)
		}
	}
	if len(described) < len(want) || !slices.Equal(described[len(described)-len(want):], want) {
		t.Errorf("docs/dashboards.md describes the rows %q, want %q", described, want)
	}
}

func TestEveryMetricIsShown(t *testing.T) {
	v := readVocabulary(t)
	shown := make(map[string]bool)
	for _, d := range declared(t) {
		for _, e := range expressions(d) {
			for _, s := range parse(e.expr).Selectors {
				shown[v.name[s.Metric]] = true
			}
		}
	}
	for _, metric := range v.name {
		if !shown[metric] {
			t.Errorf("%s is on no dashboard", metric)
		}
	}
}

// TestFaultsAreFound breaks a dashboard in ways that the checks must find.
func TestFaultsAreFound(t *testing.T) {
	v := readVocabulary(t)
	all := declared(t)
	deviceBoard := func() board { return declared(t)[1] }
	// first returns the first panel of a type, to be changed in place.
	first := func(d *board, kind string) *panel {
		t.Helper()
		for _, p := range d.Panels {
			if p.Type == kind {
				return p
			}
		}
		t.Fatalf("no panel of the type %s", kind)
		return nil
	}
	expr := func(e string) func(*board) {
		return func(d *board) { first(d, "stat").Targets[0].Expr = e }
	}
	const (
		host   = `cluster=~"$cluster",job="$job",instance="$instance"`
		device = host + `,device=~"$device"`
	)
	for name, test := range map[string]struct {
		spoil func(*board)
		want  string
	}{
		"thresholds fall":     {func(d *board) { slices.Reverse(first(d, "stat").FieldConfig.Defaults.Thresholds.Steps) }, "thresholds do not rise"},
		"overlap":             {func(d *board) { first(d, "table").GridPos.Y -= 2 }, "overlaps"},
		"unknown metric":      {expr(`rdma_port_states{` + device + `}`), "unknown metric rdma_port_states"},
		"unknown matcher":     {expr(`rdma_port_state_id{` + device + `,verb="x"}`), "has no label verb"},
		"unknown grouping":    {expr(`sum by (verb) (rdma_port_state_id{` + device + `})`), "nothing has the label verb"},
		"unknown legend":      {func(d *board) { first(d, "stat").Targets[0].LegendFormat = "{{errno}}" }, "legend has {{errno}}"},
		"no job":              {expr(`rdma_port_state_id{cluster=~"$cluster",instance="$instance",device=~"$device"}`), "is not selected by job"},
		"no cluster":          {expr(`rdma_devices{job="$job",instance="$instance"}`), "is not selected by cluster"},
		"mixed clusters":      {expr(`max by (job, instance) (rdma_devices{` + host + `})`), "mixes clusters"},
		"same title":          {func(d *board) { first(d, "table").Title = first(d, "stat").Title }, "two panels have the title"},
		"single with a regex": {expr(`rdma_port_state_id{cluster=~"$cluster",job="$job",instance=~"$instance",device=~"$device"}`), "instance=~"},
		"fixed window":        {expr(`sum(rate(rdma_probe_runs_total{` + device + `}[5m]))`), "rate over 5m"},
		"no such variable":    {expr(`sum(rdma_port_state_id{` + device + `,port="$port"})`), "variable port"},
		"join across hosts":   {expr(`rdma_port_state_id{` + device + `} * on (device) group_left () rdma_device_completion_vectors{` + device + `}`), "joins without cluster, job"},
		"join of targets":     {expr(`rdma_port_state_id{` + device + `} * on (cluster, job, instance, device) group_left () rdma_device_completion_vectors{` + device + `}`), "there may be two series"},
		"colour of nothing":   {func(d *board) { first(d, "stat").FieldConfig.Defaults.Mappings = nil }, "where nothing is known"},
		"hour of minutes":     {expr(`3600 * sum(rate(rdma_probe_runs_total{` + device + `}[$__rate_interval]))`), "a few minutes to an hour"},
		"restart as news": {func(d *board) {
			d.Annotations.List[1].Expr = `rdma_device_info{` + device + `} unless rdma_device_info{` + device + `} offset $__rate_interval`
		}, "not known before"},
		"one query limited": {func(d *board) {
			p := first(d, "table")
			p.Targets[0].Expr = "topk(5, " + p.Targets[0].Expr + ")"
		}, "B has all rows"},
		"link of a label": {func(d *board) {
			first(d, "timeseries").FieldConfig.Defaults.Links = []link{{URL: "/d/rdma-fleet?var-job=${__field.labels.nothing}"}}
		}, "the label nothing"},
		"link of a field": {func(d *board) {
			first(d, "table").FieldConfig.Defaults.Links = []link{{URL: "/d/rdma-fleet?var-job=${__data.fields.nothing}"}}
		}, "the field nothing"},
		"link to nowhere": {func(d *board) { d.Links[0].URL = "/d/rdma-nowhere" }, "no dashboard rdma-nowhere"},
		"link sets none":  {func(d *board) { d.Links[0].URL = "/d/rdma-fleet?var-port=1&${job:queryparam}" }, "has no variable port"},
		"no such query":   {func(d *board) { p := first(d, "table"); p.Targets = p.Targets[:1] }, "Value #B"},
	} {
		t.Run(name, func(t *testing.T) {
			d := deviceBoard()
			test.spoil(&d)
			problems := check(d, all, v)
			if !slices.ContainsFunc(problems, func(p string) bool { return contains(p, test.want) }) {
				t.Errorf("no problem contains %q: %q", test.want, problems)
			}
		})
	}
}
