//go:build remediation

package remediation_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

const (
	down   = "    ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, gids: []}]\n"
	hung   = "    faults: [{verb: ibv_open_device, hang: true}]\n"
	silent = "rdma exporter_unreachable: 127.0.0.1:"
)

// exporter is a running exporter with simulated devices.
type exporter struct {
	*running.Process
	port    string
	profile string
}

// startExporter starts one with eight healthy devices, and waits until it has probed them.
func startExporter(t *testing.T, port string, flags ...string) *exporter {
	t.Helper()
	e := &exporter{port: port, profile: filepath.Join(t.TempDir(), "profile.yaml")}
	e.write(t, 8, nil)
	e.start(t, flags...)
	return e
}

func (e *exporter) start(t *testing.T, flags ...string) {
	t.Helper()
	e.Process = running.Launch(t, "the exporter", binary, running.Unhurried(append([]string{
		"--web.listen-address=127.0.0.1:" + e.port, "--provider=simulated", "--simulated.profile=" + e.profile,
		"--probe.interval=3s", "--hardware.interval=1s", "--contract.interval=0s", "--inventory.interval=0s",
	}, flags...)...)...)
	running.Eventually(t, "the exporter is ready", func() bool {
		_, ok := e.get("/-/ready")
		return ok
	})
}

// get asks the exporter for a page, and reports whether its status is 200.
func (e *exporter) get(path string) (body string, ok bool) { return get(e.port, path) }

func get(port, path string) (body string, ok bool) {
	b, err := running.Get(nil, "http://127.0.0.1:"+port+path)
	return string(b), err == nil
}

// write writes a profile with a number of devices, some with additional keys.
func (e *exporter) write(t *testing.T, number int, keys map[int]string) {
	t.Helper()
	text := "devices:\n"
	if number == 0 {
		text = "devices: []\n"
	}
	for i := range number {
		text += fmt.Sprintf("  - name: mlx5_%d\n    like: sim_rxe0\n    node_guid: 5054:00ff:fe00:%04x\n%s", i, i+1, keys[i])
	}
	running.Check(t, os.WriteFile(e.profile, []byte(text), 0o600))
}

// change replaces the devices.
func (e *exporter) change(t *testing.T, number int, keys map[int]string) {
	t.Helper()
	e.write(t, number, keys)
	running.Check(t, e.Signal(syscall.SIGHUP))
}

// all returns the same keys for each of eight devices.
func all(keys string) map[int]string {
	m := make(map[int]string)
	for i := range 8 {
		m[i] = keys
	}
	return m
}

// verdict returns settings of the scripts for an exporter.
func verdict(port, flags string) string {
	return fmt.Sprintf("exporter=%s\noptions='--url=http://127.0.0.1:%s --timeout=1m --expect-active-ports=8 %s'\n", binary, port, flags)
}

// TestStates breaks and mends devices, one problem after the other. Slurm runs the health check
// each second.
func TestStates(t *testing.T) {
	t.Parallel()
	port := running.FreePort(t)
	e := startExporter(t, port)
	c := startCluster(t, 1, verdict(port, "--for=0s --clear-after=2s"))
	mended := func() {
		t.Helper()
		e.change(t, 8, nil)
		c.await(t, "IDLE", "")
	}

	e.change(t, 8, map[int]string{3: down})
	c.await(t, drain, "rdma port_down mlx5_3/1: 7 of 8 ports active; do=")
	mended()
	e.change(t, 8, all(down))
	c.await(t, drain, "rdma port_down ")
	mended()
	e.change(t, 0, nil)
	c.await(t, drain, "rdma device_vanished mlx5_0: 0 of 8 devices; do=")
	mended()

	// An administrator drains the node, and what comes and goes then is none of his business.
	c.control(t, "update", "nodename="+node, "state=drain", "reason=new cables")
	e.change(t, 8, map[int]string{3: down})
	e.bad(t, true)
	c.awaitChecks(t, 2)
	c.must(t, "an administrator drained it, and then a port went down", drain, "new cables")
	e.change(t, 8, nil)
	e.bad(t, false)
	c.awaitChecks(t, 4)
	c.must(t, "an administrator drained it, and the port is up again", drain, "new cables")
	c.control(t, "update", "nodename="+node, "state=resume")

	e.Stop(t)
	c.await(t, drain, silent+port+"; do=exporter")
	e.write(t, 0, nil)
	e.start(t)
	c.await(t, drain, "rdma no_device: ")
	mended()

	// A new reason counts as well: on a busy host devices that return are known before their ports.
	if drained, resumed := c.changes(); drained < 5 || resumed != 5 {
		t.Errorf("the node was drained %d times and resumed %d times, want 5 at least and 5", drained, resumed)
	}
}

// TestHung verifies that a device that hangs drains the node. Its probe is killed at a deadline.
func TestHung(t *testing.T) {
	t.Parallel()
	port := running.FreePort(t)
	e := startExporter(t, port, "--probe.timeout=20s")
	c := startCluster(t, 1, verdict(port, "--for=0s --clear-after=0s"))
	e.change(t, 8, map[int]string{5: hung})
	c.await(t, drain, "rdma run_aborted mlx5_5")
}

// period is how long a port that flaps takes to go down and come back.
var period = flag.Duration("flapping.period", 0, "time from one loss of the link to the next in TestFlapping")

// TestFlapping verifies that a node whose port goes down and comes back again and again is drained
// once. It needs to be good for longer than the test.
func TestFlapping(t *testing.T) {
	t.Parallel()
	began := time.Now()
	port := running.FreePort(t)
	e := startExporter(t, port)
	c := startCluster(t, 1, verdict(port, "--for=0s --clear-after=10m"))
	for range 4 {
		e.change(t, 8, map[int]string{3: down})
		e.bad(t, true)
		c.await(t, drain, "rdma port_")
		time.Sleep(*period / 2)
		e.change(t, 8, nil)
		e.bad(t, false)
		c.awaitChecks(t, 2)
		time.Sleep(*period / 2)
	}
	drained, resumed := c.changes()
	t.Logf("in %v the port went down 4 times; the node was drained %d times and resumed %d times", time.Since(began).Round(time.Second), drained, resumed)
	if drained != 1 || resumed != 0 {
		t.Errorf("the node was drained %d times and resumed %d times", drained, resumed)
	}
}

// TestProlog verifies that a job does not start on a node that turned bad, although no health check
// has drained it, and that Slurm keeps our reason.
func TestProlog(t *testing.T) {
	t.Parallel()
	port := running.FreePort(t)
	e := startExporter(t, port)
	c := startCluster(t, 0, verdict(port, "--for=0s --clear-after=0s"))
	began := time.Now()
	if out, err := c.command("srun", "-n1", "echo", "started").CombinedOutput(); err != nil || !strings.Contains(string(out), "started") {
		t.Fatalf("a job on a healthy node: %v\n%s", err, out)
	}
	t.Logf("a job on a healthy node took %v", time.Since(began).Round(10*time.Millisecond))

	e.change(t, 8, map[int]string{3: down})
	e.bad(t, true)
	c.must(t, "before the job", "IDLE", "")
	job := strings.TrimSpace(string(running.Must(c.command("sbatch", "--parsable", "--output=/dev/null", "--wrap=true").Output())(t)))
	c.await(t, drain, "rdma port_down mlx5_3/1: 7 of 8 ports active; do=")
	queue := func() string {
		out, _ := c.command("squeue", "--noheader", "--format=%T").Output()
		return strings.TrimSpace(string(out))
	}
	running.Eventually(t, "the job waits again", func() bool { return queue() == "PENDING" })

	e.change(t, 8, nil)
	e.bad(t, false)
	c.control(t, "update", "nodename="+node, "state=resume")
	// Slurm lets a job that is queued again wait for two minutes.
	c.control(t, "update", "jobid="+job, "starttime=now")
	running.Eventually(t, "the job has run", func() bool { return queue() == "" })
}

// bad waits until the exporter's finding that a port is down stands, or no longer.
func (e *exporter) bad(t *testing.T, is bool) {
	t.Helper()
	running.Eventually(t, fmt.Sprintf("port_down is %t", is), func() bool {
		metrics, ok := e.get("/metrics")
		return ok && is == strings.Contains(metrics, `device="mlx5_3",finding="port_down"`)
	})
}
