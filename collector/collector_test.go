package collector_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"rdma_exporter/collector"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/health/expect"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

func collectorOf(snapshot *state.Snapshot, runs ...*state.Run) *collector.Collector {
	return scene{snapshot: snapshot, runs: runs}.collector()
}

func (s scene) collector() *collector.Collector {
	snapshot := s.snapshot
	light := snapshot != nil && slices.ContainsFunc(snapshot.Devices, func(d state.DeviceState) bool { return d.Last != nil && d.Last.Reduced != nil })
	o := collector.Options{
		Host: evaluated(func() *state.Snapshot { return snapshot }, s.found, s.accept...), Light: light, Collectors: s.choice(),
	}
	if !s.unasked {
		o.Asked = asked
	}
	if s.self != nil {
		o.Exporter = func() collector.Exporter { return *s.self }
	}
	if s.sessions != nil {
		o.Sessions = func() map[string]uint64 { return s.sessions }
	}
	c := collector.New(o)
	for _, r := range s.runs {
		c.Observe(r)
	}
	return c
}

// evaluated returns the Host of a collector. Devices have the findings of their name. Nil
// means that they are not evaluated, like devices without an inventory.
func evaluated(snapshot func() *state.Snapshot, found map[string][]health.Finding, accept ...health.Accept) func() *health.Host {
	config := health.Default()
	if config.Accept = accept; accept != nil {
		config.Expect = expect.Rules{{Devices: new(2)}}
	}
	evaluator := health.NewFinder(config, health.History{}, func(d *state.DeviceState) []health.Finding {
		all, ok := found[d.Name]
		if d.Resources != nil && !ok {
			return []health.Finding{}
		}
		return all
	})
	return func() *health.Host {
		s := snapshot()
		if s != nil {
			copied := *s // It may have been changed.
			s = &copied
		}
		return evaluator.Evaluate(s)
	}
}

func pedantic(t testing.TB, c prometheus.Collector) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	running.Check(t, registry.Register(c))
	return registry
}

func expose(t testing.TB, g prometheus.Gatherer) string {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatalf("Gather: %v", err)
	}
	return text(t, families)
}

func text(t testing.TB, families []*dto.MetricFamily) string {
	t.Helper()
	var out bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

type scene struct {
	snapshot *state.Snapshot
	runs     []*state.Run
	// found is what is found of devices, by their names.
	found map[string][]health.Finding
	// self is what the exporter knows of itself. Nil means nothing.
	self *collector.Exporter
	// sessions are those that peers requested. Nil means none.
	sessions map[string]uint64
	// accept is what is accepted.
	accept []health.Accept
	// on are the collectors that are on: all, unless the scene has others.
	on collector.Choice
	// unasked is a scene without the sizes asked for, which are the same in all of them.
	unasked bool
}

func (s scene) choice() collector.Choice {
	if s.on == nil {
		return collector.Everything()
	}
	return s.on
}

// leanly returns the scene with the default collectors.
func (s scene) leanly() scene {
	s.on = collector.Defaults()
	return s
}

func (s scene) finding(all ...health.Finding) scene {
	s.found = map[string][]health.Finding{s.snapshot.Devices[0].Name: all}
	return s
}

func scenes() map[string]scene {
	failed := short("mlx5_0")
	failed.Outcome, failed.Error = state.OutcomeFailed, "qp: ibv_create_qp: ENOMEM"
	failed.Probes[3].Status = state.StatusFailed
	failed.Probes[3].QPs = failed.Probes[3].QPs[:6]
	failed.Probes[3].Failures = []state.Failure{{Subject: state.Subject{Object: "qp", QPType: "rc", Profile: "large"}, Verb: "ibv_create_qp", Errno: "ENOMEM", Message: "cannot allocate memory"}}
	failed.Probes[2] = state.Probe{
		Name: "srq", Status: state.StatusSkipped,
		Skips: []state.Skip{{Reason: state.SkipNotSupported, Detail: "max_srq is 0"}},
	}
	failed.Probes[5].Status = state.StatusFailed
	failed.Probes[5].Registrations[1] = state.Registration{Memory: state.MemoryMany, Bytes: 2 << 20, Result: state.MemoryRefused, By: state.RefusedByDevice, Errno: "ENOMEM", Detail: "no"}
	failed.Probes[0].Clamps = []state.Clamp{{Subject: state.Subject{Object: "cq", Profile: "large"}, Attribute: "cqe", Limit: "max_cqe", Configured: 8192, Used: 4096}}
	failed.Calls = append(
		failed.Calls,
		state.Call{Verb: "ibv_create_qp", Duration: time.Millisecond, Errno: "ENOMEM"},
		state.Call{Verb: "ibv_create_qp", Duration: time.Millisecond, Errno: "EINVAL", Expected: true},
		state.Call{Verb: "ibv_destroy_cq", Duration: 20 * time.Second, Errno: "EBUSY"},
	)
	failed.Undestroyed = []state.Undestroyed{
		{Type: "cq", Errno: "EBUSY", Attempts: 3},
		{Type: "cq", Errno: "EBUSY", Attempts: 5},
		{Type: "pd", Errno: "EBUSY", Attempts: 3},
	}
	lastSuccess := stateOf(failed)
	lastSuccess.LastSuccess = started().Add(-time.Hour)
	lastSuccess.Failures = 1

	timedOut := short("rxe0")
	timedOut.Outcome, timedOut.Error = state.OutcomeTimeout, "killed after 10s"
	timedOut.Verb = "ibv_destroy_cq"
	timedOut.Probes = timedOut.Probes[:1]
	timedOut.Duration = 10 * time.Second
	stuck := stateOf(timedOut)
	stuck.Stuck = &state.Stuck{PID: 4711, Verb: "ibv_destroy_cq", Since: started().Add(10 * time.Second)}
	between := stateOf(timedOut)
	between.Stuck = &state.Stuck{PID: 4711, Since: started().Add(10 * time.Second)}

	alone := bare("rxe0")
	alone.Reduced = &state.Reduced{Reason: state.ReducedBusy, Detail: "mpirun (process 4711) holds queue pairs"}

	crashed := &state.Run{
		Device: "siw0", Started: started(), Duration: 30 * time.Millisecond,
		Outcome: state.OutcomeCrashed, Error: "signal: segmentation fault",
	}

	// An inventory that only counted, since it ran into its timeout.
	counted := inventoryRun("rxe0")
	counted.Outcome = state.OutcomeTimeout
	summary := stateOf(bare("rxe0"))
	summary.Resources = resourcesOf(counted, onlyCounted())

	invisible := inventory(1)
	invisible.PIDsVisible = false
	invisible.Ownerless = []state.TypeCount{{Type: "qp", Objects: 1}}
	contained := stateOf(bare("rxe0"))
	// Verdicts of a contract run that has not finished.
	contained.Contracts = &state.Contracts{Verdicts: []state.Contract{
		{Name: "notify_any", Severity: state.SeverityCritical, Verdict: state.VerdictHolds},
		{Name: "srq_limit_ignored", Severity: state.SeverityWarning, Verdict: state.VerdictViolated, Known: true},
	}}
	contained.Resources = resourcesOf(inventoryRun("rxe0"), invisible)

	kept := stateOf(run("sim0"))
	kept.Contracts = contractsOf(contractRun("sim0"))

	accepted := sceneOf("libibverbs", contained).finding(
		health.Finding{Kind: health.FindingPortDown, Severity: health.SeverityWarning, Subject: "port 1", Since: started()},
		health.Finding{Kind: health.FindingPortDown, Severity: health.SeverityWarning, Subject: "port 3", Since: started().Add(-time.Hour)},
		health.Finding{Kind: health.FindingPortDown, Severity: health.SeverityWarning, Subject: "port 2", Since: started().Add(-2 * time.Hour)},
	)
	hidden := state.HardwarePort{Number: 1, LinkLayer: "Ethernet", Netdev: "eth2"}
	accepted.snapshot.Devices[0].Hardware = &state.HardwareState{Latest: &state.Hardware{
		Identity: state.Adapter{PCI: "0000:3b:00.0"}, Ports: []state.HardwarePort{hidden},
	}}
	accepted.accept = []health.Accept{{Finding: health.FindingPortDown, Subject: "port 2"}, {Finding: health.FindingPortDown, Subject: "port 4"}}
	accepted.self = &collector.Exporter{
		ConfigLoaded: started(), Booted: started().Add(-time.Hour), MaintenanceUntil: started().Add(time.Hour), StateWritable: new(true), LogLinesDropped: 3, WebConfigInForce: new(false),
	}
	lean := kept
	lean.Resources = resourcesOf(inventoryRun("sim0"), inventory(2))

	all := map[string]scene{
		"accepted": accepted,
		"unknown":  {},
		"empty":    {snapshot: &state.Snapshot{Provider: "libibverbs", Ready: true}},
		"undiscovered": {snapshot: &state.Snapshot{
			Provider: "libibverbs", DiscoveryError: "ibv_get_device_list: EPERM",
		}},
		"light": {snapshot: &state.Snapshot{Provider: "libibverbs", Ready: true, Devices: []state.DeviceState{
			stateOf(alone), stateOf(bare("rxe1")), {Name: "new", Present: true}, {Name: "gone", Last: alone},
		}}, runs: []*state.Run{alone}},
		"waiting": {snapshot: &state.Snapshot{
			Provider: "libibverbs", Devices: []state.DeviceState{{Name: "mlx5_0", Present: true}},
		}},
		"healthy":  sceneOf("simulated", kept, run("sim0"), run("sim0"), contractRun("sim0")),
		"lean":     sceneOf("simulated", lean, run("sim0"), run("sim0"), contractRun("sim0"), inventoryRun("sim0")).finding().leanly(),
		"broken":   broken(),
		"drivers":  drivers(),
		"hardware": hardware(),
		"failed":   sceneOf("libibverbs", lastSuccess, failed),
		"timeout":  sceneOf("libibverbs", stateOf(timedOut), timedOut),
		"crashed":  sceneOf("libibverbs", state.DeviceState{Name: "siw0", Present: true, Info: info(), Last: crashed}, crashed),
		"stuck":    sceneOf("libibverbs", stuck),
		"stuck_in": sceneOf("libibverbs", between),
		"vanished": sceneOf("libibverbs", state.DeviceState{
			Name: "rxe0", Info: info(), Last: timedOut, LastSuccess: started(),
			Stuck: &state.Stuck{PID: 4711, Verb: "ibv_destroy_cq", Since: started()}, Contracts: contractsOf(contractRun("rxe0")),
		}, timedOut),
		"resources": {
			snapshot: &state.Snapshot{Provider: "simulated", Ready: true, Devices: []state.DeviceState{
				{Name: "sim0", Present: true, Info: info(), Resources: resourcesOf(inventoryRun("sim0"), inventory(2))},
				// Not inventoried yet; vanished during an inventory; stuck in the first one; never queried.
				{Name: "sim1", Present: true, Info: info()},
				{Name: "sim2", Info: info(), Resources: troubled("sim2").Resources},
				{Name: "sim3", Present: true, Info: info(), Resources: &state.Resources{Stuck: new(state.Stuck)}},
				{Name: "sim4", Present: true, Resources: resourcesOf(inventoryRun("sim4"), &state.Inventory{Owners: []state.Owner{{PID: 1}}})},
			}},
			runs:  []*state.Run{inventoryRun("sim0"), inventoryRun("sim0")},
			found: map[string][]health.Finding{"sim2": {hung()}},
		},
		"trouble":   sceneOf("libibverbs", troubled("mlx5_0"), counted).finding(troubles()...),
		"summary":   sceneOf("libibverbs", summary, counted),
		"contained": sceneOf("libibverbs", contained).finding(),
		"paths":     paths(),
		"bandwidth": bandwidth(),
		"gone":      sceneOf("libibverbs", state.DeviceState{Name: "rxe0", Info: info(), Last: timedOut}),
		"hostile":   hostile(),
	}
	for name, s := range all {
		s.unasked = name != "healthy" && name != "lean"
		all[name] = s
	}
	return all
}

func sceneOf(provider string, s state.DeviceState, runs ...*state.Run) scene {
	return scene{
		snapshot: &state.Snapshot{Provider: provider, Ready: true, Devices: []state.DeviceState{s}},
		runs:     runs,
	}
}

// broken is a device with every error of completions and contracts, whose contract run was
// killed.
func broken() scene {
	r := short("mlx5_0")
	r.Outcome = state.OutcomeFailed
	r.Probes[2].SRQs[0].Queried = &state.SRQAttr{WorkRequests: 16, ScatterGather: 1}
	p := &r.Probes[4]
	p.Status = state.StatusFailed
	p.Latencies = []state.Latency{
		latency(1, state.PathLoopback, state.ModeAny, 0),
		{Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Vector: 1, Missed: 3, Stopped: "too many events did not come"},
		{Port: 1, Path: state.PathLoopback, Mode: state.ModeSolicited, Spurious: 2, Misdirected: 1},
		{Port: 1, Path: state.PathLoopback, Mode: state.ModePoll, Missing: 1, Stopped: "a completion did not come"},
		{Port: 2, Path: state.PathLoopback, Mode: state.ModePoll, Unsuccessful: []string{"retry_exc_err", "wr_flush_err", "retry_exc_err"}},
		{Port: 2, Path: state.PathFlush, Mode: state.ModePoll, Unsuccessful: []string{"success", "bad_resp_err"}},
		latency(2, state.PathFlush, state.ModeAny, 7),
	}
	p.Skips = []state.Skip{{Subject: state.Subject{Object: "vector 8"}, Reason: state.SkipBudget}}
	r.Undestroyed = []state.Undestroyed{{Type: "cq", Errno: "EBUSY", Attempts: 3}}
	r.Events = []state.Events{{Type: "port_err", Port: 1, Count: 2}, {Type: "port_err", Port: 2, Count: 1}, {Type: "device_fatal", Count: 1}}

	inventory := contractRun("mlx5_0")
	inventory.Calls = r.Calls
	inventory.Outcome, inventory.Verb = state.OutcomeTimeout, "ibv_destroy_cq"
	inventory.InProgress = "cq_destroy_busy"
	inventory.Events = []state.Events{{Type: "gid_change", Port: 1, Count: 4}}
	inventory.Undestroyed = []state.Undestroyed{{Type: "cq", Errno: "EBUSY", Attempts: 3}, {Type: "qp", Errno: "EIO", Attempts: 3}}
	inventory.Contracts = []state.Contract{
		{Name: "cq_at_least_requested", Severity: state.SeverityCritical, Verdict: state.VerdictViolated, Observed: "31 entries"},
		{Name: "cq_comp_vector_rejected", Severity: state.SeverityInfo, Verdict: state.VerdictHolds},
		{Name: "srq_reports_actual", Severity: state.SeverityWarning, Verdict: state.VerdictViolated},
	}
	s := stateOf(r)
	s.Contracts = contractsOf(inventory)
	for _, c := range []state.Contract{
		{Name: "cq_destroy_busy", Reason: state.SkipTimeout},
		{Name: "channel_steering", Reason: state.SkipCrashed},
		{Name: "notify_solicited_delivers_solicited", Reason: state.SkipPortDown},
		{Name: "cq_resize_at_least_requested", Reason: state.SkipNotSupported},
	} {
		c.Severity, c.Verdict = state.SeverityCritical, state.VerdictSkipped
		s.Contracts.Verdicts = append(s.Contracts.Verdicts, c)
	}
	return sceneOf("libibverbs", s, r, inventory)
}

// hostile is a scene of a child that reports everything twice, with other values, invalid
// UTF-8 and absurd numbers, and of two devices whose names are equal once cleaned.
func hostile() scene {
	const name = "evil\xfe\"}\n\\"
	r := run(name)
	r.Outcome, r.Duration, r.CPU, r.MaxRSS = "exploded", -1, -1<<63, -1
	r.Started = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	r.Info.Firmware, r.Info.CompletionVectors = "\xc3\x28", -1
	r.Info.Limits = []state.Limit{{Name: "max_qp", Value: 1}, {Name: "max_qp", Value: -1 << 63}, {Name: "max_srq"}, {Name: "\xfe"}, {Name: "\xfd"}}
	r.Info.Ports = append(r.Info.Ports, state.Port{Number: 1, State: "no such state"}, state.Port{Number: -1})
	for i := range r.Probes {
		p := r.Probes[i]
		p.Status, p.Skips, p.Clamps = "no such status", make([]state.Skip, 2), []state.Clamp{{}, {Used: 1}}
		p.Latencies = []state.Latency{
			{Port: -1, Path: state.PathFlush, Mode: state.ModeAny, Vector: -1, Count: 1, Missed: -1, Spurious: -1 << 63, Missing: 1<<63 - 1},
			{Path: state.PathFlush, Mode: state.ModePoll, Samples: []time.Duration{-1 << 63, 1<<63 - 1}, Unsuccessful: []string{"\xff", ""}},
			{Path: "no such path", Mode: state.ModeAny, Vector: 1, Count: 1},
			{Path: state.PathFlush, Mode: "no such mode", Vector: 1, Count: 1},
			{Path: state.PathFlush, Mode: state.ModeAny, Vector: 1 << 62, Count: 1, P50: -1, P99: 1 << 62},
		}
		r.Probes = append(r.Probes, p)
	}
	r.Probes = append(r.Probes, state.Probe{Name: "\xff"})
	r.Undestroyed = []state.Undestroyed{{Type: "\xff"}, {Type: "\xfe"}}
	r.Events = []state.Events{{Type: "\xff", Port: -1, Count: 1}, {Type: "\xfe", Count: -1 << 62}, {}}
	r.Calls = []state.Call{{Verb: "\xff", Errno: "\xff", Duration: -time.Hour}, {Verb: "", Duration: 1 << 62}}
	contracts := &state.Run{Kind: state.KindContract, Device: name, Outcome: "exploded", Undestroyed: r.Undestroyed}
	contracts.Contracts = []state.Contract{
		{Name: "\xff", Severity: "\xff", Verdict: state.VerdictHolds},
		{Name: "\xfe", Severity: "\xfe", Verdict: state.VerdictViolated},
		{Verdict: state.VerdictSkipped, Reason: "\xff"},
		{Verdict: state.VerdictSkipped},
		{Verdict: state.VerdictSkipped},
		{Verdict: "no such verdict"},
	}
	i := troubled(name).Resources.Inventory
	i.Objects = append(i.Objects, i.Objects[0], state.ObjectCount{Type: "\xff", Owner: "\xff", Objects: -1 << 63}, state.ObjectCount{Type: "\xfe", Owner: "\xfe"})
	i.Owners = append(i.Owners, i.Owners[0], state.Owner{PID: -1, Comm: "\xff", PodUID: "\xff", Objects: make([]state.TypeCount, 2), Memlock: &state.Memlock{Pinned: -1, Limit: -1 << 63}})
	i.Cgroups, i.Incomplete = append(make([]state.CgroupUse, 2), i.Cgroups...), make([]state.Incomplete, 2)

	s := stateOf(r)
	s.Contracts, s.Resources, s.Hardware = contractsOf(contracts), resourcesOf(r, i), hardwareOf(name, 2)
	s.Resources.Leaked = []state.Leaked{{}, {}, {Type: "\xff", Objects: -1}}
	h := s.Hardware.Latest
	h.Driver, h.Identity.Slot, h.Identity.Link, h.Identity.Bottleneck = "\xff", "\xff", new(state.PCILink), &state.PCILink{Speed: -1e308, Width: 1 << 62}
	h.Interrupts = append(h.Interrupts, h.Interrupts[0], state.Interrupt{Vector: -1, IRQ: -1, CPUs: "\xff"})
	port := h.Ports[0]
	port.LinkLayer, port.Rate, port.MTU, port.Netdev = "\xff", -1, -1, "\xfe"
	port.Counters = append(port.Counters, port.Counters[0], state.Counter{Name: "\xff", Value: 1<<64 - 1}, state.Counter{Name: "\xfe"})
	h.Ports = append(h.Ports, port)
	other := s
	other.Name = "evil\xff\"}\n\\"
	out := sceneOf("\xff", s, r, &state.Run{Device: name, Outcome: state.OutcomeCrashed, Verb: "a\xffb"}, contracts, &state.Run{Kind: "no such kind", Device: name}, inventoryRun(name))
	out = out.finding(health.Finding{}, health.Finding{}, health.Finding{Kind: "\xff", Severity: "\xff"}, health.Finding{Kind: "\xfe", Severity: "\xfe"})
	out.found[other.Name] = out.found[name]
	out.snapshot.Devices = append(out.snapshot.Devices, other, state.DeviceState{Present: true})
	return out
}

// TestExposition compares all series of a host with a golden file, and lints them. Help and
// type of a metric are those of its page. Each metric is in a golden file.
func TestExposition(t *testing.T) {
	page := running.Must(os.ReadFile("../docs/reference/metrics.md"))(t)
	seen := make(map[string]bool)
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			registry := pedantic(t, s.collector())
			families := running.Must(registry.Gather())(t)
			for _, f := range families {
				seen[f.GetName()] = true
				row := fmt.Sprintf(`(?m)^\| `+"`%s` .* \\| %s\\b.* \\| %s \\|$", f.GetName(), strings.ToLower(f.GetType().String()), regexp.QuoteMeta(f.GetHelp()))
				if !regexp.MustCompile(row).Match(page) {
					t.Errorf("%s: metrics.md has another help or type than %q, %s", f.GetName(), f.GetHelp(), f.GetType())
				}
			}
			series := regexp.MustCompile("(?m)^#.*\n").ReplaceAllLiteralString(text(t, families), "")
			golden.Check(t, filepath.Join("testdata", name+".prom"), series)

			problems := running.Must(testutil.GatherAndLint(registry))(t)
			for _, p := range problems {
				switch {
				case p.Metric == "rdma_verbs_call_latency_seconds": // It differs from the summary of the same calls.
				case strings.HasPrefix(p.Metric, "rdma_port_") && strings.Contains(p.Metric, "counter_"): // It is about counters.
				case p.Metric == "rdma_port_fec_corrected_bits_total": // It counts errors, not data.
				case strings.HasSuffix(p.Metric, "rate_bits_per_second"): // Links are known by their bits a second.
				default:
					t.Errorf("%s: %s", p.Metric, p.Text)
				}
			}
		})
	}
	for _, name := range collector.Names() {
		if !seen[name] {
			t.Errorf("no scene has %s", name)
		}
	}
}

// TestObserve verifies that counters and histograms add up runs, with scrapes in between.
func TestObserve(t *testing.T) {
	c := collectorOf(nil)
	registry := pedantic(t, c)
	r := &state.Run{
		Device: "rxe0", Outcome: state.OutcomeTimeout,
		Calls: []state.Call{
			{Verb: "ibv_create_qp", Duration: 5 * time.Microsecond, Errno: "ENOMEM"},
			{Verb: "ibv_create_qp", Duration: 5 * time.Microsecond, Errno: "EINVAL", Expected: true},
		},
	}
	for n := 1; n <= 3; n++ {
		c.Observe(r)
		got := expose(t, registry)
		for _, want := range []string{
			fmt.Sprintf(`rdma_probe_runs_total{device="rxe0",outcome="timeout"} %d`, n),
			`rdma_probe_runs_total{device="rxe0",outcome="ok"} 0`,
			fmt.Sprintf(`rdma_probe_aborts_total{device="rxe0",outcome="timeout",verb="none"} %d`, n),
			fmt.Sprintf(`rdma_verbs_errors_total{device="rxe0",errno="ENOMEM",verb="ibv_create_qp"} %d`, n),
			fmt.Sprintf(`rdma_verbs_call_latency_seconds_bucket{device="rxe0",verb="ibv_create_qp",le="1e-05"} %d`, 2*n),
			`rdma_verbs_call_latency_seconds_bucket{device="rxe0",verb="ibv_create_qp",le="1e-06"} 0`,
		} {
			if !strings.Contains(got, want+"\n") {
				t.Errorf("after %d runs there is no %s in\n%s", n, want, got)
			}
		}
		if strings.Contains(got, "EINVAL") {
			t.Errorf("an expected failure was counted:\n%s", got)
		}
	}
}

// TestNativeHistogram verifies that histograms have native and classic buckets.
func TestNativeHistogram(t *testing.T) {
	families := running.Must(pedantic(t, collectorOf(nil, run("sim0"))).Gather())(t)
	buckets := map[string]int{
		"rdma_verbs_call_latency_seconds": 8, "rdma_notification_latency_seconds": 7,
	}
	for _, f := range families {
		want, ok := buckets[f.GetName()]
		if !ok {
			continue
		}
		delete(buckets, f.GetName())
		for _, m := range f.GetMetric() {
			h := m.GetHistogram()
			if h.GetSchema() != 3 || len(h.GetPositiveDelta()) == 0 || len(h.GetBucket()) != want {
				t.Errorf("%v", m)
			}
		}
	}
	if len(buckets) != 0 {
		t.Errorf("there is no %v", buckets)
	}
}

// TestForget verifies that Forget removes the counts of one device only.
func TestForget(t *testing.T) {
	c := collectorOf(nil, run("sim0"), run("sim1"))
	registry := pedantic(t, c)
	c.Forget("sim0")
	c.Forget("never seen")
	got := expose(t, registry)
	if strings.Contains(got, `"sim0"`) || !strings.Contains(got, `"sim1"`) {
		t.Errorf("after Forget:\n%s", got)
	}
	c.Observe(run("sim0"))
	if got := expose(t, registry); !strings.Contains(got, `rdma_probe_runs_total{device="sim0",outcome="ok"} 1`) {
		t.Errorf("counting does not begin anew:\n%s", got)
	}
}

// TestBounds verifies that a child process cannot fill the server with series.
func TestBounds(t *testing.T) {
	r := run("sim0")
	for i := range 5000 {
		word := fmt.Sprint("x", i)
		r.Events = append(r.Events, state.Events{Type: word, Count: 1})
		r.Calls = append(r.Calls, state.Call{Verb: "ibv_" + word, Errno: "E" + word})
		r.Probes[0].CQs = append(r.Probes[0].CQs, state.CQSize{Profile: word})
	}
	inventory := contractRun("sim0")
	for i := range 5000 {
		inventory.Contracts = append(inventory.Contracts, state.Contract{Name: fmt.Sprint("x", i), Verdict: state.VerdictViolated})
	}
	device := stateOf(r)
	device.Contracts = contractsOf(inventory)
	s := sceneOf("libibverbs", device, r, inventory)
	c := s.collector()
	for i := range 500 {
		c.Observe(&state.Run{Device: "sim0", Outcome: state.OutcomeCrashed, Verb: fmt.Sprint("ibv_y", i)})
	}
	got := expose(t, pedantic(t, c))
	if n := strings.Count(got, "\n") - strings.Count(got, "\n#"); n > 8000 {
		t.Errorf("%d samples of one device", n)
	}
	for _, want := range []string{
		`rdma_probe_aborts_total{device="sim0",outcome="crashed",verb="other"} 500`,
		`rdma_verbs_errors_total{device="sim0",errno="other",verb="other"} 4958`,
		`rdma_async_events_total{device="sim0",event="other"} 4968`,
		`rdma_exporter_dropped_series{device="sim0"} `,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if strings.Contains(got, `rdma_exporter_dropped_series{device="sim0"} 0`+"\n") {
		t.Error("dropped series are not told")
	}
}

// TestConcurrency is for the race detector.
func TestConcurrency(t *testing.T) {
	snapshot := sceneOf("simulated", stateOf(run("sim0"))).snapshot
	c := collectorOf(snapshot)
	registry := pedantic(t, c)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 8 {
				c.Observe(run("sim0"))
				c.Forget("sim0")
			}
		})
		wg.Go(func() {
			for range 8 {
				expose(t, registry)
			}
		})
	}
	wg.Wait()
}
