package e2e_test

import (
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/ceiling"
	"rdma_exporter/internal/refusal"
	"rdma_exporter/test/running"
)

// smallDevice is the profile of a device with few objects, and further keys.
func smallDevice(keys string) string {
	return `devices:
  - name: sim0
    like: sim_rxe0
    limits: {max_qp: 40, max_cq: 50, max_srq: 60, max_mr: 70, max_pd: 80, max_ah: 90, max_qp_wr: 10, max_sge: 2, max_cqe: 10, max_srq_wr: 10, max_srq_sge: 2}
` + keys
}

func ceilingArgs(t *testing.T, keys string, args ...string) []string {
	t.Helper()
	return append([]string{"ceiling", "--provider=simulated", "--simulated.profile=" + running.File(t, "profile.yaml", smallDevice(keys))}, args...)
}

const (
	idle = "    resources: {holders: []}\n"
	used = "    resources: {holders: [{pid: 4711, comm: trainer, objects: {qp: 3}}]}\n"
)

// decoded returns the report in JSON.
func decoded(t *testing.T, stdout string) (report ceiling.Report) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(&report); err != nil {
		t.Fatalf("%v: %q", err, stdout)
	}
	return report
}

func TestCeiling(t *testing.T) {
	t.Parallel()
	r := invoke(t, binary, t.TempDir(), ceilingArgs(t, used, "--device=sim0", "--type=qp", "--yes", "--even-if-used", "--json", "--memory=64GiB")...)
	report := decoded(t, r.stdout)
	if r.status != 0 || r.stderr != "" || report.EndedBy != refusal.Device || report.Objects != 40 || *report.Claimed != 40 || *report.Before != 3 || report.GivenBack != ceiling.ByVerbs {
		t.Errorf("status %d, %q: %+v", r.status, r.stderr, report)
	}
	r = invoke(t, binary, t.TempDir(), ceilingArgs(t, idle, "--device=sim0", "--type=qp", "--yes", "--memory=64GiB")...)
	if r.status != 0 || r.stderr != "" || !strings.HasPrefix(r.stdout, "sim0: 40 RC queue pairs; the device claims 40 (max_qp)\nA ceiling: ended by device: ibv_create_qp on sim0: ENOMEM") {
		t.Errorf("status %d, %q, %q", r.status, r.stdout, r.stderr)
	}
	// Address handles are not counted by the kernel.
	r = invoke(t, binary, t.TempDir(), ceilingArgs(t, idle+"    latency: {ibv_create_ah: 100ms}\n", "--device=sim0", "--type=ah", "--yes", "--within=1s", "--json", "--memory=64GiB")...)
	if report := decoded(t, r.stdout); r.status != 1 || report.EndedBy != ceiling.EndTime || report.Before != nil {
		t.Errorf("status %d, %+v", r.status, report)
	}
}

// TestCeilingRefuses verifies that what cannot begin ends with status 2, and says why in a line.
func TestCeilingRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, keys string
		args       []string
		want       []string
	}{
		{"unconfirmed", idle, []string{"--device=sim0", "--type=qp"}, []string{"objects of type qp on sim0 until one is refused", "up to 2m and with up to 1 GiB", "--yes"}},
		{"no such device", idle, []string{"--device=sim1", "--type=qp", "--yes"}, []string{`"sim1"`, `"sim0"`}},
		{"used", used, []string{"--device=sim0", "--type=qp", "--yes"}, []string{"trainer (process 4711) holds queue pairs", "--even-if-used"}},
		{"no device", idle, []string{"--type=qp", "--yes"}, []string{"--device"}},
		{"no type", idle, []string{"--device=sim0", "--yes"}, []string{"--type"}},
		{"unknown type", idle, []string{"--device=sim0", "--type=mw", "--yes"}, []string{"--type", "mw"}},
		{"no time", idle, []string{"--device=sim0", "--type=qp", "--within=0s", "--yes"}, []string{"--within"}},
		{"no memory", idle, []string{"--device=sim0", "--type=qp", "--memory=0", "--yes"}, []string{"--memory"}},
		{"a flag of others", idle, []string{"--device=sim0", "--type=qp", "--yes", "--probe.timeout=1s"}, []string{"--probe.timeout"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			refused(t, invoke(t, binary, t.TempDir(), ceilingArgs(t, c.keys, c.args...)...), 2, "", c.want)
		})
	}
}

// TestCeilingOnTerminal verifies that progress is shown on a terminal, and that a signal ends the
// search with a report.
func TestCeilingOnTerminal(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			person, program := newTerminal(t)
			cmd := exec.Command(binary, ceilingArgs(t, idle+"    latency: {ibv_alloc_pd: 100ms}\n", "--device=sim0", "--type=pd", "--yes", "--json", "--memory=64GiB")...)
			var stdout, shown running.Output
			cmd.Stdout, cmd.Stderr = &stdout, program
			go func() { _, _ = io.Copy(&shown, person) }() // until the test ends
			running.Check(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			running.Eventually(t, "progress is shown", func() bool { return strings.Contains(shown.String(), "sim0: created ") })
			running.Check(t, cmd.Process.Signal(sig))
			_ = cmd.Wait() // The status tells.
			report := decoded(t, stdout.String())
			if cmd.ProcessState.ExitCode() != 1 || report.EndedBy != ceiling.EndInterrupted || report.GivenBack != ceiling.ByKernel || report.Objects == 0 {
				t.Errorf("%v, %+v", cmd.ProcessState, report)
			}
			for line := range strings.Lines(shown.String()) {
				if !strings.HasPrefix(line, "sim0: ") {
					t.Errorf("it shows %q", line)
				}
			}
		})
	}
}
