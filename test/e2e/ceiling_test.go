package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/ceiling"
	"rdma_exporter/test/running"
)

// unused is a device that nobody uses, with few objects, and that is as more keys say.
func unused(more string) string {
	return `devices:
  - name: sim0
    like: sim_rxe0
    resources: {holders: []}
    limits: {max_qp: 40, max_cq: 50, max_srq: 60, max_mr: 70, max_pd: 80, max_ah: 90, max_qp_wr: 10, max_sge: 2, max_cqe: 10, max_srq_wr: 10, max_srq_sge: 2}
` + more
}

// ceilingOf runs the command ceiling to its end, which leaves no process.
func ceilingOf(t *testing.T, profile string, args ...string) result {
	t.Helper()
	program := filepath.Join(t.TempDir(), programName)
	if err := clone(binary, program); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { noneLeft(t, program) })
	return invoke(t, program, t.TempDir(), append([]string{"ceiling", "--provider=simulated", "--simulated.profile=" + running.File(t, "profile.yaml", profile)}, args...)...)
}

// decoded is what the command says as JSON.
func decoded(t *testing.T, r result) ceiling.Report {
	t.Helper()
	var report ceiling.Report
	d := json.NewDecoder(strings.NewReader(r.stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(&report); err != nil {
		t.Fatalf("%v: status %d, %q, %q", err, r.status, r.stdout, r.stderr)
	}
	return report
}

func TestCeiling(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]int64{"qp": 40, "cq": 50, "srq": 60, "mr": 70, "pd": 80, "ah": 90} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			r := ceilingOf(t, unused(""), "--device=sim0", "--type="+typ, "--yes", "--json")
			report := decoded(t, r)
			if r.status != 0 || r.stderr != "" || report.EndedBy != ceiling.EndDevice || report.Objects != want || report.Claimed == nil || *report.Claimed != want {
				t.Errorf("status %d, %q: %+v", r.status, r.stderr, report)
			}
			if report.Version != 1 || report.GivenBack != ceiling.ByVerbs || report.Left != 0 || report.Device != "sim0" || string(report.Type) != typ {
				t.Errorf("%+v", report)
			}
			// The kernel does not count address handles.
			if (report.Before == nil) != (typ == "ah") {
				t.Errorf("before: %v", report.Before)
			}
		})
	}
	t.Run("text", func(t *testing.T) {
		t.Parallel()
		r := ceilingOf(t, unused(""), "--device=sim0", "--type=qp", "--yes")
		lines := strings.Split(r.stdout, "\n")
		if r.status != 0 || r.stderr != "" || len(lines) != 4 || lines[0] != "sim0: 40 RC queue pairs; the device claims 40 (max_qp), of which these are 100 %" ||
			!strings.HasPrefix(lines[1], "A ceiling: ended by device: ibv_create_qp on sim0: ENOMEM") || !strings.Contains(lines[2], "Everything was given back") {
			t.Errorf("status %d, %q, %q", r.status, r.stdout, r.stderr)
		}
	})
}

// What does not begin touches nothing, ends with status 2, and says why in a line.
func TestCeilingRefuses(t *testing.T) {
	t.Parallel()
	used := unused("")
	used = strings.Replace(used, "resources: {holders: []}", "resources: {holders: [{pid: 4711, comm: trainer, objects: {qp: 3}}]}", 1)
	for _, c := range []struct {
		name, profile string
		args          []string
		want          []string
	}{
		{"unconfirmed", unused(""), []string{"--device=sim0", "--type=qp"}, []string{"objects of type qp on sim0 until one is refused", "up to 2m and with up to 1 GiB", "--yes"}},
		{"no such device", unused(""), []string{"--device=sim1", "--type=qp", "--yes"}, []string{`"sim1"`, `"sim0"`}},
		{"used", used, []string{"--device=sim0", "--type=qp", "--yes"}, []string{"trainer (process 4711) holds queue pairs", "--even-if-used"}},
		{"no device", unused(""), []string{"--type=qp", "--yes"}, []string{"--device"}},
		{"no type", unused(""), []string{"--device=sim0", "--yes"}, []string{"--type"}},
		{"a type that there is not", unused(""), []string{"--device=sim0", "--type=mw", "--yes"}, []string{"--type", "mw"}},
		{"no time", unused(""), []string{"--device=sim0", "--type=qp", "--within=0s", "--yes"}, []string{"--within"}},
		{"no memory", unused(""), []string{"--device=sim0", "--type=qp", "--memory=0", "--yes"}, []string{"--memory"}},
		{"a flag of others", unused(""), []string{"--device=sim0", "--type=qp", "--yes", "--probe.timeout=1s"}, []string{"--probe.timeout"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			refused(t, ceilingOf(t, c.profile, c.args...), 2, "", c.want)
		})
	}
	t.Run("even if used", func(t *testing.T) {
		t.Parallel()
		r := ceilingOf(t, used, "--device=sim0", "--type=qp", "--yes", "--even-if-used", "--json")
		if report := decoded(t, r); r.status != 0 || report.Objects != 40 || report.Before == nil || *report.Before != 3 {
			t.Errorf("status %d, %+v", r.status, report)
		}
	})
	// Nobody climbs by calling the child.
	t.Run("the child by hand", func(t *testing.T) {
		t.Parallel()
		r := invoke(t, binary, t.TempDir(), "climb", "--device=sim0")
		if r.status != 1 || r.stdout != "" || !strings.Contains(r.stderr, "the command ceiling") {
			t.Errorf("status %d, %q, %q", r.status, r.stdout, r.stderr)
		}
	})
}

// What ends by anything but a refusal has status 1.
func TestCeilingNotFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, keys string
		args       []string
		end        ceiling.End
		back       ceiling.GivenBack
		want       string
	}{
		{"time", "    latency: {ibv_create_cq: 100ms}\n", []string{"--type=cq", "--within=1s"}, ceiling.EndTime, ceiling.ByVerbs, "--within"},
		{"not offered", "    faults: [{verb: ibv_create_srq, errno: EOPNOTSUPP}]\n", []string{"--type=srq"}, ceiling.EndError, ceiling.ByVerbs, "EOPNOTSUPP"},
		{"cannot be opened", "    vanish: true\n", []string{"--type=cq", "--even-if-used"}, ceiling.EndError, ceiling.ByVerbs, "ibv_open_device"},
		{"crash", "    faults: [{verb: ibv_create_cq, after: 20, crash: true}]\n", []string{"--type=cq"}, ceiling.EndError, ceiling.ByKernel, "ended too early"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := ceilingOf(t, unused(c.keys), append([]string{"--device=sim0", "--yes", "--json"}, c.args...)...)
			report := decoded(t, r)
			if r.status != 1 || report.EndedBy != c.end || report.GivenBack != c.back || !strings.Contains(report.Detail, c.want) {
				t.Errorf("status %d, %+v", r.status, report)
			}
		})
	}
}

// However it is ended in the middle, its process ends too, and who can still speak says
// what was reached.
func TestCeilingInterrupted(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), programName)
			if err := clone(binary, program); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr running.Output
			cmd := exec.Command(program, "ceiling", "--provider=simulated", "--simulated.profile="+running.File(t, "p.yaml", unused("    latency: {ibv_alloc_pd: 1s}\n")),
				"--device=sim0", "--type=pd", "--yes", "--json")
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				noneLeft(t, program)
			})
			running.Eventually(t, "the climb runs", func() bool {
				return slices.ContainsFunc(processes(t, program), func(pid int) bool {
					line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
					return pid != cmd.Process.Pid && strings.Contains(string(line), "climb\x00")
				})
			})
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
				t.Fatal(err)
			}
			noneLeft(t, program)
			if sig == syscall.SIGKILL {
				return
			}
			r := result{status: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
			report := decoded(t, r)
			if r.status != 1 || r.stderr != "" || report.EndedBy != ceiling.EndInterrupted || report.GivenBack != ceiling.ByKernel {
				t.Errorf("status %d, %q, %+v", r.status, r.stderr, report)
			}
		})
	}
}

// A person in front of a terminal sees how far it has got; nobody else does, as the tests
// above see.
func TestCeilingOnTerminal(t *testing.T) {
	t.Parallel()
	person, program := newTerminal(t)
	cmd := exec.Command(binary, "ceiling", "--provider=simulated", "--simulated.profile="+running.File(t, "p.yaml", unused("    latency: {ibv_alloc_pd: 100ms, ibv_dealloc_pd: 100ms}\n")),
		"--device=sim0", "--type=pd", "--yes", "--within=3s")
	var stdout, shown running.Output
	cmd.Stdout, cmd.Stderr = &stdout, program
	go func() { _, _ = io.Copy(&shown, person) }() // until the test ends
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("%v: %s", err, shown.String())
	}
	running.Eventually(t, "both phases are shown", func() bool {
		return strings.Contains(shown.String(), "sim0: created ") && strings.Contains(shown.String(), " left to be given back")
	})
	for line := range strings.Lines(shown.String()) {
		if !strings.HasPrefix(line, "sim0: ") {
			t.Errorf("it shows %q", line)
		}
	}
	if !strings.Contains(stdout.String(), "ended by time_budget") || strings.Contains(stdout.String(), "created") {
		t.Errorf("standard output has %q", stdout.String())
	}
}
