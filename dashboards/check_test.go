package dashboards_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"rdma_exporter/test/promql"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func check(d board, all []board, v vocabulary) []string {
	c := &checker{board: d, all: all, vocabulary: v, variables: make(map[string]variable)}
	c.head()
	c.grid()
	titles := make(map[string]bool)
	for _, p := range panels(d) {
		if titles[p.Title] {
			c.problem("two panels have the title %q, so that a search does not tell which", p.Title)
		}
		titles[p.Title] = true
		c.panel(p)
	}
	for _, e := range expressions(d) {
		c.expression(e)
	}
	return c.problems
}

type checker struct {
	board      board
	all        []board
	vocabulary vocabulary
	variables  map[string]variable
	problems   []string
}

func (c *checker) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// elements returns the rows and panels of a dashboard, those of collapsed rows too.
func elements(d board) (rows []*panel, list []*panel) {
	for _, p := range d.Panels {
		if p.Type == "row" {
			rows = append(rows, p)
			list = append(list, p.Panels...)
		} else {
			list = append(list, p)
		}
	}
	return rows, list
}

func panels(d board) []*panel {
	_, list := elements(d)
	return list
}

type expression struct {
	place, expr string
	instant     bool
}

// expressions returns those of panels, variables and annotations.
func expressions(d board) []expression {
	var list []expression
	for _, p := range panels(d) {
		for _, t := range p.Targets {
			list = append(list, expression{fmt.Sprintf("panel %q %s", p.Title, t.RefID), t.Expr, t.Instant})
		}
	}
	for _, v := range d.Templating.List {
		if m := labelValues().FindStringSubmatch(v.query()); m != nil {
			list = append(list, expression{"variable " + v.Name, m[1], true})
		}
	}
	for _, a := range d.Annotations.List {
		if a.BuiltIn == 0 {
			list = append(list, expression{fmt.Sprintf("annotation %q", a.Name), a.Expr, false})
		}
	}
	return list
}

func labelValues() *regexp.Regexp {
	return regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
}

// head checks what belongs to no panel.
func (c *checker) head() {
	d := c.board
	for _, missing := range []struct {
		what string
		is   bool
	}{
		{"uid", d.UID == ""},
		{"title", d.Title == ""},
		{"description", d.Description == ""},
		{"tags", len(d.Tags) == 0},
		{"refresh", d.Refresh == ""},
		{"annotations", len(d.Annotations.List) < 2 && d.UID != "rdma-fleet" && d.UID != "rdma-paths"},
	} {
		if missing.is {
			c.problem("no %s", missing.what)
		}
	}
	if !d.Editable || d.SchemaVersion == 0 {
		c.problem("not editable, or no schema version")
	}

	for i, v := range d.Templating.List {
		c.variables[v.Name] = v
		switch v.Type {
		case "datasource":
			if v.Query != "prometheus" {
				c.problem("variable %s is of data sources of the type %v", v.Name, v.Query)
			}
		case "query":
			m := labelValues().FindStringSubmatch(v.query())
			if m == nil || v.DataSource.UID != "${datasource}" {
				c.problem("variable %s is no label_values of the data source", v.Name)
				continue
			}
			for _, used := range variablesIn(m[1]) {
				if !slices.ContainsFunc(d.Templating.List[:i], func(v variable) bool { return v.Name == used }) {
					c.problem("variable %s uses %s before it is declared", v.Name, used)
				}
			}
			for _, s := range parse(m[1]).Selectors {
				if !slices.Contains(c.vocabulary.labels[s.Metric], m[2]) {
					c.problem("variable %s: %s has no label %s", v.Name, s.Metric, m[2])
				}
			}
		}
	}
	for _, name := range []string{"datasource", "cluster", "job", "instance"} {
		if _, ok := c.variables[name]; !ok {
			c.problem("no variable %s", name)
		}
	}
	if v := c.variables["cluster"]; !v.Multi || v.AllValue != ".*" {
		c.problem("the variable cluster does not match targets without that label")
	}

	linked := make(map[string]bool)
	for _, l := range d.Links {
		c.link("link "+l.Title, l.URL)
		if !l.KeepTime {
			c.problem("link %s does not keep the time", l.Title)
		}
		c.keeps(l)
		linked[uidOf(l.URL)] = true
	}
	for _, other := range c.all {
		if other.UID != d.UID && !linked[other.UID] {
			c.problem("no link to %s", other.UID)
		}
	}
	pastUnless := regexp.MustCompile(`unless .*offset`)
	known := regexp.MustCompile(`up\{[^}]*\} offset \$__rate_interval == 1|and on \([^)]*\) [^{]*rdma_contract_verdicts\{[^}]*\} offset \$__rate_interval`)
	for _, a := range d.Annotations.List {
		if pastUnless.MatchString(a.Expr) && !known.MatchString(a.Expr) {
			c.problem("annotation %q marks what was not known before", a.Name)
		}
		if a.BuiltIn == 0 && (a.DataSource.UID != "${datasource}" || a.TextFormat == "" || a.IconColor == "") {
			c.problem("annotation %q lacks data source, text or colour", a.Name)
		}
	}
}

// keeps checks what a link in the head keeps of what was chosen: the data source, the job if as many can be chosen
// there, and nothing that is more than can be chosen there, which leaves its panels empty.
func (c *checker) keeps(l link) {
	i := slices.IndexFunc(c.all, func(d board) bool { return d.UID == uidOf(l.URL) })
	if i < 0 {
		return // link reports it
	}
	for _, v := range c.all[i].Templating.List {
		own, ok := c.variables[v.Name]
		kept := ok && (l.IncludeVars || contains(l.URL, "${"+v.Name+":queryparam}"))
		wider := own.Multi && !v.Multi || own.IncludeAll && !v.IncludeAll
		switch {
		case kept && wider:
			c.problem("link %s keeps %s, of which only one can be chosen there", l.Title, v.Name)
		case !kept && (v.Name == "datasource" || v.Name == "cluster" || v.Name == "job" && !wider):
			c.problem("link %s does not keep %s", l.Title, v.Name)
		}
	}
}

func uidOf(url string) string {
	uid, _, _ := strings.Cut(strings.TrimPrefix(url, "/d/"), "?")
	return uid
}

// link checks that a link leads to a dashboard, and sets variables that it has.
func (c *checker) link(place, url string) {
	i := slices.IndexFunc(c.all, func(d board) bool { return d.UID == uidOf(url) })
	if i < 0 {
		c.problem("%s: no dashboard %s", place, uidOf(url))
		return
	}
	var names []string
	for _, m := range regexp.MustCompile(`\bvar-(\w+)=|\$\{(\w+):queryparam\}`).FindAllStringSubmatch(url, -1) {
		names = append(names, m[1]+m[2])
	}
	for _, name := range names {
		if !slices.ContainsFunc(c.all[i].Templating.List, func(v variable) bool { return v.Name == name }) {
			c.problem("%s: %s has no variable %s", place, c.all[i].UID, name)
		}
	}
	for _, name := range variablesIn(url) {
		if _, ok := c.variables[name]; !ok {
			c.problem("%s: variable %s is not declared", place, name)
		}
	}
}

// variablesIn returns the variables in a text, except those of Grafana itself.
func variablesIn(text string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`\$\{?([a-zA-Z_]\w*)`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "__") {
			names = append(names, m[1])
		}
	}
	return names
}

// grid checks that everything has an id and a place of its own.
func (c *checker) grid() {
	rows, list := elements(c.board)
	type place struct {
		name string
		grid
	}
	var open []place
	ids := make(map[int]bool)
	id := func(n int) {
		if ids[n] || n <= 0 {
			c.problem("id %d twice", n)
		}
		ids[n] = true
	}
	apart := func(list []place) {
		for i, p := range list {
			if p.X < 0 || p.Y < 0 || p.W <= 0 || p.H <= 0 || p.X+p.W > 24 {
				c.problem("%s is outside of the grid", p.name)
			}
			for _, q := range list[:i] {
				if p.X < q.X+q.W && q.X < p.X+p.W && p.Y < q.Y+q.H && q.Y < p.Y+p.H {
					c.problem("%s overlaps %s", p.name, q.name)
				}
			}
		}
	}
	folded := make(map[int]bool)
	for _, r := range rows {
		id(r.ID)
		open = append(open, place{"row " + r.Title, r.GridPos})
		if r.Title == "" || r.Collapsed != (len(r.Panels) > 0) {
			c.problem("row %q has no title, or panels at the wrong place", r.Title)
		}
		inside := []place{{"row " + r.Title, r.GridPos}}
		for _, p := range r.Panels {
			folded[p.ID] = true
			inside = append(inside, place{"panel " + p.Title, p.GridPos})
			if p.GridPos.Y <= r.GridPos.Y {
				c.problem("panel %q is above its row", p.Title)
			}
		}
		apart(inside)
	}
	for _, p := range list {
		id(p.ID)
		if !folded[p.ID] {
			open = append(open, place{"panel " + p.Title, p.GridPos})
		}
	}
	apart(open)
}

func (c *checker) panel(p *panel) {
	problem := func(format string, args ...any) {
		c.problem("panel %q: %s", p.Title, fmt.Sprintf(format, args...))
	}
	defaults := p.FieldConfig.Defaults
	for _, missing := range []struct {
		what string
		is   bool
	}{
		{"title", p.Title == ""},
		{"type", p.Type == ""},
		{"options", p.Options == nil},
		{"description", !strings.HasSuffix(p.Description, ".")},
		{"unit", defaults.Unit == ""},
		{"thresholds", defaults.Thresholds.Mode != "absolute" || len(defaults.Thresholds.Steps) == 0},
		{"targets", len(p.Targets) == 0},
	} {
		if missing.is {
			problem("no %s", missing.what)
		}
	}
	steps := defaults.Thresholds.Steps
	for i, s := range steps {
		if s.Color == "" || (s.Value == nil) != (i == 0) || i > 1 && s.Value != nil && steps[i-1].Value != nil && *s.Value <= *steps[i-1].Value {
			problem("thresholds do not rise from none")
		}
	}
	own := source{"prometheus", "${datasource}"}
	if p.DataSource != own {
		problem("data source %v", p.DataSource)
	}
	refs := make(map[string]bool)
	for _, t := range p.Targets {
		if refs[t.RefID] || t.RefID == "" {
			problem("refId %s twice", t.RefID)
		}
		refs[t.RefID] = true
		if t.DataSource != own {
			problem("data source %v of %s", t.DataSource, t.RefID)
		}
		if t.Expr == "" {
			problem("no expression of %s", t.RefID)
		}
		if t.Instant == t.Range {
			problem("%s is neither instant nor of a range, or both", t.RefID)
		}
		known := c.labelsOf(parse(t.Expr))
		for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(t.LegendFormat, -1) {
			if !slices.Contains(known, m[1]) {
				problem("the legend has {{%s}}, which %s has not", m[1], t.RefID)
			}
		}
	}
	links := defaults.Links
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			var more []link
			if property.ID == "links" && json.Unmarshal(property.Value, &more) == nil {
				links = append(links, more...)
			}
		}
	}
	var labels []string
	for _, t := range p.Targets {
		labels = append(labels, c.labelsOf(parse(t.Expr))...)
	}
	for _, l := range links {
		c.link("panel "+p.Title, l.URL)
		for _, m := range regexp.MustCompile(`__field\.labels\.(\w+)`).FindAllStringSubmatch(l.URL, -1) {
			if !slices.Contains(labels, m[1]) {
				problem("a link has the label %s, which no series has", m[1])
			}
		}
		for _, m := range regexp.MustCompile(`__data\.fields(?:\.(\w+)|\["([^"]+)"\])`).FindAllStringSubmatch(l.URL, -1) {
			if !slices.Contains(c.columns(p), m[1]+m[2]) {
				problem("a link has the field %s, which no row has", m[1]+m[2])
			}
		}
	}
	if p.Type == "table" {
		c.table(p, problem)
	}
	if p.Type == "stat" && !slices.ContainsFunc(defaults.Mappings, func(m struct{ Type string }) bool { return m.Type == "special" }) {
		problem("has the colour of the lowest values where nothing is known")
	}
	if defaults.Custom.Filterable != contains(p.Description, "Filter by a column") {
		problem("can be filtered and does not say so, or the other way round")
	}
	limited := func(t target) bool { return regexp.MustCompile(`\b(topk|bottomk)\(`).MatchString(t.Expr) }
	if p.Type == "table" && slices.ContainsFunc(p.Targets, limited) {
		for _, t := range p.Targets {
			if !limited(t) {
				problem("%s has all rows, not only those of the others", t.RefID)
			}
		}
	}
}

// columns returns the columns of a table, by their first names and by their titles.
func (c *checker) columns(p *panel) []string {
	var names []string
	for _, t := range p.Targets {
		value := "Value"
		if len(p.Targets) > 1 {
			value = "Value #" + t.RefID
		}
		names = append(append(names, value), c.labelsOf(parse(t.Expr))...)
	}
	for _, transformation := range p.Transformations {
		for _, name := range slices.Clone(names) {
			if title := transformation.Options.RenameByName[name]; title != "" {
				names = append(names, title)
			}
		}
	}
	return names
}

func (c *checker) table(p *panel, problem func(string, ...any)) {
	names := c.columns(p)
	var titles []string
	last := p.Transformations[len(p.Transformations)-1]
	if last.ID == "groupingToMatrix" {
		for _, field := range []string{last.Options.RowField, last.Options.ColumnField, last.Options.ValueField} {
			if !slices.Contains(names, field) {
				problem("nothing has the field %s of the matrix", field)
			}
		}
		return
	}
	order := last.Options
	if len(order.IndexByName) == 0 {
		problem("is not put in order at last")
	}
	for field := range order.IndexByName {
		if !slices.Contains(names, field) {
			problem("nothing has the column %s", field)
		}
		titles = append(titles, cmp.Or(order.RenameByName[field], field))
	}
	for _, s := range p.Options.SortBy {
		if !slices.Contains(titles, s.DisplayName) {
			problem("sorted by %s, which is no column", s.DisplayName)
		}
	}
}

// labelsOf returns the labels that the result of an expression may have.
func (c *checker) labelsOf(p promql.Expression) []string {
	labels := slices.Clone(p.Made)
	if len(p.Grouped) > 0 {
		return append(labels, p.Grouped...)
	}
	for _, s := range p.Selectors {
		labels = append(labels, c.vocabulary.labels[s.Metric]...)
	}
	return labels
}

// cheap checks that a fleet of ten thousand nodes can be asked an expression: over time only what is recorded for whole
// jobs; at present, in rows that are open at first, nothing that has a series for each device, but for those with trouble.
func (c *checker) cheap(e expression, p promql.Expression, problem func(string, ...any)) {
	rows, _ := elements(c.board)
	folded := slices.ContainsFunc(rows, func(r *panel) bool {
		return slices.ContainsFunc(r.Panels, func(p *panel) bool { return strings.HasPrefix(e.place, fmt.Sprintf("panel %q ", p.Title)) })
	})
	for _, s := range p.Selectors {
		rare := slices.Contains([]string{"rdma_finding_info", "instance_device:rdma_trouble:sum"}, s.Metric)
		perDevice := slices.Contains(c.vocabulary.labels[s.Metric], "device") && !rare
		switch {
		case !e.instant && !strings.HasPrefix(s.Metric, "job"):
			problem("reads %s of each node over time, which needs a recording rule of jobs", s.Metric)
		case !folded && perDevice, slices.ContainsFunc(p.Windows, func(w promql.Window) bool { return w.Span == "$__range" }):
			problem("reads %s of each device of a fleet", s.Metric)
		}
	}
}

func (c *checker) expression(e expression) {
	problem := func(format string, args ...any) {
		c.problem("%s: %s in %s", e.place, fmt.Sprintf(format, args...), e.expr)
	}
	p, err := promql.Parse(e.expr)
	if err != nil {
		problem("%v", err)
	}
	var known []string
	for _, s := range p.Selectors {
		labels, ok := c.vocabulary.labels[s.Metric]
		if !ok {
			problem("unknown metric %s", s.Metric)
		}
		known = append(known, labels...)
		by := make(map[string]promql.Matcher)
		for _, m := range s.Matchers {
			by[m.Label] = m
			if !slices.Contains(labels, m.Label) {
				problem("%s has no label %s", s.Metric, m.Label)
			}
			// Grafana escapes for a regular expression only what can be several.
			v, ok := c.variables[strings.TrimPrefix(m.Value, "$")]
			if ok && strings.HasPrefix(m.Value, "$") && v.Multi != (m.Op == "=~") {
				problem("%s%s%q", m.Label, m.Op, m.Value)
			}
		}
		chosen := []string{"cluster", "job", "instance", "device"}
		if i := slices.Index(chosen, strings.TrimPrefix(e.place, "variable ")); i >= 0 {
			chosen = chosen[:i] // the others are chosen by what is chosen before
		}
		for _, l := range chosen {
			none := l == "device" && (c.board.UID == "rdma-fleet" || by[l].Value == "" && by[l].Op == "=")
			if slices.Contains(labels, l) && by[l].Value != "$"+l && !none {
				problem("%s is not selected by %s", s.Metric, l)
			}
		}
	}
	known = append(known, p.Made...)
	for _, l := range p.Grouped {
		if !slices.Contains(known, l) {
			problem("nothing has the label %s", l)
		}
	}
	for _, word := range p.Raw {
		problem("joins with %s, of which there may be two series", word)
	}
	if slices.Contains(p.Functions, "ceil") {
		problem("rounds up what is extrapolated: one event would be two")
	}
	if slices.Contains(p.Functions, "vector") {
		problem("has a value where nothing is known")
	}
	nearest := regexp.MustCompile(`\b(max|topk|bottomk)\(`)
	if contains(e.expr, "rdma_owner_locked_limit_bytes") && nearest.MatchString(e.expr) && !contains(e.expr, "<= 1") {
		problem("counts processes that no limit binds")
	}
	if c.board.UID == "rdma-fleet" {
		c.cheap(e, p, problem)
	}
	if contains(e.expr, "3600 *") && slices.ContainsFunc(p.Windows, func(w promql.Window) bool { return w.Function == "rate" }) {
		problem("extrapolates a few minutes to an hour")
	}
	for _, join := range p.Joins {
		for _, l := range join {
			if !slices.Contains(known, l) {
				problem("nothing has the label %s", l)
			}
		}
		if !slices.Contains(join, "cluster") || !slices.Contains(join, "job") || !slices.Contains(join, "instance") {
			problem("joins without cluster, job and instance")
		}
	}
	for _, m := range regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`).FindAllStringSubmatch(e.expr, -1) {
		list := strings.Split(m[1], ", ")
		named := func(l string) bool { return slices.Contains(list, l) }
		if named("device") && !named("instance") || named("instance") && !named("job") || named("job") && !named("cluster") {
			problem("mixes clusters, jobs or instances by (%s)", m[1])
		}
	}
	for _, w := range p.Windows {
		switch w.Function {
		case "deriv", "predict_linear":
			continue // of the past, however much of it is shown
		case "increase":
			if w.Span == "$__range" && e.instant {
				continue // the sum of all that is shown
			}
		}
		if w.Span != "$__rate_interval" {
			problem("%s over %s", w.Function, w.Span)
		}
	}
	for _, name := range variablesIn(e.expr) {
		if _, ok := c.variables[name]; !ok {
			problem("variable %s is not declared", name)
		}
	}
}
