//go:build vm

package softroce

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/health"
	"rdma_exporter/test/running"
)

// startAudit starts the command audit, which is patient if its first flag is not of
// the probes' time.
func startAudit(t *testing.T, o options) (e *exporter, stdout *bytes.Buffer) {
	t.Helper()
	if o.binary == "" {
		o.binary = exporterFile
	}
	args := append(append([]string{}, o.wrap...), o.binary, "audit")
	if len(o.flags) == 0 || !strings.HasPrefix(o.flags[0], "--probe.timeout") {
		args = append(args, patient()...)
	}
	args = append(args, o.flags...)
	e = &exporter{t: t, cmd: exec.Command(args[0], args[1:]...), log: &running.Output{}, done: make(chan struct{})}
	stdout = new(bytes.Buffer)
	e.cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "COLUMNS=100")
	e.cmd.Stdout = stdout
	e.begin()
	return e, stdout
}

// exit waits for the end, and returns the exit status.
func (e *exporter) exit() int {
	e.t.Helper()
	select {
	case <-e.done:
	case <-time.After(2 * patience):
		e.t.Fatalf("the audit has not ended within %v", 2*patience)
	}
	if exit := (*exec.ExitError)(nil); e.err != nil && !errors.As(e.err, &exit) && !errors.Is(e.err, exec.ErrWaitDelay) {
		e.t.Fatal(e.err)
	}
	return e.cmd.ProcessState.ExitCode()
}

// audit runs the command audit, which must end with a status and say all of want. The
// kernel must hold what it held before.
func audit(t *testing.T, status int, o options, want ...string) string {
	t.Helper()
	before := resources(t)
	defer awaitResources(t, before)
	return auditBeside(t, status, o, want...)
}

// auditBeside is audit while others hold this and that.
func auditBeside(t *testing.T, status int, o options, want ...string) string {
	t.Helper()
	e, stdout := startAudit(t, o)
	if got := e.exit(); got != status {
		t.Errorf("the status is %d, want %d; standard error:\n%s", got, status, e.log)
	}
	// Words, wherever the lines end.
	text := strings.Join(strings.Fields(stdout.String()), " ")
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("the report does not say %q", w)
		}
	}
	t.Logf("rdma_exporter audit %s ended with status %d and said\n%s%s", strings.Join(o.flags, " "), e.cmd.ProcessState.ExitCode(), stdout, e.log)
	return stdout.String()
}

// The device whose port is active and the one whose port is down, as text.
func TestAuditCommand(t *testing.T) {
	t.Run("active", func(t *testing.T) {
		// What Soft-RoCE breaks is known of it.
		text := audit(t, 0, options{flags: []string{"--device=" + active}},
			": OK", "1 device (1 ok), 0 findings", "Device driver rxe, ", " hold, 0 violated, ", " violated as the driver is known to, 0 skipped",
			"srq_limit_ignored: Creation arms srq_limit. Set srq_limit to 0 when creating", "══ "+active+": ok", "Port 1 active, Ethernet", "Probes ok in ", "notification ok", "Contracts ok in ",
			"cq entries 16→31", "1 loopback any ", "1 loopback poll ", "Completion vectors: ", "Objects type used limit", "Queue pairs: ")
		if strings.Contains(text, "leaked") || strings.Contains(text, "orphaned") || strings.Contains(text, "\x1b") {
			t.Errorf("it says that something leaked, or has colours")
		}
	})
	t.Run("port down", func(t *testing.T) {
		text := audit(t, 1, options{flags: []string{"--device=" + down}},
			": CRITICAL", "CRITICAL "+down+": port 1 ("+string(health.FindingPortDown)+")", "To do (", "Port 1 down, Ethernet", "skipped: notification: loopback port 1: ", "(port_down)", "1 flush any ")
		if strings.Contains(text, "1     loopback") {
			t.Error("it tells of messages by way of a port that is down")
		}
	})
}

// An exporter that probes meanwhile is in nobody's way.
func TestAuditCommandBesideExporter(t *testing.T) {
	e := start(t, options{flags: []string{"--contract.interval=1s", "--inventory.interval=1s"}})
	e.rounds(1)
	auditBeside(t, 0, options{flags: []string{"--device=" + active}}, ": OK", "Probes ok in ", "Contracts ok in ", "Resources ok in ")
	m := e.rounds(1)
	m.allOK(t, active)
	m.allOK(t, down)
	e.terminate()
}

// The command verdict asks the exporter and opens no device; an audit opens it.
func TestAuditAndVerdictOpen(t *testing.T) {
	e := start(t, options{})
	e.rounds(1)
	for _, c := range []struct {
		args  []string
		opens bool
	}{
		{[]string{"verdict", "--url=" + e.url}, false},
		{[]string{"audit", "--quick", "--device=" + active}, true},
	} {
		trace := filepath.Join(t.TempDir(), "trace")
		out, err := exec.Command("strace", append([]string{"-f", "-e", "trace=%file", "-o", trace, exporterFile}, c.args...)...).CombinedOutput()
		files := string(running.Must(os.ReadFile(trace))(t))
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || !strings.Contains(files, "execve(") {
			t.Fatalf("%s: %v\n%s", c.args, err, out)
		}
		if opens := strings.Contains(files, `"/dev/infiniband/`); opens != c.opens {
			t.Errorf("%s opens a device: %t, want %t\n%s", c.args, opens, c.opens, out)
		}
	}
	e.terminate()
}

// A child that cannot be killed is told of, and the audit ends.
func TestAuditCommandStuck(t *testing.T) {
	f := newFreezer(t)
	before := resources(t)
	// There is only one run: its child waits in a verb, with what it holds, to be frozen.
	const verb = "ibv_query_qp"
	faults := running.File(t, "faults", verb+" hang\n")
	log := filepath.Join(t.TempDir(), "log")
	e, stdout := startAudit(t, options{
		wrap:  []string{"env", "LD_PRELOAD=" + faultsLibrary(t), "IBV_FAULTS=" + faults, "IBV_FAULTS_LOG=" + log},
		flags: append(hurried(t), "--inventory.timeout=1m", "--device="+active),
	})
	t.Cleanup(f.thaw)
	c := e.child(active)
	await(t, "the child to hang", func() bool {
		b, _ := os.ReadFile(log)
		return strings.Contains(string(b), verb)
	})
	if resources(t) == before {
		t.Error("the child holds nothing")
	}
	f.freeze(c.pid)
	if got := e.exit(); got != 1 {
		t.Errorf("status %d: %s", got, e.log)
	}
	text := strings.Join(strings.Fields(stdout.String()), " ")
	for _, want := range []string{
		": CRITICAL", fmt.Sprintf("CRITICAL %s: pid %d (stuck)", active, c.pid), "To do (", fmt.Sprintf("Stuck process %d of the probes was killed", c.pid),
		"Probes timeout in ", "the child cannot be killed", "Contracts not run", "Resources ok in ", "in " + verb,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	t.Logf("with a child frozen in %q it said\n%s", verb, stdout)
	if !isAlive(c.pid) {
		t.Errorf("child %d is not stuck: it has ended", c.pid)
	}
	f.thaw()
	await(t, "the child to end", func() bool { return !isAlive(c.pid) })
	awaitResources(t, before)
}
