package collector

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/state"
)

// TestDeclarations verifies that declarations are complete.
func TestDeclarations(t *testing.T) {
	meanings := labelMeanings()
	used := make(map[string]bool)
	names := make(map[string]bool)
	for f, d := range newTable(everything()).families {
		if d.subject == "" || d.name == "" || d.unit == "" || d.help == "" {
			t.Errorf("row %d is not whole: %+v", f, d)
		}
		if !strings.HasPrefix(d.name, "rdma_") || names[d.name] {
			t.Errorf("%s is there twice or lacks the prefix", d.name)
		}
		names[d.name] = true
		if (d.kind == dto.MetricType_HISTOGRAM) != (d.buckets != nil) {
			t.Errorf("%s: type %v with buckets %v", d.name, d.kind, d.buckets)
		}
		if strings.ContainsAny(d.help+d.unit, "|\n") {
			t.Errorf("%s: the text would break the table of docs/reference/metrics.md", d.name)
		}
		for _, l := range d.labels {
			used[l] = true
			if meanings[l] == "" {
				t.Errorf("%s: label %s has no meaning", d.name, l)
			}
		}
	}
	for l := range meanings {
		if !used[l] {
			t.Errorf("no metric has the label %s", l)
		}
	}
}

// Docs returns docs/reference/metrics.md. series has the number of series of each collector.
func Docs(series map[string]int) string {
	var out strings.Builder
	out.WriteString(`# Metrics

This page follows from the declarations in ` + "`collector/`" + `; ` + "`go test ./collector -update`" + ` rewrites it.

Gauges show the last finished probe run on a device, the latest verdicts (contracts), the last inventory taken
(resources), or the latest reading of the hardware (counters, links, addresses, adapters and interrupts). A gauge without
data is absent; a device that vanishes takes its series along. A metric that is absent until first non-zero stays from
then on. Counters, summaries and histograms add up the runs since the exporter started or the device appeared, whichever
was later. Adapter counters have the adapter's or kernel's values, whenever it started to count; one that is
[saturated](counters.md), or could not be read the last time, is absent. Not listed below:
` + "`rdma_exporter_build_info`, `go_*`, `process_*` and `promhttp_*`" + `.

`)
	collectorsTable(&out, series)
	labels := make(map[string]bool)
	var last string
	for _, d := range newTable(everything()).families {
		if d.subject != last {
			last = d.subject
			fmt.Fprintf(&out, "\n## %s\n\n| metric | collector | type | labels | unit | meaning |\n|---|---|---|---|---|---|\n", d.subject)
		}
		var names []string
		for _, l := range d.labels {
			names = append(names, "`"+l+"`")
			labels[l] = true
		}
		kind := strings.ToLower(d.kind.String())
		switch d.kind {
		case dto.MetricType_SUMMARY:
			kind += " (sum and count)"
		case dto.MetricType_HISTOGRAM:
			kind += " (classic and native)"
		}
		of := "always"
		if d.collector != "" {
			of = "`" + d.collector + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s | %s |\n", d.name, of, kind, strings.Join(names, ", "), d.unit, d.help)
	}

	out.WriteString("\n## Buckets\n\nUpper bounds of the classic histogram buckets, in seconds (native buckets come on top):\n\n")
	for _, d := range newTable(everything()).families {
		if d.buckets == nil {
			continue
		}
		bounds := make([]string, len(d.buckets))
		for i, b := range d.buckets {
			bounds[i] = fmt.Sprint(b)
		}
		fmt.Fprintf(&out, "- `%s`: %s\n", d.name, strings.Join(bounds, ", "))
	}

	out.WriteString("\n## Labels\n\n| label | meaning |\n|---|---|\n")
	meanings := labelMeanings()
	for _, l := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&out, "| `%s` | %s |\n", l, meanings[l])
	}

	fmt.Fprintf(&out, `
## How many series

The [table of collectors](#collectors) has the series of a device with one port, 4 completion vectors measured, and one
process that owns objects of every type in a limited cgroup. [scaling.md](scaling.md#series-of-a-node) has the total for a
node. Processes with the same command in the same container are one owner; with `+"`--collector.owner-pids`"+` each is its own.

A child process that reports too much cannot flood the server: the gauges of the last runs of a device (including adapter
counters) are at most %d series, with at most %d verbs, %d errnos, %d ports and %d statuses. The first
%d completion vectors measured have their own series; the others count only in the histograms. At most %d owners of the
host have their locked memory shown, and at most %d driver counters of a port are exposed. Gauges and vector series left
out are counted in `+"`rdma_exporter_dropped_series`"+`.
`, maxSeries, maxVerbs, maxErrnos, maxPorts, maxStatuses, state.MaxVectors, maxProcesses, maxCounters)
	return out.String()
}

func collectorsTable(out *strings.Builder, series map[string]int) {
	out.WriteString("## Collectors\n\nEach metric is always on or belongs to a collector. `--collector.NAME` switches a collector on, `--no-collector.NAME` off ([configuration.md](configuration.md#collectors)).\n\n| collector | by default | series | has |\n|---|---|--:|---|\n")
	for _, p := range Parts() {
		on := "off"
		if p.On {
			on = "on"
		}
		fmt.Fprintf(out, "| `%s` | %s | %d | %s |\n", p.Name, on, series[p.Name], p.Help)
	}
}

// labelMeanings returns the meaning of each label, for docs/reference/metrics.md.
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
		"remedy":         "what has to be mended: `none`, `application`, `configuration`, `driver`, `reboot`, `hardware`, `network` or `exporter`",
		"errno":          "symbol of an errno, such as `EBUSY`; `other` beyond the first 32 of a device",
		"type":           "kind of object: `pd`, `mr`, `cq`, `srq`, `qp`, `ctx` (the open device), `cm_id` or `comp_channel`. GIDs: `ib`, `roce_v1` or `roce_v2`",
		"qp_type":        "`rc`, `uc`, `ud`, `raw_packet` or `srd` (efa). Resources: also any other that rdma(8) knows, such as `gsi`, and `driver` for `srd`",
		"queue":          "`send` or `recv`",
		"object":         "`comp_channel`, `cq`, `srq`, or a QP type such as `qp_rc`",
		"memory":         "memory that was to be registered: `4KiB` and `2MiB`, of ordinary pages",
		"refused_by":     "what refused to register memory: `memlock` (RLIMIT_MEMLOCK of the exporter's processes), `cgroup` (rdma.max), `host` (hardly any memory left) or `device`",
		"kind":           "cost of an object: `virtual` or `locked`. Memory locked by a process: `pinned` (by drivers on its behalf) or `locked` (by itself)",
		"event":          "type of an asynchronous event, such as `port_err`, `device_fatal` or `gid_change`; `other` beyond the first 32 of a device",
		"path":           "how a completion is produced: `loopback` (a message between two queue pairs of the same port) or `flush` (a work request posted to a queue pair in the error state, which needs neither port nor peer)",
		"mode":           "how a completion is awaited: `solicited` (asleep, for a solicited event) or `poll` (polling without a pause)",
		"status":         "status of a completion, such as `retry_exc_err`, or `success` where it should have failed; `other` beyond the first 32 of a device",
		"comp_vector":    "number of the completion vector, from 0",
		"verdict":        "`kept`, `violated`, `known` (violated, but a known driver erratum, or accepted) or `skipped` (could not be checked)",
		"accepted":       "whether the configuration accepts the finding: `true` or `false`",
		"contract":       "name of a promise of the libibverbs man pages, such as `notify_one_shot`",
		"owner":          "`user`, `kernel`, `exporter` for what its children held at that moment, or `unknown` where objects were only counted",
		"pid":            "process, in the exporter's pid namespace; empty for processes not listed one by one. Only with `--collector.owner-pids`",
		"comm":           "command of the processes; empty if they ended before it could be read. `other` for all owners not listed, `unknown` for those the kernel does not name",
		"container_id":   "container, from the cgroup path; empty outside containers",
		"pod_uid":        "Kubernetes pod, from the cgroup path; empty outside pods",
		"slurm_job_id":   "Slurm job, from the cgroup path: its number, or its SLUID since Slurm 26.05 without CgroupJobIdPaths; empty outside jobs, and for a command of several",
		"cgroup":         "path of the cgroup",
		"resource":       "`hca_handle` (open devices) or `hca_object` (everything else)",
		"finding":        "kind of finding, such as `near_limit`; all are in [findings.md](findings.md)",
		"harm":           "harm to users of the device: `outage`, `failure`, `degradation`, `quirk` or `note`",
		"known":          "`true` if the driver is known to break the contract (docs/reference/contracts.md), and if violated, in a known way; also `true` if the configuration accepts the violation; otherwise `false`",
		"severity":       "contracts: what a violation does to a program that relies on it: `critical` (it hangs or loses data), `warning` (it gets a wrong size or state) or `info` (the device allows more than the manual). Findings: `critical` (something fails already or soon will), `warning` (look at it) or `info` (good to know). PCI errors: `correctable`, `nonfatal` or `fatal`",
		"counter":        "the driver's name of a counter",
		"how":            "why a counter was lower than before: `reset` (it may have restarted) or `wrapped` (it had reached its maximum)",
		"priority":       "Ethernet priority, from 0 to 7",
		"direction":      "`read` or `write`, as the adapter accesses memory. Paths: `forward` (to the peer) or `reverse`",
		"peer":           "host and port of the peer, as in the list of peers",
		"peer_device":    "name of the peer's device",
		"stat":           "`median` or `max`",
		"result":         "paths: `ok`, `control_unreachable` (the peer did not answer over HTTP), `refused`, `source_device`, `target_device` (a verb failed, or a port is down), `address` (of the peer, not resolved), `lost_forward`, `lost_reverse`, `mtu` (only large packets are lost), `flow` (some flows lose all), `slow` or `unsupported` (no UD queue pairs). Sessions: how the request was answered. Bandwidth: `ok`, `in_use` (refused: others use the device, or the kernel does not say), `interrupted` (they came), `skipped` (no port can be measured) or `failed`",
		"rail":           "rail of the device: its name, unless the list of peers has another",
		"operation":      "`write` or `read`: the RDMA operation",
		"tor":            "top-of-rack switch of the node, from the list of peers; empty if not given",
		"peer_rail":      "rail of the peer's device",
		"peer_tor":       "top-of-rack switch of the peer",
		"clock":          "`device` if the adapter took the times, else `software`; empty if there are none",
		"suspect":        "`device`, `peer` or `path`; empty if nothing is to blame",
		"link_layer":     "`InfiniBand` or `Ethernet`",
		"netdev":         "network device of the port or the GID; empty if it has none",
		"bond":           "bond that the network device belongs to; empty if it has none",
		"gid":            "the port's GID of index 0",
		"to":             "new state of the port: `active` or `down` (any other)",
		"pci_address":    "address of the PCI function, such as `0000:3b:00.0`; empty if it is none",
		"slot":           "name of the physical slot; empty if unknown",
		"numa_node":      "NUMA node next to the adapter, or empty. In `rdma_bandwidth_bytes_per_second`, the node of the memory",
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
