package dashboards

// Dashboard is a dashboard as Grafana keeps it, of the schema that Grafana 10.4
// writes and later ones migrate on import: as much of it as is used here.
type Dashboard struct {
	UID           string          `json:"uid"`
	Title         string          `json:"title"`
	Description   string          `json:"description"`
	Tags          []string        `json:"tags"`
	Timezone      string          `json:"timezone"`
	Editable      bool            `json:"editable"`
	GraphTooltip  int             `json:"graphTooltip"` // 1: a shared crosshair
	Time          TimeRange       `json:"time"`
	Refresh       string          `json:"refresh"`
	SchemaVersion int             `json:"schemaVersion"`
	Links         []DashboardLink `json:"links"`
	Templating    Templating      `json:"templating"`
	Annotations   Annotations     `json:"annotations"`
	Panels        []Element       `json:"panels"`
}

// TimeRange is the part of time that is shown at first.
type TimeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// DashboardLink is a link in the head of a dashboard.
type DashboardLink struct {
	Title       string   `json:"title"`
	Type        string   `json:"type"`
	Icon        string   `json:"icon"`
	Tooltip     string   `json:"tooltip"`
	URL         string   `json:"url"`
	Tags        []string `json:"tags"`
	AsDropdown  bool     `json:"asDropdown"`
	TargetBlank bool     `json:"targetBlank"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
}

// DataLink is a link on a value of a panel.
type DataLink struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// DataSource names a data source.
type DataSource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Templating has the variables.
type Templating struct {
	List []Variable `json:"list"`
}

// Variable is what the reader chooses in the head of a dashboard. Query is a string
// or a VariableQuery, by type.
type Variable struct {
	Type        string           `json:"type"`
	Name        string           `json:"name"`
	Label       string           `json:"label"`
	Description string           `json:"description"`
	Query       any              `json:"query"`
	DataSource  *DataSource      `json:"datasource,omitempty"`
	Hide        int              `json:"hide"`
	Refresh     int              `json:"refresh,omitempty"` // 2: when the time range changes
	Sort        int              `json:"sort,omitempty"`    // 7: natural order
	Multi       bool             `json:"multi"`
	IncludeAll  bool             `json:"includeAll"`
	AllValue    string           `json:"allValue,omitempty"`
	Current     *VariableOption  `json:"current,omitempty"`
	Options     []VariableOption `json:"options,omitempty"`
}

// VariableQuery asks Prometheus for the values of a variable.
type VariableQuery struct {
	Query string `json:"query"`
	RefID string `json:"refId"`
}

// VariableOption is a value of a variable: text and value are a string, or a list of
// strings where several can be chosen.
type VariableOption struct {
	Selected bool `json:"selected"`
	Text     any  `json:"text"`
	Value    any  `json:"value"`
}

// Annotations has the queries of annotations.
type Annotations struct {
	List []Annotation `json:"list"`
}

// Annotation marks the times at which its expression has a value above 0, or, with
// UseValueForTime, those that are its values, in milliseconds.
type Annotation struct {
	Name            string     `json:"name"`
	DataSource      DataSource `json:"datasource"`
	Enable          bool       `json:"enable"`
	Hide            bool       `json:"hide,omitempty"`
	IconColor       string     `json:"iconColor"`
	Type            string     `json:"type,omitempty"`
	BuiltIn         int        `json:"builtIn,omitempty"`
	Expr            string     `json:"expr,omitempty"`
	Step            string     `json:"step,omitempty"`
	TitleFormat     string     `json:"titleFormat,omitempty"`
	TextFormat      string     `json:"textFormat,omitempty"`
	TagKeys         string     `json:"tagKeys,omitempty"`
	UseValueForTime bool       `json:"useValueForTime,omitempty"`
}

// Element is what stands on a dashboard: a row or a panel.
type Element interface {
	element()
}

// Row is the heading of a group of panels. Grafana keeps the panels of a collapsed
// row within it, and those of an open row behind it.
type Row struct {
	ID        int     `json:"id"`
	Type      string  `json:"type"`
	Title     string  `json:"title"`
	Collapsed bool    `json:"collapsed"`
	GridPos   GridPos `json:"gridPos"`
	Panels    []Panel `json:"panels"`
}

// GridPos is a place on the grid, which is 24 wide.
type GridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// Panel is one picture or table. Options and the Custom of its fields are of one of
// the types of options.go, by type.
type Panel struct {
	ID              int              `json:"id"`
	Type            string           `json:"type"`
	Title           string           `json:"title"`
	Description     string           `json:"description"`
	DataSource      DataSource       `json:"datasource"`
	GridPos         GridPos          `json:"gridPos"`
	Interval        string           `json:"interval,omitempty"`
	MaxDataPoints   int              `json:"maxDataPoints,omitempty"`
	Targets         []Target         `json:"targets"`
	Transformations []Transformation `json:"transformations,omitempty"`
	FieldConfig     FieldConfig      `json:"fieldConfig"`
	Options         any              `json:"options"`
}

// Target is a query. Format is time_series, table or heatmap.
type Target struct {
	RefID        string     `json:"refId"`
	DataSource   DataSource `json:"datasource"`
	EditorMode   string     `json:"editorMode"`
	Expr         string     `json:"expr"`
	Format       string     `json:"format"`
	Instant      bool       `json:"instant"`
	Range        bool       `json:"range"`
	LegendFormat string     `json:"legendFormat"`
}

// Transformation changes the result of the queries before it is shown.
type Transformation struct {
	ID      string `json:"id"`
	Options any    `json:"options"`
}

// FieldConfig says how values are shown.
type FieldConfig struct {
	Defaults  Field      `json:"defaults"`
	Overrides []Override `json:"overrides"`
}

// Field says how the values of a field, a series or a column, are shown.
type Field struct {
	Unit       string     `json:"unit"`
	Min        *float64   `json:"min,omitempty"`
	Max        *float64   `json:"max,omitempty"`
	Color      FieldColor `json:"color"`
	Thresholds Thresholds `json:"thresholds"`
	Mappings   []Mapping  `json:"mappings"`
	Links      []DataLink `json:"links,omitempty"`
	Custom     any        `json:"custom,omitempty"`
}

// FieldColor says where colours come from.
type FieldColor struct {
	Mode       string `json:"mode"`
	FixedColor string `json:"fixedColor,omitempty"`
}

// Thresholds give colours to values: each from its value on, the first below all.
type Thresholds struct {
	Mode  string      `json:"mode"`
	Steps []Threshold `json:"steps"`
}

// Threshold is a step of Thresholds. The first has no value.
type Threshold struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

// Mapping shows values as texts. Options are a map[string]Mapped, by value, of the
// type value, and a SpecialMapping of the type special.
type Mapping struct {
	Type    string `json:"type"`
	Options any    `json:"options"`
}

// SpecialMapping shows what is no value as a text; Match is null where there is none.
type SpecialMapping struct {
	Match  string `json:"match"`
	Result Mapped `json:"result"`
}

// Mapped is the text that stands for a value.
type Mapped struct {
	Text  string `json:"text"`
	Color string `json:"color,omitempty"`
	Index int    `json:"index"`
}

// Override is how the fields that match are shown in another way.
type Override struct {
	Matcher    Matcher    `json:"matcher"`
	Properties []Property `json:"properties"`
}

// Matcher selects fields.
type Matcher struct {
	ID      string `json:"id"`
	Options string `json:"options"`
}

// Property is one setting of an Override, such as unit.
type Property struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

func (Row) element()   {}
func (Panel) element() {}
