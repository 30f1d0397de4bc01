//go:build vm

package softroce

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/test/running"
)

// hurried are flags for an exporter whose children are killed as soon as that is
// safe on this machine. They measure no notification: the time that they have would
// have to be more than what a patient deadline and budget can come to.
func hurried(t testing.TB) []string {
	t.Helper()
	timeout := min(max(15*time.Second, 15*runTime(t)), patience/5)
	return []string{fmt.Sprintf("--probe.timeout=%v", timeout), "--notification.samples=0"}
}

// stopInVerb stops a child that probes the device while it is in a call of the
// kernel's RDMA interface. It returns the child and the verb that the call is
// for; empty if that cannot be told from the call.
func (e *exporter) stopInVerb(device string) (c proc, verb string) {
	e.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		c := e.child(device)
		if syscall.Kill(c.pid, syscall.SIGSTOP) != nil {
			continue
		}
		stopped := false
		for !stopped && isAlive(c.pid) && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
			stopped = isStopped(c.pid)
		}
		if !stopped {
			continue
		}
		if verb, ok := verbOf(c.pid); ok {
			return c, verb
		}
		_ = syscall.Kill(c.pid, syscall.SIGCONT)
		time.Sleep(rand.N(30 * time.Millisecond))
	}
	e.t.Fatalf("no child that probes %s was caught in a verb within %v", device, patience)
	return proc{}, ""
}

// stopHolding is stopInVerb for a child that holds something of the device: in its
// first call a child holds nothing yet. Before is what the kernel held without it.
func (e *exporter) stopHolding(device, before string) (c proc, verb string) {
	e.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		c, verb := e.stopInVerb(device)
		if resources(e.t) != before {
			return c, verb
		}
		signal(e.t, c.pid, syscall.SIGCONT)
		time.Sleep(rand.N(100 * time.Millisecond))
	}
	e.t.Fatalf("no child that holds something of %s was caught within %v", device, patience)
	return proc{}, ""
}

func isStopped(pid int) bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return false
	}
	for _, task := range tasks {
		id, _ := strconv.Atoi(task.Name())
		if fields := stat(id); len(fields) == 0 || fields[0] != "T" {
			return false
		}
	}
	return true
}

const rdmaVerbsIoctl = 0xc0181b01

// methods are verbs by the object (enum uverbs_default_objects) and the method
// of the kernel's call.
var methods = map[[2]uint16]string{
	{3, 0}: "ibv_create_cq",
	{3, 1}: "ibv_destroy_cq",
	{4, 0}: "ibv_create_qp",
	{4, 1}: "ibv_destroy_qp",
	{5, 0}: "ibv_create_srq",
	{5, 1}: "ibv_destroy_srq",
}

// verbOf tells whether a stopped process is in a call of the kernel's RDMA
// interface, and which verb makes that call. This is read from the kernel and
// from the process's memory, and knows nothing of what the process reports.
func verbOf(pid int) (verb string, ok bool) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return "", false
	}
	for _, task := range tasks {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/syscall", pid, task.Name()))
		if err != nil {
			continue
		}
		f := strings.Fields(string(line))
		if len(f) < 4 || f[0] != strconv.Itoa(unix.SYS_IOCTL) {
			continue
		}
		var args [3]uint64
		for i := range args {
			args[i], _ = strconv.ParseUint(f[1+i], 0, 64)
		}
		file, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, args[0]))
		if err != nil || !strings.HasPrefix(file, "/dev/infiniband/uverbs") || args[1]&0xffffffff != rdmaVerbsIoctl {
			continue
		}
		return methods[methodAt(pid, int64(args[2]))], true
	}
	return "", false
}

// methodAt reads object_id and method_id of the struct ib_uverbs_ioctl_hdr at an
// address of a process.
func methodAt(pid int, address int64) [2]uint16 {
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return [2]uint16{}
	}
	defer func() { _ = mem.Close() }()
	var hdr [6]byte
	if _, err := mem.ReadAt(hdr[:], address); err != nil {
		return [2]uint16{}
	}
	return [2]uint16{binary.NativeEndian.Uint16(hdr[2:]), binary.NativeEndian.Uint16(hdr[4:])}
}

// attributed makes sure that the one aborted run is counted for the verb that the child was
// in. An empty verb stands for any.
func attributed(t *testing.T, m metrics, device, verb string) {
	t.Helper()
	var got []string
	for _, s := range m.find("rdma_probe_aborts_total", "device", device, "outcome", "timeout") {
		if number(s) > 0 {
			got = append(got, label(s, "verb"))
		}
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], "ibv_") || verb != "" && got[0] != verb {
		t.Errorf("runs were aborted in %q, and the child was in %q", got, verb)
	}
}

// The children end with the exporter, even if it has no chance to end them.
func TestExporterIsKilled(t *testing.T) {
	f := newFreezer(t)
	before, held := rawResources(t), resources(t)
	e := start(t, options{})
	t.Cleanup(f.thaw)
	e.rounds(1)
	// A child that could go on would end anyway, since nobody reads its report any
	// more. This one cannot, and must be killed.
	c, verb := e.stopHolding(active, held)
	f.freeze(c.pid)
	t.Logf("child %d is frozen in %q", c.pid, verb)
	all := children(t, e.pid())
	running.Check(t, e.cmd.Process.Kill())
	<-e.done
	began := time.Now()
	for _, other := range all {
		if other != c {
			await(t, fmt.Sprintf("child %d to end", other.pid), func() bool { return !isAlive(other.pid) })
		}
	}
	await(t, "SIGKILL to be sent to the frozen child", func() bool { return isKilled(t, c.pid) })
	f.thaw()
	await(t, fmt.Sprintf("child %d to end", c.pid), func() bool { return !isAlive(c.pid) })
	t.Logf("%d children had ended %v after the exporter was killed", len(all), time.Since(began))
	awaitHeld(t, before, rawResources)
	t.Logf("nothing was held %v after the exporter was killed", time.Since(began))
}

// isKilled tells whether SIGKILL is pending for a process.
func isKilled(t *testing.T, pid int) bool {
	t.Helper()
	for line := range strings.Lines(running.Command(t, "cat", fmt.Sprintf("/proc/%d/status", pid))) {
		key, value, _ := strings.Cut(line, ":")
		if key != "SigPnd" && key != "ShdPnd" {
			continue
		}
		set := running.Must(strconv.ParseUint(strings.TrimSpace(value), 16, 64))(t)
		if set&(1<<(unix.SIGKILL-1)) != 0 {
			return true
		}
	}
	return false
}

// Killed at any moment of a run or an inventory, the exporter leaves nothing behind.
func TestExporterIsKilledAtAnyMoment(t *testing.T) {
	const kills = 6
	before := resources(t)
	var took []string
	for range kills {
		e := start(t, options{flags: []string{"--probe.interval=200ms", "--inventory.interval=300ms"}})
		e.await("something to be held", func() bool { return resources(t) != before })
		all := children(t, e.pid())
		running.Check(t, e.cmd.Process.Kill())
		<-e.done
		began := time.Now()
		for _, c := range all {
			await(t, fmt.Sprintf("child %d to end", c.pid), func() bool { return !isAlive(c.pid) })
		}
		awaitResources(t, before)
		took = append(took, fmt.Sprintf("%v (%d children)", time.Since(began).Round(time.Millisecond), len(all)))
	}
	t.Logf("nothing was left after %s", strings.Join(took, ", "))
}
