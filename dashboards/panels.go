package dashboards

import (
	"fmt"
	"slices"
)

// at is the size of a panel on the grid. Panels are put from left to right.
type at struct {
	w, h int
}

// about is what every panel has.
type about struct {
	at          at
	title       string
	description string
	unit        string
	thresholds  Thresholds
}

// query is what is asked of Prometheus. In the expression, @device stands for the
// matchers of the devices chosen, @instance for those of the exporters, @job for that
// of the jobs, and @id for the labels that tell devices apart.
type query struct {
	expr   string
	legend string
}

// data returns the queries of a panel. Instant ones ask for what is, others for how
// it was over the time shown.
func data(format string, instant bool, queries []query) []Target {
	targets := make([]Target, len(queries))
	for i, q := range queries {
		targets[i] = Target{
			RefID:        refID(i),
			DataSource:   chosenSource(),
			EditorMode:   "code",
			Expr:         q.expr,
			Format:       format,
			Instant:      instant,
			Range:        !instant,
			LegendFormat: q.legend,
		}
	}
	return targets
}

// refID names the queries of a panel A, B, C, …
func refID(i int) string {
	return string(rune('A' + i))
}

// chosenSource is the data source that the reader chose.
func chosenSource() DataSource {
	return DataSource{"prometheus", "${datasource}"}
}

// panel returns what all types of panels have in common.
func panel(kind string, a about) Panel {
	return Panel{
		Type:        kind,
		Title:       a.title,
		Description: a.description,
		DataSource:  chosenSource(),
		GridPos:     GridPos{W: a.at.w, H: a.at.h},
		FieldConfig: FieldConfig{
			Defaults: Field{
				Unit:       a.unit,
				Color:      FieldColor{Mode: "thresholds"},
				Thresholds: a.thresholds,
				Mappings:   []Mapping{},
			},
			Overrides: []Override{},
		},
	}
}

// stat returns a panel with the present figure of each series, on the colour that
// its thresholds give it, or on grey if there is none. What is mapped has a text in
// place of its figure.
func stat(a about, mappings []Mapping, queries ...query) Panel {
	p := panel("stat", a)
	p.Targets = data("time_series", true, queries)
	p.FieldConfig.Defaults.Mappings = slices.Concat(mappings, []Mapping{noData()})
	options := StatOptions{
		ReduceOptions: lastValue(),
		Orientation:   "auto",
		TextMode:      "auto",
		ColorMode:     "background_solid",
		GraphMode:     "none",
		JustifyMode:   "auto",
	}
	if len(a.thresholds.Steps) == 1 {
		options.ColorMode = "none"
	}
	p.Options = options
	return p
}

// bySeverity is a stat of one figure for each severity, coloured where it is not 0.
func bySeverity(a about, queries ...query) Panel {
	a.thresholds = plain()
	p := stat(a, none(), queries...)
	options, _ := p.Options.(StatOptions)
	options.ColorMode = "background_solid"
	options.TextMode = "value_and_name"
	options.Orientation = "horizontal"
	p.Options = options
	p.FieldConfig.Overrides = []Override{
		named("critical", Property{"thresholds", anyIs(critical)}),
		named("warning", Property{"thresholds", anyIs(warning)}),
	}
	return p
}

// dial returns a gauge from 0 to 1.
func dial(a about, queries ...query) Panel {
	p := panel("gauge", a)
	p.Targets = data("time_series", true, queries)
	p.FieldConfig.Defaults.Min, p.FieldConfig.Defaults.Max = new(0.0), new(1.0)
	p.Options = GaugeOptions{
		ReduceOptions:        lastValue(),
		Orientation:          "auto",
		ShowThresholdMarkers: true,
	}
	return p
}

// bars returns a bar from 0 to 1 for the present value of each series.
func bars(a about, queries ...query) Panel {
	p := panel("bargauge", a)
	p.Targets = data("time_series", true, queries)
	p.FieldConfig.Defaults.Min, p.FieldConfig.Defaults.Max = new(0.0), new(1.0)
	p.Options = BarGaugeOptions{
		ReduceOptions: lastValue(),
		Orientation:   "horizontal",
		DisplayMode:   "basic",
		ValueMode:     "color",
		NamePlacement: "left",
		ShowUnfilled:  true,
	}
	return p
}

func lastValue() Reduce {
	return Reduce{Calcs: []string{"lastNotNull"}}
}

// lines returns a panel with a line for each series over time. Thresholds, if any,
// are dashed lines.
func lines(a about, queries ...query) Panel {
	p := panel("timeseries", a)
	p.Targets = data("time_series", false, queries)
	p.FieldConfig.Defaults.Color.Mode = "palette-classic"
	field := TimeSeriesField{
		DrawStyle:         "line",
		LineInterpolation: "linear",
		LineWidth:         1,
		ShowPoints:        "auto",
		PointSize:         4,
		AxisSoftMin:       new(0.0),
		Stacking:          Stacking{"none", "A"},
		ThresholdsStyle:   ThresholdsStyle{"off"},
	}
	if len(a.thresholds.Steps) > 1 {
		field.ThresholdsStyle.Mode = "dashed"
	}
	p.FieldConfig.Defaults.Custom = field
	p.Options = TimeSeriesOptions{
		Legend: Legend{
			DisplayMode: "table", Placement: "bottom", ShowLegend: true,
			Calcs: []string{"lastNotNull", "max"}, SortBy: "Max", SortDesc: true,
		},
		Tooltip: multi(),
	}
	return p
}

// steps is lines for what stays as it is until it changes.
func steps(a about, queries ...query) Panel {
	return restyle(lines(a, queries...), func(f *TimeSeriesField) { f.LineInterpolation = "stepAfter" })
}

// stacked is steps, as areas on top of each other.
func stacked(a about, queries ...query) Panel {
	return restyle(steps(a, queries...), func(f *TimeSeriesField) {
		f.FillOpacity = 40
		f.Stacking.Mode = "normal"
	})
}

// columns is lines for what happens now and then: bars on top of each other.
func columns(a about, queries ...query) Panel {
	return restyle(lines(a, queries...), func(f *TimeSeriesField) {
		f.DrawStyle = "bars"
		f.FillOpacity = 80
		f.ShowPoints = "never"
		f.Stacking.Mode = "normal"
	})
}

// restyle changes how a panel of lines draws them.
func restyle(p Panel, change func(*TimeSeriesField)) Panel {
	field, _ := p.FieldConfig.Defaults.Custom.(TimeSeriesField)
	change(&field)
	p.FieldConfig.Defaults.Custom = field
	return p
}

func multi() Tooltip {
	return Tooltip{"multi", "desc"}
}

// strips returns a panel with a strip for each series, coloured by its state over
// time.
func strips(a about, mappings []Mapping, queries ...query) Panel {
	p := panel("state-timeline", a)
	p.Targets = data("time_series", false, queries)
	p.FieldConfig.Defaults.Mappings = mappings
	p.FieldConfig.Defaults.Custom = StateTimelineField{LineWidth: 1, FillOpacity: 80}
	p.Options = StateTimelineOptions{
		ShowValue:   "auto",
		RowHeight:   0.8,
		MergeValues: true,
		AlignValue:  "left",
		Legend:      Legend{DisplayMode: "list", Placement: "bottom", ShowLegend: true, Calcs: []string{}},
		Tooltip:     multi(),
	}
	return p
}

// heatmap returns a panel of the buckets of a histogram over time, in seconds.
func heatmap(a about, expr string) Panel {
	p := panel("heatmap", a)
	p.Targets = data("heatmap", false, []query{{expr, "{{le}}"}})
	p.MaxDataPoints = 120
	p.Options = HeatmapOptions{
		Color: HeatmapColor{
			Mode: "scheme", Scheme: "Viridis", Fill: neutral, Scale: "exponential", Exponent: 0.5, Steps: 64,
		},
		FilterValues: HeatmapFilter{1e-9},
		RowsFrame:    HeatmapRows{"auto"},
		ShowValue:    "never",
		CellGap:      1,
		CellValues:   HeatmapValues{count},
		YAxis:        HeatmapYAxis{seconds, "left"},
		Legend:       HeatmapLegend{true},
		Tooltip:      HeatmapTooltip{Mode: "single", YHistogram: true, ShowColorScale: true},
	}
	return p
}

// column is a column of a table: the field, which is a label or the letter of a
// query, and how it is shown. What is empty is as in the whole table.
type column struct {
	field      string
	title      string
	unit       string
	width      int
	hidden     bool
	thresholds *Thresholds
	mappings   []Mapping
	empty      string // shown where there is no value
	bar        bool   // as a bar from 0 to 1
	links      []DataLink
}

// table returns a table of the present values of the queries: a row for each set of
// labels that they have in common, sorted by a column, the largest first unless the
// title begins with a minus. Queries must keep no labels but those of columns.
func table(a about, sortBy string, columns []column, queries ...query) Panel {
	p := panel("table", a)
	p.Targets = data("table", true, queries)
	p.FieldConfig.Defaults.Custom = TableField{Align: "auto"}
	smallest := sortBy != "" && sortBy[0] == '-'
	if smallest {
		sortBy = sortBy[1:]
	}
	options := TableOptions{ShowHeader: true, CellHeight: "sm"}
	if sortBy != "" {
		options.SortBy = []TableSort{{sortBy, !smallest}}
	}
	p.Options = options

	if len(queries) > 1 {
		p.Transformations = append(p.Transformations, Transformation{"merge", struct{}{}})
	}
	names := make([]string, len(columns))
	index := make(map[string]int, len(columns))
	renamed := make(map[string]string, len(columns))
	for i, c := range columns {
		name := fieldName(c.field, len(queries))
		names[i], index[name] = name, i
		if name != c.title {
			renamed[name] = c.title
		}
		if o := c.override(); len(o.Properties) > 0 {
			p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, o)
		}
	}
	p.Transformations = append(p.Transformations,
		Transformation{"filterFieldsByName", includeFields{fieldNames{names}}},
		Transformation{"organize", order{map[string]bool{}, index, renamed}}, //nolint:misspell // Grafana names it so
	)
	return p
}

// filled puts "none" into labels that are empty, and so absent: the rows of tables
// are matched by their labels.
func filled(expr string, labels ...string) string {
	for _, l := range labels {
		expr = fmt.Sprintf(`label_replace(%s, "%[2]s", "none", "%[2]s", "")`, expr, l)
	}
	return expr
}

// onlyWith drops the rows of a table in which the query has no value above 0.
func onlyWith(letter string, p Panel) Panel {
	filter := rowFilter{
		Type:  "include",
		Match: "all",
		Filters: []valueFilter{{
			FieldName: fieldName(letter, len(p.Targets)),
			Config:    valueMatcher{"greater", valueOption{0}},
		}},
	}
	p.Transformations = slices.Insert(p.Transformations, 1, Transformation{"filterByValue", filter})
	return p
}

// filterable lets the reader filter a table by its columns.
func filterable(p Panel) Panel {
	field, _ := p.FieldConfig.Defaults.Custom.(TableField)
	field.Filterable = true
	p.FieldConfig.Defaults.Custom = field
	return p
}

// fieldName is what Grafana calls the column of a label or of the query of a letter.
func fieldName(field string, queries int) string {
	switch {
	case len(field) != 1:
		return field
	case queries == 1:
		return "Value"
	default:
		return "Value #" + field
	}
}

// override returns what is special about the column.
func (c column) override() Override {
	var p []Property
	add := func(id string, value any) { p = append(p, Property{id, value}) }
	switch {
	case c.unit != "":
		add("unit", c.unit)
	case len(c.field) > 1:
		add("unit", words) // or Grafana takes a label for a number if it looks like one
	}
	if c.width > 0 {
		add("custom.width", c.width)
	}
	if c.hidden {
		add("custom.hidden", true)
	}
	if c.thresholds != nil {
		add("thresholds", *c.thresholds)
	}
	if c.mappings != nil {
		add("mappings", c.mappings)
	}
	if c.empty != "" {
		add("noValue", c.empty)
	}
	switch {
	case c.bar:
		add("min", 0)
		add("max", 1)
		add("custom.cellOptions", TableCell{Type: "gauge", Mode: "basic", ValueDisplayMode: "text"})
	case c.mappings != nil || c.thresholds != nil:
		add("custom.cellOptions", TableCell{Type: "color-background", Mode: "basic"})
	}
	if c.links != nil {
		add("links", c.links)
	}
	return named(c.title, p...)
}

// named overrides how the series or column of that name is shown.
func named(name string, properties ...Property) Override {
	return Override{Matcher{"byName", name}, properties}
}

// matching overrides how the series are shown whose names match.
func matching(regexp string, properties ...Property) Override {
	return Override{Matcher{"byRegexp", regexp}, properties}
}

// painted gives colours to series by name.
func painted(p Panel, colours ...paint) Panel {
	for _, c := range colours {
		p.FieldConfig.Overrides = append(p.FieldConfig.Overrides,
			named(c.series, Property{"color", FieldColor{"fixed", c.colour}}))
	}
	return p
}

// paint is the colour of a series.
type paint struct {
	series, colour string
}

// dashed dashes the lines of the series whose names match.
func dashed(p Panel, regexp string) Panel {
	p.FieldConfig.Overrides = append(p.FieldConfig.Overrides,
		matching(regexp, Property{"custom.lineStyle", lineStyle{"dash", []int{6, 6}}}))
	return p
}

// linked adds links to the values of a panel.
func linked(p Panel, links ...DataLink) Panel {
	p.FieldConfig.Defaults.Links = links
	return p
}

// The options of transformations and properties.
type (
	fieldNames struct {
		Names []string `json:"names"`
	}
	includeFields struct {
		Include fieldNames `json:"include"`
	}
	order struct {
		ExcludeByName map[string]bool   `json:"excludeByName"`
		IndexByName   map[string]int    `json:"indexByName"`
		RenameByName  map[string]string `json:"renameByName"`
	}
	rowFilter struct {
		Type    string        `json:"type"`
		Match   string        `json:"match"`
		Filters []valueFilter `json:"filters"`
	}
	valueFilter struct {
		FieldName string       `json:"fieldName"`
		Config    valueMatcher `json:"config"`
	}
	valueMatcher struct {
		ID      string      `json:"id"`
		Options valueOption `json:"options"`
	}
	valueOption struct {
		Value float64 `json:"value"`
	}
	lineStyle struct {
		Fill string `json:"fill"`
		Dash []int  `json:"dash"`
	}
)
