//go:build vm

package softroce

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/ceiling"
	"rdma_exporter/internal/refusal"
	"rdma_exporter/test/running"
)

// climber is a program that climbs as the command ceiling does, and shares nothing with
// the exporter.
func climber(t *testing.T) string {
	t.Helper()
	source := running.Must(filepath.Abs("../yardstick/climb.c"))(t)
	program := filepath.Join(t.TempDir(), "climb")
	running.Command(t, "cc", "-O2", "-o", program, source, "-libverbs")
	return program
}

// climbed runs the other program, for ten minutes at most, and returns how many objects
// there were, and by which errno it ended; by none if the time was over.
func climbed(t *testing.T, wrap []string, program, device, typ string) (objects int64, errno syscall.Errno) {
	t.Helper()
	args := append(append([]string{}, wrap...), program, device, typ, "600")
	if _, err := fmt.Sscan(running.Command(t, args[0], args[1:]...), &objects, &errno); err != nil {
		t.Fatal(err)
	}
	return objects, errno
}

// ceilingOf runs the command ceiling.
func ceilingOf(t *testing.T, wrap []string, device, typ string, flags ...string) (ceiling.Report, int) {
	t.Helper()
	args := append(append([]string{}, wrap...), exporterFile, "ceiling", "--device="+device, "--type="+typ, "--yes", "--json")
	cmd := exec.Command(args[0], append(args[1:], flags...)...)
	var stderr running.Output
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var r ceiling.Report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s%s", err, out, stderr.String())
	}
	if r.GivenBack != ceiling.ByVerbs || r.Left != 0 {
		t.Errorf("%s: given back by %s, %d left: %s", typ, r.GivenBack, r.Left, r.LeftDetail)
	}
	return r, cmd.ProcessState.ExitCode()
}

// setting sets a setting of the kernel for the time of a test.
func setting(t *testing.T, path, value string) {
	t.Helper()
	before := running.Must(os.ReadFile(path))(t)
	t.Cleanup(func() {
		if err := os.WriteFile(path, before, 0o644); err != nil {
			t.Error(err)
		}
	})
	running.Check(t, os.WriteFile(path, []byte(value), 0o644))
}

// heldCount is how many objects of a type the kernel counts on a device.
func heldCount(t *testing.T, device, typ string) int {
	t.Helper()
	fields := strings.Fields(running.Command(t, "rdma", "resource", "show", device))
	for i, f := range fields[:len(fields)-1] {
		if f == typ {
			n := running.Must(strconv.Atoi(fields[i+1]))(t)
			return n
		}
	}
	t.Fatalf("rdma resource does not count %s: %v", typ, fields)
	return 0
}

// Each type is climbed to an end that is known, beside a program that shares nothing with
// ours and what ibv_devinfo says that the device claims; nothing is held afterwards.
func TestCeiling(t *testing.T) {
	program := climber(t)
	claimed := askDevinfo(t, active)
	// The device gives far more than this machine has mappings, or time.
	setting(t, "/proc/sys/vm/max_map_count", "4000")
	withoutLock := []string{"prlimit", "--memlock=4194304:4194304", "setpriv", "--bounding-set=-ipc_lock"}
	group := cgroup(t, "few")
	limitCgroup(t, group, "hca_handle=10 hca_object=300")
	inGroup := inCgroup(group)

	for _, c := range []struct {
		name, typ string
		wrap      []string
		flags     []string
		end       refusal.Cause
		status    int
		errno     syscall.Errno
		// differ is by how much the two may, of their own mappings; less than none if the
		// other is not run.
		differ int64
	}{
		// First, since the kernel keeps the memory of ended objects for the next ones.
		{"ah to the memory", "ah", nil, []string{"--memory=1MiB"}, ceiling.EndMemory, 1, 0, -1},
		{"cq to the mappings", "cq", nil, nil, refusal.Mappings, 0, syscall.ENOMEM, 400},
		{"qp to the mappings", "qp", nil, nil, refusal.Mappings, 0, syscall.ENOMEM, 200},
		{"srq to the mappings", "srq", nil, nil, refusal.Mappings, 0, syscall.ENOMEM, 400},
		{"ah to the device", "ah", nil, nil, refusal.Device, 0, syscall.EINVAL, 0},
		{"mr to memlock", "mr", withoutLock, nil, refusal.Memlock, 0, syscall.ENOMEM, 0},
		{"pd to the cgroup", "pd", inGroup, nil, refusal.Cgroup, 0, syscall.EAGAIN, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := resources(t)
			r, status := ceilingOf(t, c.wrap, active, c.typ, c.flags...)
			awaitResources(t, before)
			if r.EndedBy != c.end || status != c.status {
				t.Errorf("ended by %s with status %d: %s", r.EndedBy, status, r.Detail)
			}
			if want := claimed["max_"+c.typ]; r.Claimed == nil || strconv.FormatInt(*r.Claimed, 10) != want {
				t.Errorf("it claims %v, by ibv_devinfo %s", r.Claimed, want)
			}
			t.Logf("%s: %d, claimed %s, ended by %s: %s", c.typ, r.Objects, claimed["max_"+c.typ], r.EndedBy, r.Detail)
			if c.differ < 0 {
				return
			}
			n, errno := climbed(t, c.wrap, program, active, c.typ)
			awaitResources(t, before)
			if errno != c.errno || max(r.Objects-n, n-r.Objects) > c.differ {
				t.Errorf("the program had %d, errno %d; we had %d", n, errno, r.Objects)
			}
		})
	}
}

// Others are not disturbed unasked.
func TestCeilingOfUsedDevice(t *testing.T) {
	hold(t, nil, "--qps", "1")
	cmd := exec.Command(exporterFile, "ceiling", "--device="+active, "--type=cq", "--yes")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "holder (process") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("%v: %s", err, out)
	}
}

// However a climb is ended in the middle, the kernel holds nothing afterwards.
func TestCeilingInterrupted(t *testing.T) { ceilingInterrupted(t, active, "qp") }

func ceilingInterrupted(t *testing.T, device, typ string) {
	t.Helper()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			before, held := resources(t), heldCount(t, device, typ)
			var stdout, stderr running.Output
			cmd := exec.Command(exporterFile, "ceiling", "--device="+device, "--type="+typ, "--yes", "--json", "--within=10m")
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			running.Check(t, cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			await(t, "500 objects", func() bool { return heldCount(t, device, typ) > 500 })
			signal(t, cmd.Process.Pid, sig)
			select {
			case <-ended:
			case <-time.After(patience):
				t.Fatal("it does not end")
			}
			if sig != syscall.SIGKILL {
				// It has waited for the kernel to take everything back.
				if n := heldCount(t, device, typ); n > held {
					t.Errorf("it has ended, and %d objects of type %s are held, not %d", n, typ, held)
				}
				var r ceiling.Report
				if err := json.Unmarshal([]byte(stdout.String()), &r); err != nil {
					t.Fatalf("%v: %s%s", err, stdout.String(), stderr.String())
				}
				if status := cmd.ProcessState.ExitCode(); status != 1 || r.EndedBy != ceiling.EndInterrupted || r.GivenBack != ceiling.ByKernel || r.Objects == 0 {
					t.Errorf("status %d, %+v", status, r)
				}
				t.Logf("%v: %d objects of type %s were reached", sig, r.Objects, typ)
			}
			awaitResources(t, before)
		})
	}
}
