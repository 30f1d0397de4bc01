//go:build remediation

package remediation_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

const (
	portDown  = "rdma port_down mlx5_3/1: 7 of 8 ports active; do=network"
	otherPort = "rdma port_down mlx5_4/1: 6 of 8 ports active; do=network"
	noDevice  = "rdma no_device: 0 of 8 devices; do=driver"
	allWell   = "rdma ok: 8 of 8 ports active, 8 devices"
	drain     = "IDLE+DRAIN"
	unknown   = "rdma exporter_unreachable: 127.0.0.1:10879; do=exporter"
)

// TestScripts runs the scripts one step after the other, with a script in place of the exporter's
// program, and compares state and reason of the node after each step. The steps are those that
// TestStates cannot produce.
func TestScripts(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 0, "")
	verdict := filepath.Join(c.folder, "verdict")
	c.set(t, "exporter="+verdict+"\noptions='--accept=a/* --for=2m'\n")
	// run runs a script as slurmd does, and returns its status.
	run := func(script string) int {
		cmd := exec.Command(filepath.Join(c.folder, script))
		cmd.Env = []string{"SLURMD_NODENAME=" + node}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		t.Logf("%s: status %d %s", script, cmd.ProcessState.ExitCode(), out)
		return cmd.ProcessState.ExitCode()
	}
	says := func(status, line string) string {
		return `[ "$*" = "verdict --accept=a/* --for=2m" ] || exit 9; printf '%s\n' '` + line + "'; exit " + status
	}
	administrator := func(args ...string) { c.control(t, append([]string{"update", "nodename=" + node}, args...)...) }

	steps := []struct {
		what          string
		before        func()
		verdict       string
		prolog        int // the status of the prolog, which is run instead of the health check; -1 otherwise
		state, reason string
	}{
		{"good", nil, says("0", allWell), -1, "IDLE", ""},
		{"bad", nil, says("1", portDown), -1, drain, portDown},
		{"bad in the same way", nil, says("1", otherPort), -1, drain, portDown},
		{"bad in another way", nil, says("1", noDevice), -1, drain, noDevice},
		{"one unknown verdict", nil, says("2", unknown), -1, drain, noDevice},
		{"good again", nil, says("0", allWell), -1, "IDLE", ""},
		{"unknown once", nil, says("2", unknown), -1, "IDLE", ""},
		{"unknown twice", nil, says("2", unknown), -1, "IDLE", ""},
		{"good between", nil, says("0", allWell), -1, "IDLE", ""},
		{"unknown once more", nil, says("2", unknown), -1, "IDLE", ""},
		{"unknown twice in a row", nil, "exit 2", -1, "IDLE", ""},
		{"unknown three times in a row", nil, says("2", unknown), -1, drain, unknown},
		{"bad after unknown", nil, says("1", portDown), -1, drain, portDown},
		{"unknown does not replace what is known", func() { c.write(t, "99") }, says("2", unknown), -1, drain, portDown},
		{"a note is added", func() { administrator("reason=" + portDown + ", cable ordered") }, says("0", allWell), -1, drain, portDown + ", cable ordered"},
		{"and stays", nil, says("1", noDevice), -1, drain, portDown + ", cable ordered"},
		{"an administrator resumes it", func() { administrator("state=resume") }, says("0", allWell), -1, "IDLE", ""},
		{"down", func() { administrator("state=down", "reason=power") }, says("1", portDown), -1, "DOWN", "power"},
		{"still down", nil, says("0", allWell), -1, "DOWN", "power"},
		{"down with a reason of ours", func() { administrator("reason=" + portDown) }, says("0", allWell), -1, "DOWN", portDown},
		{"up again", func() { administrator("state=resume") }, says("0", allWell), -1, "IDLE", ""},
		{"no program", nil, "rm -- \"$0\"; exit 3", -1, "IDLE", ""},
		{"no program anymore", nil, "", -1, "IDLE", ""},
		{"no program still", nil, "", -1, drain, "rdma verdict_failed: status 127 of " + verdict + "; do=exporter"},
		{"no verdict, whatever the status", func() { administrator("state=resume") }, "exit 0", 0, "IDLE", ""},
		{"a line with characters of the shell", nil, says("1", `rdma x: "$(id)" $HOME ; * \1; do=none`), -1, drain, `rdma x: "$(id)" $HOME ; * \1; do=none`},
		{"good in a prolog", func() { administrator("state=resume") }, says("0", allWell), 0, "IDLE", ""},
		{"unknown in a prolog", func() { c.write(t, "99") }, says("2", unknown), 0, "IDLE", ""},
		{"bad in a prolog", nil, says("1", portDown), 1, drain, portDown},
		{"bad in a prolog, and drained by another", func() { administrator("reason=mine") }, says("1", portDown), 1, drain, "mine"},
	}
	for _, step := range steps {
		if step.before != nil {
			step.before()
		}
		if step.verdict != "" {
			running.Program(t, verdict, step.verdict)
		}
		if step.prolog < 0 {
			if status := run("healthcheck"); status != 0 {
				t.Errorf("%s: the status of the health check is %d", step.what, status)
			}
		} else if status := run("prolog"); status != step.prolog {
			t.Errorf("%s: the status of the prolog is %d, want %d", step.what, status, step.prolog)
		}
		c.must(t, step.what, step.state, step.reason)
	}

	// What cannot be counted counts as too often. A file is in the place of the folder.
	administrator("state=resume")
	running.Check(t, os.RemoveAll(filepath.Join(c.folder, "run")))
	running.Check(t, os.WriteFile(filepath.Join(c.folder, "run"), nil, 0o600))
	running.Program(t, verdict, says("2", unknown))
	run("healthcheck")
	c.must(t, "what is unknown cannot be counted", drain, unknown)

	// Without the controller, the script fails, which slurmd logs.
	administrator("state=resume")
	c.daemon.Stop(t)
	c.controller.Stop(t)
	c.set(t, "exporter="+verdict+"\noptions='--accept=a/* --for=2m' scontrol_seconds=1\n")
	running.Program(t, verdict, says("1", portDown))
	if status := run("healthcheck"); status != 1 {
		t.Errorf("without a controller the status of the health check is %d", status)
	}
}

// write writes how many unknown verdicts have been counted.
func (c *cluster) write(t *testing.T, count string) {
	t.Helper()
	running.Check(t, os.MkdirAll(filepath.Join(c.folder, "run"), 0o700))
	running.Check(t, os.WriteFile(filepath.Join(c.folder, "run", "slurm-unknown"), []byte(strings.TrimSpace(count)+"\n"), 0o600))
}
