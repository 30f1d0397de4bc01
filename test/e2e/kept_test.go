package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// TestReloadAndRestart: what the configuration file accepts changes while the exporter
// runs, a broken file changes nothing, and since when something is wrong is known after a
// restart as well, unless what was kept is damaged.
func TestReloadAndRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, past := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "past.json")
	write := func(path, text string) {
		t.Helper()
		running.Check(t, os.WriteFile(path, []byte(text), 0o600))
	}
	run := func() *exporter {
		t.Helper()
		return start(t, "--provider=simulated", "--device.include=sim_ib0", "--contract.interval=0s", "--config.file="+file, "--state.dir="+dir)
	}
	// since is when the port of the device that is down was seen to be.
	since := func(e *exporter, accepted string) (at float64) {
		t.Helper()
		running.Eventually(t, "it is known since when the port is down, accepted="+accepted, func() bool {
			_, m := e.exposition(t)
			at = m.sum("rdma_finding_first_seen_timestamp_seconds", "finding", "port_down", "accepted", accepted)
			return at > 0
		})
		return at
	}
	// reload has the file read again, with this result.
	reload := func(e *exporter, successful float64) {
		t.Helper()
		running.Check(t, e.Signal(syscall.SIGHUP))
		running.Eventually(t, "the file is read again", func() bool {
			_, m := e.exposition(t)
			return m.sum("rdma_exporter_config_last_reload_successful") == successful
		})
	}

	write(file, "")
	e := run()
	e.ready(t)
	// A run is evaluated before anybody asks. A busy machine needs longer for that, so an
	// exporter that was asked too early is started again and asked later.
	var first float64
	for pause := 100 * time.Millisecond; ; pause *= 2 {
		time.Sleep(pause)
		asked := time.Now()
		if first = since(e, "false"); first <= float64(asked.UnixNano())/1e9 {
			break
		}
		if pause > running.Patience {
			t.Fatalf("the port is down since %v, although nothing asked before %v: a run is not evaluated at once", first, asked)
		}
		e.stop(t)
		running.Check(t, os.Remove(past))
		e = run()
		e.ready(t)
	}
	write(file, "accept: [{finding: port_down, reason: not cabled}, {finding: leaked, reason: ticket 4711}]")
	running.Check(t, e.Signal(syscall.SIGHUP))
	if again := since(e, "true"); again != first {
		t.Errorf("the port is down since %v, before it was accepted since %v", again, first)
	}
	running.Eventually(t, "the acceptance that is not needed is told", func() bool {
		_, body := e.get(t, "/api/v2/status")
		return strings.Contains(body, `"kind":"acceptance_unused","severity":"info","harm":"note","subject":"leaked"`)
	})

	write(file, "accept: [{finding: port_down}]")
	reload(e, 0)
	_, m := e.exposition(t)
	m.want(t, 1, "rdma_exporter_state_writable")
	since(e, "true")
	write(file, "")
	reload(e, 1)
	since(e, "false")
	e.stop(t)

	e = run()
	if again := since(e, "false"); again != first {
		t.Errorf("the port is down since %v, before the restart since %v", again, first)
	}
	e.stop(t)

	write(past, "{}")
	e = run()
	if again := since(e, "false"); again <= first {
		t.Errorf("what is damaged says that the port is down since %v", again)
	}
	if b, err := os.ReadFile(past + ".damaged"); err != nil || string(b) != "{}" {
		t.Errorf("set aside is %q, %v", b, err)
	}
}
