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

// everywhere returns a host with 64 devices, all of which have the same changed, with
// what is found of them.
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
		found[name] = health.Assess(&d, health.Default(), health.History{})
		s.Devices = append(s.Devices, d)
	}
	return apitest.Host{Snapshot: s, Found: found}
}

// TestTroublesTogether makes sure that the same trouble on many devices is told once,
// as real findings have it: each names its own device in what is to be done.
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
		// told is how often trouble is told, and action what there is of what to do about it.
		told   int
		action string
		more   string
	}{
		{
			"unusable", func(d *state.DeviceState) {
				d.Last.Outcome, d.Last.Error, d.Last.FailedVerb, d.Last.Errno = state.OutcomeFailed, "no", "ibv_open_device", "EACCES"
				d.Last.Probes, d.Last.Info = nil, nil
			}, 1, "<b>What to do (here for mlx5_00):</b> The user needs read and write access to the device&#39;s node, /dev/infiniband/uverbsN: <code>grep -lxF mlx5_00 ", "",
		},
		{"contracts", violated("notify_any", "notify_one_shot"), 2, "<b>What to do:</b> ", ""},
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
		if n := strings.Count(glance, `<li class="trouble `); n != tt.told || !strings.Contains(glance, tt.action) {
			t.Errorf("%s: told %d times, want %d and %q:\n%s", tt.name, n, tt.told, tt.action, glance)
		}
		if tt.told < 3 {
			if said := strings.Count(glance, `<p class="found">`); said != tt.told {
				t.Errorf("%s: the same is said %d times of devices, want %d:\n%s", tt.name, said, tt.told, glance)
			}
			if links := len(regexp.MustCompile(`<a href="#device`).FindAllString(glance, -1)); links != 12*tt.told || strings.Count(glance, "And 52 more like this.") != tt.told {
				t.Errorf("%s: %d links, and %d more:\n%s", tt.name, links, strings.Count(glance, "And 52 more"), glance)
			}
		}
		if more := regexp.MustCompile(`And [^<]*see the devices below\.`).FindString(glance); more != tt.more {
			t.Errorf("%s: got %q, want %q", tt.name, more, tt.more)
		}
	}
}

// TestRoot makes sure that what comes of one root stands under it, and that evidence is
// folded.
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
		t.Errorf("it is told %d times, want once at the top and once with the device", n)
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

// TestKept makes sure that the contracts are praised only if they were judged.
func TestKept(t *testing.T) {
	tests := []struct {
		name   string
		change func(*state.Contracts)
		want   string
	}{
		{"kept", func(*state.Contracts) {}, `badge ok"><span aria-hidden="true">✓</span> none violated<`},
		{"no run", func(c *state.Contracts) { c.Last = nil }, `badge unknown"><span aria-hidden="true">–</span> none known to be violated yet<`},
		{"failed", func(c *state.Contracts) { c.Last.Outcome = state.OutcomeFailed }, `–</span> none known to be violated: the last contract run was not ok<`},
		{"old", func(c *state.Contracts) { c.Last.Started = c.Last.Started.AddDate(0, 0, -1) }, `–</span> none known to be violated: the last contract run is old<`},
		{"skipped", func(c *state.Contracts) { c.Verdicts = c.Verdicts[3:4] }, `–</span> none could be checked<`},
		{"violated", func(c *state.Contracts) { c.Verdicts[0].Verdict, c.Last = state.VerdictViolated, nil }, `badge critical"><span aria-hidden="true">✕</span> 1 violated<`},
	}
	for _, tt := range tests {
		d := apitest.Device("mlx5_0", 4)
		tt.change(d.Contracts)
		_, kept, _ := strings.Cut(page(t, apitest.Host{Snapshot: &state.Snapshot{Devices: []state.DeviceState{d}}}).Body.String(), "Contracts of the man pages</h4>")
		if kept, _, _ = strings.Cut(kept, "</p>"); !strings.Contains(kept, tt.want) {
			t.Errorf("%s: got %s, want %s", tt.name, kept, tt.want)
		}
	}
}

// TestQuiet makes sure that a device's line leaves out on a phone only what says
// nothing.
func TestQuiet(t *testing.T) {
	d := apitest.Device("mlx5_0", 4)
	host := apitest.Host{Snapshot: &state.Snapshot{Devices: []state.DeviceState{d}}}
	const quiet = `<tr class="ok quiet" `
	if body := page(t, host).Body.String(); !strings.Contains(body, quiet) || !strings.Contains(body, " tr.quiet td:last-child { display: none; }") {
		t.Error("it is not quiet")
	}
	d.Last.Probes[2].Status = state.StatusSkipped
	if body := page(t, host).Body.String(); strings.Contains(body, quiet) || strings.Contains(body, " tr.ok ") || !strings.Contains(body, "Could not be probed: srq.") {
		t.Error("what could not be probed is left out")
	}
}

// TestBlind makes sure that the page says that processes cannot be seen only if that is
// known.
func TestBlind(t *testing.T) {
	d := apitest.Device("mlx5_0", 4)
	host := apitest.Host{Snapshot: &state.Snapshot{Devices: []state.DeviceState{d}}}
	const blind = "The exporter does not see the processes of the host"
	d.Resources.Inventory.PIDsVisible = false
	if !strings.Contains(page(t, host).Body.String(), blind) {
		t.Error("it is not said")
	}
	d.Resources.Inventory, d.Resources.Leaked = nil, []state.Leaked{{Type: "qp", Objects: 1}}
	if strings.Contains(page(t, host).Body.String(), blind) {
		t.Error("it is said without an inventory")
	}
}

// TestUnowned makes sure that there is nothing about owners where nobody holds anything.
func TestUnowned(t *testing.T) {
	d := apitest.Device("mlx5_0", 4)
	host := apitest.Host{Snapshot: &state.Snapshot{Devices: []state.DeviceState{d}}}
	const owners = "<h4>Owners</h4>"
	if !strings.Contains(page(t, host).Body.String(), owners) {
		t.Error("the owners are not there")
	}
	i := d.Resources.Inventory
	i.Owners, i.Others, i.Ownerless, i.Orphans, i.Untraced, i.Cgroups = nil, nil, nil, nil, nil, nil
	for _, err := range flaws(page(t, host).Body.String()) {
		t.Error(err)
	}
}
