package dashboards

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// used is which part of its limit each type of object has used.
const used = `(sum by (@id, type) (max by (@id, type, owner) (rdma_resource_objects{@device})) / on (@id, type) max by (@id, type) (rdma_resource_limit{@device}))`

// noInventory is 0 if there was any inventory, and nothing otherwise: what there never was of an object has no
// series, and what is not known must not look well.
const noInventory = ` or 0 * count(rdma_inventory_timestamp_seconds{@device})`

// nearLimit are the thresholds of what is used of a limit, those of the findings by default.
func nearLimit() dashboard.ThresholdsConfig {
	return rising(step{0.8, warning}, step{0.95, critical})
}

func headroom() dashboard.ThresholdsConfig {
	return falling(0.05, 0.2)
}

// resources returns the dashboard of what is held on the devices of a host.
func resources() grafanaBoard {
	s := scope{`job="$job"`, `instance="$instance"`, `device=~"$device"`}
	b := newBoard(resourcesUID, "RDMA / Resources",
		"What is held on the RDMA devices of one host, by whom, against which limit, what was left behind, and how it grows.", s,
		sourceVariable(), clusterVariable(), jobVariable(one), instanceVariable(s, one), deviceVariable(s, many),
		queryVariable("type", "Type", "The types of objects in the row of owners.",
			s.expand(`label_values(rdma_resource_objects{@device}, type)`), many, ".+"),
		choice("top", "Owners", "How many owners of each type are shown. The exporter names 10.",
			"5", "10", "20", "50", "100"))
	b.row("Headroom and leftovers at a glance", resourceState()...)
	b.row("Objects against the limits of devices", resourceLimits()...)
	b.row("Owners: processes, pods, containers", resourceOwners()...)
	b.row("Leaked and orphaned objects", resourceLeftovers()...)
	b.row("Locked and registered memory", resourceMemory()...)
	b.row("Queue pairs", resourceQueues()...)
	b.folded("Growth and leaks", resourceGrowth()...)
	b.folded("Cgroups (rdma.max)", resourceCgroups()...)
	b.row("Inventory freshness and coverage", resourceInventory()...)
	b.folded("Exporter of the host", resourceExporter()...)
	return b.dashboard
}

func resourceState() []dashboard.Panel {
	return []dashboard.Panel{
		dial(of(4, 5, "Lowest headroom", fraction, headroom(),
			"What is left of the nearest limit, of any type and device. At 0 no process on the host can create more objects of that type."),
			query{`1 - max(` + used + `)`, ""}),
		dial(of(4, 5, "Lowest headroom of locked memory (RLIMIT_MEMLOCK)", fraction, headroom(),
			"What the process nearest to its RLIMIT_MEMLOCK has left, on the whole host. At 0 registering memory and creating queues fail with ENOMEM. Processes above their limit do not count: they have CAP_IPC_LOCK and are exempt."),
			query{`1 - max(` + boundUse + `)`, ""}),
		stat(of(4, 5, "Orphaned objects", count, anyIs(warning),
			"Objects of user programs for which the kernel names no living thread. Briefly seen when a process ends; those that stay block the removal of the device."),
			none(), query{`sum(rdma_resource_orphaned_objects{@device})` + noInventory, ""}),
		stat(of(4, 5, "Leaked objects", count, anyIs(critical),
			"Objects that the kernel still holds for ended child processes of the exporter."),
			none(), query{`sum(rdma_probe_leaked_objects{@device})` + noInventory, ""}),
		stat(of(4, 5, "Queue pairs in error", count, anyIs(warning),
			"Queue pairs in state err or sqe: they move no data until their owner resets them."),
			none(), query{`sum(rdma_resource_queue_pairs{@device,state=~"err|sqe"}) or 0 * count(rdma_resource_objects{@device})`, ""}),
		stat(of(4, 5, "Age of the inventory", seconds, overdue(),
			"Age of the oldest inventory behind the figures of this page. The default is one a minute."),
			nil, query{`time() - min(rdma_inventory_timestamp_seconds{@device})`, ""}),
	}
}

func resourceLimits() []dashboard.Panel {
	return []dashboard.Panel{
		bars(of(10, 10, "Object types nearest to a limit", fraction, nearLimit(),
			"Objects of all processes and the kernel, as a share of what the device says it allows: the 12 fullest types."),
			query{`topk(12, ` + used + `)`, "{{device}} {{type}}"}),
		table(of(14, 10, "Objects and limits by type", count, plain(),
			"Objects by type: those of user programs, of the kernel, and those only counted, whose owners are unknown. Ended at: the count when the device refused one more."), "used", []column{
			{field: "device", links: deviceOfHost()},
			label("type", 75),
			{title: "user", empty: "0", expr: `sum by (@id, type) (rdma_resource_objects{@device,owner="user"})`},
			{title: "kernel", empty: "0", expr: `sum by (@id, type) (rdma_resource_objects{@device,owner="kernel"})`},
			{title: "unknown", empty: "0", expr: `sum by (@id, type) (rdma_resource_objects{@device,owner="unknown"})`},
			{title: "limit", empty: "no limit", expr: `max by (@id, type) (rdma_resource_limit{@device})`},
			{title: "used", unit: fraction, bar: true, thresholds: new(nearLimit()), expr: used},
			{title: "ended at", empty: "never", expr: `max by (@id, type) (rdma_resource_exhausted_objects{@device})`},
			{title: "on", unit: dateTime, empty: " ", expr: `max by (@id, type) (` +
				`rdma_resource_exhausted_timestamp_seconds{@device}) * 1000`},
		}),
		steps(of(12, 8, "Objects over time", count, plain(),
			"Objects by type, of any process."),
			query{`sum by (@id, type) (rdma_resource_objects{@device})`, "{{device}} {{type}}"}),
		steps(of(12, 8, "Used of the limit over time", fraction, nearLimit(),
			"Objects as a share of what the device says it allows. The lines mark where findings begin by default."),
			query{used, "{{device}} {{type}}"}),
	}
}

func resourceOwners() []dashboard.Panel {
	held := func(kind string, by []string) string {
		return filled(fmt.Sprintf(`sum by (@host, %s) (rdma_resource_owner_objects{@device,type="%s"})`, strings.Join(by, ", "), kind), by...)
	}
	types := []string{"qp", "cq", "mr", "pd", "srq", "ctx", "cm_id"}
	columnsByType := func(first ...column) []column {
		for i, t := range types {
			first = append(first, column{field: string(rune('A' + i)), title: t, width: 80, empty: "0"})
		}
		return first
	}
	queriesByType := func(by ...string) []query {
		var queries []query
		for _, t := range types {
			queries = append(queries, query{held(t, by), ""})
		}
		return queries
	}
	return []dashboard.Panel{
		table(of(24, 9, "Largest owners by type", count, plain(),
			"Who holds most, of each type and device: processes of one command in one container, or with --collector.owner-pids each process. comm other is all owners not named, unknown those the kernel does not name."), "objects", []column{
			label("device", 110), label("type", 75), label("comm", 160),
			{field: "pid", width: 90, unit: words},
			titled("A", "objects", 100), titled("pod_uid", "pod"), titled("container_id", "container"),
			{field: "slurm_job_id", title: "Slurm job", unit: words},
		}, query{filled(`topk by (@id, type) ($top, sum by (@id, type, pid, comm, container_id, pod_uid, slurm_job_id) (rdma_resource_owner_objects{@device,type=~"$type"}))`, "pid", "pod_uid", "container_id", "slurm_job_id"), ""}),
		table(of(12, 9, "Owners by command", count, plain(),
			"What each of the largest owners holds, of each type, on all devices chosen."), "qp", columnsByType(
			label("comm"),
			column{field: "pid", width: 85, unit: words},
		), queriesByType("pid", "comm")...),
		table(of(12, 9, "Owners by pod and container", count, plain(),
			"The same for pods and containers. The row without either has the processes of the host, and all owners not named."), "qp", columnsByType(
			titled("pod_uid", "pod"), titled("container_id", "container"),
		), queriesByType("pod_uid", "container_id")...),
		table(of(24, 7, "Pods by namespace and name", count, plain(),
			"What the 50 pods that hold most hold, by their names in Kubernetes. Needs kube-state-metrics, and the rules of alerts/recording-kubernetes.yaml."), "objects", []column{
			label("device", 110), label("namespace"), label("pod"), label("type", 75), titled("A", "objects", 100),
		}, query{`topk(50, instance_device_type_pod:rdma_resource_owner_objects:sum{@device,type=~"$type"})`, ""}),
		steps(of(24, 9, "Largest owners over time", count, plain(),
			"Objects of the largest owners, of the types chosen. One that keeps growing leaks."),
			query{
				`topk by (@id, type) ($top, sum by (@id, type, pid, comm) (rdma_resource_owner_objects{@device,type=~"$type",comm!~"other|unknown"}))`,
				"{{comm}} {{pid}} {{device}} {{type}}",
			}),
	}
}

func resourceLeftovers() []dashboard.Panel {
	// A device without leftovers has one line at 0, which distinguishes it from a device without data.
	left := func(by, metric, known string) string {
		return fmt.Sprintf("sum by (@id, %s) (%s{@device}) > 0 or 0 * sum by (@id) (%s{@device})", by, metric, known)
	}
	const (
		orphaned  = "rdma_resource_orphaned_objects"
		leaked    = "rdma_probe_leaked_objects"
		inventory = "rdma_inventory_timestamp_seconds"
	)
	return []dashboard.Panel{
		columns(of(8, 8, "Orphaned objects over time", count, plain(),
			"By type. A minute or two is the kernel cleaning up after a process that ended."),
			query{left("type", orphaned, inventory), "{{device}} {{type}}"}),
		columns(of(8, 8, "Leaked objects over time", count, plain(),
			"By type, of ended child processes of the exporter: the driver does not clean up after programs."),
			query{left("type", leaked, inventory), "{{device}} {{type}}"}),
		columns(of(8, 8, "Undestroyed objects over time", count, plain(),
			"By type and errno, of the last runs of the probes and contracts. They were freed when their process ended, unless they are leaked."),
			query{left("type, errno", "rdma_probe_undestroyed_objects", "rdma_probe_last_run_timestamp_seconds"), "{{device}} {{type}} {{errno}}"}),
	}
}

// lockedUse is the used part of each process's limit on locked memory: pinned by drivers or locked by itself, the larger
// of the two. boundUse leaves out processes above their limit, which does not bind them.
const (
	lockedUse = `(max without (kind) (rdma_owner_locked_bytes{@instance}) / rdma_owner_locked_limit_bytes{@instance})`
	boundUse  = `(` + lockedUse + ` <= 1)`
)

func resourceMemory() []dashboard.Panel {
	by := func(expr string) string {
		return filled("max by (@host, pid, comm, pod_uid) ("+expr+")", "pid", "comm", "pod_uid")
	}
	return []dashboard.Panel{
		table(of(14, 9, "Memory locked by process", octets, plain(),
			"Pinned by drivers on behalf of the process, and locked by itself, against its RLIMIT_MEMLOCK; the kernel checks each against the limit separately. On the whole host, whichever devices are chosen. CAP_IPC_LOCK lifts the limit."), "used", []column{
			label("comm"),
			{field: "pid", width: 85, unit: words},
			{title: "pinned", empty: "0", expr: by(`rdma_owner_locked_bytes{@instance,kind="pinned"}`)},
			{title: "locked", empty: "0", expr: by(`rdma_owner_locked_bytes{@instance,kind="locked"}`)},
			{title: "limit", empty: "unlimited", expr: by(`rdma_owner_locked_limit_bytes{@instance} < +Inf`)},
			{title: "used", unit: fraction, bar: true, thresholds: new(nearLimit()), expr: by(lockedUse)},
			titled("pod_uid", "pod"),
		}),
		steps(of(10, 9, "Used of the locked memory limit", fraction, nearLimit(),
			"The processes nearest to their RLIMIT_MEMLOCK. Those above it, with CAP_IPC_LOCK, are left out."),
			query{`topk($top, max by (@host, pid, comm) (` + boundUse + `)) > 0`, "{{comm}} {{pid}}"}),
		stacked(of(12, 8, "Registered memory", octets, plain(),
			"Length of all memory regions by owner. Memory registered twice counts twice; a region above 1 TiB, as implicit on-demand paging makes them, counts as 1 TiB."),
			query{`sum by (@id, owner) (rdma_resource_mr_bytes{@device})`, "{{device}} {{owner}}"}),
		stacked(of(12, 8, "Completion queue entries", count, plain(),
			"Entries of all completion queues by owner. Each pins some 64 bytes."),
			query{`sum by (@id, owner) (rdma_resource_cq_entries{@device})`, "{{device}} {{owner}}"}),
	}
}

func resourceQueues() []dashboard.Panel {
	return []dashboard.Panel{
		painted(stacked(of(12, 9, "Queue pairs by state", count, plain(),
			"Queue pairs, including the kernel's. Only rts (ready to send) moves data in both directions; err and sqe are broken."),
			query{`sum by (@host, state) (rdma_resource_queue_pairs{@device})`, "{{state}}"}),
			paint{"rts", good}, paint{"rtr", neutral}, paint{"err", critical}, paint{"sqe", warning}, paint{"reset", unknown}),
		table(of(12, 9, "Queue pairs by type and state", count, plain(),
			"By device, type and state; broken ones are marked."), "queue pairs", []column{
			label("device"), titled("qp_type", "type"),
			{field: "state", mappings: texts(text{"err", "err: broken", critical}, text{"sqe", "sqe: send queue broken", warning})},
			titled("A", "queue pairs"),
		}, query{`sum by (@id, qp_type, state) (rdma_resource_queue_pairs{@device})`, ""}),
	}
}

func resourceGrowth() []dashboard.Panel {
	const (
		owner = "device, type, pid, comm, container_id, pod_uid, slurm_job_id"
		left  = `(max by (@id, type) (rdma_resource_limit{@device}) - on (@id, type) sum by (@id, type) (rdma_resource_objects{@device}))`
	)
	return []dashboard.Panel{
		table(of(24, 9, "Owners that grow fastest", perHour, plain(),
			"By the trend of the last hour. A job that has just started shows up too; what keeps growing leaks. The exporter's finding growing tells them apart, for each process."), "added per hour", []column{
			label("device", 110), label("type", 75), label("comm", 160),
			{field: "pid", width: 90, unit: words},
			titled("A", "added per hour", 130), titled("pod_uid", "pod"), titled("container_id", "container"),
			{field: "slurm_job_id", title: "Slurm job", unit: words},
		},
			query{filled(`topk(10, sum by (@host, `+owner+`) (3600 * deriv(rdma_resource_owner_objects{@device,comm!~"other|unknown"}[1h])) > 0)`, "pid", "pod_uid", "container_id", "slurm_job_id"), ""}),
		lines(of(8, 9, "Growth of objects", perHour, plain(),
			"How many objects of each type are added per hour, by the trend of the last hour. What never falls below 0 is a leak."),
			query{`3600 * sum by (@id, type) (deriv(rdma_resource_objects{@device}[1h]))`, "{{device}} {{type}}"}),
		lines(of(8, 9, "Used of the limit in 6 hours", fraction, nearLimit(),
			"Share of the limit used in 6 hours, if the trend of the last hour goes on. From 100 % on, creating objects fails."),
			query{
				`clamp_min(sum by (@id, type) (predict_linear(rdma_resource_objects{@device}[1h], 6 * 3600)) / on (@id, type) max by (@id, type) (rdma_resource_limit{@device}), 0)`,
				"{{device}} {{type}}",
			}),
		lines(of(8, 9, "Time until the limit", seconds, falling(24*3600, 7*24*3600),
			"Time until the device's limit is reached, if the trend of the last hour goes on. Empty for what does not grow."),
			query{
				left + ` / on (@id, type) (sum by (@id, type) (deriv(rdma_resource_objects{@device}[1h])) > 0)`,
				"{{device}} {{type}}",
			}),
	}
}

func resourceCgroups() []dashboard.Panel {
	by := func(expr string) string {
		return filled("max by (@id, cgroup, pod_uid, resource) ("+expr+")", "pod_uid")
	}
	return []dashboard.Panel{
		table(of(24, 9, "Cgroups of the largest owners", count, plain(),
			"What the RDMA controller counts for a cgroup, against its rdma.max. At the limit its processes are refused, mostly with EAGAIN, even though the device has room. hca_handle: open devices; hca_object: everything else."+fmt.Sprintf(needsCollector, "cgroups")), "used", []column{
			label("device", 110), label("resource", 110),
			{title: "objects", width: 100, expr: by(`rdma_cgroup_objects{@device}`)},
			{title: "limit", width: 100, empty: "no limit", expr: by(`rdma_cgroup_limit{@device} < +Inf`)},
			{title: "used", width: 180, unit: fraction, bar: true, thresholds: new(nearLimit()), expr: by(
				`rdma_cgroup_objects{@device} / rdma_cgroup_limit{@device}`)},
			label("cgroup"), titled("pod_uid", "pod"),
		}),
	}
}

func resourceInventory() []dashboard.Panel {
	return []dashboard.Panel{
		table(of(10, 8, "Inventory by device", count, plain(),
			"Whether the last inventory was ok, whether one hangs, how long it took, and how old its figures are."), "age", []column{
			{field: "device", links: deviceOfHost()},
			{title: "last inventory", mappings: okOr("not OK"), expr: `max by (@id) (rdma_inventory_success{@device})`},
			{title: "stuck", mappings: stuckOrNot(), expr: `max by (@id) (rdma_inventory_stuck{@device})`},
			{title: "duration", unit: seconds, expr: `max by (@id) (rdma_inventory_duration_seconds{@device})`},
			{title: "age", unit: seconds, thresholds: new(overdue()), expr: `time() - ` +
				`min by (@id) (rdma_inventory_timestamp_seconds{@device})`},
		}),
		table(of(7, 8, "Incomplete inventory by type", count, plain(),
			"Object types that were only counted, or not completely seen, and why. Owners, orphans and states are missing for them. No rows: none."), "", []column{
			label("device"), label("type", 75), label("reason"),
		}, query{`max by (@id, type, reason) (rdma_inventory_incomplete{@device})`, ""}),
		stat(of(7, 3, "Visibility of host processes", count, falling(0.5, 1),
			"Whether the exporter sees them. If not, owners and orphans are unknown: give it the host's pid namespace."),
			texts(text{"1", "visible", good}, text{"0", "not visible", critical}), query{`min(rdma_inventory_pid_visibility{@instance})`, ""}),
		byOutcome(of(7, 5, "Inventory runs by outcome", count, plain(),
			"Runs that finished in the minutes before each bar, by outcome."), "rdma_inventory_runs_total"),
	}
}

func resourceExporter() []dashboard.Panel {
	return []dashboard.Panel{
		table(of(24, 4, "Exporter: version, configuration, network namespace", count, plain(),
			"Whether the exporter can list and probe devices, whether its current configuration file and web configuration are in force, when the configuration was loaded, whether state can be saved, how many log lines were lost in the time shown, whether its network namespace hides ports, and how many acceptances match nothing."), "", []column{
			label("instance"),
			{title: "scraped", mappings: upOrDown(), expr: ofExporter("up")},
			{title: "lists devices", mappings: okOr("fails"), empty: "unknown", expr: ofExporter("rdma_exporter_discovery_success")},
			{title: "starts children", mappings: okOr("fails"), empty: "unknown", expr: ofExporter("rdma_exporter_child_start_success")},
			{title: "configuration", mappings: okOr("broken"), empty: "none", expr: ofExporter(
				"rdma_exporter_config_last_reload_successful")},
			{title: "loaded", unit: dateTime, empty: "unknown", expr: ofExporter(
				"rdma_exporter_config_last_reload_success_timestamp_seconds") + ` * 1000`},
			{title: "web configuration", mappings: okOr("broken"), empty: "none", expr: ofExporter(
				"rdma_exporter_web_config_last_reload_successful")},
			{title: "state", mappings: okOr("not written"), empty: "none", expr: ofExporter("rdma_exporter_state_writable")},
			{title: "log lines lost", thresholds: new(rising(step{1, warning})), empty: "unknown", expr: `round(` +
				`max by (@host) (increase(rdma_exporter_log_lines_dropped_total{@instance}[$__range])))`},
			{title: "network namespace", mappings: texts(text{"1", "hides ports", warning}), empty: "hides nothing", expr: ofExporter("rdma_exporter_netns_blind")},
			{title: "unused acceptances", empty: "none", expr: ofExporter("rdma_exporter_unused_acceptances")},
			label("version"),
		}, query{`max by (@host, version) (rdma_exporter_build_info{@instance})`, ""}),
		table(of(12, 6, "Expected state, boot and maintenance", count, plain(),
			"How many devices the configuration expects and how many there are, when the host booted, and until when it is in maintenance, which silences its alerts."), "", []column{
			label("instance"),
			{title: "expected devices", empty: "any", expr: ofExporter("rdma_expected_devices")},
			{title: "devices", empty: "unknown", expr: ofExporter("rdma_devices")},
			{title: "booted", unit: dateTime, empty: "unknown", expr: ofExporter("rdma_exporter_boot_time_seconds") + ` * 1000`},
			{title: "maintenance until", unit: dateTime, empty: "none", expr: ofExporter("rdma_exporter_maintenance_until_timestamp_seconds") + ` * 1000 > 0`},
		}),
		table(of(12, 6, "Findings about the host", count, plain(),
			"What stands about the host itself, not about a device, and for which reason. No rows: none."), "", []column{
			label("finding"), severity(90), label("reason"),
		}, query{`group by (@host, finding, severity, reason) (rdma_finding_info{@instance,device=""})`, ""}),
	}
}
