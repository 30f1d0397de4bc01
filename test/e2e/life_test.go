package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/test/running"
)

// hangProfile has n devices on which a verb never returns, and three healthy
// ones.
func hangProfile(n int, verb string) string {
	var b strings.Builder
	b.WriteString("devices:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: hang%d, like: sim_rxe0, faults: [{verb: %s, hang: true}]}\n", i, verb)
	}
	for i := range 3 {
		fmt.Fprintf(&b, "  - {name: healthy%d, like: sim_siw0}\n", i)
	}
	return b.String()
}

// While a child hangs, the other devices are probed on, and SIGTERM ends the
// exporter and the child.
func TestHangDelaysNothing(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated",
		"--simulated.profile="+running.File(t, "profile.yaml", hangProfile(1, "ibv_destroy_cq")),
		"--probe.interval=200ms", "--probe.timeout=1h", "--probe.concurrency=2")
	running.Eventually(t, "the healthy devices are probed thrice", func() bool {
		m := e.counts(t)
		for _, device := range []string{"healthy0", "healthy1", "healthy2"} {
			if m.runs(device, "ok") < 3 {
				return false
			}
		}
		return true
	})
	m := e.scrape(t)
	m.absent(t, "rdma_probe_success", "device", "hang0")
	if n := m.sum("rdma_probe_runs_total", "device", "hang0"); n != 0 {
		t.Errorf("%v runs on the device that hangs have ended, want none", n)
	}
	if status, body := e.get(t, "/-/ready"); status != http.StatusServiceUnavailable {
		t.Errorf("/-/ready: status %d %q while a device has not been probed once, want 503", status, body)
	}
	if status, _ := e.get(t, "/-/healthy"); status != http.StatusOK {
		t.Errorf("/-/healthy: status %d, want 200", status)
	}

	if len(e.children(t)) == 0 {
		t.Error("there is no child that hangs")
	}
	// The exporter promises 5 seconds, of a machine that lets it run.
	t.Logf("from SIGTERM to the end while a child hung: %v", e.stop(t))
}

// Children that hang take turns with the others when there are more of them than
// may run at the same time; contract runs as well as probes.
func TestManyHangsStarveNobody(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated",
		"--simulated.profile="+running.File(t, "profile.yaml", hangProfile(3, "ibv_open_device")),
		"--config.file="+running.File(t, "config.yaml", "probe: {destroy_timeout: 100ms}"),
		"--contract.interval=2s", "--contract.timeout=10s", "--inventory.interval=0", "--notification.samples=0",
		"--probe.interval=1s", "--probe.timeout=2s", "--probe.concurrency=2")
	running.Eventually(t, "every device is probed several times", func() bool {
		m := e.counts(t)
		for i := range 3 {
			if m.sum("rdma_probe_aborts_total", "device", fmt.Sprintf("hang%d", i), "outcome", "timeout", "verb", "ibv_open_device") < 2 {
				return false
			}
		}
		for i := range 3 {
			healthy := fmt.Sprintf("healthy%d", i)
			if m.runs(healthy, "ok") < 4 || m.contractRuns(healthy, "ok") < 1 {
				return false
			}
		}
		return true
	})
}

// When the exporter is killed, its children end, too.
func TestKill(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated",
		"--simulated.profile="+running.File(t, "profile.yaml", hangProfile(3, "ibv_create_cq")),
		"--probe.interval=1h", "--probe.timeout=1h", "--probe.concurrency=3")
	running.Eventually(t, "three children hang", func() bool { return len(e.children(t)) == 3 })
	running.Check(t, e.Signal(syscall.SIGKILL))
	if err := e.Err(); err == nil {
		t.Error("the exporter was killed, and ended with status 0")
	}
	running.Eventually(t, "the children have ended", func() bool { return len(processes(t, e.program)) == 0 })
}

// Some fifty rounds leave no open file, goroutine or process behind.
func TestNoLeak(t *testing.T) {
	t.Parallel()
	const rounds = 50
	e := start(t, "--provider=simulated",
		"--simulated.profile="+running.File(t, "profile.yaml", `devices:
  - {name: healthy, like: sim_siw0, default_latency: 0s, latency: {}}
  - {name: crashing, like: sim_siw0, faults: [{verb: ibv_query_device, crash: true}]}
`),
		"--probe.interval=100ms", "--contract.interval=10s")
	count := func(m metrics) float64 { return min(m.runs("healthy", "ok"), m.runs("crashing", "crashed")) }
	wait := func(rounds float64) {
		running.Eventually(t, fmt.Sprintf("%v rounds", rounds), func() bool { return count(e.counts(t)) >= rounds })
	}
	// A child that runs at the moment holds some files and goroutines, so the
	// least of several looks counts.
	least := func(metric string) float64 {
		n := e.scrape(t, metric).sum(metric)
		for range 20 {
			n = min(n, e.scrape(t, metric).sum(metric))
		}
		return n
	}
	wait(5)
	gauges := []string{"process_open_fds", "go_goroutines"}
	before := make(map[string]float64)
	for _, g := range gauges {
		before[g] = least(g)
	}
	first := count(e.counts(t))
	wait(first + rounds)
	// What leaked never goes back, while a look at a moment when children run, as
	// nearly always on a busy machine, may be followed by another.
	for _, g := range gauges {
		var after float64
		running.Eventually(t, fmt.Sprintf("%s is near what it was before %d rounds, %v", g, rounds, before[g]), func() bool {
			after = e.scrape(t, g).sum(g)
			return before[g] > 0 && after <= before[g]+rounds/10
		})
		t.Logf("%s: %v before and %v after %d rounds", g, before[g], after, rounds)
	}
	// One for the probes and the contracts of each, and one that inventories it.
	if n := len(e.children(t)); n > 4 {
		t.Errorf("there are %d children of 2 devices", n)
	}
}
