package dashboards

import "strings"

// The identifiers of the dashboards, by which they link to each other.
const (
	fleetUID     = "rdma-fleet"
	deviceUID    = "rdma-device"
	resourcesUID = "rdma-resources"
)

// gridWidth is how many columns the grid of Grafana has.
const gridWidth = 24

// scope is how a dashboard selects: the matchers that stand for @job, @instance and
// @device in its expressions.
type scope struct {
	job, instance, device string
}

// expand puts the matchers into an expression.
func (s scope) expand(expr string) string {
	return strings.NewReplacer(
		"@job", s.job,
		"@instance", s.job+","+s.instance,
		"@device", s.job+","+s.instance+","+s.device,
		"@id", "job, instance, device",
	).Replace(expr)
}

// board puts a dashboard together.
type board struct {
	dashboard Dashboard
	scope     scope
	ids       int
	y         int
}

// newBoard returns a board without rows.
func newBoard(uid, title, description string, s scope) *board {
	return &board{
		scope: s,
		dashboard: Dashboard{
			UID:           uid,
			Title:         title,
			Description:   description,
			Tags:          []string{"rdma"},
			Timezone:      "browser",
			Editable:      true,
			GraphTooltip:  1,
			Time:          TimeRange{"now-6h", "now"},
			Refresh:       "1m",
			SchemaVersion: 39,
			Links:         links(uid),
			Annotations:   annotations(s, uid),
		},
	}
}

// row adds a row of panels that is open at first.
func (b *board) row(title string, panels ...Panel) {
	row := b.heading(title, false)
	b.dashboard.Panels = append(b.dashboard.Panels, row)
	for _, p := range b.place(panels) {
		b.dashboard.Panels = append(b.dashboard.Panels, p)
	}
}

// folded adds a row of panels that is collapsed at first. Its queries are not made
// until it is opened.
func (b *board) folded(title string, panels ...Panel) {
	row := b.heading(title, true)
	below := b.y
	row.Panels = b.place(panels)
	b.y = below
	b.dashboard.Panels = append(b.dashboard.Panels, row)
}

func (b *board) heading(title string, collapsed bool) Row {
	b.ids++
	row := Row{
		ID:        b.ids,
		Type:      "row",
		Title:     title,
		Collapsed: collapsed,
		GridPos:   GridPos{H: 1, W: gridWidth, Y: b.y},
		Panels:    []Panel{},
	}
	b.y++
	return row
}

// rateInterval is the shortest time that rates are taken over, so that by default
// there are several runs in it.
const rateInterval = "2m"

// place puts panels from left to right, and what has no room there below the highest
// of those, numbers them and expands their expressions.
func (b *board) place(panels []Panel) []Panel {
	x, height := 0, 0
	for i := range panels {
		p := &panels[i]
		if x+p.GridPos.W > gridWidth {
			b.y += height
			x, height = 0, 0
		}
		b.ids++
		p.ID = b.ids
		p.GridPos.X, p.GridPos.Y = x, b.y
		x += p.GridPos.W
		height = max(height, p.GridPos.H)
		for j := range p.Targets {
			p.Targets[j].Expr = b.scope.expand(p.Targets[j].Expr)
			if strings.Contains(p.Targets[j].Expr, "$__rate_interval") {
				p.Interval = rateInterval
			}
		}
	}
	b.y += height
	return panels
}
