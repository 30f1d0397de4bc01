package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// fleet returns the dashboard of all nodes. Its open rows read what is recorded for whole jobs, or one series of a node,
// so that it is quick with ten thousand nodes. What has a series for each device is below, collapsed, and not over time.
func fleet() grafanaBoard {
	s := scope{job: `job=~"$job"`, instance: `instance=~"$instance"`}
	b := newBoard(fleetUID, "RDMA / Fleet",
		"Which RDMA nodes and devices stand out: failing, stuck, down, missing, congested, or slower than similar ones, and for which cause.", s,
		sourceVariable(), clusterVariable(), jobVariable(many), instanceVariable(s, many))
	b.row("Fleet at a glance", fleetState()...)
	b.row("Causes of findings", fleetCauses()...)
	b.row("Unhealthy nodes and devices", fleetWorst()...)
	b.row("Exporters", fleetExporters()...)
	b.folded("Findings by node and device", fleetFindings()...)
	b.folded("Notification latency by device model", fleetLatency()...)
	b.folded("Retransmissions, congestion and PCI links", fleetHardware()...)
	b.folded("Violated contracts", fleetContracts()...)
	return b.dashboard
}

// The recording rules of alerts/recording.yaml that panels need.
const (
	ratioRule  = `instance_device_path:rdma_notification_latency_seconds:fleet_ratio_p99_rate5m{@instance}`
	medianRule = `job_model_path:rdma_notification_latency_seconds:median_p99_rate5m{@job}`
	// findingsRule counts the devices with each finding. No rule counts those of the chosen nodes alone.
	findingsRule = `job_finding_severity:rdma_findings:count{@job,severity!="info"}`
	// troubleRule is the weighted sum of the problems of each unhealthy device, nodeRule that of each unhealthy node.
	troubleRule = `instance_device:rdma_trouble:sum{@instance}`
	nodeRule    = `instance:rdma_trouble:sum{@instance}`
	downRule    = `instance:rdma_ports_down:count{@instance}`
	devicesRule = `job:rdma_devices:sum{@job}`
	needsRules  = " Needs the recording rules of alerts/recording.yaml."
	// noDevice is 0 if any device is known, and nothing otherwise: what is not known must not look well.
	noDevice = ` or 0 * sum(` + devicesRule + `)`
)

// ofExporter is the one value of a metric that each exporter has.
func ofExporter(metric string) string { return `max by (@host) (` + metric + `{@instance})` }

func fleetState() []dashboard.Panel {
	return []dashboard.Panel{
		stat(tile("RDMA devices", count, plain(),
			"Devices that the exporters of the chosen jobs see."+needsRules),
			nil, query{`sum(` + devicesRule + `)`, ""}),
		stat(tile("RDMA devices missing", count, anyIs(critical),
			"Devices that nodes lack, of those that their configuration expects, or else of the most that they had within a day."+needsRules),
			none(), query{`sum(instance:rdma_devices:missing{@instance})` + noDevice, ""}),
		stat(tile("RDMA devices failing", count, anyIs(critical),
			"Devices whose last run of the probes was not ok."+needsRules),
			none(), query{`sum(job:rdma_probe_failing:sum{@job})` + noDevice, ""}),
		stat(tile("RDMA ports down", count, anyIs(critical),
			"Ports that were active within the last day and are not now."+needsRules),
			none(), query{`sum(` + downRule + `)` + noDevice, ""}),
		stat(tile("Exporters down", count, anyIs(critical),
			"Exporters that Prometheus cannot scrape. The state of their nodes is unknown."),
			none(), query{`count(` + ofExporter("up") + ` == 0)` + noDevice, ""}),
		stat(tile("Nodes in maintenance", count, plain(),
			"Nodes whose maintenance has not expired. Their alerts are silent."),
			none(), query{`count(` + ofExporter("rdma_exporter_maintenance_until_timestamp_seconds") + ` > time())` + noDevice, ""}),
		bySeverity(of(6, 4, "Findings by severity", count, plain(),
			"Devices with each finding, except accepted ones, added up. Critical: something fails already or soon will. No data: there is none."+needsRules),
			query{`sum by (severity) (` + findingsRule + `)`, "{{severity}}"}),
	}
}

func fleetCauses() []dashboard.Panel {
	return []dashboard.Panel{
		filterable(table(of(12, 10, "Findings by reason, verb and errno", count, plain(),
			"On how many devices and hosts there is the same finding for the same reason, the most first: many nodes with one cause point to what they share. At most 100. Accepted findings, and consequences of others, are left out. Filter by a column."), "devices", []column{
			label("cluster", 100), label("finding", 150), severity(80), label("reason"), label("verb", 120),
			label("errno", 90), titled("A", "devices", 80),
		}, query{`topk(100, count by (cluster, finding, severity, reason, verb, errno) (rdma_finding_info{@instance}))`, ""})),
		stacked(of(12, 10, "Devices with findings over time", count, plain(),
			"Devices with critical and warning findings by kind, except accepted ones. A step shows when it began. All nodes of the job, whichever are chosen."+needsRules),
			query{`sum by (finding) (` + findingsRule + `) > 0`, "{{finding}}"}),
	}
}

func fleetFindings() []dashboard.Panel {
	return []dashboard.Panel{
		filterable(table(of(24, 14, "Findings with node, device and reason", count, plain(),
			"What stands, where and for which reason, at most 500 findings. Filter by a column to see where else it is. A finding without a device is about the node."), "-severity", append(whose(), []column{
			label("finding", 180), severity(90), label("reason"), label("verb", 150), label("errno", 110),
		}...), query{`topk(500, rdma_finding_info{@instance})`, ""})),
	}
}

func fleetWorst() []dashboard.Panel {
	const worst = `topk(25, ` + nodeRule + `)`
	ofNode := func(expr string) string { return expr + ` and on (@host) ` + worst }
	harmful := new(rising(step{1, warning}, step{100, critical}))
	return []dashboard.Panel{
		onlyWith("A", table(of(14, 12, "Unhealthy nodes, worst first", count, plain(),
			"The 25 nodes with most trouble: the sum over their devices, or 1000 for each of its devices if the exporter cannot be scraped. Ports down are those that were active within the last day. No rows: no node stands out. Click a node for its resources."+needsRules), "trouble", []column{
			label("cluster", 100),
			{field: "job", hidden: true},
			{field: "instance", links: toHost()},
			{title: "trouble", width: 80, thresholds: harmful, expr: worst},
			{title: "scraped", width: 80, mappings: upOrDown(), expr: ofNode(ofExporter("up"))},
			{title: "devices", width: 80, empty: "unknown", expr: ofNode(ofExporter("rdma_devices"))},
			{title: "expected", width: 80, empty: "any", expr: ofNode(ofExporter("rdma_expected_devices"))},
			{title: "devices failing", width: 110, thresholds: new(anyIs(critical)), empty: "0", expr: ofNode(
				ofExporter("instance:rdma_probe_failing:sum"))},
			{title: "ports down", width: 95, thresholds: new(anyIs(critical)), empty: "0", expr: ofNode(
				`max by (@host) (` + downRule + `)`)},
		})),
		onlyWith("A", table(of(10, 12, "Unhealthy devices, worst first", count, plain(),
			"The 25 devices with most trouble, by the harm of their findings: 1000 for each outage (gone, hung, no port active any more, nothing can be created), 100 for each failure, 10 for each degradation (which includes a p99 of notification above 150 µs and 3 times the median of the model), and 1 for each quirk. Nine of a lesser harm never outweigh one of the next. Accepted findings do not count. No rows: no device stands out. Click a device for its dashboards."+needsRules), "trouble", append(whose(),
			column{field: "A", title: "trouble", width: 80, thresholds: harmful},
		), query{`topk(25, ` + troubleRule + `)`, ""})),
	}
}

func fleetExporters() []dashboard.Panel {
	var problems string
	for _, p := range []struct{ metric, is, text string }{
		{"up", "0", "it cannot be scraped"},
		{"rdma_exporter_discovery_success", "0", "it cannot list devices"},
		{"rdma_exporter_child_start_success", "0", "it cannot start child processes"},
		{"rdma_exporter_config_last_reload_successful", "0", "its configuration file is broken"},
		{"rdma_exporter_web_config_last_reload_successful", "0", "its web configuration is broken"},
		{"rdma_exporter_state_writable", "0", "its state cannot be saved"},
		{"rdma_exporter_netns_blind", "1", "its network namespace hides ports"},
		{"rdma_inventory_pid_visibility", "0", "it does not see the processes of the host"},
	} {
		if problems != "" {
			problems += " or "
		}
		problems += fmt.Sprintf(`label_replace(%s{@instance} == %s, "problem", "%s", "", "")`, p.metric, p.is, p.text)
	}
	return []dashboard.Panel{
		filterable(table(of(12, 9, "Exporters with problems", count, plain(),
			"What keeps exporters from seeing their nodes whole, at most 200. Filter by a column. No rows: none. Click one for its host."), "instance", []column{
			label("cluster", 100),
			{field: "job", hidden: true},
			{field: "instance", links: toHost()},
			label("problem"),
		}, query{`topk(200, group by (@host, problem) (` + problems + `))`, ""})),
		steps(of(12, 9, "RDMA devices over time", count, plain(),
			"How many devices the exporters of the chosen jobs see, and on how many of those the last run of the probes failed."+needsRules),
			query{`sum(` + devicesRule + `)`, "devices"},
			query{`sum(job:rdma_probe_failing:sum{@job})`, "devices failing"}),
	}
}

func fleetLatency() []dashboard.Panel {
	return []dashboard.Panel{
		onlyWith("A", table(of(12, 10, "Slowest devices by notification p99", seconds, plain(),
			"The 25 devices with the highest p99 relative to the median of devices of the same job and model (provider, vendor and part), by path."+needsRules), "p99 / median", append(whose(), []column{
			label("path", 90),
			{field: "A", title: "p99 / median", width: 120, unit: factor, thresholds: new(slower())},
		}...),
			query{`topk(25, ` + ratioRule + `)`, ""})),
		steps(of(12, 10, "Median notification p99 by device model", seconds, plain(),
			"The median over the devices of each model of the time within which 99 of 100 completion events come. If it rises, suspect the driver or the firmware."+needsRules),
			query{medianRule, "{{vendor_id}} {{vendor_part_id}} ({{provider}}), {{path}}"}),
	}
}

func fleetContracts() []dashboard.Panel {
	count1 := func(expr string) string { return `count by (cluster, contract) (` + expr + `)` }
	const unexpected = `max by (@id, contract, severity) (rdma_contract_violated{@instance,known!="true"})`
	return []dashboard.Panel{
		table(of(9, 12, "Contracts by devices", count, plain(),
			"On how many devices each contract of the libibverbs manual is violated, is violated as the driver is known to, holds again after a violation since the exporter started, or could not be checked."), "violated", []column{
			label("cluster", 100), label("contract"),
			{title: "violated", width: 85, thresholds: new(anyIs(critical)), empty: "0", expr: count1(unexpected + ` == 1`)},
			{title: "known", width: 75, empty: "0", expr: count1(`max by (@id, contract) (rdma_contract_violated{@instance,known="true"}) == 1`)},
			{title: "holds again", width: 95, empty: "0", expr: count1(`max by (@id, contract) (rdma_contract_violated{@instance}) == 0`)},
			{title: "skipped", width: 80, empty: "0", expr: count1(`group by (@id, contract) (rdma_contract_skipped{@instance})`)},
		}),
		filterable(table(of(15, 12, "Contract violations by device", count, plain(),
			"Contracts that a device breaks although its driver is not known to, at most 200. Filter by a column to see who else does: a single device is defective, all of a model point to driver or firmware."), "-contract", append(whose(), []column{
			label("contract"), severity(90),
			{field: "A", title: "verdict", width: 100, mappings: texts(text{"1", "violated", critical})},
		}...), query{`topk(200, ` + unexpected + ` == 1)`, ""})),
	}
}
