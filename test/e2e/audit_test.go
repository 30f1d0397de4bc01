package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

// auditing is an exporter that audits once.
type auditing struct {
	// program is a name of the binary that only this exporter and its children run.
	program        string
	cmd            *exec.Cmd
	stdout, stderr running.Output
}

// newAudit returns an exporter that is to audit simulated devices, of a profile unless
// it is empty, without haste unless the arguments say so, and has not been started.
// Nothing of it may be left when the test has ended. Change is mostly nil.
func newAudit(t testing.TB, profile string, change func(*exec.Cmd), args ...string) *auditing {
	t.Helper()
	running.DependOn(t, binary)
	a := &auditing{program: filepath.Join(t.TempDir(), programName)}
	running.Check(t, clone(binary, a.program))
	all := []string{"audit"}
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--path.sysfs=") }) {
		all = append(all, "--provider=simulated")
	}
	if profile != "" {
		all = append(all, "--simulated.profile="+running.File(t, "profile.yaml", profile))
	}
	a.cmd = exec.Command(a.program, append(all, running.Unhurried(args...)...)...)
	a.cmd.Env = append(os.Environ(), "LC_ALL=C", "TERM=xterm", "COLUMNS=", "NO_COLOR=")
	a.cmd.Stdout, a.cmd.Stderr = &a.stdout, &a.stderr
	if change != nil {
		change(a.cmd)
	}
	t.Cleanup(func() {
		if a.cmd.Process != nil {
			_ = a.cmd.Process.Kill()
			_ = a.cmd.Wait()
		}
		noneLeft(t, a.program)
	})
	return a
}

// run runs it to its end.
func (a *auditing) run(t testing.TB) result {
	t.Helper()
	running.Check(t, a.cmd.Start())
	return a.end(t)
}

// end waits for the end.
func (a *auditing) end(t testing.TB) result {
	t.Helper()
	overdue := time.AfterFunc(running.Patience, func() { _ = a.cmd.Process.Kill() })
	err := a.cmd.Wait()
	if !overdue.Stop() {
		t.Fatalf("it did not end by itself:\n%s", a.stderr.Tail(2000))
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	r := result{status: a.cmd.ProcessState.ExitCode(), stdout: a.stdout.String(), stderr: a.stderr.String()}
	if strings.Contains(r.stderr, "panic") || strings.Contains(r.stderr, "goroutine ") {
		t.Errorf("standard error says\n%s", r.stderr)
	}
	return r
}

// children waits until it has so many children.
func (a *auditing) children(t testing.TB, n int) {
	t.Helper()
	running.Eventually(t, fmt.Sprintf("%d children run", n), func() bool {
		return len(slices.DeleteFunc(processes(t, a.program), func(pid int) bool { return pid == a.cmd.Process.Pid })) == n
	})
}

// alone is a profile with one device.
func alone(device string) string { return "devices:\n  - {name: " + device + "}\n" }

// rails is a profile with so many devices. The port of the last one is different.
func rails(devices int, last string) string {
	var b strings.Builder
	b.WriteString("devices:\n")
	for n := range devices {
		is := "state: active"
		if n == devices-1 {
			is = last
		}
		fmt.Fprintf(&b, "  - {name: rail%d, like: sim_siw0, ports: [{number: 1, %s, link_layer: Ethernet, active_mtu: 1024, pkeys: 1}]}\n", n, is)
	}
	return b.String()
}

const (
	healthyDevice = "sim0, like: sim_siw0"
	// hangingDevice hangs in the verb that it is mostly used with.
	hangingDevice = "sim0, like: sim_siw0, faults: [{verb: ibv_create_qp, hang: true}]"
)

// What was found decides the exit status, and the report says it first.
func TestAuditStatus(t *testing.T) {
	t.Parallel()
	hasty := []string{"--config.file=FILE", "--probe.timeout=5s", "--contract.timeout=5s"}
	for _, c := range []struct {
		name    string
		profile string
		args    []string
		// warning and critical are the statuses with that as --fail-on.
		warning, critical int
		want              []string
	}{
		{"healthy", alone(healthyDevice), nil, 0, 0, []string{": OK\n", "1 device (1 ok), 0 findings.", "No action needed."}},
		{"no active port", alone("sim0, like: sim_siw0, ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, pkeys: 1}]"), nil, 1, 1, []string{": CRITICAL\n", "CRITICAL  sim0: port 1 (port_down)"}},
		{
			"fewer active ports than expected", alone(healthyDevice),
			[]string{"--expect-active-ports=2"},
			1, 1,
			[]string{": CRITICAL\n", "CRITICAL  active_ports (unexpected)", "`active_ports: 2` is expected, but 1 of 1 port is active.", "the host is not as expected; exit status 1"},
		},
		{
			"little memory may be locked", alone("sim0, like: sim_siw0, registration: {memlock_bytes: 65536}"), nil, 1, 0,
			[]string{": WARNING\n", "WARNING   sim0: memory (memlock_refused)", "failed: mr: 2MiB: ibv_reg_mr", "ulimit -l"},
		},
		{"a dead rail", rails(2, "state: down"), nil, 1, 0, []string{": WARNING\n", "WARNING   rail1: port 1 (port_down)"}},
		{"a dead rail of eight that are expected", rails(8, "state: down"), []string{"--config.file=EXPECT"}, 1, 1, []string{
			": CRITICAL\n", "CRITICAL  rail7: active_ports (unexpected)", "`active_ports: 8` is expected, but 7 of 8 ports are active, port 1 is", "Same root cause: port 1 (port_down).",
		}},
		{"a dead rail that is accepted", rails(2, "state: down"), []string{"--config.file=BOTH", "--accept=unexpected/active_ports"}, 0, 0, []string{": OK\n"}},
		{"both rails as expected", rails(2, "state: active"), []string{"--config.file=BOTH"}, 0, 0, []string{": OK\n"}},
		{"a rail with a lower MTU", rails(1, "state: active"), []string{"--config.file=MTU", "--brief"}, 1, 0, []string{"rail0  warning", "`mtu: 4096` is expected of rail0, but port 1 has 1024.", "\nVerdict: WARNING"}},
		{"no device, though eight are expected", "devices: []\n", []string{"--config.file=EXPECT"}, 1, 1, []string{
			": CRITICAL\n", "CRITICAL  devices (unexpected)", "`devices: 8` is expected, but there are 0.", "the host is not as expected; exit status 1",
		}},
		{"no time", alone("sim0, like: sim_siw0, faults: [{verb: ibv_create_qp, delay: 20s}]"), []string{"--within=2s"}, 1, 1, []string{": UNKNOWN\n", "Not audited in time: the probes, the contracts", "1 device not fully audited within 2s; exit status "}},
		{"in brief", alone(healthyDevice), []string{"--brief"}, 0, 0, []string{"sim0  ok  port active, 18 contracts kept", "\nVerdict: OK, 1 device: 1 ok; exit status 0 (--fail-on="}},
		{
			"violated warning",
			alone("sim0, like: sim_siw0, violate: [channel_destroy_busy]"),
			nil, 1, 0,
			[]string{": WARNING\n", "WARNING   sim0: channel_destroy_busy (contract_violated)", "17 hold, 1 violated, 11 skipped", "violated: channel_destroy_busy (warning)", "asked: ", "expected: ", "observed: "},
		},
		{
			"violated critical",
			alone("sim0, like: sim_siw0, violate: [cq_destroy_busy]"),
			nil, 1, 1,
			[]string{": CRITICAL\n", "CRITICAL  sim0: cq_destroy_busy (contract_violated)", "violated: cq_destroy_busy (critical)"},
		},
		{
			"accepted",
			alone("sim0, like: sim_siw0, violate: [cq_destroy_busy, channel_destroy_busy]"),
			[]string{"--accept=contract_violated/cq_destroy_busy", "--accept=contract_violated/channel_destroy_busy"},
			0, 0,
			[]string{": OK\n", "contract_violated, cq_destroy_busy, critical:", "--accept=contract_violated/cq_destroy_busy"},
		},
		{"hang", alone(hangingDevice), hasty, 1, 1, []string{": CRITICAL\n", "(run_aborted)", "Probes     timeout in ", "in ibv_create_qp"}},
		{"crash", alone("sim0, like: sim_siw0, faults: [{verb: ibv_create_srq, crash: true}]"), nil, 1, 1, []string{": CRITICAL\n", "Probes     crashed in ", "ibv_create_srq"}},
		{
			"one of several", "devices:\n  - {name: " + healthyDevice + "}\n  - {name: sim1, like: sim_siw0, vanish: true}\n", nil, 1, 1,
			[]string{"2 devices (1 critical, 1 ok)", "CRITICAL  sim1: ", "sim0    ok ", "sim1    critical "},
		},
		{
			"the other one", "devices:\n  - {name: " + healthyDevice + "}\n  - {name: sim1, like: sim_siw0, vanish: true}\n",
			[]string{"--device=sim0"},
			0, 0,
			[]string{": OK\n", "1 device (1 ok)"},
		},
		{
			"all but one", "devices:\n  - {name: " + healthyDevice + "}\n  - {name: sim1, like: sim_siw0, vanish: true}\n",
			[]string{"--device.exclude=.*1"},
			0, 0,
			[]string{": OK\n", "1 device (1 ok)"},
		},
	} {
		for failOn, want := range map[string]int{"warning": c.warning, "critical": c.critical} {
			t.Run(c.name+" "+failOn, func(t *testing.T) {
				t.Parallel()
				args := quickly("--fail-on=" + failOn)
				for _, arg := range c.args {
					for name, text := range map[string]string{
						"FILE": "probe: {destroy_timeout: 100ms}\n", "EXPECT": "expect: {devices: 8, active_ports: 8}\n", "BOTH": "expect: {devices: 2, active_ports: 2}\n",
						"MTU": "expect: [{device: rail0, mtu: 4096}]\n",
					} {
						arg = strings.ReplaceAll(arg, name, running.File(t, "config.yaml", text))
					}
					args = append(args, arg)
				}
				r := newAudit(t, c.profile, nil, args...).run(t)
				if r.status != want || r.stderr != "" {
					t.Errorf("status %d, standard error %q, want %d", r.status, r.stderr, want)
				}
				for _, w := range c.want {
					if !strings.Contains(r.stdout, w) {
						t.Errorf("the report does not say %q:\n%s", w, r.stdout)
					}
				}
				for line := range strings.Lines(r.stdout) {
					if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) }) {
						t.Errorf("the line %q has more than ASCII", line)
					}
				}
			})
		}
	}
}

// Without a word about it, warnings count. What is known of a driver does not.
func TestAuditDefault(t *testing.T) {
	t.Parallel()
	r := newAudit(t, `devices:
  - {name: known0, like: sim_rxe0}
  - {name: warned0, like: sim_rxe0, violate: [channel_destroy_busy]}
`, nil, quickly()...).run(t)
	for _, want := range []string{"all 2: breaks srq_reports_actual, qp_reports_actual, as its driver is known to", "Verdict: WARNING, 2 devices: 1 warning, 1 ok; exit status 1 (--fail-on=warning)."} {
		if text := strings.Join(strings.Fields(r.stdout), " "); strings.Count(text, want) != 1 {
			t.Errorf("it says %q %d times:\n%s", want, strings.Count(text, want), r.stdout)
		}
	}
	if r.status != 1 || !strings.Contains(r.stdout, "2 devices (1 warning, 1 ok)") {
		t.Errorf("status %d:\n%s", r.status, r.stdout)
	}
}

// What cannot be done is status 2, with what is wrong and what to do.
func TestAuditRefused(t *testing.T) {
	t.Parallel()
	notFolder := t.TempDir()
	running.Check(t, os.MkdirAll(filepath.Join(notFolder, "class"), 0o755))
	running.Check(t, os.WriteFile(filepath.Join(notFolder, "class", "infiniband"), nil, 0o644))
	fifo := filepath.Join(t.TempDir(), "fifo")
	running.Check(t, unix.Mkfifo(fifo, 0o600))
	for _, c := range []struct {
		name    string
		profile string
		args    []string
		// report tells that there is a report nevertheless.
		report bool
		want   []string
	}{
		{"no such device", "", []string{"--device=rxe0"}, false, []string{"--device", "whole name", `"sim_ib0", "sim_rxe0", "sim_siw0"`}},
		{"part of a name", "", []string{"--device=rxe"}, false, []string{"whole name"}},
		{"all excluded", "", []string{"--device.exclude=.*"}, false, []string{"--device.exclude", `"sim_ib0"`}},
		{"no devices", "devices: []\n", nil, true, []string{"No simulated device was found."}},
		{"no devices, though one is asked for", "devices: []\n", []string{"--device=rxe0"}, true, []string{"No simulated device was found."}},
		{"no hardware", "", []string{"--path.sysfs=" + t.TempDir()}, true, []string{"No RDMA device was found."}},
		{"discovery fails", "", []string{"--path.sysfs=" + notFolder}, true, []string{"could not be listed", "not a directory"}},
		{"sysfs", "", []string{"--path.sysfs=/no/such/folder"}, false, []string{"--path.sysfs", "no such file"}},

		{"format", "", []string{"--format=xml"}, false, []string{"--format", "text,json,prometheus", "xml"}},
		{"fail on", "", []string{"--fail-on=info"}, false, []string{"--fail-on", "warning,critical"}},
		{"no time at all", "", []string{"--within=10ms"}, false, []string{"--within is 10ms: use a duration from 1s"}},
		{"brief JSON", "", []string{"--brief", "--format=json"}, false, []string{"--brief is for --format=text"}},
		{"fewer ports than none", "", []string{"--expect-active-ports=-1"}, false, []string{"--expect-active-ports is -1: use a number from 0"}},
		{"expectations that are wrong", "", []string{"--config.file=WRONG"}, false, []string{"--config.file", "expect.rate is \"fast\": use a rate such as 400Gb/s or 200G"}},
		{"a report and an expectation", "", []string{"--write-expect=-", "--brief"}, false, []string{"--write-expect writes no report: leave out --output, --brief and --format"}},
		{"expectation a pipe", "", []string{"--write-expect=" + fifo}, false, []string{"--write-expect", "not a regular file"}},
		{"expectation in another file", "", []string{"--write-expect=WRONG"}, false, []string{"--write-expect", "has more than the key expect"}},
		{"expectation of a port that is down", rails(2, "state: down"), []string{"--write-expect=-"}, false, []string{`"rail1" is not in order: 0 of 1 port active: port 1 is down`, `--accept=port_down/"port 1"`}},
		{"expectation of a device that fails", alone(hangingDevice), []string{"--probe.timeout=5s", "--contract.timeout=5s", "--write-expect=-"}, false, []string{`"sim0" is not in order: The last run of the probes`}},
		{"expectation of nothing", "devices: []\n", []string{"--write-expect=-"}, false, []string{"--write-expect: No simulated device was found."}},
		{"accept", "", []string{"--accept=contract/notify_any"}, false, []string{"--accept", `"contract"`, "docs/reference/findings.md"}},
		{"expression", "", []string{"--device=("}, false, []string{"--device", "missing closing"}},
		{"flag of serve", "", []string{"--web.listen-address=:1"}, false, []string{"--web.listen-address"}},
		{"interval", "", []string{"--inventory.interval=1s"}, false, []string{"--inventory.interval"}},
		{"argument", "", []string{"sim_rxe0"}, false, []string{"sim_rxe0"}},
		{"numbers", "", []string{"--probe.timeout=0s", "--probe.concurrency=0", "--notification.vectors=513"}, false, []string{
			"--probe.timeout is 0s", "--probe.concurrency is 0", "--notification.vectors is 513",
		}},

		{"output a folder", "", []string{"--output=" + t.TempDir()}, false, []string{"--output", "is a directory", "name a file in it"}},
		{"output a device", "", []string{"--output=/dev/null"}, false, []string{"--output /dev/null", "not a regular file", "redirect standard output"}},
		{"output a pipe", "", []string{"--output=" + fifo}, false, []string{"--output", "not a regular file"}},
		{"output nowhere", "", []string{"--output=/no/such/folder/rdma.prom"}, false, []string{"--output", "no such file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for i, arg := range c.args {
				c.args[i] = strings.ReplaceAll(arg, "WRONG", running.File(t, "wrong.yaml", "expect: {rate: fast}\nprobe: {}\n"))
			}
			r := newAudit(t, c.profile, nil, c.args...).run(t)
			if r.status != 2 || !strings.HasPrefix(r.stderr, programName+": error: ") {
				t.Errorf("status %d, standard error %q", r.status, r.stderr)
			}
			for _, w := range c.want {
				if !strings.Contains(r.stderr, w) {
					t.Errorf("standard error does not say %q: %s", w, r.stderr)
				}
			}
			if c.report != strings.Contains(r.stdout, "To do (") || !c.report && r.stdout != "" {
				t.Errorf("the report is %q", r.stdout)
			}
			if strings.Contains(r.stderr, "supervisor") {
				t.Errorf("standard error speaks of the inside: %s", r.stderr)
			}
		})
	}
}

// A quick audit leaves out what takes long and says so. A device that hangs does not keep it from
// reporting the others.
func TestAuditQuick(t *testing.T) {
	t.Parallel()
	profile := "devices:\n  - {name: sim0, like: sim_siw0, faults: [{verb: ibv_create_qp, hang: true}]}\n" +
		"  - {name: sim1, like: sim_ib0, violate: [cq_destroy_busy]}\n  - {name: sim2, like: sim_rxe0}\n"
	for _, tc := range []struct {
		args   []string
		status int
		found  string
	}{
		{[]string{"--probe.timeout=20s"}, 1, ", 3 devices: 1 critical, 2 ok; exit status 1 "},
		{[]string{"--device=sim0", "--probe.timeout=10s"}, 1, "timed out after 5s in ibv_create_qp"}, // 10s is the default
		{[]string{"--device=sim[12]"}, 0, ", 2 devices: 2 ok; exit status 0 "},
	} {
		r := newAudit(t, profile, nil, append(tc.args, "--quick", "--brief", "--fail-on=critical")...).run(t)
		const left = "Not checked: contracts, large sizes, further queue pair types, inline data, notification on further ports and completion vectors.\n"
		if r.status != tc.status || r.stderr != "" || !strings.Contains(r.stdout, tc.found) || !strings.HasSuffix(r.stdout, left) {
			t.Errorf("status %d, standard error %q:\n%s", r.status, r.stderr, r.stdout)
		}
	}
	var s api.Status
	running.Check(t, json.Unmarshal([]byte(newAudit(t, profile, nil, "--quick", "--format=json", "--probe.timeout=20s").run(t).stdout), &s))
	if len(s.NotChecked) == 0 || len(s.Devices) != 3 || s.Devices[0].Last.Outcome != state.OutcomeTimeout {
		t.Fatalf("%+v", s)
	}
	for _, d := range s.Devices[1:] {
		if d.Last.Outcome != state.OutcomeOK || d.Last.Depth != state.DepthShort || len(d.Last.Probes) != 6 || d.Contracts != nil ||
			d.Resources.Last.Outcome != state.OutcomeOK || d.Hardware.Latest == nil || d.OutOfTime != nil {
			t.Errorf("%s: %+v", d.Name, d.DeviceState)
		}
	}
}

// The Slurm job of an owner is in each format.
func TestAuditSlurmJob(t *testing.T) {
	t.Parallel()
	const profile = "devices:\n  - name: sim0\n    like: sim_siw0\n    resources: {holders: [{pid: 7, comm: python3, objects: {qp: 3}, " +
		"cgroup: /system.slice/slurmstepd.scope/job_4711/step_0/user/task_0}]}\n"
	for format, want := range map[string]string{
		"text": "; Slurm job 4711\n", "json": `"slurm_job_id": "4711"`, "prometheus": `rdma_resource_owner_objects{comm="python3",container_id="",device="sim0",pod_uid="",slurm_job_id="4711",type="qp"} 3`,
	} {
		if r := newAudit(t, profile, nil, "--quick", "--format="+format).run(t); r.status != 0 || !strings.Contains(r.stdout, want) {
			t.Errorf("status %d, and it does not say %q:\n%s", r.status, want, r.stdout)
		}
	}
}

func TestAuditHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"audit", "--help"}, {"audit", "-h"}, {"help", "audit"}} {
		r := invoke(t, binary, t.TempDir(), args...)
		if r.status != 0 || r.stderr != "" {
			t.Errorf("%v: status %d, standard error %q", args, r.status, r.stderr)
		}
		golden.Check(t, filepath.Join("testdata", "help_audit.txt"), r.stdout)
	}
	if r := invoke(t, binary, t.TempDir(), "--help"); !strings.Contains(r.stdout, "\n  audit\n") {
		t.Errorf("the help does not speak of the command:\n%s", r.stdout)
	}
}

func TestAuditJSON(t *testing.T) {
	t.Parallel()
	// All of its vectors are used, as is asked for by hand. A busy machine needs its time for each.
	r := newAudit(t, "", nil, "--format=json", "--notification.samples=5", "--notification.vectors=512", "--probe.timeout=2m").run(t)
	if r.status != 0 || r.stderr != "" {
		t.Errorf("status %d, standard error %q", r.status, r.stderr)
	}
	dec := json.NewDecoder(strings.NewReader(r.stdout))
	dec.DisallowUnknownFields()
	var s api.Status
	if err := dec.Decode(&s); err != nil {
		t.Fatalf("%v\n%s", err, r.stdout)
	}
	if dec.More() || !strings.Contains(r.stdout, "\n  \"devices\": [\n") {
		t.Error("it is not one value, or not indented")
	}
	if s.Version != api.Version || !s.Simulated || !s.Ready || s.Health != health.OK || s.Problem != nil || len(s.Devices) != 3 {
		t.Errorf("status %+v", s)
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Last == nil || d.Contracts == nil || d.Contracts.Last == nil || d.Resources == nil || d.Resources.Taken.IsZero() ||
			d.Contracts.Last.Started.Before(d.Last.Started) || d.Resources.Taken.Before(d.Contracts.Last.Started) {
			t.Errorf("device %+v", d)
		}
		if want := d.Info.CompletionVectors; len(d.Vectors()) != want {
			t.Errorf("%s has %d vectors, want %d", d.Name, len(d.Vectors()), want)
		}
		if len(d.Stale) > 0 {
			t.Errorf("%s is stale", d.Name)
		}
	}
}

// The metrics are those that the exporter serves, without those of its own process.
func TestAuditPrometheus(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rdma.prom")
	r := newAudit(t, "", nil, "--format=prometheus", "--output="+path, "--notification.samples=5").run(t)
	if r.status != 0 || r.stdout != "" || r.stderr != "" {
		t.Errorf("status %d, standard output %q, standard error %q", r.status, r.stdout, r.stderr)
	}
	b := running.Must(os.ReadFile(path))(t)
	text := string(b)
	checkExposition(t, text)
	m := parse(t, text)
	m.want(t, 3, "rdma_devices")
	if n := len(m.all("rdma_exporter_build_info")); n != 1 {
		t.Errorf("%d samples of rdma_exporter_build_info", n)
	}
	for _, device := range []string{"sim_rxe0", "sim_siw0", "sim_ib0"} {
		m.want(t, 1, "rdma_probe_runs_total", "device", device, "outcome", "ok")
		m.want(t, 1, "rdma_contract_runs_total", "device", device, "outcome", "ok")
		m.want(t, 1, "rdma_inventory_runs_total", "device", device, "outcome", "ok")
		m.want(t, 1, "rdma_inventory_success", "device", device)
		m.want(t, 0, "rdma_probe_stuck", "device", device, "verb", "")
		wantEachJudged(t, m, device)
	}
	if got := m.violated("sim_rxe0"); !slices.Equal(got, []string{"qp_reports_actual", "srq_reports_actual"}) {
		t.Errorf("violated are %q", got)
	}
	// node_exporter refuses files with timestamps, and has these names itself.
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "go_") || strings.HasPrefix(line, "process_") || strings.HasPrefix(line, "promhttp_") {
			t.Errorf("a metric of the process: %s", line)
		}
		if _, value, _ := strings.Cut(line[strings.LastIndexByte(line, '}')+1:], " "); !strings.HasPrefix(line, "#") && strings.Contains(strings.TrimSpace(value), " ") {
			t.Errorf("a timestamp: %s", line)
		}
	}

	e := start(t, "--provider=simulated")
	e.judged(t, "sim_rxe0", "sim_siw0", "sim_ib0")
	served := e.inventoried(t, "sim_rxe0", "sim_siw0", "sim_ib0")
	// An audit has no log, reloads nothing, and has no past.
	lasting := []string{"go_", "process_", "promhttp_", "rdma_exporter_log_", "rdma_exporter_config_", "rdma_exporter_boot_", "rdma_exporter_maintenance_", "rdma_finding_first_seen_"}
	for name := range served {
		own := slices.ContainsFunc(lasting, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if !own && m[name] == nil {
			t.Errorf("%s is served, but not in the file", name)
		}
	}
}

// A host without devices has a report, too: a collector would else show for ever what
// was there before.
func TestAuditPrometheusWithoutDevices(t *testing.T) {
	t.Parallel()
	path := running.File(t, "rdma.prom", "rdma_devices 3\n")
	r := newAudit(t, "", nil, "--path.sysfs="+t.TempDir(), "--format=prometheus", "--output="+path).run(t)
	b, err := os.ReadFile(path)
	if err != nil || r.status != 2 {
		t.Fatalf("status %d, %v", r.status, err)
	}
	checkExposition(t, string(b))
	parse(t, string(b)).want(t, 0, "rdma_devices")
}

// folder returns what is in a folder.
func folder(t testing.TB, path string) []string {
	t.Helper()
	entries := running.Must(os.ReadDir(path))(t)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// quickly leaves out what takes time.
func quickly(args ...string) []string { return append([]string{"--notification.samples=0"}, args...) }

// A report replaces what was there before, whatever the umask, and nothing else.
func TestAuditOutput(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"none", "file", "link"} {
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			dir, other := t.TempDir(), running.File(t, "other", "something else")
			path := filepath.Join(dir, "rdma.prom")
			switch before {
			case "file":
				running.Check(t, os.WriteFile(path, []byte("old"), 0o600))
			case "link":
				running.Check(t, os.Symlink(other, path))
			}
			a := newAudit(t, alone(healthyDevice), nil, quickly("--format=prometheus", "--output="+path)...)
			a.cmd = exec.Command("sh", append([]string{"-c", `umask 077; exec "$@"`, "sh"}, a.cmd.Args...)...)
			if r := a.run(t); r.status != 0 || r.stdout != "" {
				t.Errorf("status %d, standard output %q", r.status, r.stdout)
			}
			info, err := os.Lstat(path)
			if err != nil || info.Mode() != 0o644 {
				t.Fatalf("%v, mode %v", err, info.Mode())
			}
			if b, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(b), "# HELP") {
				t.Errorf("%v: %.40q", err, b)
			}
			if got := folder(t, dir); !slices.Equal(got, []string{"rdma.prom"}) {
				t.Errorf("the folder has %q", got)
			}
			if b, err := os.ReadFile(other); err != nil || string(b) != "something else" {
				t.Errorf("%v: the other file has %q", err, b)
			}
		})
	}
}

// Standard output may be full, or its reader gone.
func TestAuditStandardOutput(t *testing.T) {
	t.Parallel()
	t.Run("full", func(t *testing.T) {
		t.Parallel()
		full := running.Must(os.OpenFile("/dev/full", os.O_WRONLY, 0))(t)
		defer func() { _ = full.Close() }()
		r := newAudit(t, alone(healthyDevice), func(cmd *exec.Cmd) { cmd.Stdout = full }, quickly()...).run(t)
		if r.status != 2 || !strings.Contains(r.stderr, "standard output") || !strings.Contains(r.stderr, "no space left on device") {
			t.Errorf("status %d, standard error %q", r.status, r.stderr)
		}
	})
	t.Run("gone", func(t *testing.T) {
		t.Parallel()
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		a := newAudit(t, alone(healthyDevice), func(cmd *exec.Cmd) { cmd.Stdout = writer }, quickly()...)
		running.Check(t, errors.Join(a.cmd.Start(), reader.Close(), writer.Close()))
		r := a.end(t)
		if ws := a.cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGPIPE || r.stderr != "" {
			t.Errorf("it ended with %v, standard error %q, want SIGPIPE and nothing", a.cmd.ProcessState, r.stderr)
		}
	})
}

// A signal ends it with its children, and neither a report nor half of one is left.
func TestAuditInterrupted(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "rdma.prom")
			running.Check(t, os.WriteFile(path, []byte("old"), 0o644))
			a := newAudit(t, hangProfile(3, "ibv_create_cq"), nil, "--device=hang.*", "--probe.timeout=1h", "--output="+path)
			running.Check(t, a.cmd.Start())
			a.children(t, 2)
			running.Check(t, a.cmd.Process.Signal(signal))
			r := a.end(t)
			if r.status != 2 || r.stdout != "" || r.stderr != programName+": error: interrupted: no report was written\n" {
				t.Errorf("status %d, standard output %q, standard error %q", r.status, r.stdout, r.stderr)
			}
			if b, err := os.ReadFile(path); err != nil || string(b) != "old" || len(folder(t, dir)) != 1 {
				t.Errorf("%v: the file has %q, the folder %q", err, b, folder(t, dir))
			}
		})
	}
}

// newTerminal returns both sides of a terminal: what a person has, and what a program
// is given.
func newTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person = running.Must(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { _ = person.Close() })
	running.Check(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	n := running.Must(unix.IoctlGetUint32(int(person.Fd()), unix.TIOCGPTN))(t)
	program = running.Must(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	running.Check(t, unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}))
	return person, program
}

// A person in front of a terminal sees how it gets on, in colours unless they are not
// wanted; nobody else does.
func TestAuditOnTerminal(t *testing.T) {
	t.Parallel()
	const colour = "\x1b[1m"
	for _, c := range []struct {
		name           string
		stdout, stderr bool // whether it is the terminal
		progress       bool
		colour         bool
	}{
		{"both", true, true, true, true},
		{"standard output only", true, false, false, true},
		{"standard error only", false, true, true, true},
		{"none", false, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			person, program := newTerminal(t)
			a := newAudit(t, alone("sim0, like: sim_siw0, violate: [cq_destroy_busy]"), func(cmd *exec.Cmd) {
				if c.stdout {
					cmd.Stdout = program
				}
				if c.stderr {
					cmd.Stderr = program
				}
			}, quickly()...)
			var seen bytes.Buffer
			read := make(chan struct{})
			go func() {
				defer close(read)
				_, _ = seen.ReadFrom(person) // EIO is its end
			}()
			err := a.cmd.Start()
			_ = program.Close()
			if err != nil {
				t.Fatal(err)
			}
			r := a.end(t)
			<-read // when nobody has the other side any more
			if r.status != 1 {
				t.Errorf("status %d", r.status)
			}
			text := strings.ReplaceAll(seen.String(), "\r\n", "\n")
			if got := strings.Contains(text, colour); got != c.colour {
				t.Errorf("colours: %v, want %v:\n%q", got, c.colour, text)
			}
			if strings.Contains(r.stdout+r.stderr, "\x1b") {
				t.Errorf("there are colours in what is no terminal:\n%q\n%q", r.stdout, r.stderr)
			}
			plain := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(text, "")
			steps := regexp.MustCompile(`(?m)^(probes|contracts|inventory) +1/1 sim0 +ok +\S+ \S+$`).FindAllString(plain, -1)
			if want := map[bool]int{true: 3}[c.progress]; len(steps) != want {
				t.Errorf("%d steps, want %d:\n%s", len(steps), want, plain)
			}
			if c.stdout != strings.Contains(plain, "RDMA devices") || c.stdout == strings.Contains(r.stdout, "RDMA devices") {
				t.Errorf("the report is not where it should be:\n%s\n%s", plain, r.stdout)
			}
			if !c.stderr && r.stderr != "" {
				t.Errorf("standard error has %q", r.stderr)
			}
			// The terminal has 100 columns.
			if c.stdout && !strings.Contains(plain, strings.Repeat("=", 80)) {
				t.Errorf("the report is narrow:\n%s", plain)
			}
		})
	}
}

// TestWriteExpect verifies that a host is as was learnt of it, and that a later loss is critical.
func TestWriteExpect(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "expect.yaml")
	for range 2 { // The second one replaces the first.
		r := newAudit(t, rails(2, "state: active"), nil, "--write-expect="+file).run(t)
		if r.status != 0 || r.stdout != "" || r.stderr != "" {
			t.Fatalf("%+v", r)
		}
	}
	b, err := os.ReadFile(file)
	running.Check(t, err)
	if want := "expect:\n  - devices: 2\n    active_ports: 2\n    rate: 100Gb/s\n    mtu: 1024\n"; string(b) != want {
		t.Errorf("got\n%s\nwant\n%s", b, want)
	}
	for last, want := range map[string]int{"state: active": 0, "state: down": 1} {
		if r := newAudit(t, rails(2, last), nil, "--fail-on=critical", "--config.file="+file).run(t); r.status != want {
			t.Errorf("%s: status %d\n%s", last, r.status, r.stdout)
		}
	}
	r := newAudit(t, rails(2, "state: down"), nil, "--accept=port_down/port 1", "--write-expect=-").run(t)
	if r.status != 0 || !strings.HasPrefix(r.stdout, "expect:\n  - device: rail0\n") || !strings.Contains(r.stdout, "- device: rail1\n    devices: 1\n    active_ports: 0\n") {
		t.Errorf("%+v", r)
	}
}
