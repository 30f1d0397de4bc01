//go:build vm

package softroce

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// remove removes the active device, and returns how long that took.
func remove(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	cmd := exec.Command("rdma", "link", "del", active)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	running.Check(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			// A program that dies in the kernel has mostly taken a part of it along.
			t.Fatalf("rdma link del %s: %v\n%s\nThe kernel said at last\n%s", active, err, &out, lastWords(t))
		}
	case <-time.After(patience):
		t.Fatalf("rdma link del %s has not returned after %v; the kernel holds\n%s", active, patience, rawResources(t))
	}
	return time.Since(began)
}

// lastWords is what the kernel said at last.
func lastWords(t testing.TB) string {
	t.Helper()
	const lines = 60
	all := strings.SplitAfter(running.Command(t, "dmesg"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}

// add adds the active device if there is none, and waits until its port is as it
// was: active, with the address of its network device.
func add(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(devicePath(active)); err != nil {
		running.Command(t, "rdma", "link", "add", active, "type", "rxe", "netdev", activeNetdev)
	}
	awaitPort(t, active)
}

// awaitPort waits until the port of a device is active, with the address of its network
// device.
func awaitPort(t *testing.T, device string) {
	t.Helper()
	await(t, "the port of "+device+" to be active", func() bool {
		state, _ := os.ReadFile(devicePath(device) + "/ports/1/state")
		gid, _ := os.ReadFile(devicePath(device) + "/ports/1/gids/1")
		return strings.Contains(string(state), "ACTIVE") && strings.Contains(string(gid), ":ffff:")
	})
}

// inRun tells whether the device is being probed.
func (e *exporter) inRun(device string) bool {
	e.t.Helper()
	return slices.ContainsFunc(children(e.t, e.pid()), func(c proc) bool { return c.probes(device) })
}

// isGone reports whether all series are gone but those of the finding that it vanished.
func isGone(m metrics) bool {
	return !slices.ContainsFunc(m.of(active), func(name string) bool { return !strings.HasPrefix(name, "rdma_finding") })
}

// stays makes sure that the other device's series are there.
func stays(t *testing.T, m metrics) {
	t.Helper()
	for _, name := range []string{"rdma_device_info", "rdma_port_state_id", "rdma_probe_runs_total", "rdma_probe_success", "rdma_probe_cq_entries_actual"} {
		if !slices.Contains(m.of(down), name) {
			t.Errorf("no %s of %s", name, down)
		}
	}
}

// A device can be removed while the exporter runs; its series go with it and come
// back with it.
func TestDeviceRemoval(t *testing.T) {
	t.Cleanup(func() { add(t) })
	e := start(t, options{flags: []string{spaced(spacing(t)), "--hardware.interval=1s"}})
	e.rounds(2)
	read := func(m metrics) bool { return m.sum("rdma_hardware_success", "device", active) == 1 }
	before := e.until("the hardware of "+active+" to be read", read)
	e.await("a moment without a child", func() bool { return len(children(t, e.pid())) == 0 })
	t.Logf("rdma link del returned after %v", remove(t))
	began := time.Now()
	m := e.until("the series of "+active+" to disappear", isGone)
	t.Logf("the series were gone %v later", time.Since(began))
	stays(t, m)
	m.is(t, 1, "rdma_devices")
	m = e.rounds(1, down)
	if !isGone(m) {
		t.Errorf("series of %s: %v", active, m.of(active))
	}
	stays(t, m)
	add(t)
	e.until("a run on "+active, func(m metrics) bool { return m.probed(active) })
	m = e.until("the hardware of "+active+" to be read again", read)
	m.is(t, portActive, "rdma_port_state_id", "device", active)
	m.is(t, 2, "rdma_devices")
	// The same series are there again, or more with a histogram's first failure.
	for _, name := range before.of(active) {
		if !slices.Contains(m.of(active), name) {
			t.Errorf("%s has not come back", name)
		}
	}
	m = e.rounds(1)
	m.allOK(t, active)
	m.allOK(t, down)
	e.terminate()
}

// A device that somebody else keeps from being removed is half there: the kernel
// lists it and cannot open it any more. That costs nobody else anything.
func TestDeviceThatIsBeingRemoved(t *testing.T) {
	t.Cleanup(func() { add(t) })
	e := start(t, options{})
	before := e.rounds(1)

	// Another program holds a device that it has opened.
	holder := exec.Command("ibv_rc_pingpong", "-d", active, "-g", "1")
	running.Check(t, holder.Start())
	held := true
	release := func() {
		if held {
			held = false
			_ = holder.Process.Kill()
			_ = holder.Wait()
		}
	}
	t.Cleanup(release)
	await(t, "the other program to hold a QP", func() bool { return strings.Contains(rawResources(t), "ibv_rc_pingpong") })

	removal := exec.Command("rdma", "link", "del", active)
	running.Check(t, removal.Start())
	removed := make(chan error, 1)
	go func() { removed <- removal.Wait() }()
	e.until("a run that cannot open "+active, func(m metrics) bool {
		return m.runs(active, "failed", "crashed", "timeout") > 0
	})
	m := e.rounds(2, down)
	m.allOK(t, down)
	stays(t, m)
	t.Logf("runs on %s: %v ok, %v failed, %v crashed, %v timeout; failures %v", active, m.runs(active, "ok"), m.runs(active, "failed"),
		m.runs(active, "crashed"), m.runs(active, "timeout"), m.find("rdma_verbs_errors_total", "device", active))
	if got := m.runs(active, "ok", "failed"); got != m.runs(active) {
		t.Errorf("%v of %v runs on %s are ok or failed", got, m.runs(active), active)
	}
	if m.runs(active, "ok") < before.runs(active, "ok") {
		t.Error("the counters went back")
	}
	select {
	case err := <-removed:
		t.Fatalf("rdma link del returned with %v although another program holds %s", err, active)
	default:
	}
	began := time.Now()
	release()
	select {
	case err := <-removed:
		if err != nil {
			t.Fatalf("rdma link del: %v", err)
		}
	case <-time.After(patience):
		t.Fatalf("rdma link del has not returned %v after the other program ended", patience)
	}
	t.Logf("rdma link del returned %v after the other program ended", time.Since(began))
	e.until("the series of "+active+" to disappear", isGone)
	add(t)
	e.until("a run on "+active, func(m metrics) bool { return m.runs(active, "ok") > 0 })
	e.terminate()
}

var removals = flag.Int("removals", 4, "how often TestManyRemovals removes the device")

// However often a device is removed in the middle of its runs and inventories, nothing
// of it stays: no series, no goroutine, no file, nothing in the kernel.
func TestManyRemovals(t *testing.T) {
	t.Cleanup(func() { add(t) })
	e := start(t, options{flags: []string{"--probe.interval=200ms", "--inventory.interval=300ms", "--notification.samples=20"}})
	e.rounds(3)
	first := e.until("inventories", func(m metrics) bool { return m.inventories(active) > 2 && m.inventories(down) > 2 })
	files := len(openFiles(t, e.pid()))
	inRun := 0
	var longest time.Duration
	done := 0
	for deadline := time.Now().Add(patience); done < *removals || inRun == 0 && time.Now().Before(deadline); done++ {
		e.child(active)
		time.Sleep(rand.N(200 * time.Millisecond))
		if e.inRun(active) {
			inRun++
		}
		longest = max(longest, remove(t))
		if rand.N(2) == 0 {
			stays(t, e.until("the series of "+active+" to disappear", isGone))
		}
		add(t)
		e.until("a run on "+active, func(m metrics) bool { return m.runs(active) > 0 })
	}
	m := e.rounds(2)
	m.allOK(t, down)
	m.is(t, 2, "rdma_devices")
	m.is(t, 0, "rdma_probe_stuck", "device", active)
	m = e.until("an inventory that is ok", func(m metrics) bool { return m.sum("rdma_inventory_success") == 2 })
	t.Logf("%d removals, %d of them in the middle of a run, the longest took %v; goroutines %v before, %v after; files %d, %d",
		done, inRun, longest.Round(time.Millisecond),
		first.one(t, "go_goroutines"), m.one(t, "go_goroutines"), files, len(openFiles(t, e.pid())))
	if inRun == 0 {
		t.Error("no removal in the middle of a run")
	}
	// Between two runs there are as many as ever; in one there are some more.
	const some = 8
	limit := first.one(t, "go_goroutines") + some
	e.until(fmt.Sprintf("at most %v goroutines and %d files", limit, files+some), func(m metrics) bool {
		return m.sum("go_goroutines") <= limit && len(openFiles(t, e.pid())) <= files+some
	})
	e.terminate()
}

// openFiles returns what a process has open.
func openFiles(t testing.TB, pid int) []os.DirEntry {
	t.Helper()
	entries := running.Must(os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)))(t)
	return entries
}
