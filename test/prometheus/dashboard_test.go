//go:build prometheus

package prometheus_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// dashboard is what the test needs to know of one of Grafana's.
type dashboard struct {
	// file is the name of its file, without its folder.
	file string

	UID        string   `json:"uid"`
	Title      string   `json:"title"`
	Panels     []*panel `json:"panels"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []annotation `json:"list"`
	} `json:"annotations"`
}

type panel struct {
	ID            int        `json:"id"`
	Type          string     `json:"type"`
	Title         string     `json:"title"`
	Datasource    datasource `json:"datasource"`
	MaxDataPoints float64    `json:"maxDataPoints"`
	Interval      string     `json:"interval"`
	Targets       []target   `json:"targets"`
	// Panels are those of a collapsed row.
	Panels []*panel `json:"panels"`
}

type target struct {
	RefID        string     `json:"refId"`
	Datasource   datasource `json:"datasource"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat"`
	Format       string     `json:"format"`
	Interval     string     `json:"interval"`
	Instant      bool       `json:"instant"`
	Range        *bool      `json:"range"`
}

type variable struct {
	Name       string     `json:"name"`
	Type       string     `json:"type"`
	Datasource datasource `json:"datasource"`
	// Query is a string, or an object with one.
	Query      any    `json:"query"`
	Regex      string `json:"regex"`
	Multi      bool   `json:"multi"`
	IncludeAll bool   `json:"includeAll"`
	AllValue   string `json:"allValue"`
}

type annotation struct {
	Name       string     `json:"name"`
	BuiltIn    int        `json:"builtIn"`
	Datasource datasource `json:"datasource"`
	Expr       string     `json:"expr"`
	Target     target     `json:"target"`
	Step       string     `json:"step"`
	Title      string     `json:"titleFormat"`
	Text       string     `json:"textFormat"`
}

type datasource struct {
	UID string `json:"uid"`
}

// isVariable reports whether the data source is the one that the reader picks.
// Without a word it is that of the panel around it.
func (d datasource) isVariable() bool {
	return d.UID == "" || d.UID == "$datasource" || d.UID == "${datasource}"
}

func readDashboards(t testing.TB, folder string) []*dashboard {
	t.Helper()
	var all []*dashboard
	for _, path := range list(t, folder, "*.json") {
		text := running.Must(os.ReadFile(path))(t)
		d := &dashboard{file: filepath.Base(path)}
		if err := json.Unmarshal(text, d); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, d)
	}
	return all
}

// An each is one panel and the title of its row.
type each struct {
	*panel
	row string
}

// name is what the panel is called in its dashboard.
func (e each) name() string {
	if e.row == "" {
		return e.Title
	}
	return e.row + "/" + e.Title
}

// panels returns all panels but rows, those of collapsed rows too.
func (d *dashboard) panels() []each {
	var all []each
	row := ""
	for _, p := range d.Panels {
		if p.Type != "row" {
			all = append(all, each{p, row})
			continue
		}
		row = p.Title
		for _, inner := range p.Panels {
			all = append(all, each{inner, row})
		}
	}
	return all
}

// expressions returns what is to be asked for the dashboard: the expressions of
// panels and annotations, and the queries of variables. What none can be made of is
// told.
func (d *dashboard) expressions(t testing.TB) []*expression {
	t.Helper()
	var all []*expression
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			all = append(all, &expression{file: d.file, name: v.Name, kind: kindVariable, dashboard: d, variable: v.Name, text: fmt.Sprint(v.Query)})
		}
		if v.Type == "query" && !v.Datasource.isVariable() {
			t.Errorf("%s: variable %s asks %q, want $datasource", d.file, v.Name, v.Datasource.UID)
		}
	}
	for _, a := range d.Annotations.List {
		if a.BuiltIn != 0 {
			continue
		}
		e := &expression{file: d.file, name: a.Name, kind: kindAnnotation, dashboard: d, text: cmp.Or(a.Target.Expr, a.Expr), step: a.Step, ranged: true}
		if e.text == "" || !a.Datasource.isVariable() {
			t.Errorf("%s: annotation %s asks %q for %q, want an expression for $datasource", d.file, a.Name, a.Datasource.UID, e.text)
		}
		e.legends = []string{a.Title, a.Text}
		all = append(all, e)
	}
	for _, p := range d.panels() {
		if p.Type == "text" {
			continue
		}
		if len(p.Targets) == 0 {
			t.Errorf("%s: panel %q shows nothing", d.file, p.Title)
		}
		for _, target := range p.Targets {
			if target.Expr == "" || !target.Datasource.isVariable() || !p.Datasource.isVariable() {
				t.Errorf("%s: panel %q asks %q for %q, want an expression for $datasource", d.file, p.Title, target.Datasource.UID+p.Datasource.UID, target.Expr)
			}
			if target.Interval != "" {
				t.Errorf("%s: panel %q asks for an interval of its own, which nobody taught the test", d.file, p.Title)
			}
			all = append(all, &expression{
				file: d.file, name: p.name() + "/" + target.RefID, kind: kindPanel, dashboard: d,
				text: target.Expr, panel: p, target: target, legends: []string{target.LegendFormat},
				instant: target.Instant, ranged: target.Range == nil && !target.Instant || target.Range != nil && *target.Range,
			})
		}
	}
	return all
}

// timeRange is what a query over time asks for.
type timeRange struct {
	from, to time.Time
	step     time.Duration
}

// shown is how much time the reader looks at. It is less than dashboards show at first,
// as the test has not so much.
const shown = 15 * time.Minute

// shownUntil returns the range of time up to now, in as many points as a panel of usual
// width has pixels, or as are asked for.
func shownUntil(now time.Time, points float64, least time.Duration) timeRange {
	const width = 1000
	if points == 0 {
		points = width
	}
	step := roundInterval(time.Duration(float64(shown) / points))
	return timeRange{from: now.Add(-shown), to: now, step: max(step, least)}
}

// aligned returns the range as Grafana asks Prometheus for it, on multiples of the
// step.
func (r timeRange) aligned() timeRange {
	r.from, r.to = r.from.Truncate(r.step), r.to.Truncate(r.step)
	return r
}

// roundInterval rounds the distance of two points as Grafana does, for those that are
// short.
func roundInterval(d time.Duration) time.Duration {
	// Of each pair, the first is the least that is no longer rounded to what the
	// pair below says.
	for _, pair := range [][2]time.Duration{
		{45 * time.Second, time.Minute},
		{25 * time.Second, 30 * time.Second},
		{17500 * time.Millisecond, 20 * time.Second},
		{12500 * time.Millisecond, 15 * time.Second},
		{7500 * time.Millisecond, 10 * time.Second},
		{3500 * time.Millisecond, 5 * time.Second},
		{1500 * time.Millisecond, 2 * time.Second},
	} {
		if d >= pair[0] {
			return pair[1]
		}
	}
	return time.Second
}
