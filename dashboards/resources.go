package dashboards

import (
	"fmt"
	"strings"
)

// used is which part of its limit each type of object has used.
const used = `(sum by (@id, type) (max by (@id, type, owner) (rdma_resource_objects{@device})) / on (@id, type) max by (@id, type) (rdma_resource_limit{@device}))`

// noInventory is 0 if there was any inventory, and nothing otherwise: what there never
// was of an object has no series, and what is not known must not look well.
const noInventory = ` or 0 * count(rdma_inventory_timestamp_seconds{@device})`

// nearLimit are the thresholds of what is used of a limit, those of the findings by
// default.
func nearLimit() Thresholds {
	return rising(step{0.8, warning}, step{0.95, critical})
}

// headroom are the thresholds of what is left of a limit.
func headroom() Thresholds {
	return falling(0.05, 0.2)
}

// resources returns the dashboard of what is held on the devices of a host.
func resources() Dashboard {
	s := scope{`job="$job"`, `instance="$instance"`, `device=~"$device"`}
	b := newBoard(resourcesUID, "RDMA / Resources",
		"What is held on the RDMA devices of one host, by whom, against which limit, what was left behind, and how it grows.", s)
	b.dashboard.Templating.List = []Variable{
		sourceVariable(), jobVariable(one), instanceVariable(s, one), deviceVariable(s, many),
		queryVariable("type", "Type", "The types of objects in the row of owners.",
			s.expand(`label_values(rdma_resource_objects{@device}, type)`), many, ".+"),
		choice("top", "Owners", "How many owners of each type are shown. The exporter names 10, unless --inventory.owners is set.",
			"5", "10", "20", "50", "100"),
	}
	b.row("Is there room?", resourceState()...)
	b.row("Against the limits", resourceLimits()...)
	b.row("Who holds it", resourceOwners()...)
	b.row("What was left behind", resourceLeftovers()...)
	b.row("Memory", resourceMemory()...)
	b.row("Queue pairs", resourceQueues()...)
	b.folded("How it grows", resourceGrowth()...)
	b.folded("Cgroups", resourceCgroups()...)
	b.row("How true this is", resourceInventory()...)
	return b.dashboard
}

func resourceState() []Panel {
	return []Panel{
		dial(about{
			at{4, 5},
			"Lowest headroom",
			"What is left of the nearest limit, of any type and device. At 0 no process on the host can create more objects of that type.",
			fraction, headroom(),
		}, query{`1 - max(` + used + `)`, ""}),
		dial(about{
			at{4, 5},
			"Lowest headroom of locked memory",
			"What the process nearest to its RLIMIT_MEMLOCK has left, on the whole host. At 0 registering memory and creating queues fail with ENOMEM. Processes above their limit do not count: they have CAP_IPC_LOCK and are exempt.",
			fraction, headroom(),
		}, query{`1 - max(` + boundUse + `)`, ""}),
		stat(about{
			at{4, 5},
			"Orphaned objects",
			"Objects of user programs for which the kernel names no living thread. Briefly seen when a process ends; those that stay block the removal of the device.",
			count, anyIs(warning),
		}, none(), query{`sum(rdma_resource_orphaned_objects{@device})` + noInventory, ""}),
		stat(about{
			at{4, 5},
			"Leaked objects",
			"Objects that the kernel still holds for ended child processes of the exporter.",
			count, anyIs(critical),
		}, none(), query{`sum(rdma_probe_leaked_objects{@device})` + noInventory, ""}),
		stat(about{
			at{4, 5},
			"Queue pairs in error",
			"Queue pairs in state err or sqe: they move no data until their owner resets them.",
			count, anyIs(warning),
		}, none(), query{`sum(rdma_resource_queue_pairs{@device,state=~"err|sqe"}) or 0 * count(rdma_resource_objects{@device})`, ""}),
		stat(about{
			at{4, 5},
			"Inventory is from",
			"Age of the oldest inventory behind the figures of this page. The default is one a minute.",
			seconds, rising(step{600, warning}, step{1800, critical}),
		}, nil, query{`time() - min(rdma_inventory_timestamp_seconds{@device})`, ""}),
	}
}

func resourceLimits() []Panel {
	return []Panel{
		bars(about{
			at{10, 10},
			"Nearest to a limit",
			"Objects of all processes and the kernel, as a share of what the device says it allows: the 12 fullest types.",
			fraction, nearLimit(),
		}, query{`topk(12, ` + used + `)`, "{{device}} {{type}}"}),
		table(about{
			at{14, 10},
			"Objects and limits",
			"Objects by type: those of user programs, of the kernel, and those only counted, whose owners are unknown. Ended at: the count when the device refused one more.",
			count, plain(),
		}, "used", []column{
			{field: "device", title: "device", links: deviceOfHost()},
			{field: "type", title: "type", width: 75},
			{field: "A", title: "user", empty: "0"},
			{field: "B", title: "kernel", empty: "0"},
			{field: "C", title: "unknown", empty: "0"},
			{field: "D", title: "limit", empty: "no limit"},
			{field: "E", title: "used", unit: fraction, bar: true, thresholds: new(nearLimit())},
			{field: "F", title: "ended at", empty: "never"},
			{field: "G", title: "on", unit: dateTime, empty: " "},
		},
			query{`sum by (@id, type) (rdma_resource_objects{@device,owner="user"})`, ""},
			query{`sum by (@id, type) (rdma_resource_objects{@device,owner="kernel"})`, ""},
			query{`sum by (@id, type) (rdma_resource_objects{@device,owner="unknown"})`, ""},
			query{`max by (@id, type) (rdma_resource_limit{@device})`, ""},
			query{used, ""},
			query{`max by (@id, type) (rdma_resource_exhausted_objects{@device})`, ""},
			query{`max by (@id, type) (rdma_resource_exhausted_timestamp_seconds{@device}) * 1000`, ""}),
		steps(about{
			at{12, 8},
			"Objects over time",
			"Objects by type, of any process.",
			count, plain(),
		}, query{`sum by (device, type) (rdma_resource_objects{@device})`, "{{device}} {{type}}"}),
		steps(about{
			at{12, 8},
			"Used of the limit over time",
			"Objects as a share of what the device says it allows. The lines mark where findings begin by default.",
			fraction, nearLimit(),
		}, query{used, "{{device}} {{type}}"}),
	}
}

func resourceOwners() []Panel {
	held := func(kind string, by []string) string {
		return filled(fmt.Sprintf(`sum by (%s) (rdma_resource_owner_objects{@device,type="%s"})`, strings.Join(by, ", "), kind), by...)
	}
	types := []string{"qp", "cq", "mr", "pd", "srq", "ctx", "cm_id"}
	columnsByType := func(first ...column) []column {
		for i, t := range types {
			first = append(first, column{field: refID(i), title: t, width: 80, empty: "0"})
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
	return []Panel{
		table(about{
			at{24, 9},
			"Largest owners by type",
			"Who holds most, of each type and device: processes of one command in one container, or with --collector.owner-pids each process. comm other is all owners not named, unknown those the kernel does not name.",
			count, plain(),
		}, "objects", []column{
			{field: "device", title: "device", width: 110},
			{field: "type", title: "type", width: 75},
			{field: "comm", title: "comm", width: 160},
			{field: "pid", title: "pid", width: 90, unit: words},
			{field: "A", title: "objects", width: 100},
			{field: "pod_uid", title: "pod"},
			{field: "container_id", title: "container"},
		}, query{filled(`topk by (device, type) ($top, sum by (device, type, pid, comm, container_id, pod_uid) (rdma_resource_owner_objects{@device,type=~"$type"}))`, "pid", "pod_uid", "container_id"), ""}),
		table(about{
			at{12, 9},
			"Owners",
			"What each of the largest owners holds, of each type, on all devices chosen.",
			count, plain(),
		}, "qp", columnsByType(
			column{field: "comm", title: "comm"},
			column{field: "pid", title: "pid", width: 85, unit: words},
		), queriesByType("pid", "comm")...),
		table(about{
			at{12, 9},
			"Pods and containers",
			"The same for pods and containers. The row without either has the processes of the host, and all owners not named.",
			count, plain(),
		}, "qp", columnsByType(
			column{field: "pod_uid", title: "pod"},
			column{field: "container_id", title: "container"},
		), queriesByType("pod_uid", "container_id")...),
		steps(about{
			at{24, 9},
			"Largest owners over time",
			"Objects of the largest owners, of the types chosen. One that keeps growing leaks.",
			count, plain(),
		}, query{
			`topk by (device, type) ($top, sum by (device, type, pid, comm) (rdma_resource_owner_objects{@device,type=~"$type",comm!~"other|unknown"}))`,
			"{{comm}} {{pid}} {{device}} {{type}}",
		}),
	}
}

func resourceLeftovers() []Panel {
	// A device of which nothing is left has one line at 0, so that none is told from
	// not known.
	left := func(by, metric, known string) string {
		return fmt.Sprintf("sum by (%s) (%s{@device}) > 0 or 0 * sum by (device) (%s{@device})", by, metric, known)
	}
	const (
		orphaned  = "rdma_resource_orphaned_objects"
		leaked    = "rdma_probe_leaked_objects"
		inventory = "rdma_inventory_timestamp_seconds"
	)
	return []Panel{
		columns(about{
			at{8, 8},
			"Orphaned objects",
			"By type. A minute or two is the kernel cleaning up after a process that ended.",
			count, plain(),
		}, query{left("device, type", orphaned, inventory), "{{device}} {{type}}"}),
		columns(about{
			at{8, 8},
			"Leaked objects",
			"By type, of ended child processes of the exporter: the driver does not clean up after programs.",
			count, plain(),
		}, query{left("device, type", leaked, inventory), "{{device}} {{type}}"}),
		columns(about{
			at{8, 8},
			"Objects that could not be destroyed",
			"By type and errno, of the last runs of the probes and contracts. They were freed when their process ended, unless they are leaked.",
			count, plain(),
		}, query{left("device, type, errno", "rdma_probe_undestroyed_objects", "rdma_probe_last_run_timestamp_seconds"), "{{device}} {{type}} {{errno}}"}),
	}
}

// lockedUse is which part of its limit the memory has used that each process holds in
// place: what drivers pinned for it, or what it locked itself, whichever is more.
// boundUse leaves out those above their limit: it does not bind them.
const (
	lockedUse = `(max without (kind) (rdma_owner_locked_bytes{@instance}) / rdma_owner_locked_limit_bytes{@instance})`
	boundUse  = `(` + lockedUse + ` <= 1)`
)

func resourceMemory() []Panel {
	by := func(expr string) query {
		return query{filled("max by (pid, comm, pod_uid) ("+expr+")", "pid", "comm", "pod_uid"), ""}
	}
	return []Panel{
		table(about{
			at{14, 9},
			"Memory locked by process",
			"Pinned by drivers on behalf of the process, and locked by itself, against its RLIMIT_MEMLOCK; the kernel checks each against the limit separately. On the whole host, whichever devices are chosen. CAP_IPC_LOCK lifts the limit.",
			octets, plain(),
		}, "used", []column{
			{field: "comm", title: "comm"},
			{field: "pid", title: "pid", width: 85, unit: words},
			{field: "A", title: "pinned", empty: "0"},
			{field: "B", title: "locked", empty: "0"},
			{field: "C", title: "limit", empty: "unlimited"},
			{field: "D", title: "used", unit: fraction, bar: true, thresholds: new(nearLimit())},
			{field: "pod_uid", title: "pod"},
		},
			by(`rdma_owner_locked_bytes{@instance,kind="pinned"}`),
			by(`rdma_owner_locked_bytes{@instance,kind="locked"}`),
			by(`rdma_owner_locked_limit_bytes{@instance} < +Inf`),
			by(lockedUse)),
		steps(about{
			at{10, 9},
			"Used of the locked memory limit",
			"The processes nearest to their RLIMIT_MEMLOCK. Those above it, with CAP_IPC_LOCK, are left out.",
			fraction, nearLimit(),
		}, query{`topk($top, max by (pid, comm) (` + boundUse + `)) > 0`, "{{comm}} {{pid}}"}),
		stacked(about{
			at{12, 8},
			"Registered memory",
			"Length of all memory regions by owner. Memory registered twice counts twice; a region above 1 TiB, as implicit on-demand paging makes them, counts as 1 TiB.",
			octets, plain(),
		}, query{`sum by (device, owner) (rdma_resource_mr_bytes{@device})`, "{{device}} {{owner}}"}),
		stacked(about{
			at{12, 8},
			"Entries of completion queues",
			"Entries of all completion queues by owner. Each pins some 64 bytes.",
			count, plain(),
		}, query{`sum by (device, owner) (rdma_resource_cq_entries{@device})`, "{{device}} {{owner}}"}),
	}
}

func resourceQueues() []Panel {
	return []Panel{
		painted(stacked(about{
			at{12, 9},
			"Queue pairs by state",
			"Queue pairs, including the kernel's. Only rts (ready to send) moves data in both directions; err and sqe are broken.",
			count, plain(),
		}, query{`sum by (state) (rdma_resource_queue_pairs{@device})`, "{{state}}"}),
			paint{"rts", good}, paint{"rtr", neutral}, paint{"err", critical}, paint{"sqe", warning}, paint{"reset", unknown}),
		table(about{
			at{12, 9},
			"Queue pairs by type and state",
			"By device, type and state; broken ones are marked.",
			count, plain(),
		}, "queue pairs", []column{
			{field: "device", title: "device"},
			{field: "qp_type", title: "type"},
			{field: "state", title: "state", mappings: []Mapping{{"value", map[string]Mapped{
				"err": {"err: broken", critical, 0}, "sqe": {"sqe: send queue broken", warning, 1},
			}}}},
			{field: "A", title: "queue pairs"},
		}, query{`sum by (device, qp_type, state) (rdma_resource_queue_pairs{@device})`, ""}),
	}
}

func resourceGrowth() []Panel {
	const (
		owner = "device, type, pid, comm, container_id, pod_uid"
		left  = `(max by (@id, type) (rdma_resource_limit{@device}) - on (@id, type) sum by (@id, type) (rdma_resource_objects{@device}))`
	)
	return []Panel{
		table(about{
			at{24, 9},
			"Owners that grow fastest",
			"By the trend of the last hour. A job that has just started shows up too; what keeps growing leaks. The exporter's finding growing tells them apart, for each process.",
			perHour, plain(),
		}, "added per hour", []column{
			{field: "device", title: "device", width: 110},
			{field: "type", title: "type", width: 75},
			{field: "comm", title: "comm", width: 160},
			{field: "pid", title: "pid", width: 90, unit: words},
			{field: "A", title: "added per hour", width: 130},
			{field: "pod_uid", title: "pod"},
			{field: "container_id", title: "container"},
		},
			query{filled(`topk(10, sum by (`+owner+`) (3600 * deriv(rdma_resource_owner_objects{@device,comm!~"other|unknown"}[1h])) > 0)`, "pid", "pod_uid", "container_id"), ""}),
		lines(about{
			at{8, 9},
			"Growth",
			"How many objects of each type are added per hour, by the trend of the last hour. What never falls below 0 is a leak.",
			perHour, plain(),
		}, query{`3600 * sum by (device, type) (deriv(rdma_resource_objects{@device}[1h]))`, "{{device}} {{type}}"}),
		lines(about{
			at{8, 9},
			"Used of the limit in 6 hours",
			"Share of the limit used in 6 hours, if the trend of the last hour goes on. From 100 % on, creating objects fails.",
			fraction, nearLimit(),
		}, query{
			`clamp_min(sum by (@id, type) (predict_linear(rdma_resource_objects{@device}[1h], 6 * 3600)) / on (@id, type) max by (@id, type) (rdma_resource_limit{@device}), 0)`,
			"{{device}} {{type}}",
		}),
		lines(about{
			at{8, 9},
			"Time until the limit",
			"Time until the device's limit is reached, if the trend of the last hour goes on. Empty for what does not grow.",
			seconds, falling(24*3600, 7*24*3600),
		}, query{
			left + ` / on (@id, type) (sum by (@id, type) (deriv(rdma_resource_objects{@device}[1h])) > 0)`,
			"{{device}} {{type}}",
		}),
	}
}

func resourceCgroups() []Panel {
	by := func(expr string) query {
		return query{filled("max by (device, cgroup, pod_uid, resource) ("+expr+")", "pod_uid"), ""}
	}
	return []Panel{
		table(about{
			at{24, 9},
			"Cgroups of the largest owners",
			"What the RDMA controller counts for a cgroup, against its rdma.max. At the limit its processes are refused, mostly with EAGAIN, even though the device has room. hca_handle: open devices; hca_object: everything else." + fmt.Sprintf(needsCollector, "cgroups"),
			count, plain(),
		}, "used", []column{
			{field: "device", title: "device", width: 110},
			{field: "resource", title: "resource", width: 110},
			{field: "A", title: "objects", width: 100},
			{field: "B", title: "limit", width: 100, empty: "no limit"},
			{field: "C", title: "used", width: 180, unit: fraction, bar: true, thresholds: new(nearLimit())},
			{field: "cgroup", title: "cgroup"},
			{field: "pod_uid", title: "pod"},
		},
			by(`rdma_cgroup_objects{@device}`),
			by(`rdma_cgroup_limit{@device} < +Inf`),
			by(`rdma_cgroup_objects{@device} / rdma_cgroup_limit{@device}`)),
	}
}

func resourceInventory() []Panel {
	return []Panel{
		table(about{
			at{10, 8},
			"Inventory by device",
			"Whether the last inventory was ok, whether one hangs, how long it took, and how old its figures are.",
			count, plain(),
		}, "age", []column{
			{field: "device", title: "device", links: deviceOfHost()},
			{field: "A", title: "last inventory", mappings: okOr("not OK")},
			{field: "B", title: "stuck", mappings: stuckOrNot()},
			{field: "C", title: "duration", unit: seconds},
			{field: "D", title: "age", unit: seconds, thresholds: new(rising(step{600, warning}, step{1800, critical}))},
		},
			query{`max by (device) (rdma_inventory_success{@device})`, ""},
			query{`max by (device) (rdma_inventory_stuck{@device})`, ""},
			query{`max by (device) (rdma_inventory_duration_seconds{@device})`, ""},
			query{`time() - min by (device) (rdma_inventory_timestamp_seconds{@device})`, ""}),
		table(about{
			at{7, 8},
			"Not read one by one",
			"Object types that were only counted, or not completely seen, and why. Owners, orphans and states are missing for them. No rows: none.",
			count, plain(),
		}, "", []column{
			{field: "device", title: "device"},
			{field: "type", title: "type", width: 75},
			{field: "reason", title: "reason"},
		}, query{`max by (device, type, reason) (rdma_inventory_incomplete{@device})`, ""}),
		stat(about{
			at{7, 3},
			"Processes of the host",
			"Whether the exporter sees them. If not, owners and orphans are unknown: give it the host's pid namespace.",
			count, falling(0.5, 1),
		}, texts(text{1, "visible", good}, text{0, "not visible", critical}), query{`min(rdma_inventory_pid_visibility{@instance})`, ""}),
		painted(columns(about{
			at{7, 5},
			"Runs of the inventory",
			"Finished runs per minute, by outcome.",
			perMinute, plain(),
		}, query{perMinuteOf("outcome", "rdma_inventory_runs_total"), "{{outcome}}"}),
			paint{"ok", good}, paint{"failed", warning}, paint{"timeout", critical}, paint{"crashed", unknown}),
	}
}
