package dashboards

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func fleet() grafanaBoard {
	s := scope{`job=~"$job"`, `instance=~"$instance"`, `device=~"$device"`}
	b := newBoard(fleetUID, "RDMA / Fleet",
		"Which RDMA devices and hosts stand out: failing, stuck, breaking the manual, slower than similar ones, or short of room.", s,
		sourceVariable(), jobVariable(many), instanceVariable(s, many), deviceVariable(s, many))
	b.row("At a glance", fleetState()...)
	b.row("Nodes and devices that stand out", fleetWorst()...)
	b.row("Latency of notification, against devices of the same model", fleetLatency()...)
	b.row("Links, losses and PCI, worst first", fleetHardware()...)
	b.row("Lowest headroom", fleetHeadroom()...)
	b.row("Contracts and findings", fleetVerdicts()...)
	b.row("Events and completions gone wrong", fleetEvents()...)
	b.row("Exporters", fleetExporters()...)
	return b.dashboard
}

// The recording rules of alerts/recording.yaml that panels need which would be too costly from the histograms of a
// whole fleet.
const (
	p99Rule    = `instance_device_path:rdma_notification_latency_seconds:p99_rate5m{@device}`
	ratioRule  = `instance_device_path:rdma_notification_latency_seconds:fleet_ratio_p99_rate5m{@device}`
	medianRule = `job_model_path:rdma_notification_latency_seconds:median_p99_rate5m{@job}`
	// findingsRule counts the findings of all devices of the jobs. No rule counts those of the chosen devices alone.
	findingsRule = `job_finding_severity:rdma_findings:count{@job,severity!="info"}`
	// troubleRule is the weighted sum of the problems of each unhealthy device, nodeRule that of each unhealthy node.
	troubleRule = `instance_device:rdma_trouble:sum{@device}`
	nodeRule    = `instance:rdma_trouble:sum{@instance}`
	downRule    = `instance:rdma_ports_down:count{@instance}`
	needsRules  = " Needs the recording rules of alerts/recording.yaml."
)

const (
	// stuck is 1 for devices whose child process hangs.
	stuck = `max by (@id) (rdma_probe_stuck{@device} or label_replace(rdma_inventory_stuck{@device}, "verb", "inventory", "", ""))`
	// least is the unused part of the limit of each type of object.
	least = `(1 - ` + used + `)`
	// runAge is for how long devices had no finished run.
	runAge = `(time() - ` + lastRun + `)`
	// stale are the devices of the alert RDMAProbesStale, with those that it waits for.
	stale = `((` + runAge + ` > 600 or max by (@id) (rdma_probe_stuck{@device}) unless on (@id) rdma_probe_last_run_timestamp_seconds{@device}) unless on (@id) rdma_probe_stuck{@device} == 1)`
	// noDevice is 0 if any device is known, and nothing otherwise: what is not known must not look well.
	noDevice = ` or 0 * count(rdma_device_info{@device})`
)

func fleetState() []dashboard.Panel {
	return []dashboard.Panel{
		stat(tile("Devices", count, plain(),
			"Devices that the exporters see."),
			nil, query{`count(group by (@id) (rdma_device_info{@device}))`, ""}),
		stat(tile("Exporters down", count, anyIs(critical),
			"Exporters that Prometheus cannot scrape, or that cannot list or probe their devices. The state of their hosts is unknown."),
			none(), query{`count(group by (job, instance) (up{@instance} == 0 or rdma_exporter_discovery_success{@instance} == 0 or rdma_exporter_child_start_success{@instance} == 0)) or 0 * count(up{@instance})`, ""}),
		stat(tile("Devices failing", count, anyIs(critical),
			"Devices whose last run of the probes was not ok."),
			none(), query{`sum(` + failing + `)` + noDevice, ""}),
		stat(tile("Devices stuck", count, anyIs(critical),
			"Devices on which a killed child process of the exporter has not ended. Programs on them hang too."),
			none(), query{`sum(` + stuck + `)` + noDevice, ""}),
		stat(tile("Ports down", count, anyIs(critical),
			"Ports that were active within the last day and are not now."+needsRules),
			none(), query{`sum(` + downRule + `)` + noDevice, ""}),
		stat(tile("Devices stale", count, anyIs(warning),
			"Devices without a finished run for more than 10 minutes, or ever, although their exporter is up. Their figures are old. Stuck ones are counted separately."),
			none(), query{`count(` + stale + `)` + noDevice, ""}),
		stat(tile("Events missed", count, anyIs(critical),
			"Completions in the time shown whose event had not come by the deadline: programs that sleep would hang. Those of the very first run of a device are not included."),
			none(), query{`round(sum(increase(rdma_notifications_missed_total{@device}[$__range])))` + noDevice, ""}),
		stat(tile("Violated contracts", count, anyIs(warning),
			"Contracts of the libibverbs manual that devices break, except those their drivers are known for; each device counts."),
			none(), query{`sum(max by (@id) (rdma_contract_verdicts{@device,verdict="violated"}))`, ""}),
		bySeverity(of(8, 4, "Findings", count, plain(),
			"Findings about devices, except accepted ones. Critical: something fails already or soon will."),
			query{`sum by (severity) (` + eachFinding + `)`, "{{severity}}"}),
	}
}

func fleetWorst() []dashboard.Panel {
	const (
		worst     = `topk(25, ` + troubleRule + `)`
		worstNode = `topk(25, ` + nodeRule + `)`
	)
	ofWorst := func(expr string) string { return expr + ` and on (@id) ` + worst }
	ofNode := func(expr string) string { return expr + ` and on (job, instance) ` + worstNode }
	bySeverity := func(severity string) string {
		return ofWorst(fmt.Sprintf(`sum by (@id) (%s)`, strings.Replace(eachFinding, "@device", `@device,severity="`+severity+`"`, 1)))
	}
	verdict := func(name string) string {
		return ofWorst(`max by (@id) (rdma_contract_verdicts{@device,verdict="` + name + `"})`)
	}
	harmful := new(rising(step{1, warning}, step{100, critical}))
	return []dashboard.Panel{
		onlyWith("A", table(of(24, 8, "Unhealthy nodes, worst first", count, plain(),
			"The 25 nodes with most trouble: the sum over their devices, or 1000 for each of its devices if the exporter cannot be scraped. Ports down are those that were active within the last day. No rows: no node stands out. Click a node for its resources."+needsRules), "trouble", []column{
			{field: "job", title: "job", hidden: true},
			{field: "instance", title: "instance", links: toHost()},
			{title: "trouble", width: 100, thresholds: harmful, expr: worstNode},
			{title: "scraped", width: 100, mappings: upOrDown(), expr: ofNode(ofExporter("up"))},
			{title: "devices", width: 100, empty: "unknown", expr: ofNode(ofExporter("rdma_devices"))},
			{title: "ports down", width: 110, thresholds: new(anyIs(critical)), empty: "0", expr: ofNode(
				`max by (job, instance) (` + downRule + `)`)},
			{title: "ports active", width: 110, thresholds: new(falling(0.5, 1)), empty: "0", expr: ofNode(
				`count by (job, instance) (max by (@id, port) (rdma_port_state_id{@device}) >= 4)`)},
			{title: "devices failing", width: 120, thresholds: new(anyIs(critical)), empty: "unknown", expr: ofNode(
				ofExporter("instance:rdma_probe_failing:sum"))},
		})),
		onlyWith("A", table(of(24, 10, "Unhealthy devices, worst first", count, plain(),
			"The 25 devices with most trouble, by the harm of their findings: 1000 for each outage (gone, hung, no port active any more, nothing can be created), 100 for each failure, 10 for each degradation (which includes a p99 of notification above 150 µs and 3 times the median of the model), and 1 for each quirk. Nine of a lesser harm never outweigh one of the next. Accepted findings do not count. No rows: no device stands out. Click a device for its dashboards."+needsRules), "trouble", append(whose(), []column{
			{title: "trouble", width: 80, thresholds: harmful, expr: worst},
			{title: "last run", width: 90, mappings: texts(text{"0", "OK", good}, text{"1", "not OK", critical}), expr: ofWorst(
				failing)},
			{title: "age", width: 90, unit: seconds, thresholds: new(overdue()), expr: ofWorst(runAge)},
			{title: "stuck", width: 80, mappings: stuckOrNot(), expr: ofWorst(stuck)},
			{title: "critical findings", thresholds: new(anyIs(critical)), expr: bySeverity("critical")},
			{title: "warning findings", thresholds: new(anyIs(warning)), expr: bySeverity("warning")},
			{title: "violated", thresholds: new(anyIs(warning)), empty: "not checked", expr: verdict("violated")},
			{title: "violated, known", empty: "not checked", expr: verdict("known")},
			{title: "lowest headroom", unit: fraction, thresholds: new(headroom()), expr: ofWorst(`min by (@id) ` + least)},
			{title: "p99", unit: seconds, width: 90, expr: ofWorst(`max by (@id) (` + p99Rule + `)`)},
			{title: "p99 / median", unit: factor, thresholds: new(slower()), expr: ofWorst(`max by (@id) (` + ratioRule + `)`)},
		}...))),
	}
}

func fleetLatency() []dashboard.Panel {
	const slowest = `topk(25, max by (@id, path) (` + ratioRule + `))`
	return []dashboard.Panel{
		onlyWith("A", table(of(12, 10, "Slowest devices", seconds, plain(),
			"The 25 devices with the highest p99 relative to the median of devices of the same job and model (provider, vendor and part), by path."+needsRules), "p99 / median", append(whose(), []column{
			{field: "path", title: "path", width: 90},
			{field: "B", title: "p99", width: 90},
			{field: "A", title: "p99 / median", width: 120, unit: factor, thresholds: new(slower())},
		}...),
			query{slowest, ""},
			query{`max by (@id, path) (` + p99Rule + `) and on (@id, path) ` + slowest, ""})),
		linked(steps(of(12, 10, "p99 of the slowest devices, and the medians", seconds, plain(),
			"The 5 devices with the highest p99 on each path at each time, and the median of each model."+needsRules),
			query{`topk by (path) (5, max by (@id, path) (` + p99Rule + `))`, "{{instance}} {{device}}, {{path}}"},
			query{medianRule, "median of {{vendor_id}} {{vendor_part_id}} ({{provider}}), {{path}}"}),
			seriesToDevice()...),
	}
}

func fleetHeadroom() []dashboard.Panel {
	return []dashboard.Panel{
		table(of(12, 9, "Objects of devices", count, plain(),
			"The 20 object types with the least headroom on their device. At 0 no process on the host can create more."), "-headroom", append(whose(), []column{
			{field: "type", title: "type", width: 75},
			{field: "A", title: "headroom", width: 220, unit: fraction, bar: true, thresholds: new(headroom())},
		}...), query{`bottomk(20, ` + least + `)`, ""}),
		table(of(12, 9, "Locked memory of processes", count, plain(),
			"The 20 processes with the least left of their RLIMIT_MEMLOCK. At 0 they fail with ENOMEM. Processes above their limit are left out: they have CAP_IPC_LOCK and are exempt."), "-headroom", []column{
			{field: "job", title: "job", hidden: true},
			{field: "instance", title: "instance", links: toHost()},
			{field: "comm", title: "comm"},
			{field: "pid", title: "pid", width: 85, unit: words},
			{field: "A", title: "headroom", width: 220, unit: fraction, bar: true, thresholds: new(headroom())},
		}, query{filled(`bottomk(20, 1 - max by (job, instance, pid, comm) (`+boundUse+`))`, "comm", "pid"), ""}),
	}
}

func fleetVerdicts() []dashboard.Panel {
	count1 := func(by, expr string) string { return fmt.Sprintf(`count by (%s) (%s)`, by, expr) }
	const eachSeen = `group by (@id, finding, severity, harm) (rdma_finding_first_seen_timestamp_seconds{@device,accepted="%s"})`
	return []dashboard.Panel{
		table(of(9, 12, "Contracts", count, plain(),
			"On how many devices each contract of the libibverbs manual is violated, is violated as the driver is known to, holds again after a violation since the exporter started, or could not be judged."), "violated", []column{
			{field: "contract", title: "contract"},
			{title: "violated", width: 85, thresholds: new(anyIs(critical)), empty: "0", expr: count1(
				"contract", unexpected+` == 1`)},
			{title: "known", width: 75, empty: "0", expr: count1(
				"contract", `max by (@id, contract) (rdma_contract_violated{@device,known="true"}) == 1`)},
			{title: "holds again", width: 95, empty: "0", expr: count1("contract", eachVerdict+` == 0`)},
			{title: "skipped", width: 80, empty: "0", expr: count1(
				"contract", `group by (@id, contract) (rdma_contract_skipped{@device})`)},
		}),
		filterable(table(of(15, 12, "Violations by contract and device", count, plain(),
			"Contracts that a device breaks although its driver is not known to, at most 200. Filter by a column to see who else does: a single device is defective, all of a model point to driver or firmware."), "-contract", append(whose(), []column{
			{field: "contract", title: "contract"},
			{field: "severity", title: "severity", width: 90, mappings: severities()},
			{field: "A", title: "verdict", width: 100, mappings: texts(text{"1", "violated", critical})},
		}...), query{`topk(200, ` + unexpected + ` == 1)`, ""})),
		table(of(9, 10, "Findings", count, plain(),
			"Findings by kind: on how many devices, on how many of them accepted, and how long the oldest has lasted. No rows: none."), "devices", []column{
			{field: "finding", title: "finding"},
			{field: "severity", title: "severity", width: 80, mappings: severities()},
			{field: "harm", title: "harm", width: 100, mappings: harms()},
			{title: "devices", width: 80, empty: "0", expr: count1("finding, severity, harm", fmt.Sprintf(eachSeen, "false"))},
			{title: "accepted", width: 80, empty: "0", expr: count1("finding, severity, harm", fmt.Sprintf(eachSeen, "true"))},
			{title: "for", width: 80, unit: seconds, expr: `time() - ` +
				`min by (finding, severity, harm) (rdma_finding_first_seen_timestamp_seconds{@device})`},
		}),
		stacked(of(15, 10, "Findings over time", count, plain(),
			"Devices with critical and warning findings by kind, except accepted ones. A step shows when it began. All devices of the job, whichever instances and devices are chosen."+needsRules),
			query{`sum by (finding) (` + findingsRule + `) > 0`, "{{finding}}"}),
	}
}

func fleetEvents() []dashboard.Panel {
	var rates []query
	onDevices := whose()
	for _, c := range []struct {
		counter, title string
		width          int
		colour         string
	}{
		{"rdma_notifications_missed_total", "missed", 85, critical},
		{"rdma_notifications_misdirected_total", "misdirected", 100, critical},
		{"rdma_notifications_spurious_total", "spurious", 85, warning},
		{"rdma_completions_missing_total", "missing", 85, critical},
		{"rdma_completions_unsuccessful_total", "unsuccessful", 105, critical},
	} {
		rates = append(rates, query{fmt.Sprintf(`60 * sum(rate(%s{@device}[$__rate_interval]))`, c.counter), c.title})
		onDevices = append(onDevices, column{
			title: c.title, width: c.width, thresholds: new(anyIs(c.colour)), empty: "0",
			expr: fmt.Sprintf(`round(sum by (@id) (increase(%s{@device}[$__range]))) > 0`, c.counter),
		})
	}
	return []dashboard.Panel{
		columns(of(12, 9, "Rate of failures", perMinute, plain(),
			"Per minute, on all devices. Missed: the completion came but its event did not; misdirected: the event came elsewhere; spurious: it came without a completion; missing: the completion did not come; unsuccessful: it had the wrong status."), rates...),
		table(of(12, 9, "On which devices", count, plain(),
			"Devices on which that happened, and how often in the time shown. No rows: none."), "missed", onDevices),
	}
}

// ofExporter is the one value of a metric that each exporter has.
func ofExporter(metric string) string { return `max by (job, instance) (` + metric + `{@instance})` }

func fleetExporters() []dashboard.Panel {
	return []dashboard.Panel{
		table(of(16, 10, "Exporters", count, plain(),
			"Whether each exporter is up and can list and probe devices, how many its host has, whether it sees the processes of the host, and how long its worst device has gone without a finished run."), "-scraped", []column{
			{field: "job", title: "job", hidden: true},
			{field: "instance", title: "instance", links: toHost()},
			{field: "A", title: "scraped", mappings: upOrDown()},
			{field: "B", title: "lists and probes devices", mappings: okOr("fails"), empty: "unknown"},
			{field: "C", title: "devices", empty: "unknown"},
			{field: "D", title: "sees processes", mappings: texts(text{"1", "yes", good}, text{"0", "no", warning}), empty: "unknown"},
			{field: "E", title: "oldest run", unit: seconds, thresholds: new(overdue()), empty: "unknown"},
			{field: "version", title: "version"},
		},
			query{ofExporter("up"), ""},
			query{ofExporter("rdma_exporter_discovery_success") + ` * on (job, instance) ` + ofExporter("rdma_exporter_child_start_success"), ""},
			query{ofExporter("rdma_devices"), ""},
			query{ofExporter("rdma_inventory_pid_visibility"), ""},
			query{`max by (job, instance) ` + runAge, ""},
			query{`max by (job, instance, version) (rdma_exporter_build_info{@instance})`, ""}),
		table(of(24, 8, "Exporters and their configuration", count, plain(),
			"Whether the current configuration file and web configuration of each exporter are in force, when the configuration was loaded, whether state can be saved, how many log lines were lost in the time shown, whether its network namespace hides network devices or counters of ports, and how many acceptances match nothing."), "-log lines lost", []column{
			{field: "job", title: "job", hidden: true},
			{field: "instance", title: "instance", links: toHost()},
			{title: "configuration", mappings: okOr("broken"), empty: "none", expr: ofExporter(
				"rdma_exporter_config_last_reload_successful")},
			{title: "loaded", unit: dateTime, empty: "unknown", expr: ofExporter(
				"rdma_exporter_config_last_reload_success_timestamp_seconds") + ` * 1000`},
			{title: "web configuration", mappings: okOr("broken"), empty: "none", expr: ofExporter(
				"rdma_exporter_web_config_last_reload_successful")},
			{title: "state", mappings: okOr("not written"), empty: "none", expr: ofExporter("rdma_exporter_state_writable")},
			{title: "log lines lost", thresholds: new(rising(step{1, warning})), empty: "unknown", expr: `round(` +
				`max by (job, instance) (increase(rdma_exporter_log_lines_dropped_total{@instance}[$__range])))`},
			{title: "network namespace", mappings: texts(text{"1", "hides ports", warning}), empty: "hides nothing", expr: ofExporter("rdma_exporter_netns_blind")},
			{title: "unused acceptances", empty: "none", expr: ofExporter("rdma_exporter_unused_acceptances")},
		}),
		steps(of(8, 10, "Exporters and devices over time", count, plain(),
			"How many exporters are up, how many devices they see, and on how many of those the last run failed."),
			query{`sum(up{@instance})`, "exporters up"},
			query{`sum(rdma_devices{@instance})`, "devices"},
			query{`sum(` + failing + `)`, "devices failing"}),
	}
}
