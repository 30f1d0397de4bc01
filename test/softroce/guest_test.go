//go:build vm

package softroce

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// kernel tells whether the machine's kernel is of a version such as 6.1.
func kernel(t testing.TB, version string) bool {
	t.Helper()
	release := running.Command(t, "uname", "-r")
	t.Logf("kernel %s", release)
	return strings.HasPrefix(release, version+".")
}

// resources returns everything that the kernel says is held of RDMA devices,
// without what changes when a device is removed and added again.
func resources(t testing.TB) string {
	t.Helper()
	var text strings.Builder
	dec := json.NewDecoder(strings.NewReader(rawResources(t)))
	for dec.More() {
		var list []map[string]any
		if err := dec.Decode(&list); err != nil {
			t.Fatalf("rdma -j resource: %v", err)
		}
		for _, object := range list {
			delete(object, "ifindex")
			delete(object, "local_dma_lkey")
			b := running.Must(json.Marshal(object))(t)
			// Devices are listed in the order in which they were added.
			fmt.Fprintf(&text, "%s\n", b)
		}
	}
	return sortedLines(text.String())
}

// rawResources returns what rdma resource prints, as JSON.
func rawResources(t testing.TB) string {
	t.Helper()
	cmd := exec.Command("rdma", "-j", "-b", "-")
	cmd.Stdin = strings.NewReader(`resource show
resource show qp
resource show cq
resource show mr
resource show pd
resource show srq
resource show ctx
resource show cm_id
`)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("rdma -j resource: %v\n%s", err, out)
	}
	return string(out)
}

// awaitResources waits until the kernel holds what it held before, and is an
// error if it never does.
func awaitResources(t testing.TB, before string) {
	t.Helper()
	awaitHeld(t, before, resources)
}

func awaitHeld(t testing.TB, before string, held func(testing.TB) string) {
	t.Helper()
	var now string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(poll) {
		if now = held(t); now == before {
			return
		}
	}
	t.Errorf("the kernel holds\n%s\nand held before\n%s", now, before)
}

type proc struct {
	pid int
	// command is that of a child of the exporter, and device what the command is for.
	// Before it runs its program they are those of the exporter, if it has any.
	command, device string
}

// probes tells whether a process is a child of the exporter that probes the device.
func (p proc) probes(device string) bool { return p.command == "probe" && p.device == device }

// children lists the processes that the exporter started and has not reaped.
func children(t testing.TB, parent int) []proc {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", parent))
	if err != nil {
		t.Fatalf("the exporter is not there: %v", err)
	}
	var list []proc
	for _, task := range tasks {
		pids, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", parent, task.Name()))
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
		for _, field := range strings.Fields(string(pids)) {
			pid := running.Must(strconv.Atoi(field))(t)
			list = append(list, procOf(pid))
		}
	}
	return list
}

// procOf returns what the command line of a process tells.
func procOf(pid int) proc {
	p := proc{pid: pid}
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	for i, arg := range strings.Split(string(line), "\x00") {
		if device, ok := strings.CutPrefix(arg, "--device="); ok {
			p.device = device
		} else if i == 1 {
			p.command = arg
		}
	}
	return p
}

// stat returns the fields of /proc/PID/stat from the third, the state, on; none
// if there is no such process.
func stat(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
}

// isAlive tells whether a process is there and has not ended.
func isAlive(pid int) bool {
	fields := stat(pid)
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// reaped is a number that grows when a process reaps a child: the minor page
// faults of all children that it waited for.
func reaped(t testing.TB, pid int) string {
	t.Helper()
	fields := stat(pid)
	if len(fields) < 9 {
		t.Fatalf("no process %d", pid)
	}
	return fields[8]
}

// child waits for a child that probes the device.
func (e *exporter) child(device string) proc {
	e.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for _, c := range children(e.t, e.pid()) {
			if c.probes(device) && isAlive(c.pid) {
				return c
			}
		}
	}
	e.t.Fatalf("no child that probes %s within %v", device, patience)
	return proc{}
}

func signal(t testing.TB, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatalf("%v for process %d: %v", s, pid, err)
	}
}

func sortedLines(s string) string {
	lines := strings.SplitAfter(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// runTime is how long a child takes here and now for a run on the active device, when
// nothing else runs: the shortest of some times, since a run beside which the machine
// stood still for a while says nothing of others. Some tests choose intervals and
// deadlines by it, so that they are quick on a quick machine and do not fail on a slow
// one.
func runTime(t testing.TB) time.Duration {
	t.Helper()
	const runs = 2
	took := make([]time.Duration, runs)
	for i := range took {
		began := time.Now()
		probeByHand(t, active)
		took[i] = time.Since(began)
	}
	t.Logf("runs take %v now", took)
	return slices.Min(took)
}

// spacing is an interval that mostly leaves more time without a child than with one.
func spacing(t testing.TB) time.Duration {
	t.Helper()
	return max(3*time.Second/2, 5*runTime(t))
}

// spaced is the flag for an interval.
func spaced(interval time.Duration) string { return fmt.Sprintf("--probe.interval=%v", interval) }
