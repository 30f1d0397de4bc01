package dashboards

import (
	"fmt"
	"strings"
)

// device returns the dashboard of one device.
func device() Dashboard {
	s := scope{`job="$job"`, `instance="$instance"`, `device="$device"`}
	b := newBoard(deviceUID, "RDMA / Device",
		"One RDMA device: whether it works, what it breaks, how fast it wakes a program, and what verbs cost.", s)
	b.dashboard.Templating.List = []Variable{
		sourceVariable(), jobVariable(one), instanceVariable(s, one), deviceVariable(s, one),
	}
	b.row("Is it well?", deviceState()...)
	b.row("What is wrong", deviceTrouble()...)
	b.row("Notification of completions", deviceNotification()...)
	b.row("Verbs", deviceVerbs()...)
	b.row("Sizes asked for and given", deviceSizes()...)
	b.folded("Runs, and what they cost", deviceRuns()...)
	b.folded("What the device says it allows", deviceLimits()...)
	return b.dashboard
}

const (
	// failing is 1 for devices whose last run was not ok, 0 for the others. Like all that
	// compares series, it takes one of each device: while a label of a target changes, as
	// that of its pod, there are two.
	failing = `(` + lastRun + ` > bool (max by (@id) (rdma_probe_last_success_timestamp_seconds{@device}) or 0 * ` + lastRun + `))`
	lastRun = `max by (@id) (rdma_probe_last_run_timestamp_seconds{@device})`
	// eachVerdict and eachFinding are what each device is said to do wrong, and
	// unexpected what of the contracts its driver is not known for.
	eachVerdict = `max by (@id, contract, severity) (rdma_contract_violated{@device})`
	unexpected  = `max by (@id, contract, severity) (rdma_contract_violated{@device,known!="true"})`
	eachFinding = `max by (@id, finding, severity) (rdma_findings{@device})`
)

// tile is the size of a stat in the first row.
func tile() at {
	return at{3, 4}
}

func deviceState() []Panel {
	return []Panel{
		stat(about{
			tile(), "Last run",
			"Whether the last run of the probes was ok. If not, the strips below tell which probe failed; if none did, the run was killed or crashed: see the aborted runs.",
			count, anyIs(critical),
		}, texts(text{0, "OK", good}, text{1, "not OK", critical}), query{failing, ""}),
		stat(about{
			tile(), "Last run was",
			"For how long there was no finished run. After runs that failed the exporter waits, by default for up to 5 minutes.",
			seconds, rising(step{600, warning}, step{1800, critical}),
		}, nil, query{`time() - ` + lastRun, ""}),
		stat(about{
			tile(), "Stuck",
			"Whether a killed child process has not ended, and the verb that it is in. What it was to do on the device does not go on until it ends.",
			count, anyIs(critical),
		}, yesIs("STUCK"),
			query{`max by (verb) (rdma_probe_stuck{@device})`, "run {{verb}}"},
			query{`max(rdma_inventory_stuck{@device})`, "inventory"}),
		stat(about{
			tile(), "Ports",
			"Whether each port is active. Without an active port only flushed completions can be measured.",
			count, falling(0.5, 1),
		}, texts(text{1, "active", good}, text{0, "not active", critical}),
			query{`max by (port) (rdma_port_state{@device,state="active"})`, "port {{port}}"}),
		bySeverity(about{
			tile(), "Violated contracts",
			"Contracts of the libibverbs manual that the device breaks, without what its driver is known for. Critical: a program hangs or loses data; warning: a size or state is told wrongly; info: the device allows more than the manual.",
			count, plain(),
		}, query{`sum by (severity) (` + unexpected + `)`, "{{severity}}"}),
		bySeverity(about{
			tile(), "Findings",
			"Findings of the inventory about this device. Critical: something fails already or is about to.",
			count, plain(),
		}, query{`sum by (severity) (` + eachFinding + `)`, "{{severity}}"}),
		stat(about{
			tile(), "Missed events",
			"Completions that were there at the deadline although their event had not come, in the time shown: a program that sleeps would hang. Those of the very first run are not in it.",
			count, anyIs(critical),
		}, none(), query{`round(sum(increase(rdma_notifications_missed_total{@device}[$__range])))`, ""}),
		stat(about{
			tile(), "Notification p99",
			"99 of 100 events of completions come within this time, in the last minutes. What is good depends on the adapter: the fleet dashboard compares it with its like.",
			seconds, plain(),
		}, nil, query{
			`histogram_quantile(0.99, sum by (path, le) (rate(rdma_notification_latency_seconds_bucket{@device,mode="any"}[$__rate_interval]))) >= 0`,
			"{{path}}",
		}),
		table(about{
			at{24, 4},
			"Identity",
			"What the device says of itself. Provider simulated: the device exists only to try the exporter.",
			words, plain(),
		}, "", []column{
			{field: "instance", title: "instance"},
			{field: "device", title: "device"},
			{field: "provider", title: "provider", mappings: []Mapping{{"value", map[string]Mapped{
				"simulated": {"simulated", warning, 0}, "libibverbs": {"libibverbs", good, 1},
			}}}},
			{field: "transport", title: "transport"},
			{field: "fw_version", title: "firmware"},
			{field: "vendor_id", title: "vendor"},
			{field: "vendor_part_id", title: "part"},
			{field: "hw_version", title: "hardware"},
			{field: "node_guid", title: "node GUID"},
			{field: "B", title: "completion vectors", unit: count},
		},
			query{`max by (@id, provider, transport, fw_version, vendor_id, vendor_part_id, hw_version, node_guid) (rdma_device_info{@device})`, ""},
			query{`max by (@id) (rdma_device_completion_vectors{@device})`, ""}),
	}
}

func deviceTrouble() []Panel {
	return []Panel{
		table(about{
			at{10, 10},
			"Contracts",
			"Each contract of the libibverbs manual: violated ones first, then those that could not be judged with the reason, then those that are violated as is known of the driver, then those that hold. docs/contracts.md says what each means and what to do.",
			count, plain(),
		}, "verdict", []column{
			{field: "contract", title: "contract"},
			{field: "severity", title: "severity", width: 90},
			{field: "reason", title: "reason", width: 150},
			{
				field: "A", title: "verdict", width: 100,
				mappings: texts(text{3, "violated", critical}, text{2, "skipped", unknown}, text{1, "known", neutral}, text{0, "holds", good}),
			},
		}, query{`3 * max by (contract, severity) (rdma_contract_violated{@device,known!="true"}) or max by (contract, severity) (rdma_contract_violated{@device,known="true"}) or 2 * max by (contract, reason) (rdma_contract_skipped{@device})`, ""}),
		table(about{
			at{7, 10},
			"Findings",
			"What the inventory found. No rows: nothing. docs/findings.md says what each means and what to do; the page of the exporter has the figures.",
			count, plain(),
		}, "found", []column{
			{field: "finding", title: "finding"},
			{field: "severity", title: "severity", width: 90, mappings: severities()},
			{field: "A", title: "found", width: 80},
		}, query{`sum by (finding, severity) (` + eachFinding + `) > 0`, ""}),
		table(about{
			at{7, 10},
			"Aborted runs",
			"Runs that were killed at their deadline or crashed since the exporter started, by the verb that they were in: of the probes, and of the contract run. No rows: none.",
			count, plain(),
		}, "probes", []column{
			{field: "outcome", title: "outcome", width: 90},
			{field: "verb", title: "verb"},
			{field: "A", title: "probes", width: 75},
			{field: "B", title: "contracts", width: 85},
		},
			query{filled(`sum by (outcome, verb) (rdma_probe_aborts_total{@device})`, "verb"), ""},
			query{filled(`sum by (outcome, verb) (rdma_contract_aborts_total{@device})`, "verb"), ""}),
		strips(about{
			at{12, 7},
			"Probes",
			"Whether each probe succeeded. A gap: it was skipped, or the run ended before it did. With --probe.when=idle also when the device was left alone, because other programs held queue pairs on it.",
			count, anyIs(good),
		}, texts(text{1, "OK", good}, text{0, "failed", critical}, text{2, "left alone", neutral}),
			query{`min by (probe) (rdma_probe_success{@device})`, "{{probe}}"},
			query{`2 * max(rdma_probe_light{@device}) > 0`, "run"}),
		strips(about{
			at{12, 7},
			"Ports",
			"The state of each port, as of the last run.",
			count, plain(),
		}, portStates(), query{portState(), "port {{port}}"}),
		table(about{
			at{14, 7},
			"Not probed",
			"What the last run could not probe, and why. It counts neither as success nor as failure.",
			count, plain(),
		}, "", []column{
			{field: "probe", title: "probe"},
			{field: "subject", title: "subject"},
			{field: "reason", title: "reason"},
		}, query{`max by (probe, subject, reason) (rdma_probe_skipped{@device})`, ""}),
		table(about{
			at{10, 7},
			"Could not be destroyed",
			"Objects that the device refused to destroy to the end of the last run, with the errno. A program that destroys such an object is refused, too. No rows: none.",
			count, anyIs(critical),
		}, "objects", []column{
			{field: "type", title: "type"},
			{field: "errno", title: "errno"},
			{field: "A", title: "objects", thresholds: new(anyIs(critical))},
		}, query{`sum by (type, errno) (rdma_probe_undestroyed_objects{@device}) > 0`, ""}),
	}
}

// severities colours the names of severities.
func severities() []Mapping {
	return []Mapping{{"value", map[string]Mapped{
		"critical": {"critical", critical, 0},
		"warning":  {"warning", warning, 1},
		"info":     {"info", neutral, 2},
	}}}
}

// portState is the number of the state that each port is in.
func portState() string {
	var parts []string
	for i, name := range portStateNames() {
		parts = append(parts, fmt.Sprintf(`%d * rdma_port_state{@device,state="%s"}`, i, name))
	}
	return "max by (port) (" + strings.Join(parts, " or ") + ")"
}

func deviceNotification() []Panel {
	const (
		notification = `rdma_notification_latency_seconds`
		completion   = `rdma_completion_latency_seconds`
		mean         = `(sum by (port, path) (rate(%[1]s_sum{%[2]s}[$__rate_interval])) / sum by (port, path) (rate(%[1]s_count{%[2]s}[$__rate_interval])))`
		quantile     = `histogram_quantile(%s, sum by (%s, le) (rate(%s_bucket{@device}[$__rate_interval])))`
	)
	return []Panel{
		dashed(lines(about{
			at{12, 9},
			"Notification latency",
			"From posting a work request until the event of its completion has woken the process. p50 dashed, p99 solid; by path (loopback: a message on the same port; flush: a failed work request) and mode (any: each completion, solicited: only those).",
			seconds, plain(),
		},
			query{fmt.Sprintf(quantile, "0.99", "port, path, mode", notification), "p99 {{path}} {{mode}}, port {{port}}"},
			query{fmt.Sprintf(quantile, "0.5", "port, path, mode", notification), "p50 {{path}} {{mode}}, port {{port}}"}),
			"/^p50/"),
		dashed(lines(about{
			at{12, 9},
			"Completion latency",
			"From posting a work request until its completion is seen by polling without a pause: what completing alone takes. p50 dashed, p99 solid.",
			seconds, plain(),
		},
			query{fmt.Sprintf(quantile, "0.99", "port, path", completion), "p99 {{path}}, port {{port}}"},
			query{fmt.Sprintf(quantile, "0.5", "port, path", completion), "p50 {{path}}, port {{port}}"}),
			"/^p50/"),
		table(about{
			at{9, 9},
			"Completion vectors",
			"Latency of notification by completion vector, as of the last run that measured it: a vector whose p99 is far above the median of all is served by a busy or distant processor. Sorted by that factor.",
			seconds, plain(),
		}, "p99 / median", []column{
			{field: "comp_vector", title: "vector", width: 75, unit: words},
			{field: "A", title: "p50"},
			{field: "B", title: "p99"},
			{field: "C", title: "p99 / median", unit: factor, thresholds: new(rising(step{3, warning}, step{10, critical}))},
			{field: "D", title: "mean, all runs"},
		},
			query{vector(`rdma_notification_vector_latency_seconds{@device,quantile="0.5"}`), ""},
			query{vector(`rdma_notification_vector_latency_seconds{@device,quantile="0.99"}`), ""},
			query{
				vector(`rdma_notification_vector_latency_seconds{@device,quantile="0.99"}`) +
					` / scalar(quantile(0.5, rdma_notification_vector_latency_seconds{@device,quantile="0.99"}))`, "",
			},
			query{
				`sum by (comp_vector) (rdma_notification_vector_latency_seconds_sum{@device})` + " / " +
					`sum by (comp_vector) (rdma_notification_vector_latency_seconds_count{@device})` + " >= 0", "",
			}),
		steps(about{
			at{15, 9},
			"p99 by completion vector",
			"Latency of notification on each completion vector over time. A run measures some of them, by default 4, so that each line changes from time to time only.",
			seconds, plain(),
		}, query{vector(`rdma_notification_vector_latency_seconds{@device,quantile="0.99"}`), "vector {{comp_vector}}"}),
		heatmap(about{
			at{12, 8},
			"Distribution of notification latency",
			"How many events came within which time. Two bands tell of two kinds of wake-ups, such as from a shallow and from a deep sleep of the processor.",
			count, plain(),
		}, `sum by (le) (increase(rdma_notification_latency_seconds_bucket{@device}[$__rate_interval]))`),
		heatmap(about{
			at{12, 8},
			"Distribution of completion latency",
			"How many completions were polled within which time.",
			count, plain(),
		}, `sum by (le) (increase(rdma_completion_latency_seconds_bucket{@device}[$__rate_interval]))`),
		lines(about{
			at{12, 8},
			"What notification costs",
			"Mean latency of notification less mean latency of completion by polling: what being woken costs a program, beside spinning.",
			seconds, plain(),
		}, query{
			fmt.Sprintf(mean, notification, `@device,mode="any"`) + " - " + fmt.Sprintf(mean, completion, `@device`),
			"{{path}}, port {{port}}",
		}),
		columns(about{
			at{12, 8},
			"Events and completions gone wrong",
			"Per minute. Missed: the event did not come although the completion did; misdirected: it came on another channel or named another queue; spurious: it came without a completion; missing: the completion itself did not come; unsuccessful: it had another status than it should.",
			perMinute, plain(),
		},
			query{perMinuteOf("path, mode", "rdma_notifications_missed_total"), "missed, {{path}} {{mode}}"},
			query{perMinuteOf("path, mode", "rdma_notifications_misdirected_total"), "misdirected, {{path}} {{mode}}"},
			query{perMinuteOf("path, mode", "rdma_notifications_spurious_total"), "spurious, {{path}} {{mode}}"},
			query{perMinuteOf("path, mode", "rdma_completions_missing_total"), "missing, {{path}} {{mode}}"},
			query{perMinuteOf("path, status", "rdma_completions_unsuccessful_total"), "unsuccessful, {{path}} {{status}}"}),
	}
}

// vector is the one series that each completion vector has.
func vector(selector string) string {
	return "max by (comp_vector) (" + selector + ")"
}

// perMinuteOf is the rate of a counter of the chosen devices, by labels.
func perMinuteOf(by, counter string) string {
	return fmt.Sprintf(`60 * sum by (%s) (rate(%s{@device}[$__rate_interval]))`, by, counter)
}

func deviceVerbs() []Panel {
	const quantile = `histogram_quantile(%s, sum by (verb, le) (rate(rdma_verbs_call_duration_seconds_bucket{@device}[$__rate_interval]))) >= 0`
	return []Panel{
		lines(about{
			at{12, 9},
			"p99 of calls by verb",
			"Time that calls of a verb took, failed ones too. A verb that takes longer than it used to tells of a busy firmware or kernel. Buckets are decades: the figure is rough.",
			seconds, plain(),
		}, query{fmt.Sprintf(quantile, "0.99"), "{{verb}}"}),
		columns(about{
			at{12, 9},
			"Failures by verb and errno",
			"Calls per minute that failed, without those that a probe makes fail on purpose.",
			perMinute, plain(),
		}, query{perMinuteOf("verb, errno", "rdma_verbs_call_failures_total"), "{{verb}} {{errno}}"}),
		table(about{
			at{15, 9},
			"Calls by verb",
			"Mean, p50 and p99 of the last minutes, and how often the verb is called.",
			seconds, plain(),
		}, "p99", []column{
			{field: "verb", title: "verb"},
			{field: "A", title: "calls per minute", unit: count},
			{field: "B", title: "mean"},
			{field: "C", title: "p50"},
			{field: "D", title: "p99"},
		},
			query{perMinuteOf("verb", "rdma_verbs_call_duration_seconds_count"), ""},
			query{`sum by (verb) (rate(rdma_verbs_call_duration_seconds_sum{@device}[$__rate_interval])) / sum by (verb) (rate(rdma_verbs_call_duration_seconds_count{@device}[$__rate_interval])) >= 0`, ""},
			query{fmt.Sprintf(quantile, "0.5"), ""},
			query{fmt.Sprintf(quantile, "0.99"), ""}),
		table(about{
			at{9, 9},
			"Failed calls",
			"Calls that failed since the exporter started or the device appeared. No rows: none.",
			count, plain(),
		}, "calls", []column{
			{field: "verb", title: "verb"},
			{field: "errno", title: "errno"},
			{field: "A", title: "calls", thresholds: new(anyIs(warning))},
		}, query{`sum by (verb, errno) (rdma_verbs_call_failures_total{@device})`, ""}),
	}
}

func deviceSizes() []Panel {
	enough := texts(text{0, "less than asked for", critical}, text{1, "OK", good})
	return []Panel{
		table(about{
			at{15, 12},
			"Asked for, given, queried",
			"Sizes that the probes ask for, what creating wrote back, and what a query of a shared receive queue says. A device may give more; with less, programs fail below the depth that they planned.",
			count, plain(),
		}, "", []column{
			{field: "object", title: "object"},
			{field: "qp_type", title: "type"},
			{field: "profile", title: "profile"},
			{field: "queue", title: "queue"},
			{field: "A", title: "asked for"},
			{field: "B", title: "given"},
			{field: "C", title: "queried", empty: "-"},
			{field: "D", title: "verdict", mappings: enough},
		},
			query{sizes("requested"), ""},
			query{sizes("actual"), ""},
			query{sizes("queried"), ""},
			query{sizes("actual") + " >= bool " + sizes("requested"), ""}),
		table(about{
			at{9, 6},
			"What an object costs",
			"Memory that one object of that size costs the process that creates it: address space, and pinned memory, which counts towards RLIMIT_MEMLOCK.",
			octets, plain(),
		}, "pinned", []column{
			{field: "object", title: "object"},
			{field: "profile", title: "profile"},
			{field: "A", title: "address space"},
			{field: "B", title: "pinned"},
		},
			query{filled(`sum by (object, profile) (rdma_probe_memory_bytes{@device,kind="virtual"})`, "profile"), ""},
			query{filled(`sum by (object, profile) (rdma_probe_memory_bytes{@device,kind="locked"})`, "profile"), ""}),
		stat(about{
			at{9, 3},
			"Most inline data",
			"The most inline data that a queue pair of each type can be given, found by search because no verb tells it.",
			octets, plain(),
		}, nil, query{`max by (qp_type) (rdma_probe_qp_max_inline_bytes{@device})`, "{{qp_type}}"}),
		table(about{
			at{9, 3},
			"Cut down",
			"Configured sizes that the last run cut down to a limit of the device. No rows: none.",
			count, plain(),
		}, "", []column{
			{field: "probe", title: "probe"},
			{field: "profile", title: "profile"},
			{field: "subject", title: "subject"},
			{field: "attribute", title: "attribute"},
			{field: "limit", title: "limit"},
		}, query{`max by (probe, profile, subject, attribute, limit) (rdma_probe_size_clamped{@device})`, ""}),
	}
}

// sizes are all sizes of one kind, requested, actual or queried, told apart by the
// label object.
func sizes(kind string) string {
	name := func(metric, object string) string {
		return fmt.Sprintf(`label_replace(rdma_probe_%s_%s{@device}, "object", "%s", "", "")`, metric, kind, object)
	}
	parts := []string{
		name("srq_work_requests", "SRQ, work requests"),
		name("srq_scatter_gather_entries", "SRQ, scatter/gather entries"),
	}
	if kind != "queried" {
		parts = append(parts,
			name("cq_entries", "CQ, entries"),
			name("qp_work_requests", "QP, work requests"),
			name("qp_scatter_gather_entries", "QP, scatter/gather entries"),
			name("qp_inline_bytes", "QP, inline bytes"),
		)
	}
	return filled("sum by (object, qp_type, profile, queue) ("+strings.Join(parts, " or ")+")", "qp_type", "queue")
}

func deviceRuns() []Panel {
	outcomes := []paint{{"ok", good}, {"failed", warning}, {"timeout", critical}, {"crashed", unknown}}
	return []Panel{
		painted(columns(about{
			at{8, 8},
			"Runs of the probes",
			"Finished runs per minute, by outcome. Timeout: killed at the deadline; crashed: the child process died.",
			perMinute, plain(),
		}, query{perMinuteOf("outcome", "rdma_probe_runs_total"), "{{outcome}}"}), outcomes...),
		steps(about{
			at{8, 8},
			"How long runs take",
			"Duration of the last run of each kind, from the start of its child process to its end, and the processor time that a run of the probes used.",
			seconds, plain(),
		},
			query{`max(rdma_probe_duration_seconds{@device})`, "probes"},
			query{`max(rdma_probe_child_cpu_seconds{@device})`, "probes, processor time"},
			query{`max(rdma_contract_duration_seconds{@device})`, "contract run"},
			query{`max(rdma_inventory_duration_seconds{@device})`, "inventory"}),
		steps(about{
			at{8, 8},
			"Memory of a run",
			"The most memory that the child process of the last run had resident.",
			octets, plain(),
		}, query{`max(rdma_probe_child_max_resident_bytes{@device})`, "resident"}),
		painted(columns(about{
			at{8, 8},
			"Runs of the contract run",
			"Runs that finished in the minutes before each bar, by outcome. By default there is one a day. The very first of an outcome is not in it.",
			count, plain(),
		}, query{`round(sum by (outcome) (increase(rdma_contract_runs_total{@device}[$__rate_interval])))`, "{{outcome}}"}), outcomes...),
		stat(about{
			at{8, 8},
			"Verdicts are from",
			"How long ago the last contract run was started. Verdicts of a run that was broken off may be older.",
			seconds, rising(step{3 * 86400, warning}, step{7 * 86400, critical}),
		}, nil, query{`time() - max(rdma_contract_last_run_timestamp_seconds{@device})`, ""}),
		stat(about{
			at{8, 8},
			"Series not exposed",
			"Series of this device that the exporter leaves out because there are too many.",
			count, anyIs(warning),
		}, none(), query{`max(rdma_exporter_dropped_series{@device})`, ""}),
	}
}

func deviceLimits() []Panel {
	return []Panel{
		table(about{
			at{24, 14},
			"Limits",
			"The most that the device says it allows, by the names that struct ibv_device_attr has. Saying so promises little: what can be had depends on memory, too.",
			count, plain(),
		}, "", []column{
			{field: "limit", title: "limit"},
			{field: "A", title: "value"},
		}, query{`max by (limit) (rdma_device_limit{@device})`, ""}),
	}
}
