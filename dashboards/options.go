package dashboards

// Reduce makes one value of a series.
type Reduce struct {
	Calcs  []string `json:"calcs"`
	Fields string   `json:"fields"`
	Values bool     `json:"values"`
}

// Legend is the list of series beside or below a picture.
type Legend struct {
	DisplayMode string   `json:"displayMode"`
	Placement   string   `json:"placement"`
	ShowLegend  bool     `json:"showLegend"`
	Calcs       []string `json:"calcs"`
	SortBy      string   `json:"sortBy,omitempty"`
	SortDesc    bool     `json:"sortDesc,omitempty"`
}

// Tooltip is what shows beside the pointer.
type Tooltip struct {
	Mode string `json:"mode"`
	Sort string `json:"sort"`
}

// StatOptions are the options of a stat: one figure, or one for each series.
type StatOptions struct {
	ReduceOptions Reduce `json:"reduceOptions"`
	Orientation   string `json:"orientation"`
	TextMode      string `json:"textMode"`
	ColorMode     string `json:"colorMode"`
	GraphMode     string `json:"graphMode"`
	JustifyMode   string `json:"justifyMode"`
}

// GaugeOptions are the options of a gauge: one dial for each series.
type GaugeOptions struct {
	ReduceOptions        Reduce `json:"reduceOptions"`
	Orientation          string `json:"orientation"`
	ShowThresholdLabels  bool   `json:"showThresholdLabels"`
	ShowThresholdMarkers bool   `json:"showThresholdMarkers"`
}

// BarGaugeOptions are the options of a bar gauge: one bar for each series.
type BarGaugeOptions struct {
	ReduceOptions Reduce `json:"reduceOptions"`
	Orientation   string `json:"orientation"`
	DisplayMode   string `json:"displayMode"`
	ValueMode     string `json:"valueMode"`
	NamePlacement string `json:"namePlacement"`
	ShowUnfilled  bool   `json:"showUnfilled"`
}

// TimeSeriesOptions are the options of a time series: lines, bars or areas.
type TimeSeriesOptions struct {
	Legend  Legend  `json:"legend"`
	Tooltip Tooltip `json:"tooltip"`
}

// TimeSeriesField is the Custom of a field of a time series.
type TimeSeriesField struct {
	DrawStyle         string          `json:"drawStyle"`
	LineInterpolation string          `json:"lineInterpolation"`
	LineWidth         int             `json:"lineWidth"`
	FillOpacity       int             `json:"fillOpacity"`
	ShowPoints        string          `json:"showPoints"`
	PointSize         int             `json:"pointSize"`
	SpanNulls         bool            `json:"spanNulls"`
	AxisSoftMin       *float64        `json:"axisSoftMin,omitempty"`
	Stacking          Stacking        `json:"stacking"`
	ThresholdsStyle   ThresholdsStyle `json:"thresholdsStyle"`
}

// Stacking says whether series are put on top of each other: none or normal.
type Stacking struct {
	Mode  string `json:"mode"`
	Group string `json:"group"`
}

// ThresholdsStyle says how thresholds are drawn: off or dashed.
type ThresholdsStyle struct {
	Mode string `json:"mode"`
}

// StateTimelineOptions are the options of a state timeline: a strip for each series.
type StateTimelineOptions struct {
	ShowValue   string  `json:"showValue"`
	RowHeight   float64 `json:"rowHeight"`
	MergeValues bool    `json:"mergeValues"`
	AlignValue  string  `json:"alignValue"`
	Legend      Legend  `json:"legend"`
	Tooltip     Tooltip `json:"tooltip"`
}

// StateTimelineField is the Custom of a field of a state timeline.
type StateTimelineField struct {
	LineWidth   int `json:"lineWidth"`
	FillOpacity int `json:"fillOpacity"`
}

// HeatmapOptions are the options of a heatmap: buckets over time.
type HeatmapOptions struct {
	Calculate    bool           `json:"calculate"`
	Color        HeatmapColor   `json:"color"`
	FilterValues HeatmapFilter  `json:"filterValues"`
	RowsFrame    HeatmapRows    `json:"rowsFrame"`
	ShowValue    string         `json:"showValue"`
	CellGap      int            `json:"cellGap"`
	CellValues   HeatmapValues  `json:"cellValues"`
	YAxis        HeatmapYAxis   `json:"yAxis"`
	Legend       HeatmapLegend  `json:"legend"`
	Tooltip      HeatmapTooltip `json:"tooltip"`
}

// HeatmapColor says how counts become colours.
type HeatmapColor struct {
	Mode     string  `json:"mode"`
	Scheme   string  `json:"scheme"`
	Fill     string  `json:"fill"`
	Scale    string  `json:"scale"`
	Exponent float64 `json:"exponent"`
	Steps    int     `json:"steps"`
	Reverse  bool    `json:"reverse"`
}

// HeatmapFilter hides counts up to Le.
type HeatmapFilter struct {
	Le float64 `json:"le"`
}

// HeatmapRows says which bound of a bucket its name is.
type HeatmapRows struct {
	Layout string `json:"layout"`
}

// HeatmapValues says how counts are written.
type HeatmapValues struct {
	Unit string `json:"unit"`
}

// HeatmapYAxis says how the bounds of buckets are written.
type HeatmapYAxis struct {
	Unit          string `json:"unit"`
	AxisPlacement string `json:"axisPlacement"`
}

// HeatmapLegend is the scale of colours.
type HeatmapLegend struct {
	Show bool `json:"show"`
}

// HeatmapTooltip is what shows beside the pointer.
type HeatmapTooltip struct {
	Mode           string `json:"mode"`
	YHistogram     bool   `json:"yHistogram"`
	ShowColorScale bool   `json:"showColorScale"`
}

// TableOptions are the options of a table.
type TableOptions struct {
	ShowHeader bool        `json:"showHeader"`
	CellHeight string      `json:"cellHeight"`
	SortBy     []TableSort `json:"sortBy,omitempty"`
}

// TableSort is a column by which a table is sorted.
type TableSort struct {
	DisplayName string `json:"displayName"`
	Desc        bool   `json:"desc"`
}

// TableField is the Custom of a field of a table.
type TableField struct {
	Align      string `json:"align"`
	Inspect    bool   `json:"inspect"`
	Filterable bool   `json:"filterable"`
}

// TableCell says how a cell is drawn: auto, color-background or gauge.
type TableCell struct {
	Type             string `json:"type"`
	Mode             string `json:"mode,omitempty"`
	ValueDisplayMode string `json:"valueDisplayMode,omitempty"`
}
