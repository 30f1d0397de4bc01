package dashboards

import (
	"slices"
	"strings"
)

// chosen says how many values of a variable can be chosen.
type chosen bool

const (
	one  chosen = false
	many chosen = true
)

// sourceVariable is the variable of the data source.
func sourceVariable() Variable {
	return Variable{
		Type:        "datasource",
		Name:        "datasource",
		Label:       "Data source",
		Description: "The Prometheus that scrapes the exporters.",
		Query:       "prometheus",
		Refresh:     1,
	}
}

// queryVariable is a variable whose values are those of a label, in natural order.
// With many, all are chosen at first; all stands for the expression that matches
// whatever there is, or if it is empty for all values that were found.
func queryVariable(name, label, description, query string, c chosen, all string) Variable {
	source := chosenSource()
	v := Variable{
		Type:        "query",
		Name:        name,
		Label:       label,
		Description: description,
		Query:       VariableQuery{query, "Variable"},
		DataSource:  &source,
		Refresh:     2,
		Sort:        7,
	}
	if c == many {
		v.Multi, v.IncludeAll, v.AllValue = true, true, all
		v.Current = &VariableOption{true, []string{"All"}, []string{"$__all"}}
	}
	return v
}

// jobVariable is the variable of the jobs. All stands for the jobs that have ever
// scraped such an exporter, not for any: up, too, is selected by it.
func jobVariable(c chosen) Variable {
	return queryVariable("job", "Job", "The job by which Prometheus scrapes the exporters.",
		`label_values(rdma_devices, job)`, c, "")
}

// instanceVariable is the variable of the exporters.
func instanceVariable(s scope, c chosen) Variable {
	return queryVariable("instance", "Instance", "The exporter, one on each host.",
		s.expand(`label_values(rdma_devices{@job}, instance)`), c, ".*")
}

// deviceVariable is the variable of the devices.
func deviceVariable(s scope, c chosen) Variable {
	return queryVariable("device", "Device", "The RDMA device of the host.",
		s.expand(`label_values(rdma_device_info{@instance}, device)`), c, ".+")
}

// choice is a variable with fixed values, of which the first is chosen at first.
func choice(name, label, description string, values ...string) Variable {
	v := Variable{
		Type:        "custom",
		Name:        name,
		Label:       label,
		Description: description,
	}
	query := ""
	for i, value := range values {
		if i > 0 {
			query += ","
		}
		query += value
		v.Options = append(v.Options, VariableOption{i == 0, value, value})
	}
	v.Query = query
	v.Current = &v.Options[0]
	return v
}

// links returns the links from a dashboard to the others. They keep the time, and of
// what was chosen as much as can be chosen there: All, or several, says nothing to a
// variable of one value. The way back to the fleet leaves instance and device behind,
// since the fleet of one device tells nothing.
func links(from string) []DashboardLink {
	all := []DashboardLink{
		{Title: "Fleet", Tooltip: "Which devices stand out", URL: "/d/" + fleetUID + "?${datasource:queryparam}&${job:queryparam}"},
		{Title: "Device", Tooltip: "One device in detail", URL: "/d/" + deviceUID + "?${datasource:queryparam}"},
		{Title: "Resources", Tooltip: "Who holds what on the devices of a host", URL: "/d/" + resourcesUID},
	}
	switch from {
	case fleetUID:
		all[2].URL += "?${datasource:queryparam}"
	case deviceUID:
		all[2].IncludeVars = true
	case resourcesUID:
		all[1].URL += "&${job:queryparam}&${instance:queryparam}"
	}
	own := map[string]int{fleetUID: 0, deviceUID: 1, resourcesUID: 2}
	all = slices.Delete(all, own[from], own[from]+1)
	for i := range all {
		all[i].Type, all[i].Icon, all[i].Tags, all[i].KeepTime = "link", "dashboard", []string{}, true
	}
	return all
}

// toDevice links a row of a table that has the fields job, instance and device to
// the dashboards of that device.
func toDevice() []DataLink {
	const row = "${datasource:queryparam}&var-job=${__data.fields.job:percentencode}" +
		"&var-instance=${__data.fields.instance:percentencode}&var-device=${__data.fields.device:percentencode}&${__url_time_range}"
	return []DataLink{
		{"This device", "/d/" + deviceUID + "?" + row},
		{"Its resources", "/d/" + resourcesUID + "?" + row},
	}
}

// deviceOfHost links a row of a table that has the field device, on a dashboard of one
// host, to the dashboard of that device.
func deviceOfHost() []DataLink {
	return []DataLink{{"This device", "/d/" + deviceUID + "?${datasource:queryparam}&${job:queryparam}&${instance:queryparam}" +
		"&var-device=${__data.fields.device:percentencode}&${__url_time_range}"}}
}

// toHost links a row of a table that has the fields job and instance to the resources
// of that host.
func toHost() []DataLink {
	return []DataLink{{"Its resources", "/d/" + resourcesUID + "?${datasource:queryparam}&var-job=${__data.fields.job:percentencode}" +
		"&var-instance=${__data.fields.instance:percentencode}&${__url_time_range}"}}
}

// seriesToDevice is toDevice for series with the labels job, instance and device.
func seriesToDevice() []DataLink {
	const row = "${datasource:queryparam}&var-job=${__field.labels.job:percentencode}" +
		"&var-instance=${__field.labels.instance:percentencode}&var-device=${__field.labels.device:percentencode}&${__url_time_range}"
	return []DataLink{{"This device", "/d/" + deviceUID + "?" + row}}
}

// whose are the columns that tell devices apart, in tables that link to them.
func whose() []column {
	return []column{
		{field: "job", title: "job", hidden: true},
		{field: "instance", title: "instance", links: toDevice()},
		{field: "device", title: "device", links: toDevice()},
	}
}

// annotations returns the marks on the time axes of a dashboard. On that of the fleet
// they would be too many, so that there only exporters that restart are marked unless
// the reader asks for more. What is not known of the time before, as before an exporter
// was started, is no news.
func annotations(s scope, uid string) Annotations {
	enable := uid != fleetUID
	mark := func(name, colour, expr, text string, enable bool) Annotation {
		return Annotation{
			Name:        name,
			DataSource:  chosenSource(),
			Enable:      enable,
			IconColor:   colour,
			Expr:        s.expand(expr),
			Step:        "60s",
			TitleFormat: name,
			TextFormat:  text,
			TagKeys:     "instance,device",
		}
	}
	restarted := mark("Exporter restarted", unknown,
		`process_start_time_seconds{@instance} * 1000`, "{{instance}}", true)
	restarted.UseValueForTime = true
	const before = " offset $__rate_interval"
	past := func(expr string) string {
		return strings.NewReplacer("{@device}", "{@device}"+before, `{@device,known!="true"}`, `{@device,known!="true"}`+before).Replace(expr)
	}
	// A contract that a device always kept since the exporter started has no series.
	const judged = "max by (@id) (rdma_contract_verdicts{@device}" + before + ")"
	return Annotations{[]Annotation{
		{
			Name:       "Annotations & Alerts",
			DataSource: DataSource{"grafana", "-- Grafana --"},
			Enable:     true,
			Hide:       true,
			IconColor:  neutral,
			Type:       "dashboard",
			BuiltIn:    1,
		},
		mark("Contract violated", critical,
			unexpected+" == 1 unless "+past(eachVerdict)+" == 1 and on (@id) "+judged,
			"{{contract}} ({{severity}}) on {{instance}} {{device}}", enable),
		mark("Contract holds again", good,
			past(unexpected)+" == 1 unless "+eachVerdict+" == 1 and on (@id) max by (@id) (rdma_contract_verdicts{@device})",
			"{{contract}} ({{severity}}) on {{instance}} {{device}}", enable),
		mark("Probes fail", warning,
			failing+" == 1 and "+past(failing)+" == 0",
			"{{instance}} {{device}}", enable),
		mark("Probes succeed again", good,
			past(failing)+" == 1 and "+failing+" == 0",
			"{{instance}} {{device}}", enable),
		mark("Device appeared", neutral,
			`group by (@id) (rdma_device_info{@device}) unless group by (@id) (rdma_device_info{@device} offset $__rate_interval) and on (job, instance) up{@instance} offset $__rate_interval == 1`,
			"{{device}} on {{instance}}", enable),
		mark("Device vanished", unknown,
			`group by (@id) (rdma_device_info{@device} offset $__rate_interval) unless group by (@id) (rdma_device_info{@device}) and on (job, instance) up{@instance} == 1`,
			"{{device}} on {{instance}}", enable),
		restarted,
	}}
}
