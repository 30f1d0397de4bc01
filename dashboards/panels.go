package dashboards

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/gauge"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	grafanastat "github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	grafanatable "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// about is what every panel has. Width and height are in units of the grid.
type about struct {
	width, height uint32
	title         string
	unit          string
	thresholds    dashboard.ThresholdsConfig
	description   string
}

func of(width, height uint32, title, unit string, t dashboard.ThresholdsConfig, description string) about {
	return about{width, height, title, unit, t, description}
}

func tile(title, unit string, t dashboard.ThresholdsConfig, description string) about {
	return of(3, 4, title, unit, t, description)
}

// query is a query of a panel. In its expression, @device stands for the matchers of the chosen devices, @instance
// for those of the exporters, @job for those of the jobs, and @id for the labels that identify a device.
type query struct {
	expr   string
	legend string
}

// quantile returns an expression for a quantile of a histogram. It reads the kind that Prometheus
// keeps, classic or native.
func quantile(q, by, metric string) string {
	return fmt.Sprintf(`(histogram_quantile(%[1]s, sum by (@id, %[2]s, le) (rate(%[3]s_bucket{@device}[$__rate_interval])))`+
		` or histogram_quantile(%[1]s, sum by (@id, %[2]s) (rate(%[3]s{@device}[$__rate_interval]))))`, q, by, metric)
}

func mean(by, metric string) string {
	return fmt.Sprintf(`(sum by (@id, %[1]s) (rate(%[2]s_sum{@device}[$__rate_interval])) / sum by (@id, %[1]s) (rate(%[2]s_count{@device}[$__rate_interval]))`+
		` or sum by (@id, %[1]s) (histogram_sum(rate(%[2]s{@device}[$__rate_interval]))) / sum by (@id, %[1]s) (histogram_count(rate(%[2]s{@device}[$__rate_interval]))))`,
		by, metric)
}

// targets returns the queries of a panel. Instant queries return the present value.
func targets(format prometheus.PromQueryFormat, instant bool, queries []query) []variants.Dataquery {
	list := make([]variants.Dataquery, len(queries))
	for i, q := range queries {
		list[i] = prometheus.Dataquery{
			RefId:        new(string(rune('A' + i))),
			Datasource:   chosenSource(),
			EditorMode:   new(prometheus.QueryEditorModeCode),
			Expr:         q.expr,
			Format:       &format,
			Instant:      &instant,
			Range:        new(!instant),
			LegendFormat: new(q.legend),
		}
	}
	return list
}

// chosenSource is the data source that the reader chose.
func chosenSource() *common.DataSourceRef {
	return &common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}
}

func panel(kind string, a about, list []variants.Dataquery) dashboard.Panel {
	return dashboard.Panel{
		Type:        kind,
		Title:       &a.title,
		Description: &a.description,
		Datasource:  chosenSource(),
		GridPos:     &dashboard.GridPos{W: a.width, H: a.height},
		Targets:     list,
		FieldConfig: &dashboard.FieldConfigSource{
			Defaults: dashboard.FieldConfig{
				Unit:       &a.unit,
				Color:      &dashboard.FieldColor{Mode: dashboard.FieldColorModeIdThresholds},
				Thresholds: &a.thresholds,
			},
			Overrides: []dashboard.DashboardFieldConfigSourceOverrides{},
		},
	}
}

func present(kind string, a about, queries []query) dashboard.Panel {
	return panel(kind, a, targets(prometheus.PromQueryFormatTimeSeries, true, queries))
}

func overTime(kind string, a about, queries []query) dashboard.Panel {
	return panel(kind, a, targets(prometheus.PromQueryFormatTimeSeries, false, queries))
}

// stat returns a panel with the present value of each series, on the colour of its threshold, or on grey without a
// value. Mappings show values as texts.
func stat(a about, mappings []dashboard.ValueMapping, queries ...query) dashboard.Panel {
	options := statOptions()
	if len(a.thresholds.Steps) == 1 {
		options.ColorMode = common.BigValueColorModeNone
	}
	return statPanel(a, mappings, options, queries)
}

func statOptions() *grafanastat.Options {
	options := grafanastat.NewOptions()
	options.ColorMode = common.BigValueColorModeBackgroundSolid
	options.GraphMode = common.BigValueGraphModeNone
	options.ReduceOptions = lastValue()
	options.Orientation = common.VizOrientationAuto
	return options
}

func statPanel(a about, mappings []dashboard.ValueMapping, options *grafanastat.Options, queries []query) dashboard.Panel {
	p := present("stat", a, queries)
	p.FieldConfig.Defaults.Mappings = slices.Concat(mappings, []dashboard.ValueMapping{noData()})
	p.Options = options
	return p
}

// bySeverity is a stat with one value for each severity, coloured if it is not 0.
func bySeverity(a about, queries ...query) dashboard.Panel {
	options := statOptions()
	options.TextMode = common.BigValueTextModeValueAndName
	options.Orientation = common.VizOrientationHorizontal
	p := statPanel(a, none(), options, queries)
	p.FieldConfig.Overrides = []dashboard.DashboardFieldConfigSourceOverrides{
		named("critical", property("thresholds", anyIs(critical))),
		named("warning", property("thresholds", anyIs(warning))),
	}
	return p
}

func dial(a about, queries ...query) dashboard.Panel {
	options := gauge.NewOptions()
	options.ReduceOptions = lastValue()
	options.Orientation = common.VizOrientationAuto
	return fromZeroToOne("gauge", a, options, queries)
}

func bars(a about, queries ...query) dashboard.Panel {
	options := bargauge.NewOptions()
	options.ReduceOptions = lastValue()
	options.Orientation = common.VizOrientationHorizontal
	options.DisplayMode = common.BarGaugeDisplayModeBasic
	options.NamePlacement = common.BarGaugeNamePlacementLeft
	return fromZeroToOne("bargauge", a, options, queries)
}

func fromZeroToOne(kind string, a about, options any, queries []query) dashboard.Panel {
	p := present(kind, a, queries)
	p.FieldConfig.Defaults.Min, p.FieldConfig.Defaults.Max = new(0.0), new(1.0)
	p.Options = options
	return p
}

func lastValue() common.ReduceDataOptions {
	return common.ReduceDataOptions{Calcs: []string{"lastNotNull"}, Fields: new("")}
}

func lines(a about, queries ...query) dashboard.Panel {
	return drawn(a, queries, func(*common.GraphFieldConfig) {})
}

func steps(a about, queries ...query) dashboard.Panel {
	return drawn(a, queries, func(f *common.GraphFieldConfig) {
		f.LineInterpolation = new(common.LineInterpolationStepAfter)
	})
}

// stacked is steps, as areas on top of each other.
func stacked(a about, queries ...query) dashboard.Panel {
	return drawn(a, queries, func(f *common.GraphFieldConfig) {
		f.LineInterpolation = new(common.LineInterpolationStepAfter)
		f.FillOpacity = new(40.0)
		f.Stacking.Mode = new(common.StackingModeNormal)
	})
}

// columns is lines for rare events: bars on top of each other.
func columns(a about, queries ...query) dashboard.Panel {
	return drawn(a, queries, func(f *common.GraphFieldConfig) {
		f.DrawStyle = new(common.GraphDrawStyleBars)
		f.FillOpacity = new(80.0)
		f.ShowPoints = new(common.VisibilityModeNever)
		f.Stacking.Mode = new(common.StackingModeNormal)
	})
}

func drawn(a about, queries []query, change func(*common.GraphFieldConfig)) dashboard.Panel {
	field := &common.GraphFieldConfig{
		DrawStyle:         new(common.GraphDrawStyleLine),
		LineInterpolation: new(common.LineInterpolationLinear),
		LineWidth:         new(1.0),
		FillOpacity:       new(0.0),
		ShowPoints:        new(common.VisibilityModeAuto),
		PointSize:         new(4.0),
		AxisSoftMin:       new(0.0),
		Stacking:          &common.StackingConfig{Mode: new(common.StackingModeNone), Group: new("A")},
		ThresholdsStyle:   &common.GraphThresholdsStyleConfig{Mode: common.GraphThresholdsStyleModeOff},
	}
	if len(a.thresholds.Steps) > 1 {
		field.ThresholdsStyle.Mode = common.GraphThresholdsStyleModeDashed
	}
	change(field)
	p := overTime("timeseries", a, queries)
	p.FieldConfig.Defaults.Color.Mode = dashboard.FieldColorModeIdPaletteClassic
	p.FieldConfig.Defaults.Custom = field
	p.Options = timeseries.Options{
		Legend: common.VizLegendOptions{
			DisplayMode: common.LegendDisplayModeTable, Placement: common.LegendPlacementBottom, ShowLegend: true,
			Calcs: []string{"lastNotNull", "max"}, SortBy: new("Max"), SortDesc: new(true),
		},
		Tooltip: multi(),
	}
	return p
}

func multi() common.VizTooltipOptions {
	return common.VizTooltipOptions{Mode: common.TooltipDisplayModeMulti, Sort: common.SortOrderDescending}
}

func strips(a about, mappings []dashboard.ValueMapping, queries ...query) dashboard.Panel {
	options := statetimeline.NewOptions()
	options.RowHeight = 0.8
	options.Legend = common.VizLegendOptions{
		DisplayMode: common.LegendDisplayModeList, Placement: common.LegendPlacementBottom, ShowLegend: true, Calcs: []string{},
	}
	options.Tooltip = multi()
	p := overTime("state-timeline", a, queries)
	p.FieldConfig.Defaults.Mappings = mappings
	p.FieldConfig.Defaults.Custom = statetimeline.FieldConfig{LineWidth: new(uint32(1)), FillOpacity: new(uint32(80))}
	p.Options = options
	return p
}

// heat returns a heatmap of a histogram over time, in seconds.
func heat(a about, expr string) dashboard.Panel {
	options := heatmap.NewOptions()
	options.Color.Mode, options.Color.Scale = new(heatmap.HeatmapColorModeScheme), new(heatmap.HeatmapColorScaleExponential)
	options.Color.Scheme, options.Color.Fill = "Viridis", neutral
	options.RowsFrame = &heatmap.RowsHeatmapOptions{Layout: new(common.HeatmapCellLayoutAuto)}
	options.ShowValue = common.VisibilityModeNever
	options.CellValues = &heatmap.CellValues{Unit: new(count)}
	options.YAxis = heatmap.YAxisConfig{Unit: new(seconds), AxisPlacement: new(common.AxisPlacementLeft)}
	options.Tooltip = heatmap.HeatmapTooltip{
		Mode: common.TooltipDisplayModeSingle, YHistogram: new(true), ShowColorScale: new(true),
	}
	p := panel("heatmap", a, targets(prometheus.PromQueryFormatHeatmap, false, []query{{expr, "{{le}}"}}))
	p.MaxDataPoints = new(120.0)
	p.Options = options
	return p
}

// column is a column of a table. Field is a label or the letter of a query. It is not set for a column with an
// expression, whose query follows those of the table. The title defaults to it. What is empty is as in the whole table.
type column struct {
	field      string
	expr       string
	title      string
	unit       string
	width      int
	hidden     bool
	thresholds *dashboard.ThresholdsConfig
	mappings   []dashboard.ValueMapping
	empty      string // shown without a value
	bar        bool   // a bar from 0 to 1
	links      []dashboard.DashboardLink
}

// label is the column of a label. Without a width it is as wide as it needs to be.
func label(name string, width ...int) column { return titled(name, name, width...) }

// titled is a column with a title.
func titled(field, title string, width ...int) column {
	return column{field: field, title: title, width: append(width, 0)[0]}
}

func severity(width int) column {
	return column{field: "severity", title: "severity", width: width, mappings: severities()}
}

// table returns a table of the present values of the queries: a row for each set of labels that they have in common,
// sorted by a column, the largest first unless the title begins with a minus. Queries must keep no labels but those
// of the columns.
func table(a about, sortBy string, columns []column, queries ...query) dashboard.Panel {
	for i, c := range columns {
		columns[i].title = cmp.Or(c.title, c.field)
		if c.expr != "" {
			columns[i].field = string(rune('A' + len(queries)))
			queries = append(queries, query{c.expr, ""})
		}
	}
	leads := func(c column) bool { return len(c.links) > 0 && strings.Contains(*c.links[0].Url, rowCluster) }
	if slices.ContainsFunc(columns, leads) {
		columns = append(columns, column{field: "link", title: "link", hidden: true})
		for i := range queries {
			queries[i].expr = withLink(queries[i].expr)
		}
	}
	p := panel("table", a, targets(prometheus.PromQueryFormatTable, true, queries))
	p.FieldConfig.Defaults.Custom = grafanatable.FieldConfig{Align: common.FieldTextAlignmentAuto}
	options := grafanatable.Options{ShowHeader: true, CellHeight: new(common.TableCellHeightSm)}
	if sortBy != "" {
		name, smallest := strings.CutPrefix(sortBy, "-")
		options.SortBy = []common.TableSortByFieldState{{DisplayName: name, Desc: new(!smallest)}}
	}
	p.Options = options

	if len(queries) > 1 {
		p.Transformations = []dashboard.DataTransformerConfig{{Id: "merge", Options: struct{}{}}}
	}
	names, index, renamed := make([]string, len(columns)), make(map[string]int), make(map[string]string)
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
	order := map[string]any{"excludeByName": map[string]bool{}, "indexByName": index, "renameByName": renamed}
	p.Transformations = append(p.Transformations,
		dashboard.DataTransformerConfig{Id: "filterFieldsByName", Options: map[string]any{"include": map[string]any{"names": names}}},
		dashboard.DataTransformerConfig{Id: "organize", Options: order}, //nolint:misspell // Grafana names it so
	)
	return p
}

// byDevice is table for several devices, with a column of their names.
func byDevice(a about, sortBy string, columns []column, queries ...query) dashboard.Panel {
	return table(a, sortBy, append([]column{label("device", 90)}, columns...), queries...)
}

// filled puts "none" into labels that are empty, and so absent: the rows of tables are matched by their labels.
func filled(expr string, labels ...string) string {
	for _, l := range labels {
		expr = fmt.Sprintf(`label_replace(%s, "%[2]s", "none", "%[2]s", "")`, expr, l)
	}
	return expr
}

// onlyWith drops the rows of a table in which the query has no value above 0.
func onlyWith(letter string, p dashboard.Panel) dashboard.Panel {
	filter := dashboard.DataTransformerConfig{Id: "filterByValue", Options: map[string]any{
		"type":  "include",
		"match": "all",
		"filters": []map[string]any{{
			"fieldName": fieldName(letter, len(p.Targets)),
			"config":    map[string]any{"id": "greater", "options": map[string]any{"value": 0}},
		}},
	}}
	p.Transformations = slices.Insert(p.Transformations, 1, filter)
	return p
}

// filterable lets the reader filter a table by its columns.
func filterable(p dashboard.Panel) dashboard.Panel {
	p.FieldConfig.Defaults.Custom = grafanatable.FieldConfig{Align: common.FieldTextAlignmentAuto, Filterable: new(true)}
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

func (c column) override() dashboard.DashboardFieldConfigSourceOverrides {
	var p []dashboard.DynamicConfigValue
	add := func(id string, value any) { p = append(p, property(id, value)) }
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
		add("custom.cellOptions", map[string]string{"type": "gauge", "mode": "basic", "valueDisplayMode": "text"})
	case c.mappings != nil || c.thresholds != nil:
		add("custom.cellOptions", map[string]string{"type": "color-background", "mode": "basic"})
	}
	if c.links != nil {
		add("links", c.links)
	}
	return named(c.title, p...)
}

func property(id string, value any) dashboard.DynamicConfigValue {
	return dashboard.DynamicConfigValue{Id: id, Value: value}
}

func named(name string, properties ...dashboard.DynamicConfigValue) dashboard.DashboardFieldConfigSourceOverrides {
	return override("byName", name, properties...)
}

func override(matcher, value string, properties ...dashboard.DynamicConfigValue) dashboard.DashboardFieldConfigSourceOverrides {
	return dashboard.DashboardFieldConfigSourceOverrides{
		Matcher: dashboard.MatcherConfig{Id: matcher, Options: value}, Properties: properties,
	}
}

type paint struct {
	series, colour string
}

// painted paints the series whose names are given, or end with it after that of a device.
func painted(p dashboard.Panel, colours ...paint) dashboard.Panel {
	for _, c := range colours {
		color := dashboard.FieldColor{Mode: dashboard.FieldColorModeIdFixed, FixedColor: &c.colour}
		p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, override("byRegexp", "/(^| )"+c.series+"$/", property("color", color)))
	}
	return p
}

// byOutcome returns bars of the runs that finished in the minutes before each of them.
func byOutcome(a about, counter string) dashboard.Panel {
	return painted(columns(a, runsOf(counter)...),
		paint{"ok", good}, paint{"failed", warning}, paint{"timeout", critical}, paint{"crashed", unknown})
}

// dashed dashes the lines of the series whose names match.
func dashed(p dashboard.Panel, regexp string) dashboard.Panel {
	style := map[string]any{"fill": "dash", "dash": []int{6, 6}}
	p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, override("byRegexp", regexp, property("custom.lineStyle", style)))
	return p
}

// matrix returns a table with a row for each value of a label, and a column for each of another.
func matrix(a about, row, column string, mappings []dashboard.ValueMapping, expr string) dashboard.Panel {
	p := panel("table", a, targets(prometheus.PromQueryFormatTable, true, []query{{expr, ""}}))
	p.FieldConfig.Defaults.Mappings = mappings
	p.FieldConfig.Defaults.Custom = map[string]any{"align": "auto", "cellOptions": map[string]string{"type": "color-background", "mode": "basic"}}
	p.Options = grafanatable.Options{ShowHeader: true, CellHeight: new(common.TableCellHeightSm)}
	p.Transformations = []dashboard.DataTransformerConfig{{Id: "groupingToMatrix", Options: map[string]string{
		"rowField": row, "columnField": column, "valueField": "Value", "emptyValue": "null",
	}}}
	return p
}
