//go:build vm

package softroce

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	whole "rdma_exporter/internal/api"
	"rdma_exporter/internal/probe/known"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
)

// personas is the folder with the rules by which the library of test/faults answers as
// vendors' libraries do. Each file is one persona.
const personas = "../faults/personas"

// A persona says what a device offers and breaks that answers by the rules of the file
// of its name.
type persona struct {
	name string
	// bus is the driver of the bus, by which the exporter tells the driver of the
	// device.
	bus string
	// lacks are the keys of lacking, and violated the contracts that the driver is
	// known to break.
	lacks, violated []string
	// flush is how work requests are flushed.
	flush session.Flush
}

func allPersonas() []persona {
	return []persona{
		{
			name: "bnxt_re", bus: "bnxt_en", lacks: []string{"uc", "multicast", "resize"}, flush: session.FlushRecv,
			violated: []string{"qp_recv_caps_ignored_with_srq", "qp_reports_actual", "srq_reports_actual"},
		},
		{name: "cxgb4", bus: "cxgb4", lacks: []string{"uc", "ud", "messages"}, flush: session.FlushRecv},
		{name: "efa", bus: "efa", lacks: []string{"rc", "uc", "srq", "multicast", "channel"}, flush: session.FlushUD},
		{name: "efa_eq", bus: "efa", lacks: []string{"rc", "uc", "srq", "multicast", "solicited"}, flush: session.FlushRecv},
		{
			name: "erdma", bus: "erdma", lacks: []string{"uc", "ud", "srq", "messages"}, flush: session.FlushRecv,
			violated: []string{"qp_reports_actual"},
		},
		{
			name: "hns", bus: "hns3", lacks: []string{"uc", "multicast"}, flush: session.FlushUD,
			violated: []string{"cq_at_least_requested", "qp_recv_caps_ignored_with_srq"},
		},
		{name: "ionic", bus: "ionic", lacks: []string{"uc", "srq", "multicast"}, flush: session.FlushUD},
		{
			name: "irdma", bus: "ice", lacks: []string{"uc", "srq"}, flush: session.FlushUD,
			violated: []string{"qp_reports_actual"},
		},
		{
			name: "mana", bus: "mana", lacks: []string{"uc", "ud", "srq", "query", "solicited"}, flush: session.FlushRecv,
			violated: []string{"cq_at_least_requested"},
		},
		{
			name: "mlx4", bus: "mlx4_core", flush: session.FlushUD,
			violated: []string{"qp_recv_caps_ignored_with_srq", "qp_srq_type_restricted"},
		},
		{
			name: "mlx5", bus: "mlx5_core", flush: session.FlushUD,
			violated: []string{"qp_recv_caps_ignored_with_srq", "qp_srq_type_restricted", "srq_reports_actual"},
		},
		{
			name: "ocrdma", bus: "be2net", flush: session.FlushRecv,
			violated: []string{"qp_recv_caps_ignored_with_srq", "srq_limit_ignored"},
		},
		{
			name: "qedr", bus: "qede", lacks: []string{"uc", "ud"}, flush: session.FlushRC,
			violated: []string{"qp_recv_caps_ignored_with_srq", "qp_reports_actual", "srq_reports_actual"},
		},
		{
			name: "vmw_pvrdma", bus: "vmw_pvrdma", lacks: []string{"uc", "multicast"}, flush: session.FlushUD,
			violated: []string{"qp_at_least_requested", "qp_reports_actual"},
		},
	}
}

// lacking has, for what a device may lack, the subjects that the probes skip and the
// contracts that are not judged.
func lacking() map[string]struct{ subjects, contracts []string } {
	return map[string]struct{ subjects, contracts []string }{
		"rc": {
			[]string{"rc", "loopback any", "loopback poll", "loopback solicited"},
			[]string{"notify_solicited_delivers_solicited", "notify_solicited_skips_unsolicited", "qp_sq_sig_all", "srq_limit_disarmed", "srq_limit_event"},
		},
		"uc":        {[]string{"uc"}, []string{"qp_srq_type_restricted"}},
		"ud":        {[]string{"ud"}, []string{"qp_destroy_busy_multicast"}},
		"multicast": {nil, []string{"qp_destroy_busy_multicast"}},
		"messages": {
			[]string{"loopback port 1"},
			[]string{"notify_solicited_delivers_solicited", "notify_solicited_skips_unsolicited", "qp_sq_sig_all", "srq_limit_disarmed", "srq_limit_event"},
		},
		"srq": {
			[]string{"small", "medium", "large"},
			[]string{
				"qp_recv_caps_ignored_with_srq", "qp_srq_type_restricted", "srq_at_least_requested",
				"srq_destroy_busy", "srq_limit_disarmed", "srq_limit_event", "srq_limit_ignored", "srq_reports_actual",
			},
		},
		// Soft-RoCE resizes; with some libraries it is not tried.
		"resize": {nil, []string{"cq_resize_at_least_requested", "cq_resize_keeps_completions", "cq_resize_too_small_refused"}},
		"query":  {[]string{"rc small query"}, []string{"qp_reports_actual"}},
		"solicited": {
			[]string{"loopback solicited", "flush solicited"},
			[]string{"notify_solicited_delivers_errors", "notify_solicited_delivers_solicited", "notify_solicited_skips_unsolicited"},
		},
		"channel": {
			[]string{"cq with a channel", "flush any", "flush solicited"},
			[]string{
				"channel_destroy_busy", "channel_steering", "cq_comp_vector_accepted", "notify_any", "notify_identifies_cq",
				"notify_one_shot", "notify_requires_arming", "notify_solicited_delivers_errors",
				"notify_solicited_delivers_solicited", "notify_solicited_skips_unsolicited",
			},
		},
	}
}

// A real device that answers as another vendor's does is probed and judged for what it
// is: nothing fails, what it lacks is skipped, and of the contracts it breaks those that
// its driver is known to break, and none but those that Soft-RoCE breaks itself.
func TestPersonas(t *testing.T) {
	began := time.Now()
	var names []string
	for _, p := range allPersonas() {
		names = append(names, p.name)
		t.Run(p.name, p.test)
	}
	var files []string
	entries, err := os.ReadDir(personas)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		files = append(files, entry.Name())
	}
	if !slices.Equal(names, files) {
		t.Errorf("%s has %q, and tried are %q", personas, files, names)
	}
	t.Logf("%d personas in %v", len(names), time.Since(began).Round(time.Second))
}

func (p persona) test(t *testing.T) {
	d, fired := p.audit(t)
	p.seeRules(t, fired)
	if d.Identity.Driver != strings.TrimSuffix(p.name, "_eq") {
		t.Errorf("the driver is %q", d.Identity.Driver)
	}
	for what, run := range map[string]*whole.Run{"probes": d.Run, "contracts": d.Contracts.Run} {
		if run == nil || run.Outcome != state.OutcomeOK {
			t.Errorf("%s: %+v", what, run)
		}
	}
	subjects, unjudged := []string{"raw_packet"}, []string{"cq_moderation_notifies", "multicast_delivers", "multicast_single_copy", "xrc_at_least_requested"}
	// Those of sends Soft-RoCE does not count as solicited.
	if p.flush != session.FlushRecv {
		subjects = append(subjects, "flush solicited")
	}
	for _, what := range p.lacks {
		lack := lacking()[what]
		subjects, unjudged = append(subjects, lack.subjects...), append(unjudged, lack.contracts...)
	}
	var skipped []string
	for _, probe := range d.Probes {
		for _, f := range probe.Failures {
			t.Errorf("%s failed: %+v", probe.Name, f)
		}
		for _, s := range probe.Skips {
			if s.Reason == state.SkipBudget {
				continue // of time, which a busy machine has not
			}
			skipped = append(skipped, s.Subject)
			if s.Reason != state.SkipNotSupported || s.Detail == "" {
				t.Errorf("%s skipped %+v", probe.Name, s)
			}
		}
	}
	same(t, "skipped", skipped, subjects)
	p.seeContracts(t, d, unjudged)
	by := ""
	for _, w := range d.Ways {
		if w.Path == state.PathFlush {
			by = w.By
		}
	}
	if by != p.flush.String() {
		t.Errorf("flushed are %q, want %q", by, p.flush)
	}
}

// seeContracts compares the verdicts with what is known of the driver.
func (p persona) seeContracts(t *testing.T, d whole.Device, unjudged []string) {
	t.Helper()
	beneath := known.Driver{Name: "rxe", Kernel: strings.TrimSpace(output(t, "uname", "-r"))}
	var violated, skipped []string
	for _, v := range d.Contracts.Verdicts {
		switch {
		case v.Verdict == state.VerdictViolated && v.Known:
			violated = append(violated, v.Name)
		case v.Verdict == state.VerdictViolated && len(beneath.Of(v.Name)) == 0:
			t.Errorf("%s is violated: %s", v.Name, v.Observed)
		case v.Verdict == state.VerdictSkipped:
			skipped = append(skipped, v.Name)
			if v.Reason != state.SkipNotSupported {
				t.Errorf("%s is skipped, %s: %s", v.Name, v.Reason, v.Observed)
			}
		}
	}
	same(t, "violated as the driver is known to", violated, p.violated)
	same(t, "not judged", skipped, unjudged)
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Compact(slices.Sorted(slices.Values(got))), slices.Compact(slices.Sorted(slices.Values(want)))
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// seeRules makes sure that each rule of the persona acted, and none that the exporter
// is known to avoid.
func (p persona) seeRules(t *testing.T, fired map[string]int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(personas, p.name))
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	for line := range strings.Lines(string(text)) {
		rule, comment, _ := strings.Cut(strings.TrimSpace(line), "#")
		if rule = strings.TrimSpace(rule); rule == "" {
			continue
		}
		rules++
		avoided := strings.HasPrefix(strings.TrimSpace(comment), "avoided")
		if n := fired[rule]; avoided != (n == 0) {
			t.Errorf("%q acted in %d processes, and avoided is %v", rule, n, avoided)
		}
	}
	// That of the probes and that of the contracts.
	if n := fired[fmt.Sprintf("loaded %d", rules)]; n != 2 {
		t.Errorf("%d processes read %d rules, want 2: %v", n, rules, slices.Sorted(maps.Keys(fired)))
	}
}

// audit has the exporter audit a device that answers as the persona's, and returns what
// it says, and in how many processes each rule acted.
func (p persona) audit(t *testing.T) (d whole.Device, fired map[string]int) {
	t.Helper()
	before := resources(t)
	defer awaitResources(t, before)
	rules, err := filepath.Abs(filepath.Join(personas, p.name))
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	// The exporter asks the kernel for the driver of the device, unless the device has
	// no node in sysfs, and then goes by the driver of the bus.
	const script = `mount --bind "$0" /sys/class/infiniband && mount -t tmpfs none /sys/class/infiniband_verbs && exec "$@"`
	e, stdout := startAudit(t, options{
		wrap: []string{
			"unshare", "--mount", "sh", "-c", script, p.sysfs(t),
			"env", "LD_PRELOAD=" + faultsLibrary(t), "RDMA_FAULTS=" + rules, "RDMA_FAULTS_LOG=" + log,
		},
		// One sample tells whether there is a way.
		flags: []string{"--device=" + active, "--format=json", "--notification.vectors=1", "--notification.samples=5"},
	})
	// What Soft-RoCE breaks is news of another driver.
	if status := e.exit(); status != 0 && status != 1 {
		t.Fatalf("status %d: %s", status, e.log)
	}
	var s whole.Status
	if err := json.Unmarshal(stdout.Bytes(), &s); err != nil || len(s.Devices) != 1 {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	fired = make(map[string]int)
	for line := range strings.Lines(string(text)) {
		_, rule, _ := strings.Cut(strings.TrimSpace(line), " ")
		fired[rule]++
	}
	return s.Devices[0], fired
}

// sysfs returns a folder that is as /sys/class/infiniband with one device, which has
// the persona's driver of the bus.
func (p persona) sysfs(t *testing.T) string {
	t.Helper()
	class := t.TempDir()
	device := filepath.Join(class, active)
	if err := os.MkdirAll(filepath.Join(device, "device"), 0o755); err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.EvalSymlinks(devicePath(active))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if err := os.Symlink(filepath.Join(folder, entry.Name()), filepath.Join(device, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/sys/bus/pci/drivers/"+p.bus, filepath.Join(device, "device", "driver")); err != nil {
		t.Fatal(err)
	}
	return class
}
