package collector

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
	for f, d := range newMetrics(everything()).families {
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
	for _, d := range newMetrics(everything()).families {
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
	for _, d := range newMetrics(everything()).families {
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
- at most %[5]d (N + 2) for the owners of a device, where N is `+"`--inventory.owners`"+`: for each of %[5]d types the N
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
		len(newMetrics(everything()).callHistogram.buckets)+3,
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
	n := 0
	for _, s := range c.histories["rxe0"].series.Load().block {
		switch {
		case s.family.subject != c.notificationLatency.subject:
		case s.family.kind == dto.MetricType_HISTOGRAM:
			n += len(s.more.histogram.GetBucket()) + 3
		case s.family.kind == dto.MetricType_SUMMARY:
			n += 2
		default:
			n++
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
	judge := health.New(health.Default(), health.Past{})
	snapshot := &state.Snapshot{Devices: []state.DeviceState{dev}}
	c := New(Options{Host: func() *health.Host { return judge.Of(snapshot) }, Collectors: everything()})
	c.Observe(inventory)
	n := 0
	for _, b := range c.blocks() {
		for _, s := range b {
			if of := s.family.collector; (of == Inventory || of == Owners || of == Cgroups) && s.family != c.inventoryPIDVisibility {
				n++
			}
		}
	}
	return n
}

// processSamples returns how many samples so many processes make.
func processSamples(processes int) int {
	i := new(state.Inventory)
	for n := range processes {
		i.Owners = append(i.Owners, state.Owner{PID: n + 1, Memlock: new(state.Memlock)})
	}
	b := newBuilder(newMetrics(everything()))
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
