package web_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// everywhere returns a host with 64 devices that change changed, with their findings.
func everywhere(change func(*state.DeviceState)) apitest.Host {
	s := &state.Snapshot{Provider: "libibverbs", Ready: true}
	found := make(map[string][]health.Finding)
	for n := range 64 {
		name := fmt.Sprintf("mlx5_%02d", n)
		if n%2 == 1 {
			name += " $x" // which a shell needs in quotes
		}
		d := apitest.Device(name, 1)
		change(&d)
		alone := &state.Snapshot{Devices: []state.DeviceState{d}}
		found[name] = health.New(health.Default(), health.History{}).Evaluate(alone).Devices[0].Findings
		s.Devices = append(s.Devices, d)
	}
	return apitest.Host{Snapshot: s, Found: found}
}

// TestTroublesTogether verifies that the page shows the same problem of many devices once,
// although each finding names its own device in its action.
func TestTroublesTogether(t *testing.T) {
	t.Parallel()
	violated := func(names ...string) func(*state.DeviceState) {
		return func(d *state.DeviceState) {
			for _, name := range names {
				d.Contracts.Verdicts = append(d.Contracts.Verdicts, state.Contract{
					Name: name, Severity: state.SeverityCritical, Verdict: state.VerdictViolated, Asked: "a", Expected: "b", Observed: "c", CheckedAt: apitest.Now(),
				})
			}
		}
	}
	tests := []struct {
		name   string
		change func(*state.DeviceState)
		shown  int
		action string
		more   string
	}{
		{
			"unusable", func(d *state.DeviceState) {
				d.Last.Outcome, d.Last.Error, d.Last.FailedVerb, d.Last.Errno = state.OutcomeFailed, "no", "ibv_open_device", "EACCES"
				d.Last.Probes, d.Last.Info = nil, nil
			}, 1, "<b>What to do (configuration; here for mlx5_00):</b> The user needs read and write access to the device&#39;s node, /dev/infiniband/uverbsN: <code>grep -lxF mlx5_00 ", "",
		},
		{"contracts", violated("notify_any", "notify_one_shot"), 2, "<b>What to do (driver):</b> ", ""},
		{
			"hung", func(d *state.DeviceState) {
				var pid int
				if _, err := fmt.Sscanf(d.Name, "mlx5_%d", &pid); err != nil {
					t.Fatal(err)
				}
				d.Stuck = &state.Stuck{PID: 1000 + pid, Since: apitest.Now()}
			}, 24, "<code>cat /proc/1023/stack</code>", "And issues in 40 more places: see the devices below.",
		},
	}
	for _, tt := range tests {
		body := page(t, everywhere(tt.change)).Body.String()
		for _, err := range flaws(body) {
			t.Errorf("%s: %v", tt.name, err)
		}
		glance, _, _ := strings.Cut(body, `id="devices"`)
		_, glance, _ = strings.Cut(glance, "</header>")
		if n := strings.Count(glance, `<li class="trouble `); n != tt.shown || !strings.Contains(glance, tt.action) {
			t.Errorf("%s: shown %d times, want %d and %q:\n%s", tt.name, n, tt.shown, tt.action, glance)
		}
		if tt.shown < 3 {
			if said := strings.Count(glance, `<p class="found">`); said != tt.shown {
				t.Errorf("%s: the same is said %d times of devices, want %d:\n%s", tt.name, said, tt.shown, glance)
			}
			if links := len(regexp.MustCompile(`<a href="#device`).FindAllString(glance, -1)); links != 12*tt.shown || strings.Count(glance, "And 52 more like this.") != tt.shown {
				t.Errorf("%s: %d links, and %d more:\n%s", tt.name, links, strings.Count(glance, "And 52 more"), glance)
			}
		}
		if more := regexp.MustCompile(`And [^<]*see the devices below\.`).FindString(glance); more != tt.more {
			t.Errorf("%s: got %q, want %q", tt.name, more, tt.more)
		}
	}
}

// TestRoot verifies that consequences are below their root, and that evidence is folded.
func TestRoot(t *testing.T) {
	s := apitest.Many(1, 4)
	for device := range s.Found {
		s.Found[device] = []health.Finding{{
			Kind: health.FindingStuck, Severity: health.SeverityCritical, Subject: "pid 7", Message: "It has not ended.", Evidence: "All of it.", Action: "Restart.",
			Consequences: []health.Finding{{Kind: health.FindingProbeFailed, Severity: health.SeverityCritical, Subject: "cq", Message: "It <failed>."}},
		}}
	}
	body := page(t, s).Body.String()
	if n := strings.Count(body, `<li class="trouble `); n != 2 {
		t.Errorf("it is shown %d times, want once at the top and once with the device", n)
	}
	for _, want := range []string{
		`critical</span> outage <code>stuck</code>`, `It has not ended. <span class="hint">Same root cause: cq (probe_failed).</span>`,
		`<details><summary>Evidence</summary><p>All of it.</p></details>`,
		`<details><summary>Same root cause: 1</summary>`, `<code>probe_failed</code> cq: It &lt;failed&gt;.</li>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %s", want)
		}
	}
}

// TestShows verifies what the page of one device shows, depending on its state.
func TestShows(t *testing.T) {
	const (
		blind, owners, quiet = "The exporter does not see the processes of the host", "<h4>Owners</h4>", `<tr class="ok quiet" `
		none                 = `badge unknown"><span aria-hidden="true">–</span> none `
	)
	for name, tt := range map[string]struct {
		change    func(*state.DeviceState)
		want, not string
	}{
		"kept":    {func(*state.DeviceState) {}, `badge ok"><span aria-hidden="true">✓</span> none violated<`, blind},
		"no run":  {func(d *state.DeviceState) { d.Contracts.Last = nil }, none + "known to be violated yet<", ""},
		"failed":  {func(d *state.DeviceState) { d.Contracts.Last.Outcome = state.OutcomeFailed }, none + "known to be violated: the last contract run was not ok<", ""},
		"old":     {func(d *state.DeviceState) { d.Contracts.Last.Started = apitest.Now().AddDate(0, 0, -1) }, none + "known to be violated: the last contract run is old<", ""},
		"skipped": {func(d *state.DeviceState) { d.Contracts.Verdicts = d.Contracts.Verdicts[3:4] }, none + "could be checked<", ""},
		"violated": {func(d *state.DeviceState) {
			d.Contracts.Verdicts[0].Verdict, d.Contracts.Last = state.VerdictViolated, nil
		}, `✕</span> 1 violated<`, ""},
		"quiet":     {func(*state.DeviceState) {}, quiet, " tr.ok "},
		"style":     {func(*state.DeviceState) {}, " tr.quiet td:last-child { display: none; }", ""},
		"not quiet": {func(d *state.DeviceState) { d.Last.Probes[2].Status = state.StatusSkipped }, "Could not be probed: srq.", quiet},
		"blind":     {func(d *state.DeviceState) { d.Resources.Inventory.PIDsVisible = false }, blind, ""},
		"no inventory": {func(d *state.DeviceState) {
			d.Resources.Inventory, d.Resources.Leaked = nil, []state.Leaked{{Type: "qp", Objects: 1}}
		}, "", blind},
		"owners": {func(*state.DeviceState) {}, owners, ""},
		"no owners": {func(d *state.DeviceState) {
			i := d.Resources.Inventory
			i.Owners, i.Others, i.Ownerless, i.Orphans, i.Untraced, i.Cgroups = nil, nil, nil, nil, nil, nil
		}, "", owners},
	} {
		d := apitest.Device("mlx5_0", 4)
		tt.change(&d)
		body := page(t, apitest.Host{Snapshot: &state.Snapshot{Devices: []state.DeviceState{d}}}).Body.String()
		if !strings.Contains(body, tt.want) || tt.not != "" && strings.Contains(body, tt.not) {
			t.Errorf("%s: the page lacks %q, or has %q", name, tt.want, tt.not)
		}
		for _, err := range flaws(body) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
