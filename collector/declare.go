package collector

import dto "github.com/prometheus/client_model/go"

// family names a row of the table of declarations.
type family uint8

// The families, by subject.
const (
	deviceInfo family = iota
	deviceLimit
	deviceCompletionVectors
	portState

	probeSuccess
	probeSkipped
	probeSizeClamped
	probeRuns
	probeAborts
	probeLastRun
	probeLastSuccess
	probeDuration
	probeChildCPU
	probeChildMaxResident
	probeStuck
	probeUndestroyed
	probeLight

	cqRequested
	cqActual
	qpWorkRequestsRequested
	qpWorkRequestsActual
	qpScatterGatherRequested
	qpScatterGatherActual
	qpInlineRequested
	qpInlineActual
	qpMaxInline
	srqWorkRequestsRequested
	srqWorkRequestsActual
	srqWorkRequestsQueried
	srqScatterGatherRequested
	srqScatterGatherActual
	srqScatterGatherQueried
	memoryBytes

	callDuration
	callFailures

	notificationLatency
	completionLatency
	vectorLatency
	notificationsMissed
	notificationsSpurious
	notificationsMisdirected
	completionsMissing
	completionsUnsuccessful

	contractViolated
	contractSkipped
	contractRuns
	contractAborts
	contractLastRun
	contractDuration

	resourceObjects
	resourceLimit
	resourceQueuePairs
	resourceCQEntries
	resourceMRBytes
	resourceOwnerObjects
	resourceOrphaned
	probeLeaked
	cgroupObjects
	cgroupLimit
	ownerLocked
	ownerLockedLimit

	findingsOf
	inventorySuccess
	inventoryStuck
	inventoryRuns
	inventoryLastRun
	inventoryDuration
	inventoryTaken
	inventoryIncomplete
	inventoryPIDVisibility

	devices
	discoverySuccess
	droppedSeries

	familyCount
)

// subject is the heading under which docs/metrics.md lists a metric.
type subject string

const (
	aboutDevices      subject = "Devices"
	aboutRuns         subject = "Runs of the probes"
	aboutSizes        subject = "Sizes asked for and given"
	aboutVerbs        subject = "Calls of verbs"
	aboutNotification subject = "Completions and their notification"
	aboutContracts    subject = "Contracts"
	aboutResources    subject = "Resources"
	aboutInventory    subject = "The inventory and its findings"
	aboutExporter     subject = "The exporter itself"
)

// declaration is all there is to say of one metric.
type declaration struct {
	subject subject
	name    string
	kind    dto.MetricType
	// unit is what a value counts, for people; the name has it in the form that
	// Prometheus asks for.
	unit   string
	labels []string
	help   string
	// buckets are the upper bounds of a histogram's classic buckets.
	buckets []float64
}

// declarations returns the table of all metrics. The label values handed to a
// family are in the order of its labels here.
func declarations() [familyCount]declaration {
	const (
		gauge     = dto.MetricType_GAUGE
		counter   = dto.MetricType_COUNTER
		summary   = dto.MetricType_SUMMARY
		histogram = dto.MetricType_HISTOGRAM
	)
	return [familyCount]declaration{
		deviceInfo: {
			aboutDevices, "rdma_device_info", gauge, "always 1",
			[]string{"device", "provider", "transport", "fw_version", "vendor_id", "vendor_part_id", "hw_version", "node_guid"},
			"What a present device says of itself; labels after provider are empty until it has been asked.", nil,
		},
		deviceLimit: {
			aboutDevices, "rdma_device_limit", gauge, "what the limit counts",
			[]string{"device", "limit"},
			"The most that a device says it allows, by the name that struct ibv_device_attr gives it.", nil,
		},
		deviceCompletionVectors: {
			aboutDevices, "rdma_device_completion_vectors", gauge, "completion vectors",
			[]string{"device"},
			"Number of completion vectors of a device.", nil,
		},
		portState: {
			aboutDevices, "rdma_port_state", gauge, "1 or 0",
			[]string{"device", "port", "state"},
			"1 for the state that a port was in at the last run, 0 for the others. Absent if that run could not ask.", nil,
		},

		probeSuccess: {
			aboutRuns, "rdma_probe_success", gauge, "1 or 0",
			[]string{"device", "probe"},
			"Whether a probe succeeded in the last run; absent if it was skipped or the run ended before it did.", nil,
		},
		probeSkipped: {
			aboutRuns, "rdma_probe_skipped", gauge, "always 1",
			[]string{"device", "probe", "subject", "reason"},
			"What the last run could not probe, and why; subject is empty for the whole probe.", nil,
		},
		probeSizeClamped: {
			aboutRuns, "rdma_probe_size_clamped", gauge, "always 1",
			[]string{"device", "probe", "profile", "subject", "attribute", "limit"},
			"A configured size that the last run cut down to a limit of the device (always 1; the size used is the one requested).", nil,
		},
		probeRuns: {
			aboutRuns, "rdma_probe_runs_total", counter, "runs",
			[]string{"device", "outcome"},
			"Finished runs of the probes.", nil,
		},
		probeAborts: {
			aboutRuns, "rdma_probe_aborts_total", counter, "runs",
			[]string{"device", "outcome", "verb"},
			"Runs that did not go to their end, by the verb that they were in (none if in none).", nil,
		},
		probeLastRun: {
			aboutRuns, "rdma_probe_last_run_timestamp_seconds", gauge, "seconds since 1970",
			[]string{"device"},
			"When the last finished run was started.", nil,
		},
		probeLastSuccess: {
			aboutRuns, "rdma_probe_last_success_timestamp_seconds", gauge, "seconds since 1970",
			[]string{"device"},
			"When the last run with outcome ok was started; absent until there is one.", nil,
		},
		probeDuration: {
			aboutRuns, "rdma_probe_duration_seconds", gauge, "seconds",
			[]string{"device"},
			"Duration of the last run, from the start of its child process to its end or to the moment it was given up.", nil,
		},
		probeChildCPU: {
			aboutRuns, "rdma_probe_child_cpu_seconds", gauge, "seconds",
			[]string{"device"},
			"Processor time, user and system, that the child process of the last run used.", nil,
		},
		probeChildMaxResident: {
			aboutRuns, "rdma_probe_child_max_resident_bytes", gauge, "bytes",
			[]string{"device"},
			"The most memory that the child process of the last run had resident.", nil,
		},
		probeStuck: {
			aboutRuns, "rdma_probe_stuck", gauge, "1 or 0",
			[]string{"device", "verb"},
			"1 while a killed child process has not ended, with the verb that it is in (empty if in none); 0 otherwise. It outlives the device.", nil,
		},
		probeUndestroyed: {
			aboutRuns, "rdma_probe_undestroyed_objects", gauge, "objects",
			[]string{"device", "type", "errno"},
			"Objects that the device refused to destroy to the end of the last run of the probes or of the contract run, both added up, by the errno of the last refusal.", nil,
		},

		probeLight: {
			aboutRuns, "rdma_probe_light", gauge, "1 or 0",
			[]string{"device"},
			"Whether the last run created next to nothing, since another program holds queue pairs on the device or the kernel does not tell. There only with --probe.when=idle.", nil,
		},

		cqRequested: {
			aboutSizes, "rdma_probe_cq_entries_requested", gauge, "entries",
			[]string{"device", "profile"},
			"Entries asked for of a completion queue.", nil,
		},
		cqActual: {
			aboutSizes, "rdma_probe_cq_entries_actual", gauge, "entries",
			[]string{"device", "profile"},
			"Entries that ibv_create_cq gave.", nil,
		},
		qpWorkRequestsRequested: {
			aboutSizes, "rdma_probe_qp_work_requests_requested", gauge, "work requests",
			[]string{"device", "qp_type", "profile", "queue"},
			"Outstanding work requests asked for of a queue of a queue pair.", nil,
		},
		qpWorkRequestsActual: {
			aboutSizes, "rdma_probe_qp_work_requests_actual", gauge, "work requests",
			[]string{"device", "qp_type", "profile", "queue"},
			"Outstanding work requests that ibv_create_qp gave.", nil,
		},
		qpScatterGatherRequested: {
			aboutSizes, "rdma_probe_qp_scatter_gather_entries_requested", gauge, "entries",
			[]string{"device", "qp_type", "profile", "queue"},
			"Scatter/gather entries per work request asked for of a queue of a queue pair.", nil,
		},
		qpScatterGatherActual: {
			aboutSizes, "rdma_probe_qp_scatter_gather_entries_actual", gauge, "entries",
			[]string{"device", "qp_type", "profile", "queue"},
			"Scatter/gather entries per work request that ibv_create_qp gave.", nil,
		},
		qpInlineRequested: {
			aboutSizes, "rdma_probe_qp_inline_bytes_requested", gauge, "bytes",
			[]string{"device", "qp_type", "profile"},
			"Inline data asked for of a queue pair.", nil,
		},
		qpInlineActual: {
			aboutSizes, "rdma_probe_qp_inline_bytes_actual", gauge, "bytes",
			[]string{"device", "qp_type", "profile"},
			"Inline data that ibv_create_qp gave.", nil,
		},
		qpMaxInline: {
			aboutSizes, "rdma_probe_qp_max_inline_bytes", gauge, "bytes",
			[]string{"device", "qp_type"},
			"The most inline data that a queue pair can be given, found by search because no verb tells it.", nil,
		},
		srqWorkRequestsRequested: {
			aboutSizes, "rdma_probe_srq_work_requests_requested", gauge, "work requests",
			[]string{"device", "profile"},
			"Outstanding work requests asked for of a shared receive queue.", nil,
		},
		srqWorkRequestsActual: {
			aboutSizes, "rdma_probe_srq_work_requests_actual", gauge, "work requests",
			[]string{"device", "profile"},
			"Outstanding work requests that ibv_create_srq wrote back.", nil,
		},
		srqWorkRequestsQueried: {
			aboutSizes, "rdma_probe_srq_work_requests_queried", gauge, "work requests",
			[]string{"device", "profile"},
			"Outstanding work requests that ibv_query_srq told; absent if that failed.", nil,
		},
		srqScatterGatherRequested: {
			aboutSizes, "rdma_probe_srq_scatter_gather_entries_requested", gauge, "entries",
			[]string{"device", "profile"},
			"Scatter/gather entries per work request asked for of a shared receive queue.", nil,
		},
		srqScatterGatherActual: {
			aboutSizes, "rdma_probe_srq_scatter_gather_entries_actual", gauge, "entries",
			[]string{"device", "profile"},
			"Scatter/gather entries per work request that ibv_create_srq wrote back.", nil,
		},
		srqScatterGatherQueried: {
			aboutSizes, "rdma_probe_srq_scatter_gather_entries_queried", gauge, "entries",
			[]string{"device", "profile"},
			"Scatter/gather entries per work request that ibv_query_srq told; absent if that failed.", nil,
		},
		memoryBytes: {
			aboutSizes, "rdma_probe_memory_bytes", gauge, "bytes",
			[]string{"device", "object", "profile", "kind"},
			"What one object costs the process that creates it: address space (virtual) and pinned memory (locked).", nil,
		},

		callDuration: {
			aboutVerbs, "rdma_verbs_call_duration_seconds", histogram, "seconds",
			[]string{"device", "verb"},
			"Time that calls of a verb took, failed ones too, measured next to the call in the child process.",
			[]float64{1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10},
		},
		callFailures: {
			aboutVerbs, "rdma_verbs_call_failures_total", counter, "calls",
			[]string{"device", "verb", "errno"},
			"Calls of a verb that failed, without those that a probe made fail on purpose.", nil,
		},

		notificationLatency: {
			aboutNotification, "rdma_notification_latency_seconds", histogram, "seconds",
			[]string{"device", "port", "path", "mode"},
			"Time from before a work request was posted to after the event of its completion was returned to a process that slept until then.",
			latencyBuckets(),
		},
		completionLatency: {
			aboutNotification, "rdma_completion_latency_seconds", histogram, "seconds",
			[]string{"device", "port", "path"},
			"Time from before a work request was posted to after its completion was seen by polling without a pause.",
			latencyBuckets(),
		},
		// A summary, since promtool lets nothing else have the label quantile.
		vectorLatency: {
			aboutNotification, "rdma_notification_vector_latency_seconds", summary, "seconds",
			[]string{"device", "comp_vector"},
			"What rdma_notification_latency_seconds of mode any is on one completion vector. The quantiles are of the last run that measured the vector, and absent if nothing went well in it; sum and count are of all runs.", nil,
		},
		notificationsMissed: {
			aboutNotification, "rdma_notifications_missed_total", counter, "completions",
			[]string{"device", "port", "path", "mode"},
			"Completions that were there at the deadline although their event had not come.", nil,
		},
		notificationsSpurious: {
			aboutNotification, "rdma_notifications_spurious_total", counter, "events",
			[]string{"device", "port", "path", "mode"},
			"Events that came without a completion.", nil,
		},
		notificationsMisdirected: {
			aboutNotification, "rdma_notifications_misdirected_total", counter, "events",
			[]string{"device", "port", "path", "mode"},
			"Events that came on another channel or named another completion queue than they should.", nil,
		},
		completionsMissing: {
			aboutNotification, "rdma_completions_missing_total", counter, "completions",
			[]string{"device", "port", "path", "mode"},
			"Completions that had not come by the deadline.", nil,
		},
		completionsUnsuccessful: {
			aboutNotification, "rdma_completions_unsuccessful_total", counter, "completions",
			[]string{"device", "port", "path", "status"},
			"Completions that had this status and should have had another.", nil,
		},

		contractViolated: {
			aboutContracts, "rdma_contract_violated", gauge, "1 or 0",
			[]string{"device", "contract", "severity", "known"},
			"1 if the device does not keep a contract, 0 if it does, by the latest verdict. Absent if the contract was not judged. What is known of the driver is nothing to act on: known=\"false\" has what is.", nil,
		},
		contractSkipped: {
			aboutContracts, "rdma_contract_skipped", gauge, "always 1",
			[]string{"device", "contract", "reason"},
			"A contract that could not be judged, and why.", nil,
		},
		contractRuns: {
			aboutContracts, "rdma_contract_runs_total", counter, "runs",
			[]string{"device", "outcome"},
			"Finished runs of the contract run.", nil,
		},
		contractAborts: {
			aboutContracts, "rdma_contract_aborts_total", counter, "runs",
			[]string{"device", "outcome", "verb"},
			"Runs of the contract run that did not go to their end, by the verb that they were in (none if in none).", nil,
		},
		contractLastRun: {
			aboutContracts, "rdma_contract_last_run_timestamp_seconds", gauge, "seconds since 1970",
			[]string{"device"},
			"When the last finished run of the contract run was started.", nil,
		},
		contractDuration: {
			aboutContracts, "rdma_contract_duration_seconds", gauge, "seconds",
			[]string{"device"},
			"Duration of the last run of the contract run, from the start of its child process to its end or to the moment it was given up.", nil,
		},

		resourceObjects: {
			aboutResources, "rdma_resource_objects", gauge, "objects",
			[]string{"device", "type", "owner"},
			"Objects on the device by the kernel's account, of whichever process.", nil,
		},
		resourceLimit: {
			aboutResources, "rdma_resource_limit", gauge, "objects",
			[]string{"device", "type"},
			"The most objects of a type that the device says it allows; absent if it has no limit.", nil,
		},
		resourceQueuePairs: {
			aboutResources, "rdma_resource_queue_pairs", gauge, "queue pairs",
			[]string{"device", "qp_type", "state"},
			"Queue pairs, those of the kernel too, by the state that they were in. Absent if there are none, or if they were only counted.", nil,
		},
		resourceCQEntries: {
			aboutResources, "rdma_resource_cq_entries", gauge, "entries",
			[]string{"device", "owner"},
			"Entries of all completion queues.", nil,
		},
		resourceMRBytes: {
			aboutResources, "rdma_resource_mr_bytes", gauge, "bytes",
			[]string{"device", "owner"},
			"Length of all memory regions; what is registered twice counts twice. One above 1 TiB, as implicit on-demand paging makes them, counts as that.", nil,
		},
		resourceOwnerObjects: {
			aboutResources, "rdma_resource_owner_objects", gauge, "objects",
			[]string{"device", "type", "pid", "comm", "container_id", "pod_uid"},
			"Objects of user programs by process, for the largest owners of each type. All other owners are under comm other, those whom the kernel does not name under comm unknown, both with an empty pid: the sum is rdma_resource_objects of owner user.", nil,
		},
		resourceOrphaned: {
			aboutResources, "rdma_resource_orphaned_objects", gauge, "objects",
			[]string{"device", "type"},
			"Objects of user programs of whose opened device the kernel names no living thread: the owner has ended, or lives on and each of its threads that created something has ended. They pass by when a process ends. Absent if the exporter cannot see the processes of the host, for objects that were only counted, and for cm_id.", nil,
		},
		probeLeaked: {
			aboutResources, "rdma_probe_leaked_objects", gauge, "objects",
			[]string{"device", "type"},
			"Objects that the kernel still holds of child processes of the exporter that have ended. Absent if they were not looked for.", nil,
		},
		cgroupObjects: {
			aboutResources, "rdma_cgroup_objects", gauge, "objects",
			[]string{"device", "cgroup", "container_id", "pod_uid", "resource"},
			"What the RDMA controller counts for the cgroups of the largest owners.", nil,
		},
		cgroupLimit: {
			aboutResources, "rdma_cgroup_limit", gauge, "objects",
			[]string{"device", "cgroup", "container_id", "pod_uid", "resource"},
			"The most that the RDMA controller allows a cgroup (rdma.max); +Inf for no limit.", nil,
		},
		ownerLocked: {
			aboutResources, "rdma_owner_locked_bytes", gauge, "bytes",
			[]string{"pid", "comm", "container_id", "pod_uid", "kind"},
			"Memory that a process holds in place, on the host as a whole, for those 256 of the largest owners on any device that hold most. The kernel holds both kinds against the limit one by one.", nil,
		},
		ownerLockedLimit: {
			aboutResources, "rdma_owner_locked_limit_bytes", gauge, "bytes",
			[]string{"pid", "comm", "container_id", "pod_uid"},
			"The most memory that a process may hold in place (RLIMIT_MEMLOCK, soft); +Inf for unlimited. One with CAP_IPC_LOCK may go beyond it.", nil,
		},

		findingsOf: {
			aboutInventory, "rdma_findings", gauge, "findings",
			[]string{"device", "finding", "severity"},
			"Findings about the device, at most 64: all that is wrong with it or soon will be. Zero if there are none; absent before there was anything to judge.", nil,
		},
		inventorySuccess: {
			aboutInventory, "rdma_inventory_success", gauge, "1 or 0",
			[]string{"device"},
			"Whether the last run of the inventory was ok.", nil,
		},
		inventoryStuck: {
			aboutInventory, "rdma_inventory_stuck", gauge, "1 or 0",
			[]string{"device"},
			"1 while a killed child process of the inventory has not ended, 0 otherwise. It outlives the device.", nil,
		},
		inventoryRuns: {
			aboutInventory, "rdma_inventory_runs_total", counter, "runs",
			[]string{"device", "outcome"},
			"Finished runs of the inventory.", nil,
		},
		inventoryLastRun: {
			aboutInventory, "rdma_inventory_last_run_timestamp_seconds", gauge, "seconds since 1970",
			[]string{"device"},
			"When the last finished run of the inventory was started.", nil,
		},
		inventoryDuration: {
			aboutInventory, "rdma_inventory_duration_seconds", gauge, "seconds",
			[]string{"device"},
			"Duration of the last run of the inventory, from the start of its child process to its end or to the moment it was given up.", nil,
		},
		inventoryTaken: {
			aboutInventory, "rdma_inventory_timestamp_seconds", gauge, "seconds since 1970",
			[]string{"device"},
			"When the run was started that took the inventory from which the metrics of resources are: older than the last run if that took none.", nil,
		},
		inventoryIncomplete: {
			aboutInventory, "rdma_inventory_incomplete", gauge, "always 1",
			[]string{"device", "type", "reason"},
			"A type of object that could not be looked at one by one, and why: what only that tells is absent for it.", nil,
		},
		inventoryPIDVisibility: {
			aboutInventory, "rdma_inventory_pid_visibility", gauge, "1 or 0",
			nil,
			"Whether the exporter sees the processes of the whole host; if not, owners and orphans are not known. By the newest inventory of any device.", nil,
		},

		devices: {
			aboutExporter, "rdma_devices", gauge, "devices",
			nil,
			"Number of RDMA devices that the host has.", nil,
		},
		discoverySuccess: {
			aboutExporter, "rdma_exporter_discovery_success", gauge, "1 or 0",
			nil,
			"Whether the devices could be listed the last time.", nil,
		},
		droppedSeries: {
			aboutExporter, "rdma_exporter_dropped_series", gauge, "series",
			[]string{"device"},
			"Series that are not exposed, because the last runs told of more than 4096 or more than 256 completion vectors of the device were measured.", nil,
		},
	}
}

// latencyBuckets returns the classic buckets of latencies: dense where real
// adapters are, from 2 to 20 µs, then a few for virtual machines around 100 µs,
// and few for trouble.
func latencyBuckets() []float64 {
	return []float64{
		500e-9, 1e-6, 1.5e-6,
		2e-6, 3e-6, 4e-6, 5e-6, 7e-6, 10e-6, 15e-6, 20e-6,
		35e-6, 60e-6, 100e-6, 160e-6, 300e-6,
		1e-3, 3e-3, 10e-3, 100e-3, 1,
	}
}

// labelMeanings returns what each label says, for people.
func labelMeanings() map[string]string {
	return map[string]string{
		"device":         "name of the device, as in `/sys/class/infiniband`",
		"provider":       "`libibverbs`, or `simulated` for devices that exist only to try the exporter",
		"transport":      "transport of the device, such as `InfiniBand` or `iWARP`",
		"fw_version":     "version of the device's firmware",
		"vendor_id":      "vendor, in hexadecimal such as `0x02c9`",
		"vendor_part_id": "the vendor's part number, as a decimal number as `ibv_devinfo` prints it",
		"hw_version":     "version of the hardware, in hexadecimal",
		"node_guid":      "GUID of the device",
		"limit":          "name of a limit in `struct ibv_device_attr`, such as `max_qp`",
		"port":           "number of the port, from 1; of latencies `other` beyond the first 16 of a device",
		"state":          "`nop`, `down`, `init`, `armed`, `active` or `active_defer` of a port; `reset`, `init`, `rtr`, `rts`, `sqd`, `sqe` or `err` of a queue pair",
		"probe":          "`cq`, `comp_channel`, `srq`, `qp` or `notification`",
		"subject":        "what was being probed: a profile, a kind of object such as `cq`, or a QP type",
		"reason":         "of what was skipped: `not_supported`, `not_permitted`, `prerequisite_failed`, `port_down` (the port is not active), `budget` (the time was used up), `timeout` or `crashed` (the child process that was at it was killed at its deadline, or crashed). Of what was not looked at one by one: `max_objects` (there are more than the inventory may look at), `timeout` (its time was up), `interrupted` (the table changed under each attempt to read it), `not_supported` (the kernel has no such table) or `failed`",
		"profile":        "name of the configured sizes; empty where size is not a choice",
		"attribute":      "name of a size, such as `cqe` or `max_send_wr`",
		"outcome":        "`ok`, `failed`, `timeout` (killed at its deadline) or `crashed`",
		"verb":           "a function of libibverbs, such as `ibv_create_qp`; `other` beyond the first 64 of a device",
		"errno":          "symbol of an errno, such as `EBUSY`; `other` beyond the first 32 of a device",
		"type":           "kind of object: `pd`, `mr`, `cq`, `srq`, `qp`, `ctx` (the opened device), `cm_id` or `comp_channel`",
		"qp_type":        "`rc`, `uc`, `ud`, `raw_packet` or `srd` (of efa); of resources any other that rdma(8) knows, such as `gsi`, as well, and `driver` for `srd`",
		"queue":          "`send` or `recv`",
		"object":         "`comp_channel`, `cq`, `srq`, or a QP type such as `qp_rc`",
		"kind":           "of what an object costs: `virtual` or `locked`. Of what a process holds in place: `pinned` (by drivers, on its behalf) or `locked` (by itself)",
		"path":           "how a completion is brought about: `loopback` (a message between two queue pairs of the same port) or `flush` (a work request posted to a queue pair in the error state, which needs neither port nor peer)",
		"mode":           "how a completion is awaited: `any` (asleep, for the event of any completion), `solicited` (asleep, for that of a solicited one) or `poll` (polling without a pause)",
		"status":         "status of a completion, such as `retry_exc_err`, or `success` where it should have failed; `other` beyond the first 32 of a device",
		"comp_vector":    "number of the completion vector, from 0",
		"contract":       "name of a promise of the libibverbs man pages, such as `notify_one_shot`",
		"quantile":       "`0.5` or `0.99`",
		"owner":          "`user`, `kernel`, or `unknown` where objects were only counted",
		"pid":            "process, in the pid namespace of the exporter; empty for those that are not told one by one",
		"comm":           "name of the process's command; empty if it ended before it could be asked. Without a pid `other` or `unknown`",
		"container_id":   "container, as the cgroup's path says; empty if it is that of none",
		"pod_uid":        "Kubernetes pod, as the cgroup's path says; empty if it is that of none",
		"cgroup":         "path of the cgroup",
		"resource":       "`hca_handle` (opened devices) or `hca_object` (everything else)",
		"finding":        "kind of finding, such as `near_limit`; [findings.md](findings.md) has them all",
		"known":          "whether the driver of the device is known to break the contract (docs/contracts.md): `true`, and of one that is violated only if it is in a way that is known, or `false`",
		"severity":       "of a contract, what a violation means to a program that relies on it: `critical` (it hangs or loses data), `warning` (it is told a size or a state wrongly) or `info` (the device allows more than the manual). Of a finding: `critical` (something fails already or is about to), `warning` (it deserves a look) or `info` (worth knowing)",
	}
}
