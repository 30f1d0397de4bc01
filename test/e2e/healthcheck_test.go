package e2e_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/test/running"
)

// healthy runs the command healthcheck against an exporter.
func (e *exporter) healthy(t *testing.T, args ...string) result {
	t.Helper()
	return healthcheck(t, e.url, args...)
}

// healthcheck runs the command healthcheck, without haste unless a timeout is given.
func healthcheck(t *testing.T, url string, args ...string) result {
	t.Helper()
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--timeout=") }) {
		args = append(args, "--timeout=1m")
	}
	return invoke(t, binary, t.TempDir(), append([]string{"healthcheck", "--url=" + url}, args...)...)
}

// says fails the test unless a process ended with a status and wrote one line: what
// begins and ends as told, to standard output if it was good and else to standard
// error.
func (r result) says(t *testing.T, status int, prefix, suffix string) {
	t.Helper()
	line, silent := r.stdout, r.stderr
	if status != 0 {
		line, silent = r.stderr, r.stdout
		prefix = programName + ": error: " + prefix
	}
	if r.status != status || silent != "" || strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, prefix) || !strings.HasSuffix(line, suffix+"\n") {
		t.Errorf("status %d, output %q, errors %q; want status %d and %q … %q", r.status, r.stdout, r.stderr, status, prefix, suffix)
	}
}

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated")
	e.ready(t)
	e.healthy(t).says(t, 0, e.url+"/-/healthy: 200 OK: ", "rdma_exporter is healthy.")
	e.healthy(t, "--ready").says(t, 0, e.url+"/-/ready: 200 OK: ", "rdma_exporter is ready.")

	// A process that the kernel does not let run listens, but does not answer.
	running.Check(t, e.Signal(syscall.SIGSTOP))
	hung := e.healthy(t, "--timeout=500ms")
	running.Check(t, e.Signal(syscall.SIGCONT))
	hung.says(t, 1, e.url+"/-/healthy: ", "no answer within 500ms")
	e.healthy(t).says(t, 0, e.url+"/-/healthy: 200 OK: ", "rdma_exporter is healthy.")

	// Where the exporter listened, another test's may listen next.
	gone := "http://" + running.Refusing(t)
	healthcheck(t, gone).says(t, 1, gone+"/-/healthy: ", "listens elsewhere (--url)")
}

// An exporter is healthy, and not ready, while a device hangs in its first run.
func TestHealthcheckNotReady(t *testing.T) {
	t.Parallel()
	profile := running.File(t, "profile.yaml", `
devices:
  - name: sim_hung0
    like: sim_rxe0
    faults: [{verb: ibv_create_cq, hang: true}]
`)
	e := start(t, "--provider=simulated", "--simulated.profile="+profile, "--probe.timeout=10m", "--contract.interval=0s")
	e.healthy(t).says(t, 0, e.url+"/-/healthy: 200 OK: ", "rdma_exporter is healthy.")
	e.healthy(t, "--ready").says(t, 1, e.url+"/-/ready: 503 Service Unavailable: rdma_exporter is not ready: ", ".")
}
