package collector

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// metrics are all metrics by subject: each is declared, and given its values, in the
// file of its subject. They are not changed after newMetrics.
type metrics struct {
	table
	deviceMetrics
	runMetrics
	sizeMetrics
	verbMetrics
	latencyMetrics
	contractMetrics
	eventMetrics
	resourceMetrics
	inventoryMetrics
	hardwareMetrics
	counterMetrics
	linkMetrics
	gidMetrics
	adapterMetrics
	interruptMetrics
	exporterMetrics
}

// newMetrics returns the metrics, those of collectors that are off among them.
func newMetrics(on Choice) *metrics {
	m := new(metrics)
	m.on = on
	for _, s := range []interface{ declare(t *table) }{
		&m.deviceMetrics, &m.runMetrics, &m.sizeMetrics, &m.verbMetrics, &m.latencyMetrics,
		&m.contractMetrics, &m.eventMetrics, &m.resourceMetrics, &m.inventoryMetrics,
		&m.hardwareMetrics, &m.counterMetrics, &m.linkMetrics, &m.gidMetrics, &m.adapterMetrics, &m.interruptMetrics, &m.exporterMetrics,
	} {
		s.declare(&m.table)
	}
	m.byName = slices.SortedFunc(slices.Values(m.families), func(a, b *family) int { return strings.Compare(a.name, b.name) })
	for i, f := range m.byName {
		f.index = i
	}
	return m
}

// family is all there is to say of one metric, and what scrapes need of it.
type family struct {
	// index is its place among all by name, and so in each block.
	index int
	// subject is the heading under which docs/reference/metrics.md lists it.
	subject string
	// collector is the collector that it is of; empty for what is always exposed.
	collector string
	// off tells that its collector is: it has no series.
	off  bool
	name string
	kind dto.MetricType
	// unit is what a value counts, for people; the name has it in the form that
	// Prometheus asks for.
	unit string
	help string
	// labels are in the order in which values are handed in.
	labels []string
	// buckets are the upper bounds of a histogram's classic buckets.
	buckets []float64

	desc *prometheus.Desc
	// order has the indices of labels sorted by name, the order in which series
	// have them.
	order []int
}

// table has the metrics in the order of their declaration.
type table struct {
	on                 Choice
	subject, collector string
	families           []*family
	// byName are the families in the order in which they are exposed.
	byName []*family
}

// about says what the metrics that follow are about. They are always exposed.
func (t *table) about(subject string) { t.subject, t.collector = subject, "" }

// of says which collector the metrics that follow are of.
func (t *table) of(collector string) { t.collector = collector }

func (t *table) gauge(name, unit, help string, labels ...string) *family {
	return t.add(dto.MetricType_GAUGE, name, unit, nil, help, labels)
}

func (t *table) counter(name, unit, help string, labels ...string) *family {
	return t.add(dto.MetricType_COUNTER, name, unit, nil, help, labels)
}

func (t *table) summary(name, unit, help string, labels ...string) *family {
	return t.add(dto.MetricType_SUMMARY, name, unit, nil, help, labels)
}

func (t *table) histogram(name, unit string, buckets []float64, help string, labels ...string) *family {
	return t.add(dto.MetricType_HISTOGRAM, name, unit, buckets, help, labels)
}

func (t *table) add(kind dto.MetricType, name, unit string, buckets []float64, help string, labels []string) *family {
	order := make([]int, len(labels))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(labels[a], labels[b]) })
	f := &family{
		subject: t.subject, name: name, kind: kind, unit: unit, help: help, labels: labels, buckets: buckets,
		collector: t.collector, off: t.collector != "" && !t.on[t.collector],
		desc: prometheus.NewDesc(name, help, labels, nil), order: order,
	}
	t.families = append(t.families, f)
	return f
}

// latencyBuckets returns the classic buckets of latencies: few, around what tells a
// healthy adapter from a virtual machine and that from trouble. Native histograms have
// the rest.
func latencyBuckets() []float64 {
	return []float64{5e-6, 10e-6, 20e-6, 50e-6, 150e-6, 1e-3, 10e-3}
}

// labelMeanings returns what each label says, for people.
func labelMeanings() map[string]string {
	return map[string]string{
		"device":         "name of the device, as in `/sys/class/infiniband`",
		"provider":       "`libibverbs`, or `simulated` for simulated devices",
		"transport":      "transport of the device, such as `InfiniBand` or `iWARP`",
		"fw_version":     "firmware version of the device",
		"vendor_id":      "vendor, in hexadecimal such as `0x02c9`",
		"vendor_part_id": "the vendor's part number, in decimal as `ibv_devinfo` prints it",
		"hw_version":     "hardware version, in hexadecimal",
		"node_guid":      "GUID of the device",
		"limit":          "name of a limit in `struct ibv_device_attr`, such as `max_qp`",
		"port":           "port number, from 1. Latencies: `other` beyond the first 16 of a device. Counters: empty for those of the whole device",
		"state":          "state of a queue pair: `reset`, `init`, `rtr`, `rts`, `sqd`, `sqe` or `err`",
		"probe":          "`cq`, `comp_channel`, `srq`, `qp`, `mr` or `notification`",
		"subject":        "what was probed: a profile, a kind of object such as `cq`, or a QP type",
		"reason":         "why something was skipped: `not_supported`, `not_permitted`, `prerequisite_failed`, `port_down` (the port is not active), `budget` (time ran out), `timeout` or `crashed` (its child process was killed at its deadline, or crashed). Why objects were not read one by one: `max_objects` (more than the inventory may read), `timeout` (time ran out), `interrupted` (the table changed during every attempt), `not_supported` (the kernel has no such table) or `failed`",
		"profile":        "name of the configured sizes; empty where size is not a choice",
		"attribute":      "name of a size, such as `cqe` or `max_send_wr`",
		"outcome":        "`ok`, `failed`, `timeout` (killed at its deadline) or `crashed`",
		"verb":           "a function of libibverbs, such as `ibv_create_qp`; `other` beyond the first 64 of a device",
		"errno":          "symbol of an errno, such as `EBUSY`; `other` beyond the first 32 of a device",
		"type":           "kind of object: `pd`, `mr`, `cq`, `srq`, `qp`, `ctx` (the open device), `cm_id` or `comp_channel`. GIDs: `ib`, `roce_v1` or `roce_v2`",
		"qp_type":        "`rc`, `uc`, `ud`, `raw_packet` or `srd` (efa). Resources: also any other that rdma(8) knows, such as `gsi`, and `driver` for `srd`",
		"queue":          "`send` or `recv`",
		"object":         "`comp_channel`, `cq`, `srq`, or a QP type such as `qp_rc`",
		"memory":         "memory that was to be registered: `4KiB` and `2MiB`, of ordinary pages, or `huge_page`, one of 2 MiB",
		"refused_by":     "what refused to register memory: `memlock` (RLIMIT_MEMLOCK of the exporter's processes), `cgroup` (rdma.max), `host` (hardly any memory left) or `device`",
		"kind":           "cost of an object: `virtual` or `locked`. Memory locked by a process: `pinned` (by drivers on its behalf) or `locked` (by itself)",
		"event":          "type of an asynchronous event, such as `port_err`, `device_fatal` or `gid_change`; `other` beyond the first 32 of a device",
		"path":           "how a completion is produced: `loopback` (a message between two queue pairs of the same port) or `flush` (a work request posted to a queue pair in the error state, which needs neither port nor peer)",
		"mode":           "how a completion is awaited: `solicited` (asleep, for a solicited event) or `poll` (polling without a pause)",
		"status":         "status of a completion, such as `retry_exc_err`, or `success` where it should have failed; `other` beyond the first 32 of a device",
		"comp_vector":    "number of the completion vector, from 0",
		"verdict":        "`kept`, `violated`, `known` (violated, but the driver is known for it, or it is accepted) or `skipped` (could not be judged)",
		"accepted":       "whether the configuration accepts the finding: `true` or `false`",
		"contract":       "name of a promise of the libibverbs man pages, such as `notify_one_shot`",
		"owner":          "`user`, `kernel`, `exporter` for what its children held at that moment, or `unknown` where objects were only counted",
		"pid":            "process, in the exporter's pid namespace; empty for processes not listed one by one. Only with `--collector.owner-pids`",
		"comm":           "command of the processes; empty if they ended before it could be read. `other` for all owners not listed, `unknown` for those the kernel does not name",
		"container_id":   "container, from the cgroup path; empty outside containers",
		"pod_uid":        "Kubernetes pod, from the cgroup path; empty outside pods",
		"cgroup":         "path of the cgroup",
		"resource":       "`hca_handle` (open devices) or `hca_object` (everything else)",
		"finding":        "kind of finding, such as `near_limit`; all are in [findings.md](findings.md)",
		"harm":           "harm to users of the device: `outage`, `failure`, `degradation`, `quirk` or `note`",
		"known":          "`true` if the driver is known to break the contract (docs/reference/contracts.md), and if violated, in a known way; also `true` if the configuration accepts the violation; otherwise `false`",
		"severity":       "contracts: what a violation does to a program that relies on it: `critical` (it hangs or loses data), `warning` (it gets a wrong size or state) or `info` (the device allows more than the manual). Findings: `critical` (something fails already or soon will), `warning` (look at it) or `info` (good to know). PCI errors: `correctable`, `nonfatal` or `fatal`",
		"counter":        "the driver's name of a counter",
		"how":            "why a counter was lower than before: `reset` (it may have restarted) or `wrapped` (it had reached its maximum)",
		"priority":       "Ethernet priority, from 0 to 7",
		"link_layer":     "`InfiniBand` or `Ethernet`",
		"netdev":         "network device of the port or the GID; empty if it has none",
		"bond":           "bond that the network device belongs to; empty for none",
		"gid":            "the port's GID of index 0",
		"to":             "new state of the port: `active` or `down` (any other)",
		"pci_address":    "address of the PCI function, such as `0000:3b:00.0`; empty if it is none",
		"slot":           "name of the physical slot; empty if unknown",
		"numa_node":      "NUMA node next to the adapter; empty if there is none",
		"driver":         "name of the kernel's driver, such as `mlx5_core`",
		"driver_version": "version that the driver reports; empty for most that come with the kernel",
		"board_id":       "the adapter's name for its board, such as `MT_0000000838`",
		"sriov_role":     "`pf` (physical function), `vf` (virtual function), `sf` (scalable function), or empty",
		"sriov_parent":   "address of the physical function of a virtual one",
		"netns_mode":     "how the RDMA subsystem shares devices among network namespaces: `shared` or `exclusive`",
		"link":           "PCI link: `adapter` for the adapter's own, `bottleneck` for the slowest on the way to the root, if that is another and slower one",
		"irq":            "number of the interrupt, as in `/proc/interrupts`",
		"cpus":           "CPUs that the interrupt runs on, as the kernel lists them; if not reported, those it may run on",
	}
}
