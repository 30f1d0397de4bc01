package dashboards

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func device() grafanaBoard {
	s := scope{`job="$job"`, `instance="$instance"`, `device=~"$device"`}
	b := newBoard(deviceUID, "RDMA / Device",
		"RDMA devices of one node, overlaid: whether they work, what they break, how fast they wake a program, and what verbs cost.", s,
		sourceVariable(), clusterVariable(), jobVariable(one), instanceVariable(s, one), deviceVariable(s, many))
	b.row("Device health", deviceState()...)
	b.row("Findings, contracts and failed probes", deviceTrouble()...)
	b.row("Traffic, errors and congestion", deviceTraffic()...)
	b.row("Port links and GIDs", deviceLinks()...)
	b.row("Notification and completion latency", deviceNotification()...)
	b.row("Control verbs", deviceVerbs()...)
	b.row("Sizes and memory of objects", deviceSizes()...)
	b.folded("Adapter and interrupts", deviceTopology()...)
	b.folded("Raw counters", deviceCounters()...)
	b.folded("Run duration, memory and outcome", deviceRuns()...)
	b.folded("Device limits", deviceLimits()...)
	return b.dashboard
}

const (
	// failing is 1 for devices whose last run was not ok, 0 for the others. Like all that compares series, it takes
	// one of each device: while a label of a target changes, as that of its pod, there are two.
	failing = `(` + lastRun + ` > bool (max by (@id) (rdma_probe_last_success_timestamp_seconds{@device}) or 0 * ` + lastRun + `))`
	lastRun = `max by (@id) (rdma_probe_last_run_timestamp_seconds{@device})`
	// eachVerdict are the contracts that each device did not keep at some time, unexpected those of them that its
	// driver is not known for, and eachJudgement how many there are of each verdict. eachFinding is how many findings
	// there are of each severity, without those that are accepted.
	eachVerdict   = `max by (@id, contract, severity) (rdma_contract_violated{@device})`
	unexpected    = `max by (@id, contract, severity) (rdma_contract_violated{@device,known!="true"})`
	eachJudgement = `max by (@id, verdict) (rdma_contract_verdicts{@device})`
	eachFinding   = `max by (@id, severity) (rdma_findings{@device,accepted="false"})`
	// needsCollector ends the description of a panel that is empty by default.
	needsCollector = " Needs --collector.%s, which is off by default."
)

func deviceState() []dashboard.Panel {
	return []dashboard.Panel{
		stat(tile("Last probe run", count, anyIs(critical),
			"Whether the last run of the probes was ok. If not, the strips below show which probe failed; if none did, the run was killed or crashed: see the aborted runs."),
			texts(text{"0", "OK", good}, text{"1", "not OK", critical}), query{failing, "{{device}}"}),
		stat(tile("Time since last probe run", seconds, overdue(),
			"Time since the last finished run. After failed runs the exporter waits, by default for up to 5 minutes."),
			nil, query{`time() - ` + lastRun, "{{device}}"}),
		stat(tile("Stuck child process", count, anyIs(critical),
			"Whether a killed child process has not ended, and the verb it is in. Its work on the device waits until it ends."), stuckOrNot(),
			query{`max by (@id, verb) (rdma_probe_stuck{@device})`, "{{device}} {{verb}}"},
			query{`max by (@id) (rdma_inventory_stuck{@device})`, "{{device}} inventory"}),
		stat(tile("Port state", count, plain(),
			"Whether each port is active. Without an active port only flushed completions can be measured."), portStates(),
			query{portState, "{{device}} port {{port}}"}),
		bySeverity(tile("Contracts by verdict", count, plain(),
			"How many contracts of the libibverbs manual the device keeps, violates, violates as its driver is known to, and how many could not be judged."),
			query{`sum by (@host, verdict) (` + eachJudgement + `)`, "{{verdict}}"}),
		bySeverity(tile("Findings by severity", count, plain(),
			"Findings about this device, except accepted ones. Critical: something fails already or soon will."),
			query{`sum by (@host, severity) (` + eachFinding + `)`, "{{severity}}"}),
		stat(tile("Missed completion events", count, anyIs(critical),
			"Completions in the time shown whose event had not come by the deadline: a program that sleeps would hang. Those of the very first run are not included."),
			none(), query{`round(sum by (@id) (increase(rdma_notifications_missed_total{@device}[$__range])))`, "{{device}}"}),
		stat(tile("Notification p99", seconds, plain(),
			"99 of 100 completion events came within this time, in the last minutes. What is good depends on the adapter: the fleet dashboard compares it with similar devices."),
			nil, query{
				quantile("0.99", "path", "rdma_notification_latency_seconds") + ` >= 0`,
				"{{device}} {{path}}",
			}),
		table(of(24, 4, "Device identity and firmware", words, plain(),
			"What the device says about itself. Provider simulated: not a real device."), "", []column{
			label("instance"), label("device"),
			{field: "provider", mappings: texts(text{"simulated", "simulated", warning}, text{"libibverbs", "libibverbs", good})},
			label("transport"), titled("fw_version", "firmware"), titled("vendor_id", "vendor"),
			titled("vendor_part_id", "part"), titled("hw_version", "hardware"), titled("node_guid", "node GUID"),
			{field: "B", title: "completion vectors", unit: count},
		},
			query{`max by (@id, provider, transport, fw_version, vendor_id, vendor_part_id, hw_version, node_guid) (rdma_device_info{@device})`, ""},
			query{`max by (@id) (rdma_device_completion_vectors{@device})`, ""}),
	}
}

func deviceTrouble() []dashboard.Panel {
	return []dashboard.Panel{
		byDevice(of(10, 10, "Violated and skipped contracts", count, plain(),
			"Contracts of the libibverbs manual that the device breaks, or once broke: violated ones first, then those that could not be judged with the reason, then violations the driver is known for, then those that hold again. Contracts kept ever since the exporter started are not listed. docs/reference/contracts.md says what each means and what to do."), "verdict", []column{
			label("contract"), label("severity", 90), label("reason", 150),
			{
				field: "A", title: "verdict", width: 100,
				mappings: texts(text{"3", "violated", critical}, text{"2", "skipped", unknown}, text{"1", "known", neutral}, text{"0", "holds again", good}),
			},
		}, query{`3 * max by (@id, contract, severity) (rdma_contract_violated{@device,known!="true"}) or max by (@id, contract, severity) (rdma_contract_violated{@device,known="true"}) or 2 * max by (@id, contract, reason) (rdma_contract_skipped{@device})`, ""}),
		byDevice(of(14, 10, "Findings and their reasons", seconds, plain(),
			"Each finding, why it stands, and for how long. Accepted findings, consequences of others, and those beyond 16 of a device have no reason here. No rows: none. docs/reference/findings.md says what each means and what to do; the exporter's page has the figures."), "for", []column{
			label("finding", 170), severity(80), label("reason"), label("verb", 120), label("errno", 80),
			label("accepted", 80), titled("A", "for", 80),
		}, query{
			`-1 * group by (@id, finding, severity, reason, verb, errno) (rdma_finding_info{@device}) * on (@id, finding, severity) group_left () (min by (@id, finding, severity) (rdma_finding_first_seen_timestamp_seconds{@device}) - time())` +
				` or time() - min by (@id, finding, severity, accepted) (rdma_finding_first_seen_timestamp_seconds{@device}) unless on (@id, finding) rdma_finding_info{@device}`, "",
		}),
		strips(of(12, 7, "Probe success over time", count, anyIs(good),
			"Whether each probe succeeded. A gap: it was skipped, or the run ended before it. With --probe.when=idle also when the device was left alone, because other programs held queue pairs on it."), texts(text{"1", "OK", good}, text{"0", "failed", critical}, text{"2", "left alone", neutral}),
			query{`min by (@id, probe) (rdma_probe_success{@device})`, "{{device}} {{probe}}"},
			query{`2 * max by (@id) (rdma_probe_light{@device}) > 0`, "{{device}} run"}),
		strips(of(12, 7, "Port state over time", count, plain(),
			"The state of each port at the last run, or by the kernel if that run could not query it."),
			portStates(), query{portState, "{{device}} port {{port}}"}),
		byDevice(of(6, 7, "Aborted runs", count, plain(),
			"Runs of the probes and contract runs that were killed at their deadline or crashed since the exporter started, by the verb they were in. No rows: none."), "probes", []column{
			label("outcome", 90), label("verb"),
			{title: "probes", width: 75, expr: filled(`sum by (@id, outcome, verb) (rdma_probe_aborts_total{@device})`, "verb")},
			{title: "contracts", width: 85, expr: filled(
				`sum by (@id, outcome, verb) (rdma_contract_aborts_total{@device})`, "verb")},
		}),
		byDevice(of(8, 7, "Skipped probes", count, plain(),
			"What the last run could not probe, and why. It counts neither as success nor as failure."), "", []column{
			label("probe"), label("subject"), label("reason"),
		}, query{`max by (@id, probe, subject, reason) (rdma_probe_skipped{@device})`, ""}),
		byDevice(of(5, 7, "Undestroyed objects", count, anyIs(critical),
			"Objects that the device refused to destroy in the last run, with the errno. A program that destroys such an object fails too. No rows: none."), "objects", []column{
			label("type"), label("errno"), {field: "A", title: "objects", thresholds: new(anyIs(critical))},
		}, query{`sum by (@id, type, errno) (rdma_probe_undestroyed_objects{@device}) > 0`, ""}),
		byDevice(of(5, 7, "Asynchronous events (ibv_async_event)", count, plain(),
			"Events of the device and its ports while a run had it open, since the exporter started or the device appeared. Events between runs are not seen. No rows: none."), "events", []column{
			label("event"), {field: "A", title: "events", thresholds: new(anyIs(warning))},
		}, query{`sum by (@id, event) (rdma_async_events_total{@device})`, ""}),
	}
}

func severities() []dashboard.ValueMapping {
	return texts(text{"critical", "critical", critical}, text{"warning", "warning", warning}, text{"info", "info", neutral})
}

const portState = `max by (@id, port) (rdma_port_state_id{@device})`

func deviceNotification() []dashboard.Panel {
	const (
		notification = `rdma_notification_latency_seconds`
		completion   = `rdma_completion_latency_seconds`
		meanOf       = `(sum by (@id, %[3]s) (rate(%[1]s_sum{%[2]s}[$__rate_interval])) / sum by (@id, %[3]s) (rate(%[1]s_count{%[2]s}[$__rate_interval])))`
	)
	return []dashboard.Panel{
		dashed(lines(of(12, 9, "Notification latency", seconds, plain(),
			"From posting a work request until its completion event has woken the process. p50 dashed, p99 solid; by path (loopback: a message on the same port; flush: a failed work request)."),
			query{quantile("0.99", "port, path", notification), "p99 {{path}}, {{device}} port {{port}}"},
			query{quantile("0.5", "port, path", notification), "p50 {{path}}, {{device}} port {{port}}"}),
			"/^p50/"),
		lines(of(12, 9, "Completion latency", seconds, plain(),
			"Mean time from posting a work request until its completion is seen: polling without a pause (poll), which is the completion alone, or asleep for a solicited event (solicited)."),
			query{fmt.Sprintf(meanOf, completion, `@device`, "port, path, mode"), "{{path}} {{mode}}, {{device}} port {{port}}"}),
		byDevice(of(9, 9, "Slowest completion vectors", seconds, plain(),
			"Notification latency by completion vector, from the last run that measured it: a vector whose p99 is far above the median of all is served by a busy or distant CPU. Sorted by that factor."), "p99 / median", []column{
			{field: "comp_vector", title: "vector", width: 75, unit: words},
			titled("A", "p99"),
			{field: "B", title: "p99 / median", unit: factor, thresholds: new(slower())},
		},
			query{vector(`rdma_notification_vector_latency_seconds{@device}`), ""},
			query{
				vector(`rdma_notification_vector_latency_seconds{@device}`) +
					` / on (@id) group_left () quantile by (@id) (0.5, rdma_notification_vector_latency_seconds{@device})`, "",
			}),
		steps(of(15, 9, "Notification p99 by completion vector", seconds, plain(),
			"Notification latency of each completion vector over time. A run measures only some of them, 4 by default, so each line changes only now and then."),
			query{vector(`rdma_notification_vector_latency_seconds{@device}`), "{{device}} vector {{comp_vector}}"}),
		heat(of(12, 8, "Distribution of notification latency", count, plain(),
			"How many events came within which time. Two bands mean two kinds of wake-ups, such as from shallow and from deep CPU sleep."),
			`sum by (le) (increase(rdma_notification_latency_seconds_bucket{@device}[$__rate_interval])) or sum(increase(rdma_notification_latency_seconds{@device}[$__rate_interval]))`),
		lines(of(12, 8, "Cost of notification", seconds, plain(),
			"Mean notification latency minus mean latency by polling: what being woken costs a program compared with spinning."),
			query{
				mean("port, path", notification) + " - " + fmt.Sprintf(meanOf, completion, `@device,mode="poll"`, "port, path"),
				"{{path}}, {{device}} port {{port}}",
			}),
		columns(of(12, 8, "Missed, misdirected and spurious events, failed completions", perSecond, plain(),
			"Per second. Missed: the completion came but its event did not; misdirected: the event came on another channel or named another queue; spurious: it came without a completion; missing: the completion itself did not come; unsuccessful: it had the wrong status."),
			query{rateOf("path", "rdma_notifications_missed_total"), "missed, {{path}}, {{device}}"},
			query{rateOf("path", "rdma_notifications_misdirected_total"), "misdirected, {{path}}, {{device}}"},
			query{rateOf("path", "rdma_notifications_spurious_total"), "spurious, {{path}}, {{device}}"},
			query{rateOf("path", "rdma_completions_missing_total"), "missing, {{path}}, {{device}}"},
			query{rateOf("path, status", "rdma_completions_unsuccessful_total"), "unsuccessful, {{path}} {{status}}, {{device}}"}),
	}
}

// vector is the one series that each completion vector has.
func vector(selector string) string {
	return "max by (@id, comp_vector) (" + selector + ")"
}

// rateOf returns how much a counter of devices adds in a second.
func rateOf(by, counter string) string {
	return fmt.Sprintf(`sum by (@id, %s) (rate(%s{@device}[$__rate_interval]))`, by, counter)
}

// runsOf returns how many runs finished in the minutes before each point, by outcome.
func runsOf(counter string) []query {
	return []query{{fmt.Sprintf(`round(sum by (@id, outcome) (increase(%s{@device}[$__rate_interval])))`, counter), "{{device}} {{outcome}}"}}
}

func deviceVerbs() []dashboard.Panel {
	const (
		calls = `sum by (@id, verb) (rate(rdma_verbs_call_duration_seconds_count{@device}[$__rate_interval]))`
		mean  = `sum by (@id, verb) (rate(rdma_verbs_call_duration_seconds_sum{@device}[$__rate_interval])) / ` + calls + ` >= 0`
	)
	return []dashboard.Panel{
		lines(of(12, 9, "Mean duration of control verbs", seconds, plain(),
			"Time that calls of a verb took, including failed ones. A verb that gets slower means busy firmware or a busy kernel."),
			query{mean, "{{device}} {{verb}}"}, query{`max by (@id) (rdma_memory_registration_seconds{@device})`, "{{device}} ibv_reg_mr of 2 MiB"}),
		columns(of(12, 9, "Failed calls by verb and errno over time", perSecond, plain(),
			"Failed calls per second, except those a probe makes fail on purpose."),
			query{rateOf("verb, errno", "rdma_verbs_errors_total"), "{{device}} {{verb}} {{errno}}"},
			query{`max by (@id, memory, refused_by) (rdma_memory_registration_refused{@device})`, "{{device}} {{memory}} of memory refused by {{refused_by}}"}),
		byDevice(of(8, 9, "Calls of control verbs", seconds, plain(),
			"Mean of the last minutes, and how often the verb is called."), "mean", []column{
			label("verb"),
			{title: "calls per second", unit: count, expr: calls},
			{title: "mean", expr: mean},
		}),
		byDevice(of(7, 9, "Failed calls by verb and errno", count, plain(),
			"Calls that failed since the exporter started or the device appeared. No rows: none."), "calls", []column{
			label("verb"), label("errno"), {field: "A", title: "calls", thresholds: new(anyIs(warning))},
		}, query{`sum by (@id, verb, errno) (rdma_verbs_errors_total{@device})`, ""}),
		dashed(lines(of(9, 9, "Verb latency p50 and p99", seconds, plain(),
			"All verbs. p50 dashed, p99 solid. The classic buckets are decades, so their figures are rough."+fmt.Sprintf(needsCollector, "verb-histograms")),
			query{quantile("0.99", "verb", "rdma_verbs_call_latency_seconds") + " >= 0", "p99 {{device}} {{verb}}"},
			query{quantile("0.5", "verb", "rdma_verbs_call_latency_seconds") + " >= 0", "p50 {{device}} {{verb}}"}),
			"/^p50/"),
	}
}

func deviceSizes() []dashboard.Panel {
	enough := texts(text{"0", "less than configured", warning}, text{"1", "OK", good})
	return []dashboard.Panel{
		byDevice(of(15, 12, "Requested, actual and queried sizes of CQ, SRQ and QP", count, plain(),
			"Sizes that the probes ask for, as configured for the host, what creating wrote back, and what a query of a shared receive queue reports where it differs. A device may give more; with less, programs fail below the depth they planned, unless the size was cut down to a limit of the device, shown beside this."), "", []column{
			label("object"), titled("qp_type", "type"), label("profile"), label("queue"),
			{title: "asked for", expr: sizes("requested")},
			{title: "given", expr: sizes("actual")},
			{title: "queried", empty: "as given", expr: sizes("queried")},
			{title: "verdict", mappings: enough, expr: sizes("actual") + " >= bool " + sizes("requested")},
		}),
		byDevice(of(9, 6, "Memory per object", octets, plain(),
			"Memory that one object of that size costs the process creating it: address space, and pinned memory, which counts towards RLIMIT_MEMLOCK."+fmt.Sprintf(needsCollector, "memory")), "pinned", []column{
			label("object"), label("profile"),
			{title: "address space", expr: filled(
				`sum by (@id, object, profile) (rdma_probe_memory_bytes{@device,kind="virtual"})`, "profile")},
			{title: "pinned", expr: filled(
				`sum by (@id, object, profile) (rdma_probe_memory_bytes{@device,kind="locked"})`, "profile")},
		}),
		stat(of(9, 3, "Maximum inline data", octets, plain(),
			"Most inline data that a queue pair of each type can have, found by search because no verb reports it."),
			nil, query{`max by (@id, qp_type) (rdma_probe_qp_max_inline_bytes{@device})`, "{{device}} {{qp_type}}"}),
		byDevice(of(9, 3, "Clamped sizes", count, plain(),
			"Configured sizes that the last run reduced to a limit of the device, and what it asked for instead. No rows: none."), "", []column{
			label("probe"), label("profile"), label("subject"), label("attribute"), label("limit"),
			titled("A", "asked for"),
		}, query{`max by (@id, probe, profile, subject, attribute, limit) (rdma_probe_size_clamped{@device})`, ""}),
	}
}

// sizes returns the query of all sizes of one kind (requested, actual or queried), with the label object. Requested
// sizes are a property of the host. The query shows them only for objects that the device created.
func sizes(kind string) string {
	given := func(metric, labels string) string {
		return fmt.Sprintf(`max by (@id, %s) (rdma_probe_%s_actual{@device})`, labels, metric)
	}
	name := func(metric, object, host, device string) string {
		expr := given(metric, device)
		switch kind {
		case "queried":
			expr = fmt.Sprintf(`max by (@id, %s) (rdma_probe_%s_queried{@device})`, device, metric)
		case "requested":
			expr = fmt.Sprintf(`0 * %s + on (@host, %s) group_left () max by (@host, %[2]s) (rdma_probe_%s_requested{@instance})`,
				given(metric, device), host, metric)
		}
		return fmt.Sprintf(`label_replace(%s, "object", "%s", "", "")`, expr, object)
	}
	parts := []string{
		name("srq_work_requests", "SRQ, work requests", "profile", "profile"),
		name("srq_scatter_gather_entries", "SRQ, scatter/gather entries", "profile", "profile"),
	}
	if kind != "queried" {
		parts = append(parts,
			name("cq_entries", "CQ, entries", "profile", "profile"),
			name("qp_work_requests", "QP, work requests", "profile, queue", "qp_type, profile, queue"),
			name("qp_scatter_gather_entries", "QP, scatter/gather entries", "profile, queue", "qp_type, profile, queue"),
			name("qp_inline_bytes", "QP, inline bytes", "profile", "qp_type, profile"),
		)
	}
	return filled("sum by (@id, object, qp_type, profile, queue) ("+strings.Join(parts, " or ")+")", "qp_type", "queue")
}

func deviceRuns() []dashboard.Panel {
	return []dashboard.Panel{
		byOutcome(of(8, 8, "Probe runs by outcome", count, plain(),
			"Runs that finished in the minutes before each bar, by outcome. Timeout: killed at the deadline; crashed: the child process died."), "rdma_probe_runs_total"),
		steps(of(8, 8, "Duration of runs", seconds, plain(),
			"Duration of the last run of each kind, from the start of its child process to its end, and the CPU time of the last run of the probes."),
			query{`max by (@id) (rdma_probe_duration_seconds{@device})`, "probes, {{device}}"},
			query{`max by (@id) (rdma_probe_child_cpu_seconds{@device})`, "probes, CPU time, {{device}}"},
			query{`max by (@id) (rdma_contract_duration_seconds{@device})`, "contract run, {{device}}"},
			query{`max by (@id) (rdma_inventory_duration_seconds{@device})`, "inventory, {{device}}"}),
		steps(of(8, 8, "Resident memory of a run", octets, plain(),
			"Peak resident memory of the last run's child process."),
			query{`max by (@id) (rdma_probe_child_max_resident_bytes{@device})`, "resident, {{device}}"}),
		byOutcome(of(8, 8, "Contract runs by outcome", count, plain(),
			"Contract runs that finished in the minutes before each bar, by outcome. The default is one a day. The very first of an outcome is not included."), "rdma_contract_runs_total"),
		stat(of(8, 8, "Age of contract verdicts", seconds, rising(step{3 * 86400, warning}, step{7 * 86400, critical}),
			"Time since the last contract run started. Verdicts from a run that was cut short may be older."),
			nil, query{`time() - max by (@id) (rdma_contract_last_run_timestamp_seconds{@device})`, "{{device}}"}),
		stat(of(8, 8, "Dropped series", count, anyIs(warning),
			"Series of this device that the exporter leaves out because there are too many."),
			none(), query{`max by (@id) (rdma_exporter_dropped_series{@device})`, "{{device}}"}),
	}
}

func deviceLimits() []dashboard.Panel {
	return []dashboard.Panel{
		byDevice(of(24, 14, "Device limits (ibv_device_attr)", count, plain(),
			"Most that the device says it allows, by the names in struct ibv_device_attr. This promises little: what it really gives also depends on memory."+fmt.Sprintf(needsCollector, "limits")), "", []column{
			label("limit"), titled("A", "value"),
		}, query{`max by (@id, limit) (rdma_device_limit{@device})`, ""}),
	}
}
