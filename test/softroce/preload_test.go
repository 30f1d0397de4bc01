//go:build vm

package softroce

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/test/faults/expected"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs"
)

var preloadPrint = flag.Bool("preload.print", false, "print the table for docs/reference/reliability.md instead of comparing it")

// seen is what /metrics shows of one run.
type seen struct {
	outcome string
	// failed are the probes that failed, and unjudged those of which nothing is
	// said.
	failed, unjudged []string
	// signs are what else tells of it: a metric and, where they matter, its labels.
	signs []string
	// late tells that the time did not suffice for all measurements.
	late bool
}

func (s seen) equal(o seen) bool {
	return s.outcome == o.outcome && slices.Equal(s.failed, o.failed) &&
		slices.Equal(s.unjudged, o.unjudged) && slices.Equal(s.signs, o.signs)
}

func (s seen) String() string {
	return fmt.Sprintf("%s, failed %q, not judged %q, %q", s.outcome, s.failed, s.unjudged, s.signs)
}

func callFailure(verb, errno string) string {
	return "rdma_verbs_errors_total " + expected.Pair(verb, errno)
}

func undestroyed(typ, errno string) string {
	return "rdma_probe_undestroyed_objects " + expected.Pair(typ, errno)
}

func aborted(verb string) string { return "rdma_probe_aborts_total " + verb }

// telltale are the metrics that show that something went wrong, with the labels
// that say what.
var telltale = []struct {
	name   string
	labels []string
}{
	{"rdma_verbs_errors_total", []string{"verb", "errno"}},
	{"rdma_probe_aborts_total", []string{"verb"}},
	{"rdma_probe_undestroyed_objects", []string{"type", "errno"}},
	{"rdma_notifications_missed_total", nil},
	{"rdma_notifications_spurious_total", nil},
	{"rdma_notifications_misdirected_total", nil},
	{"rdma_completions_missing_total", nil},
	{"rdma_completions_unsuccessful_total", []string{"status"}},
}

// see returns what the run between two scrapes did. Healthy is a scrape after a
// run without faults.
func (g *gate) see(healthy, before, after metrics) seen {
	var s seen
	for _, outcome := range []string{"ok", "failed", "timeout", "crashed"} {
		if after.runs(g.device, outcome) > before.runs(g.device, outcome) {
			s.outcome = strings.TrimPrefix(s.outcome+" "+outcome, " ")
		}
	}
	for _, probe := range expected.Probes() {
		switch found := after.find("rdma_probe_success", "device", g.device, "probe", probe); {
		case len(found) == 0:
			s.unjudged = append(s.unjudged, probe)
		case number(found[0]) == 0:
			s.failed = append(s.failed, probe)
		}
	}
	for _, tell := range telltale {
		for _, sample := range after.find(tell.name, "device", g.device) {
			sign, labels := tell.name, []string{}
			for _, l := range sample.GetLabel() {
				labels = append(labels, l.GetName(), l.GetValue())
			}
			for _, name := range tell.labels {
				sign += " " + label(sample, name)
			}
			was := 0.0
			if strings.HasSuffix(tell.name, "_total") {
				was = before.sum(tell.name, labels...)
			}
			if number(sample) > was {
				s.signs = append(s.signs, sign)
			}
		}
	}
	for _, skip := range after.find("rdma_probe_skipped", "device", g.device) {
		subject, reason := label(skip, "subject"), label(skip, "reason")
		// These two say that something else went wrong, or was slow.
		if reason == "prerequisite_failed" || reason == "budget" {
			s.late = s.late || reason == "budget"
			continue
		}
		if len(healthy.find("rdma_probe_skipped", "device", g.device, "subject", subject, "reason", reason)) == 0 {
			s.signs = append(s.signs, "rdma_probe_skipped "+subject+" "+reason)
		}
	}
	s.signs = append(s.signs, g.shrunk(healthy, after)...)
	slices.Sort(s.signs)
	s.signs = slices.Compact(s.signs)
	return s
}

// shrunk are the metrics of sizes that were less than after a run without faults.
func (g *gate) shrunk(healthy, now metrics) []string {
	var names []string
	for name := range now {
		if !strings.HasSuffix(name, "_actual") && !strings.HasSuffix(name, "_queried") && name != "rdma_probe_qp_max_inline_bytes" {
			continue
		}
		for _, sample := range now.find(name, "device", g.device) {
			var labels []string
			for _, l := range sample.GetLabel() {
				labels = append(labels, l.GetName(), l.GetValue())
			}
			// What is queried is what was given, where nothing is wrong.
			if number(sample) < healthy.sum(strings.Replace(name, "_queried", "_actual", 1), labels...) {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// A preloadCell is one way in which one verb misbehaves.
type preloadCell struct {
	verb expected.Verb
	// fault is what the table calls it.
	fault string
	rules []string
	want  seen
	// once tells that no more than one call fails, and slow is the least time in
	// seconds that the calls take.
	once bool
	slow float64
}

func preloaded(v expected.Verb, fault, rule string, want expected.Run, signs ...string) preloadCell {
	c := preloadCell{verb: v, fault: fault, rules: []string{string(v.Verb) + " " + rule}}
	c.want = seen{outcome: want.Outcome, failed: want.Failed, unjudged: want.Unjudged, signs: signs}
	for _, failure := range want.Failures {
		c.want.signs = append(c.want.signs, "rdma_verbs_errors_total "+failure)
	}
	for _, object := range want.Undestroyed {
		c.want.signs = append(c.want.signs, "rdma_probe_undestroyed_objects "+object)
	}
	for _, subjects := range want.Skipped {
		for _, subject := range subjects {
			c.want.signs = append(c.want.signs, "rdma_probe_skipped "+subject+" "+want.SkipReason)
		}
	}
	if want.Abort != "" {
		c.want.signs = append(c.want.signs, aborted(string(want.Abort)))
	}
	return c
}

// inBatch returns the cells of a verb that goes wrong in a measurement, in which
// the verbs are not reported one by one.
func inBatch(v expected.Verb) []preloadCell {
	after := fmt.Sprintf(" after=%d", v.Batched)
	notification := []string{"notification"}
	crash := expected.Run{Outcome: "crashed", Unjudged: notification}
	cells := []preloadCell{
		preloaded(v, "hang in a measurement", "hang"+after, expected.Run{Outcome: "timeout", Unjudged: notification, Abort: v.Verb}),
		preloaded(v, "crash in a measurement", "crash"+after, crash, aborted("none")),
	}
	if !v.Silent {
		failed := expected.Run{Outcome: "failed", Failed: notification, Failures: []string{expected.Pair(v.Verb, "EIO")}}
		cells = append(cells, preloaded(v, "EIO in a measurement", "errno=EIO times=1"+after, failed))
	}
	return cells
}

// errnos are those with which each call of the i-th verb fails: one of three in turn. Which
// one it is makes no difference, as the tests of the probes show for each verb on simulated
// devices, except where memory may not be locked.
func errnos(i int, v expected.Verb) []string {
	switch all := []string{"EIO", "ENOMEM", "EBUSY"}; {
	case v.Silent:
		return nil
	case v.Always("ENOMEM").SkipReason != "":
		return all[:2]
	default:
		return all[i%3:][:1]
	}
}

// matrix returns the cells of every verb.
func matrix() []preloadCell {
	var cells []preloadCell
	for i, v := range expected.Verbs() {
		for _, errno := range errnos(i, v) {
			cells = append(cells, preloaded(v, errno, "errno="+errno, v.Always(errno)))
		}
		if v.Object != "" {
			// It is called again.
			c := preloaded(v, "EBUSY once", "errno=EBUSY times=1", v.Once("EBUSY"))
			c.once = true
			cells = append(cells, c)
		}
		cells = append(cells, preloaded(v, "hang", "hang", v.Ended("timeout")), preloaded(v, "crash", "crash", v.Ended("crashed")))
		if v.Short != nil {
			cells = append(cells, preloaded(v, "short", "short", v.Less(), v.Short...))
		}
		if v.Batched > 0 {
			cells = append(cells, inBatch(v)...)
		}
	}
	return cells
}

// others are cells that no rule says: what a verb does wrong, though it says that
// it worked.
func others() []preloadCell {
	notification := []string{"notification"}
	return []preloadCell{
		{
			verb: expected.Verb{Verb: "ibv_req_notify_cq"}, fault: "arms nothing", rules: []string{"ibv_req_notify_cq drop"},
			want: seen{outcome: "failed", failed: notification, signs: []string{"rdma_notifications_missed_total"}},
		},
		{
			verb: expected.Verb{Verb: "ibv_get_cq_event"}, fault: "loses events", rules: []string{"ibv_get_cq_event drop"},
			want: seen{outcome: "failed", failed: notification, signs: []string{callFailure("ibv_get_cq_event", "EAGAIN")}},
		},
		{
			// As some libraries say that they have no such queue pairs: UC is the second
			// type that is tried.
			verb: expected.Verb{Verb: "ibv_create_qp"}, fault: "fails without errno", rules: []string{"ibv_create_qp errno=none after=1 times=1"},
			want: seen{outcome: "ok", signs: []string{"rdma_probe_skipped uc not_supported"}},
		},
		{
			// libibverbs waits for it when the queue is destroyed, for ever.
			verb: expected.Verb{Verb: "ibv_ack_cq_events"}, fault: "acknowledges nothing", rules: []string{"ibv_ack_cq_events drop"},
			want: seen{outcome: "timeout", unjudged: notification, signs: []string{aborted("ibv_destroy_cq")}},
		},
		{
			verb: expected.Verb{Verb: "ibv_post_send"}, fault: "posts nothing", rules: []string{"ibv_post_send drop"},
			want: seen{outcome: "failed", failed: notification, signs: []string{"rdma_completions_missing_total"}},
		},
		{
			// The kernel refuses to destroy what the queue pair uses.
			verb: expected.Verb{Verb: "ibv_destroy_qp"}, fault: "destroys nothing", rules: []string{"ibv_destroy_qp drop"},
			want: seen{outcome: "failed", failed: []string{"qp", "notification"}, signs: []string{
				callFailure("ibv_dealloc_pd", "EBUSY"), callFailure("ibv_destroy_comp_channel", "EBUSY"), callFailure("ibv_destroy_cq", "EBUSY"),
				undestroyed("comp_channel", "EBUSY"), undestroyed("cq", "EBUSY"), undestroyed("pd", "EBUSY"),
			}},
		},
		{
			verb: expected.Verb{Verb: "ibv_alloc_pd"}, fault: "takes 100 ms", rules: []string{"ibv_alloc_pd delay=100 times=1"},
			want: seen{outcome: "ok"}, slow: 0.1,
		},
	}
}

// leak has a run after which the kernel still holds what the child held, because
// another process has the device open: an artificial leak. It costs the exporter
// nothing, and ends with that process.
func (g *gate) leak(healthy metrics) {
	g.t.Helper()
	kept := filepath.Join(g.t.TempDir(), "kept")
	rules := []string{"ibv_open_device keep while=" + kept, "ibv_post_send crash"}
	for attempt := 1; ; attempt++ {
		running.Check(g.t, os.WriteFile(kept, nil, 0o600))
		before, after, acted := g.run(rules...)
		held := g.held(g.t)
		running.Check(g.t, os.Remove(kept))
		s := g.see(healthy, before, after)
		right := s.outcome == "crashed" && slices.Equal(acted, rules)
		if !right && s.excused() && attempt < preloadAttempts {
			g.t.Logf("to be repeated: %v; injected was %q", s, acted)
			awaitHeld(g.t, g.baseline, g.held)
			continue
		}
		if !right {
			g.t.Errorf("%v, want a crash; injected was %q", s, acted)
		}
		for _, key := range []string{`"cqn"`, `"lqpn"`, `"pdn"`, `"mrn"`, `"ctxn"`} {
			if most := strings.Count(g.baseline, key); strings.Count(held, key) <= most {
				g.t.Errorf("no more than %d objects have the key %s, although the device is kept open:\n%s", most, key, held)
			}
		}
		awaitHeld(g.t, g.baseline, g.held)
		return
	}
}

// preloadFlags are flags for an exporter that has one run after the other, each of them
// for as long as timeout at most.
func preloadFlags(t *testing.T, timeout time.Duration) []string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config.yaml")
	running.Check(t, os.WriteFile(config, []byte("probe: {destroy_timeout: 100ms}\n"), 0o600))
	return []string{
		"--config.file=" + config, "--probe.interval=100ms",
		fmt.Sprintf("--probe.timeout=%v", timeout),
		"--notification.samples=5", "--notification.vectors=1",
	}
}

// waitingGates is how many exporters have those runs that hang, at the same time: they
// only wait. patientGates is how many have the others, which wait half of the time.
const (
	waitingGates = 6
	patientGates = 3
)

// link adds a device like the active one, with the port active, until the test ends.
func link(t *testing.T, i int) string {
	t.Helper()
	device, netdev := fmt.Sprintf("rxe%d", 10+i), fmt.Sprintf("gate%d", i)
	running.Command(t, "ip", "link", "add", netdev, "type", "veth", "peer", "name", netdev+"peer")
	t.Cleanup(func() { running.Command(t, "ip", "link", "del", netdev) })
	running.Command(t, "ip", "addr", "add", fmt.Sprintf("10.78.%d.1/24", i), "dev", netdev)
	running.Command(t, "ip", "link", "set", netdev+"peer", "up")
	running.Command(t, "ip", "link", "set", netdev, "up")
	running.Command(t, "rdma", "link", "add", device, "type", "rxe", "netdev", netdev)
	t.Cleanup(func() { running.Command(t, "rdma", "link", "del", device) })
	awaitPort(t, device)
	return device
}

// Every verb that the probes call, on a real device, with every fault: the
// exporter stays up, and says which verb failed with which errno or did not
// return. The kernel holds nothing afterwards, and the next run is ok.
func TestPreload(t *testing.T) {
	began := time.Now()
	var devices []string
	for i := range patientGates - 1 + waitingGates {
		devices = append(devices, link(t, i))
	}
	// The first exporters have all runs that end, and so may be patient. The others give up
	// soon, but not before a run on a busy machine hangs. One that is given up is repeated.
	timeout := min(max(25*time.Second, 15*runTime(t)), time.Minute)
	gates := []*gate{startGated(t, active, preloadFlags(t, 2*time.Minute)...)}
	for i, device := range devices {
		patience := timeout
		if i < patientGates-1 {
			patience = 2 * time.Minute
		}
		gates = append(gates, startGated(t, device, preloadFlags(t, patience)...))
	}

	all := slices.Concat(matrix(), others())
	shares := make([][]int, len(gates))
	ending, waiting := 0, 0
	for i := range all {
		gate := ending % patientGates
		if all[i].want.outcome == "timeout" {
			gate = patientGates + waiting%waitingGates
			waiting++
		} else {
			ending++
		}
		shares[gate] = append(shares[gate], i)
	}
	ran := make([]bool, len(all))
	var wait sync.WaitGroup
	for i, g := range gates {
		wait.Go(func() {
			t.Run(g.device, func(t *testing.T) {
				defer g.in(t)()
				g.have(t, all, shares[i], ran)
			})
		})
	}
	wait.Wait()
	t.Logf("%d cells in %v", len(all), time.Since(began))
	if i := slices.Index(ran, false); i >= 0 {
		t.Logf("%s %s was not run: the table is not compared", all[i].verb.Verb, all[i].fault)
		return
	}
	compareTable(t, all)
}

// have has the runs of some of the cells, and notes which it had, and what was seen in
// them. The exporter must be the same at the end, and have grown by nothing. The one whose
// runs all come to their ends sees to it that no verb is forgotten, and has the leak, too.
func (g *gate) have(t *testing.T, all []preloadCell, share []int, ran []bool) {
	for range 2 {
		g.run() // by then it has allocated what it needs
	}
	healthy := g.healthy(nil)
	size := sizeOf(t, healthy)
	if g.device == active {
		checkMatrix(t, g.e.scrape(), all)
	}
	failed := false
	for n, i := range share {
		c := all[i]
		// A failure of a full run stands until another one has finished, so a run that does
		// not finish would show it.
		if failed && len(c.want.unjudged) > 0 {
			g.healthy(healthy)
		}
		t.Run(strings.ReplaceAll(string(c.verb.Verb)+" "+c.fault, " ", "_"), func(t *testing.T) {
			defer g.in(t)()
			all[i].want = g.cell(healthy, c)
			ran[i] = true
			failed = len(all[i].want.failed) > 0
			// What a run leaves, the next one with faults would show as well.
			if n == len(share)-1 || n%10 == 9 {
				g.healthy(healthy)
			}
		})
	}
	if g.device == active {
		t.Run("keep", func(t *testing.T) {
			defer g.in(t)()
			g.leak(healthy)
			g.healthy(healthy)
		})
	}

	g.await()
	m := g.scrape()
	m.is(t, healthy.one(t, "process_start_time_seconds"), "process_start_time_seconds")
	last := sizeOf(t, m)
	t.Logf("pid %d had %v, and has %v after %v runs", g.e.pid(), size, last, m.runs(g.device))
	size.grown(t, last)
	g.e.terminate()
}

// preloadAttempts is how often a run is had that comes out wrong for no fault of
// the exporter.
const preloadAttempts = 5

// excused tells whether a run that came out otherwise than it should is to be
// repeated: Soft-RoCE loses an event now and then, also for a plain C program, and
// where the machine is busy a run may not end in time, wait in vain for an event or
// a completion that comes later, or leave measurements out.
func (s seen) excused() bool {
	return s.outcome == "timeout" || s.late || slices.Contains(s.signs, "rdma_notifications_missed_total") ||
		slices.Contains(s.signs, "rdma_completions_missing_total")
}

// healthy has a run without faults, which must be ok, and show nothing that first
// does not show. Without first it is what later ones are compared with, and so must have
// done everything.
func (g *gate) healthy(first metrics) metrics {
	g.t.Helper()
	for attempt := 1; ; attempt++ {
		before, after, _ := g.run()
		compared := first
		if compared == nil {
			compared = after
		}
		s := g.see(compared, before, after)
		if s.equal(seen{outcome: "ok"}) && (first != nil || !s.late) {
			return after
		}
		if !s.excused() || attempt == preloadAttempts {
			g.t.Errorf("a run without faults: %v", s)
			return after
		}
		g.t.Logf("a run without faults, to be repeated: %v", s)
	}
}

// early tells whether a run that came out otherwise than the cell wants is to be
// repeated, because the fault came before the batch: where the machine is busy, the
// ordinary calls before it poll more often for a completion than the cell allows for.
func (c preloadCell) early(s seen) bool {
	named := c.want
	named.signs = []string{aborted(string(c.verb.Verb))}
	return slices.Equal(c.want.signs, []string{aborted("none")}) && s.equal(named)
}

// cell has a run with the faults of a cell, which must come out as the cell wants
// and leave nothing in the kernel, and returns what was seen.
func (g *gate) cell(healthy metrics, c preloadCell) seen {
	g.t.Helper()
	slices.Sort(c.want.signs)
	for attempt := 1; ; attempt++ {
		before, after, acted := g.run(c.rules...)
		awaitHeld(g.t, g.baseline, g.held)
		s := g.see(healthy, before, after)
		injected := slices.Equal(acted, c.rules)
		if right := s.equal(c.want) && injected; !right && (s.excused() || c.early(s)) && attempt < preloadAttempts {
			g.t.Logf("to be repeated: %v; injected was %q", s, acted)
			continue
		}
		if !s.equal(c.want) {
			g.t.Errorf("%v, want\n%v", s, c.want)
		}
		if !injected {
			g.t.Errorf("the library injected %q, want %q", acted, c.rules)
		}
		for _, sample := range after.find("rdma_probe_stuck", "device", g.device) {
			if number(sample) != 0 {
				g.t.Errorf("the device is stuck in %q", label(sample, "verb"))
			}
		}
		if took := g.callTime(after, string(c.verb.Verb)) - g.callTime(before, string(c.verb.Verb)); took < c.slow {
			g.t.Errorf("the calls took %v s, want %v s at least", took, c.slow)
		}
		if c.once {
			labels := []string{"device", g.device, "verb", string(c.verb.Verb), "errno", "EBUSY"}
			const failures = "rdma_verbs_errors_total"
			if n := after.sum(failures, labels...) - before.sum(failures, labels...); n != 1 {
				g.t.Errorf("%v calls failed, want 1", n)
			}
		}
		return s
	}
}

// callTime is how long all calls of a control verb took, in seconds.
func (g *gate) callTime(m metrics, verb string) (sum float64) {
	for _, s := range m.find("rdma_verbs_call_duration_seconds", "device", g.device, "verb", verb) {
		sum += s.GetSummary().GetSampleSum()
	}
	return sum
}

// checkMatrix makes sure that no verb that the probes call was forgotten, and that
// no cell is there twice.
func checkMatrix(t *testing.T, shown metrics, cells []preloadCell) {
	t.Helper()
	tried, names := make(map[string]bool), make(map[string]bool)
	for _, c := range cells {
		tried[string(c.verb.Verb)] = true
		if name := string(c.verb.Verb) + " " + c.fault; names[name] {
			t.Errorf("%s is there twice", name)
		} else {
			names[name] = true
		}
	}
	// A refusal of further attributes fails nothing.
	tried[string(verbs.QueryDeviceEx)] = true
	called := make(map[string]bool)
	for _, h := range shown.find("rdma_verbs_call_latency_seconds", "device", active) {
		called[label(h, "verb")] = true
	}
	if !maps.Equal(tried, called) {
		t.Errorf("faults are tried on\n%q\nbut the probes call\n%q", slices.Sorted(maps.Keys(tried)), slices.Sorted(maps.Keys(called)))
	}
}

// processSize is what a process has that could grow.
type processSize struct{ goroutines, files, memory float64 }

func sizeOf(t *testing.T, m metrics) processSize {
	t.Helper()
	return processSize{
		m.one(t, "go_goroutines"), m.one(t, "process_open_fds"), m.one(t, "process_resident_memory_bytes") / (1 << 20),
	}
}

func (s processSize) String() string {
	return fmt.Sprintf("%v goroutines, %v open files, %.1f MiB resident", s.goroutines, s.files, s.memory)
}

// grown makes sure that a process has not become larger than connections and new
// series explain.
func (s processSize) grown(t *testing.T, now processSize) {
	t.Helper()
	const some, someMemory = 8, 16
	if now.goroutines > s.goroutines+some || now.files > s.files+some || now.memory > s.memory+someMemory {
		t.Errorf("the exporter has grown from %v to %v", s, now)
	}
}

// in makes a subtest the one that fails, until leave is called.
func (g *gate) in(t *testing.T) (leave func()) {
	outer := g.t
	g.t, g.e.t = t, t
	return func() { g.t, g.e.t = outer, outer }
}
