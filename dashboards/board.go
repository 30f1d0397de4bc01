package dashboards

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// The identifiers of the dashboards, by which they link to each other.
const (
	fleetUID     = "rdma-fleet"
	deviceUID    = "rdma-device"
	resourcesUID = "rdma-resources"
	pathsUID     = "rdma-paths"
)

const gridWidth = 24

// schemaVersion is that of Grafana 10.4. Later versions migrate it on import.
const schemaVersion = 39

// rateInterval is the shortest window of rates, so that by default it has several runs.
const rateInterval = "2m"

// scope is how a dashboard selects: the matchers that stand for @job, @instance and @device in its expressions. Those of
// the label cluster come first, and match targets without the label if all clusters are chosen.
type scope struct {
	job, instance, device string
}

const ofClusters = `cluster=~"$cluster"`

func (s scope) expand(expr string) string {
	return strings.NewReplacer(
		"@job", ofClusters+","+s.job,
		"@instance", ofClusters+","+s.job+","+s.instance,
		"@device", ofClusters+","+s.job+","+s.instance+","+s.device,
		"@host", "cluster, job, instance",
		"@id", "cluster, job, instance, device",
	).Replace(expr)
}

type board struct {
	dashboard grafanaBoard
	scope     scope
	ids, y    uint32
}

func newBoard(uid, title, description string, s scope, variables ...dashboard.VariableModel) *board {
	return &board{
		scope: s,
		dashboard: grafanaBoard{
			Uid:           &uid,
			Title:         &title,
			Description:   &description,
			Tags:          []string{"rdma"},
			Timezone:      new("browser"),
			Editable:      new(true),
			GraphTooltip:  new(dashboard.DashboardCursorSyncCrosshair),
			Time:          &dashboard.DashboardDashboardTime{From: "now-6h", To: "now"},
			Refresh:       new("1m"),
			SchemaVersion: schemaVersion,
			Links:         links(uid),
			Annotations:   annotations(s, uid),
			Templating:    dashboard.DashboardDashboardTemplating{List: variables},
		},
	}
}

// row adds a row of panels that is open at first.
func (b *board) row(title string, panels ...dashboard.Panel) {
	b.add(dashboard.PanelOrRowPanel{RowPanel: b.heading(title, false)})
	for _, p := range b.place(panels) {
		b.add(dashboard.PanelOrRowPanel{Panel: &p})
	}
}

// folded adds a row of panels that is collapsed at first. Grafana runs its queries only once it is opened.
func (b *board) folded(title string, panels ...dashboard.Panel) {
	row := b.heading(title, true)
	below := b.y
	row.Panels = b.place(panels)
	b.y = below
	b.add(dashboard.PanelOrRowPanel{RowPanel: row})
}

func (b *board) add(p dashboard.PanelOrRowPanel) {
	b.dashboard.Panels = append(b.dashboard.Panels, p)
}

func (b *board) heading(title string, collapsed bool) *dashboard.RowPanel {
	b.ids++
	b.y++
	return &dashboard.RowPanel{
		Id:        b.ids,
		Type:      "row",
		Title:     &title,
		Collapsed: collapsed,
		GridPos:   &dashboard.GridPos{H: 1, W: gridWidth, Y: b.y - 1},
		Panels:    []dashboard.Panel{},
	}
}

// place puts panels from left to right in lines as high as their highest panel, numbers them and expands their
// expressions.
func (b *board) place(panels []dashboard.Panel) []dashboard.Panel {
	var x, height uint32
	for i := range panels {
		p := &panels[i]
		if x+p.GridPos.W > gridWidth {
			b.y += height
			x, height = 0, 0
		}
		b.ids++
		p.Id = new(b.ids)
		p.GridPos.X, p.GridPos.Y = x, b.y
		x += p.GridPos.W
		height = max(height, p.GridPos.H)
		for j, target := range p.Targets {
			q, ok := target.(prometheus.Dataquery)
			if !ok {
				continue
			}
			q.Expr = b.scope.expand(q.Expr)
			if strings.Contains(q.Expr, "$__rate_interval") {
				p.Interval = new(rateInterval)
			}
			p.Targets[j] = q
		}
	}
	b.y += height
	return panels
}
