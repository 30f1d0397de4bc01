package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/test/running"
)

// What becomes of the log is no business of the exporter's: whether nobody reads it, or
// nobody can any more, devices are probed, answers are given, SIGTERM ends it with status
// 0, and the lines that were lost are counted.
func TestLogIsNotRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		// then does something with the end that is read.
		then func(t *testing.T, log *os.File)
		// lost is true if nothing keeps the lines.
		lost bool
	}{
		{"stalled", func(*testing.T, *os.File) {}, false},
		{"closed", func(t *testing.T, log *os.File) {
			running.Check(t, log.Close())
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e, log := startInto(t, "--provider=simulated", "--log.level=debug", "--probe.interval=100ms", "--notification.samples=0")
			c.then(t, log)

			// Each run logs a line of at least 100 bytes. The pipe holds 4096 of them; what the
			// exporter keeps of more is the matter of logqueue.
			runs := func() float64 { return e.scrape(t, "rdma_probe_runs_total").sum("rdma_probe_runs_total") }
			enough := runs() + 50
			running.Eventually(t, "the devices are still probed", func() bool { return runs() >= enough })
			if c.lost {
				running.Eventually(t, "lines are lost", func() bool { return e.scrape(t).sum("rdma_exporter_log_lines_dropped_total") > 0 })
			}
			e.stop(t)
		})
	}
}

// A standard error that is closed from the start is one that takes everything.
func TestLogIsClosedAtStart(t *testing.T) {
	t.Parallel()
	program := running.Program(t, filepath.Join(t.TempDir(), "it"), `exec "`+binary+`" "$@" 2>&-`)
	r := invoke(t, program, t.TempDir(), "--provider=simulated", "--probe.concurrency=0")
	if r.status != 2 || r.stdout != "" || r.stderr != "" {
		t.Errorf("status %d, %q, %q", r.status, r.stdout, r.stderr)
	}
}

// startInto starts an exporter whose log goes into the smallest pipe that there is. It waits
// until the exporter listens, and returns the end of the pipe from which nobody reads then.
func startInto(t *testing.T, args ...string) (*exporter, *os.File) {
	t.Helper()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "log")
	running.Check(t, unix.Mkfifo(pipe, 0o600))
	log := running.Must(os.OpenFile(pipe, os.O_RDWR, 0))(t) // It does not block.
	t.Cleanup(func() { _ = log.Close() })                   // It may be closed already.
	const smallest = 4096
	if _, err := unix.FcntlInt(log.Fd(), unix.F_SETPIPE_SZ, smallest); err != nil {
		t.Fatal(err)
	}
	e := &exporter{
		program: filepath.Join(dir, programName),
		client:  &http.Client{Timeout: running.Patience, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	running.Check(t, clone(binary, e.program))
	script := running.Program(t, filepath.Join(dir, "start"), "exec "+e.program+` "$@" 2>`+pipe)
	t.Cleanup(func() { noneLeft(t, e.program) })
	e.Process = running.Launch(t, "the exporter", script, append([]string{"--web.listen-address=127.0.0.1:0"}, running.Unhurried(args...)...)...)
	var head running.Output
	for b := make([]byte, 1); head.Listening() == ""; {
		if _, err := log.Read(b); err != nil {
			t.Fatal(err)
		}
		_, _ = head.Write(b)
	}
	e.url = "http://" + head.Listening()
	return e, log
}
