package dashboards

import (
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// chosen says how many values of a variable can be chosen.
type chosen bool

const (
	one  chosen = false
	many chosen = true
)

func sourceVariable() dashboard.VariableModel {
	return dashboard.VariableModel{
		Type:        dashboard.VariableTypeDatasource,
		Name:        "datasource",
		Label:       new("Data source"),
		Description: new("The Prometheus that scrapes the exporters."),
		Query:       &dashboard.StringOrMap{String: new("prometheus")},
		Refresh:     new(dashboard.VariableRefreshOnDashboardLoad),
	}
}

// queryVariable is a variable whose values are those of a label, in natural order. With many, all are chosen at
// first, and All stands for the given expression, or if it is empty for each value found.
func queryVariable(name, label, description, query string, c chosen, all string) dashboard.VariableModel {
	v := dashboard.VariableModel{
		Type:        dashboard.VariableTypeQuery,
		Name:        name,
		Label:       &label,
		Description: &description,
		Query:       &dashboard.StringOrMap{Map: map[string]any{"query": query, "refId": "Variable"}},
		Datasource:  chosenSource(),
		Refresh:     new(dashboard.VariableRefreshOnTimeRangeChanged),
		Sort:        new(dashboard.VariableSortNaturalAsc),
	}
	if c == many {
		v.Multi, v.IncludeAll = new(true), new(true)
		if all != "" {
			v.AllValue = &all
		}
		v.Current = &dashboard.VariableOption{
			Selected: new(true),
			Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		}
	}
	return v
}

// clusterVariable is the variable of the clusters. All stands for targets without the label, too.
func clusterVariable() dashboard.VariableModel {
	return queryVariable("cluster", "Cluster", "The label that tells apart what one Prometheus scrapes in several places.",
		`label_values(rdma_devices, cluster)`, many, ".*")
}

// jobVariable is the variable of the jobs. All stands for the jobs that have ever scraped such an exporter, not for
// any: up, too, is selected by it.
func jobVariable(c chosen) dashboard.VariableModel {
	return queryVariable("job", "Job", "The job by which Prometheus scrapes the exporters.",
		`label_values(rdma_devices{`+ofClusters+`}, job)`, c, "")
}

func instanceVariable(s scope, c chosen) dashboard.VariableModel {
	return queryVariable("instance", "Instance", "The exporter, one on each host.",
		s.expand(`label_values(rdma_devices{@job}, instance)`), c, ".*")
}

func deviceVariable(s scope, c chosen) dashboard.VariableModel {
	return queryVariable("device", "Device", "The RDMA device of the host.",
		s.expand(`label_values(rdma_device_info{@instance}, device)`), c, ".+")
}

func choice(name, label, description string, values ...string) dashboard.VariableModel {
	v := dashboard.VariableModel{
		Type:        dashboard.VariableTypeCustom,
		Name:        name,
		Label:       &label,
		Description: &description,
		Query:       &dashboard.StringOrMap{String: new(strings.Join(values, ","))},
	}
	for i, value := range values {
		one := dashboard.StringOrArrayOfString{String: &value}
		v.Options = append(v.Options, dashboard.VariableOption{Selected: new(i == 0), Text: one, Value: one})
	}
	v.Current = &v.Options[0]
	return v
}

// links returns the links from a dashboard to the others. They keep the time and the choices that the other dashboard
// can hold: All, or several values, mean nothing to a variable of one value. The link to the fleet drops instance and
// device, since a fleet of one device shows nothing.
func links(from string) []dashboard.DashboardLink {
	all := []dashboard.DashboardLink{
		head("Fleet", "Which nodes and devices stand out", fleetUID, "?${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}"),
		head("Device", "Devices of a node in detail", deviceUID, "?${datasource:queryparam}&${cluster:queryparam}"),
		head("Resources", "Who holds what on the devices of a host", resourcesUID, ""),
		head("Paths", "Which nodes reach each other", pathsUID, "?${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}"),
	}
	own := 3
	switch from {
	case fleetUID, pathsUID:
		*all[2].Url += "?${datasource:queryparam}&${cluster:queryparam}"
		if from == fleetUID {
			own = 0
		}
	case deviceUID:
		all[2].IncludeVars, own = true, 1
	default:
		*all[1].Url += "&${job:queryparam}&${instance:queryparam}"
		own = 2
	}
	return slices.Delete(all, own, own+1)
}

func head(title, tooltip, uid, query string) dashboard.DashboardLink {
	l := link(title, uid, query)
	l.Icon, l.Tooltip, l.KeepTime = "dashboard", tooltip, true
	return l
}

func link(title, uid, query string) dashboard.DashboardLink {
	return dashboard.DashboardLink{
		Title: title, Type: dashboard.DashboardLinkTypeLink, Url: new("/d/" + uid + query), Tags: []string{},
	}
}

// The parts of links that choose what the row of a table is about. rowCluster reads the label of [withLink].
const (
	rowCluster = "${__data.fields.link:raw}"
	rowHost    = "?${datasource:queryparam}" + rowCluster + "&var-job=${__data.fields.job:percentencode}" +
		"&var-instance=${__data.fields.instance:percentencode}&${__url_time_range}"
	rowDevice   = rowHost + "&var-device=${__data.fields.device:percentencode}"
	deviceOfRow = "?${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}&${instance:queryparam}&var-device=${__data.fields.device:percentencode}&${__url_time_range}"
)

// withLink gives each row the part of its links that chooses its cluster, as a label. Grafana leaves a reference to a
// label that is absent as it is, and such a cluster would match nothing. So a row without a cluster chooses none.
func withLink(expr string) string {
	return `label_replace(label_replace(` + expr + `, "link", "&var-cluster=$1", "cluster", "(.+)"), "link", "&", "cluster", "")`
}

func toDevice() []dashboard.DashboardLink {
	return []dashboard.DashboardLink{link("This device", deviceUID, rowDevice), link("Its resources", resourcesUID, rowDevice)}
}

func deviceOfHost() []dashboard.DashboardLink {
	return []dashboard.DashboardLink{link("This device", deviceUID, deviceOfRow)}
}

func toHost() []dashboard.DashboardLink {
	return []dashboard.DashboardLink{link("Its resources", resourcesUID, rowHost)}
}

func whose() []column {
	return []column{
		label("cluster", 100),
		{field: "job", hidden: true},
		{field: "instance", links: toDevice()},
		{field: "device", links: toDevice()},
	}
}

// annotations returns the marks on the time axes of a dashboard. Those of many nodes have none: they would be too many, and
// take too long. A state without an earlier value, such as the first one after a start, is not marked as a change.
func annotations(s scope, uid string) dashboard.AnnotationContainer {
	mark := func(name, colour, expr, text string) dashboard.AnnotationQuery {
		return dashboard.AnnotationQuery{
			Name:        name,
			Datasource:  chosenSource(),
			Enable:      true,
			IconColor:   colour,
			Expr:        new(s.expand(expr)),
			Step:        new("60s"),
			TitleFormat: &name,
			TextFormat:  &text,
			TagKeys:     new("instance,device"),
		}
	}
	restarted := mark("Exporter restarted", unknown,
		`process_start_time_seconds{@instance} * 1000`, "{{instance}}")
	restarted.UseValueForTime = new(true)
	const before = " offset $__rate_interval"
	past := func(expr string) string {
		return strings.NewReplacer("{@device}", "{@device}"+before, `{@device,known!="true"}`, `{@device,known!="true"}`+before).Replace(expr)
	}
	// A contract that a device always kept since the exporter started has no series.
	const judged = "max by (@id) (rdma_contract_verdicts{@device}" + before + ")"
	all := []dashboard.AnnotationQuery{
		{
			Name:       "Annotations & Alerts",
			Datasource: &common.DataSourceRef{Type: new("grafana"), Uid: new("-- Grafana --")},
			Enable:     true,
			Hide:       new(true),
			IconColor:  neutral,
			Type:       new("dashboard"),
			BuiltIn:    new(1.0),
		},
		mark("Contract violated", critical,
			unexpected+" == 1 unless "+past(eachVerdict)+" == 1 and on (@id) "+judged,
			"{{contract}} ({{severity}}) on {{instance}} {{device}}"),
		mark("Contract holds again", good,
			past(unexpected)+" == 1 unless "+eachVerdict+" == 1 and on (@id) max by (@id) (rdma_contract_verdicts{@device})",
			"{{contract}} ({{severity}}) on {{instance}} {{device}}"),
		mark("Probes fail", warning,
			failing+" == 1 and "+past(failing)+" == 0",
			"{{instance}} {{device}}"),
		mark("Probes succeed again", good,
			past(failing)+" == 1 and "+failing+" == 0",
			"{{instance}} {{device}}"),
		mark("Device appeared", neutral,
			`group by (@id) (rdma_device_info{@device}) unless group by (@id) (rdma_device_info{@device} offset $__rate_interval) and on (@host) up{@instance} offset $__rate_interval == 1`,
			"{{device}} on {{instance}}"),
		mark("Device vanished", unknown,
			`group by (@id) (rdma_device_info{@device} offset $__rate_interval) unless group by (@id) (rdma_device_info{@device}) and on (@host) up{@instance} == 1`,
			"{{device}} on {{instance}}"),
		restarted,
	}
	if uid == fleetUID || uid == pathsUID {
		all = all[:1]
	}
	return dashboard.AnnotationContainer{List: all}
}
