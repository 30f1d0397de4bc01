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
		&m.contractMetrics, &m.resourceMetrics, &m.inventoryMetrics,
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
	// subject is the heading under which docs/metrics.md lists it.
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
		"provider":       "`libibverbs`, or `simulated` for devices that exist only to try the exporter",
		"transport":      "transport of the device, such as `InfiniBand` or `iWARP`",
		"fw_version":     "version of the device's firmware",
		"vendor_id":      "vendor, in hexadecimal such as `0x02c9`",
		"vendor_part_id": "the vendor's part number, as a decimal number as `ibv_devinfo` prints it",
		"hw_version":     "version of the hardware, in hexadecimal",
		"node_guid":      "GUID of the device",
		"limit":          "name of a limit in `struct ibv_device_attr`, such as `max_qp`",
		"port":           "number of the port, from 1; of latencies `other` beyond the first 16 of a device, and of counters empty for those of the device as a whole",
		"state":          "state of a queue pair: `reset`, `init`, `rtr`, `rts`, `sqd`, `sqe` or `err`",
		"probe":          "`cq`, `comp_channel`, `srq`, `qp` or `notification`",
		"subject":        "what was being probed: a profile, a kind of object such as `cq`, or a QP type",
		"reason":         "of what was skipped: `not_supported`, `not_permitted`, `prerequisite_failed`, `port_down` (the port is not active), `budget` (the time was used up), `timeout` or `crashed` (the child process that was at it was killed at its deadline, or crashed). Of what was not looked at one by one: `max_objects` (there are more than the inventory may look at), `timeout` (its time was up), `interrupted` (the table changed under each attempt to read it), `not_supported` (the kernel has no such table) or `failed`",
		"profile":        "name of the configured sizes; empty where size is not a choice",
		"attribute":      "name of a size, such as `cqe` or `max_send_wr`",
		"outcome":        "`ok`, `failed`, `timeout` (killed at its deadline) or `crashed`",
		"verb":           "a function of libibverbs, such as `ibv_create_qp`; `other` beyond the first 64 of a device",
		"errno":          "symbol of an errno, such as `EBUSY`; `other` beyond the first 32 of a device",
		"type":           "kind of object: `pd`, `mr`, `cq`, `srq`, `qp`, `ctx` (the opened device), `cm_id` or `comp_channel`. Of GIDs `ib`, `roce_v1` or `roce_v2`",
		"qp_type":        "`rc`, `uc`, `ud`, `raw_packet` or `srd` (of efa); of resources any other that rdma(8) knows, such as `gsi`, as well, and `driver` for `srd`",
		"queue":          "`send` or `recv`",
		"object":         "`comp_channel`, `cq`, `srq`, or a QP type such as `qp_rc`",
		"kind":           "of what an object costs: `virtual` or `locked`. Of what a process holds in place: `pinned` (by drivers, on its behalf) or `locked` (by itself)",
		"path":           "how a completion is brought about: `loopback` (a message between two queue pairs of the same port) or `flush` (a work request posted to a queue pair in the error state, which needs neither port nor peer)",
		"mode":           "how a completion is awaited: `solicited` (asleep, for the event of a solicited one) or `poll` (polling without a pause)",
		"status":         "status of a completion, such as `retry_exc_err`, or `success` where it should have failed; `other` beyond the first 32 of a device",
		"comp_vector":    "number of the completion vector, from 0",
		"verdict":        "`kept`, `violated`, `known` (violated, as the driver is known for, or accepted) or `skipped` (could not be judged)",
		"accepted":       "whether the configuration accepts the finding: `true` or `false`",
		"contract":       "name of a promise of the libibverbs man pages, such as `notify_one_shot`",
		"owner":          "`user`, `kernel`, `exporter` for what its children held at that moment, or `unknown` where objects were only counted",
		"pid":            "process, in the pid namespace of the exporter; empty for those that are not told one by one. There with `--collector.owner-pids` alone",
		"comm":           "name of the processes' command; empty if they ended before they could be asked. `other` for all whom nobody names, `unknown` for those whom the kernel does not",
		"container_id":   "container, as the cgroup's path says; empty if it is that of none",
		"pod_uid":        "Kubernetes pod, as the cgroup's path says; empty if it is that of none",
		"cgroup":         "path of the cgroup",
		"resource":       "`hca_handle` (opened devices) or `hca_object` (everything else)",
		"finding":        "kind of finding, such as `near_limit`; [findings.md](findings.md) has them all",
		"harm":           "what a finding does to those who use the device: `outage`, `failure`, `degradation`, `quirk` or `note`",
		"known":          "whether the driver of the device is known to break the contract (docs/contracts.md): `true`, and of one that is violated only if it is in a way that is known; `true`, too, if the configuration accepts the violation; else `false`",
		"severity":       "of a contract, what a violation means to a program that relies on it: `critical` (it hangs or loses data), `warning` (it is told a size or a state wrongly) or `info` (the device allows more than the manual). Of a finding: `critical` (something fails already or is about to), `warning` (it deserves a look) or `info` (worth knowing). Of an error on the PCI bus: `correctable`, `nonfatal` or `fatal`",
		"counter":        "name of a counter, as the driver has it",
		"how":            "how a counter came to be lower than before: `reset` (it may have begun anew) or `wrapped` (it was at the end of its width)",
		"priority":       "priority of Ethernet, from 0 to 7",
		"link_layer":     "`InfiniBand` or `Ethernet`",
		"netdev":         "network device of the port or the GID; empty if it has none",
		"bond":           "bond that the network device is a part of; empty for none",
		"gid":            "the port's GID of index 0",
		"to":             "state that a port came to: `active` or `down` (any other)",
		"pci_address":    "address of the PCI function, such as `0000:3b:00.0`; empty if it is none",
		"slot":           "name of the physical slot; empty if it is not known",
		"numa_node":      "node of memory next to the adapter; empty if there is none",
		"driver":         "name of the kernel's driver, such as `mlx5_core`",
		"driver_version": "version that the driver says it has; empty for most of those that come with the kernel",
		"board_id":       "what the adapter calls its board, such as `MT_0000000838`",
		"sriov_role":     "`pf` (physical function), `vf` (virtual function), `sf` (scalable function), or empty",
		"sriov_parent":   "address of the physical function of a virtual one",
		"netns_mode":     "how the RDMA subsystem shares devices among network namespaces: `shared` or `exclusive`",
		"link":           "link of the PCI bus: `adapter` for the adapter's own, `bottleneck` for the slowest on the way to the root, if that is another one and slower",
		"irq":            "number of the interrupt, as in `/proc/interrupts`",
		"cpus":           "processors that the interrupt runs on, as the kernel lists them; those that it may run on if that is not told",
	}
}
