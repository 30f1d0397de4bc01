package collector

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
)

// TestDeclarations makes sure that each row of the table is whole.
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

// TestDocs compares docs/reference/metrics.md with the declarations.
func TestDocs(t *testing.T) {
	golden.Check(t, "../docs/reference/metrics.md", docs())
}

// docs returns docs/reference/metrics.md.
func docs() string {
	var out strings.Builder
	out.WriteString(`# Metrics

This page follows from the declarations in ` + "`collector/`" + `; ` + "`go test ./collector -update`" + ` rewrites it.

Gauges show the last finished run of the probes on a device, the latest verdicts (contracts), the last inventory taken
(resources), or the latest reading of the hardware (counters, links, addresses, adapters and interrupts). A gauge without
data is absent; a device that vanishes takes its series along. A metric that is absent until first non-zero stays from
then on. Counters, summaries and histograms add up the runs since the exporter started or the device appeared, whichever
was later. Adapter counters have the adapter's or kernel's values, whenever it started to count; one that is
[saturated](counters.md), or could not be read the last time, is absent. Not listed below:
` + "`rdma_exporter_build_info`, `go_*`, `process_*` and `promhttp_*`" + `.

`)
	collectorsTable(&out)
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
	sorted := make([]string, 0, len(labels))
	for l := range labels {
		sorted = append(sorted, l)
	}
	slices.Sort(sorted)
	for _, l := range sorted {
		fmt.Fprintf(&out, "| `%s` | %s |\n", l, meanings[l])
	}

	types := len(state.ResourceTypes())
	fmt.Fprintf(&out, `
## How many series

[scaling.md](scaling.md#series-of-a-node) has the total for a node and the most for a device. These grow with the host:

- %[2]d for each device on which completions were measured, and %[1]d for each of at most four ports that reach
  themselves, as active ones do;
- %[3]d for each completion vector ever measured;
- at most %[5]d (N + 2) for the owners of a device, where N is 10: for each of %[5]d types the N
  largest, `+"`other` and `unknown`"+`;
- %[7]d for each owner on the host, at most %[8]d;
- with `+"`--collector.verb-histograms`"+`, %[4]d for each verb called;
- with `+"`--collector.cgroups`"+`, %[6]d for each cgroup of those owners that the RDMA controller counts.

Processes with the same command in the same container are one owner; with `+"`--collector.owner-pids`"+` each is its own.

A child process that reports too much cannot flood the server: the gauges of the last runs of a device (including adapter
counters) are at most %[9]d series, with at most %[10]d verbs, %[11]d errnos, %[12]d ports and %[13]d statuses. The first
%[14]d completion vectors measured have their own series; the others count only in the histograms. At most %[15]d driver
counters of a port are exposed. Gauges and vector series left out are counted in `+"`rdma_exporter_dropped_series`"+`.
`, latencySamples(1, 0)-latencySamples(1, 0, state.PathFlush), latencySamples(1, 0, state.PathFlush), latencySamples(1, 1)-latencySamples(1, 0),
		len(newTable(everything()).byName["rdma_verbs_call_latency_seconds"].buckets)+3,
		types, resourceSamples(1, 1)-resourceSamples(1, 0), processSamples(1), processSamples(maxProcesses+1),
		maxSeries, maxVerbs, maxErrnos, maxPorts, maxStatuses, state.MaxVectors, maxCounters)
	return out.String()
}

// collectorsTable writes the collectors.
func collectorsTable(out *strings.Builder) {
	out.WriteString("## Collectors\n\nEach metric is always on or belongs to a collector. `--collector.NAME` switches a collector on, `--no-collector.NAME` off ([configuration.md](configuration.md#collectors)).\n\n| collector | by default | has |\n|---|---|---|\n")
	for _, p := range Parts() {
		on := "off"
		if p.On {
			on = "on"
		}
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", p.Name, on, p.Help)
	}
}

// latencySamples returns how many samples a device makes of measurements on so
// many ports, by all paths unless told otherwise, and of so many vectors.
func latencySamples(ports, vectors int, paths ...state.LatencyPath) int {
	if len(paths) == 0 {
		paths = state.LatencyPaths()
	}
	p := state.Probe{Name: "notification"}
	add := func(l state.Latency) { p.Latencies = append(p.Latencies, l) }
	for port := 1; port <= ports; port++ {
		for _, path := range paths {
			add(state.Latency{Port: port, Path: path, Mode: state.ModePoll})
			add(state.Latency{Port: port, Path: path, Mode: state.ModeSolicited})
			// Below all vectors, so that it makes none of their series.
			add(state.Latency{Port: port, Path: path, Mode: state.ModeAny, Vector: -1})
			for v := range vectors {
				add(state.Latency{Port: port, Path: path, Mode: state.ModeAny, Vector: v, Count: 1})
			}
		}
	}
	c := New(Options{Collectors: everything()})
	c.Observe(&state.Run{Device: "rxe0", Probes: []state.Probe{p}})
	return countSamples(c, func(f *family) bool { return f.collector == Latency || f.collector == Vectors })
}

// countSamples returns how many samples c exposes of the families that count.
func countSamples(c *Collector, counts func(f *family) bool) int {
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	n := 0
	for _, f := range families {
		if !counts(c.byName[f.GetName()]) {
			continue
		}
		for _, m := range f.GetMetric() {
			switch {
			case m.GetHistogram() != nil:
				n += len(m.GetHistogram().GetBucket()) + 3
			case m.GetSummary() != nil:
				n += 2
			default:
				n++
			}
		}
	}
	return n
}

// resourceSamples returns how many samples a device makes of an inventory that
// found nothing special, with so many owners that are the largest of every type and so
// many cgroups of them, without queue pairs by state.
func resourceSamples(owners, cgroups int) int {
	i := &state.Inventory{
		PIDsVisible: true,
		CQEntries:   []state.OwnerSum{{Owner: state.OwnerUser}, {Owner: state.OwnerKernel}},
		MRBytes:     []state.OwnerSum{{Owner: state.OwnerUser}, {Owner: state.OwnerKernel}},
	}
	info := new(state.Device)
	for _, kind := range state.ResourceTypes() {
		i.Objects = append(i.Objects, state.ObjectCount{Type: kind, Owner: state.OwnerUser}, state.ObjectCount{Type: kind, Owner: state.OwnerKernel})
		if owners > 0 {
			i.Others = append(i.Others, state.TypeCount{Type: kind})
			i.Ownerless = append(i.Ownerless, state.TypeCount{Type: kind})
		}
		if kind != "ctx" && kind != "cm_id" { // Devices have no limit for those.
			info.Limits = append(info.Limits, state.Limit{Name: "max_" + kind, Value: 1})
		}
	}
	for n := range owners {
		o := state.Owner{PID: n + 1}
		for _, kind := range state.ResourceTypes() {
			o.Objects = append(o.Objects, state.TypeCount{Type: kind})
		}
		i.Owners = append(i.Owners, o)
	}
	for n := range cgroups {
		for _, resource := range []string{"hca_handle", "hca_object"} {
			i.Cgroups = append(i.Cgroups, state.CgroupUse{Cgroup: fmt.Sprint("/", n), Resource: resource})
		}
	}
	inventory := &state.Run{Kind: state.KindInventory, Device: "rxe0", Started: time.Unix(1e9, 0), Outcome: state.OutcomeOK}
	dev := state.DeviceState{
		Name: "rxe0", Present: true, Info: info,
		Resources: &state.Resources{Last: inventory, Inventory: i, Taken: inventory.Started},
	}
	judge := health.New(health.Default(), health.History{})
	snapshot := &state.Snapshot{Devices: []state.DeviceState{dev}}
	c := New(Options{Host: func() *health.Host { return judge.Evaluate(snapshot) }, Collectors: everything()})
	c.Observe(inventory)
	return countSamples(c, func(f *family) bool {
		return slices.Contains([]string{Inventory, Owners, Cgroups}, f.collector) && f.name != "rdma_inventory_pid_visibility"
	})
}

// processSamples returns how many samples so many processes make.
func processSamples(processes int) int {
	i := new(state.Inventory)
	for n := range processes {
		i.Owners = append(i.Owners, state.Owner{PID: n + 1, Memlock: new(state.Memlock)})
	}
	b := newBuilder(newTable(everything()), nil)
	addProcesses(b, []dated{{inventory: i}})
	return len(b.index) - 1 // Without that of the pid namespace.
}

// TestResourceSamples makes sure that series add up by owner and cgroup, as
// docs/reference/metrics.md says.
func TestResourceSamples(t *testing.T) {
	t.Parallel()
	plain, types := resourceSamples(0, 0), len(state.ResourceTypes())
	for _, owners := range []int{1, 10, 50} {
		if got, want := resourceSamples(owners, 0), plain+types*(owners+2); got != want {
			t.Errorf("%d owners make %d samples, want %d", owners, got, want)
		}
		if got, want := resourceSamples(owners, owners), plain+types*(owners+2)+4*owners; got != want {
			t.Errorf("%d owners with cgroups make %d samples, want %d", owners, got, want)
		}
		if got, want := processSamples(owners), 3*owners; got != want {
			t.Errorf("%d processes make %d samples, want %d", owners, got, want)
		}
	}
	if got, want := processSamples(maxProcesses+1), 3*maxProcesses; got != want {
		t.Errorf("one process too many makes %d samples, want %d", got, want)
	}
}

// TestLatencySamples makes sure that series add up by port and vector, as
// docs/reference/metrics.md says.
func TestLatencySamples(t *testing.T) {
	port, vector := latencySamples(1, 0), latencySamples(1, 1)-latencySamples(1, 0)
	for _, tc := range []struct{ ports, vectors int }{{1, 4}, {2, 64}, {16, state.MaxVectors}} {
		if got, want := latencySamples(tc.ports, tc.vectors), tc.ports*port+tc.vectors*vector; got != want {
			t.Errorf("%d ports and %d vectors make %d samples, want %d", tc.ports, tc.vectors, got, want)
		}
	}
	if got, want := latencySamples(1, state.MaxVectors+1), latencySamples(1, state.MaxVectors); got != want {
		t.Errorf("one vector too many makes %d samples, want %d", got, want)
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
