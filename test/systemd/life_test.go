//go:build vm

package systemd

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// busy has a child at work whenever somebody looks.
const busy = "--probe.interval=100ms --probe.timeout=90s --contract.interval=0s --inventory.interval=0s"

// children waits until the service has processes besides the main one, and returns
// them.
func children(t *testing.T) []string {
	t.Helper()
	main := property(t, "MainPID")
	var list []string
	await(t, "a child", func() bool {
		list = slices.DeleteFunc(processes(t), func(pid string) bool { return pid == main })
		return len(list) > 0
	})
	return list
}

// gone waits until none of the processes exists.
func gone(t *testing.T, pids []string) {
	t.Helper()
	await(t, "the children to be gone", func() bool {
		return !slices.ContainsFunc(pids, func(pid string) bool {
			_, err := os.Stat("/proc/" + pid)
			return err == nil
		})
	})
}

func TestStop(t *testing.T) {
	configure(t, busy, "TimeoutStopSec=2min")
	start(t, service)
	pids := children(t)
	began := time.Now()
	running.Command(t, "systemctl", "stop", service)
	t.Logf("systemctl stop took %v", time.Since(began).Round(time.Millisecond))
	// Killed after TimeoutStopSec it would have failed, with the result timeout.
	for name, want := range map[string]string{"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0", "MainPID": "0"} {
		if got := property(t, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if left := processes(t); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	gone(t, pids)
}

// The configuration file is read again on demand, and since when something is wrong is
// kept in the folder that systemd makes.
func TestReloadAndState(t *testing.T) {
	const file, past = "/etc/rdma_exporter.yaml", "/var/lib/rdma_exporter/past.json"
	write(t, file, "")
	configure(t, once+" --notification.samples=0 --contract.interval=0s --config.file="+file+" --device.include="+down)
	since := regexp.MustCompile(`rdma_finding_first_seen_timestamp_seconds\{[^}]*finding="port_down"[^}]*\} (\S+)`)
	seen := func(how string) (at string) {
		t.Helper()
		await(t, "the port to be told as down, "+how, func() bool {
			b, err := get("http://" + address + "/metrics")
			if m := since.FindSubmatch(b); err == nil && m != nil && strings.Contains(string(m[0]), how) {
				at = string(m[1])
			}
			return at != ""
		})
		return at
	}
	start(t, service)
	first := seen(`accepted="false"`)
	write(t, file, "accept: [{finding: port_down, reason: not cabled}]")
	running.Command(t, "systemctl", "reload", service)
	seen(`accepted="true"`)
	running.Command(t, "systemctl", "restart", service)
	if again := seen(`accepted="true"`); again != first {
		t.Errorf("the port is down since %s, before the restart since %s", again, first)
	}
	if _, err := os.Stat(past); err != nil {
		t.Error(err)
	}
}

func TestKill(t *testing.T) {
	configure(t, busy, "RestartSec=100ms")
	start(t, service)
	pids := children(t)
	main := property(t, "MainPID")
	running.Command(t, "kill", "-KILL", main)
	await(t, "another main process", func() bool {
		again := property(t, "MainPID")
		return again != main && again != "0"
	})
	gone(t, pids)
	await(t, "the exporter to serve", func() bool {
		_, err := get("http://" + address + "/-/healthy")
		return err == nil
	})
	if n := property(t, "NRestarts"); n != "1" {
		t.Errorf("%s restarts", n)
	}
}

// A process that the kernel kills for want of memory is no reason to stop the
// service.
func TestOutOfMemory(t *testing.T) {
	configure(t, quick, "MemoryMax=64M")
	start(t, service)
	main := property(t, "MainPID")
	greedy := exec.Command("sh", "-c", "echo 1000 >/proc/self/oom_score_adj; echo 0 >/sys/fs/cgroup/system.slice/"+service+"/cgroup.procs && exec tail /dev/zero")
	if out, err := greedy.CombinedOutput(); err == nil || greedy.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process that takes all memory was not killed: %v\n%s", err, out)
	}
	events := read(t, "/sys/fs/cgroup/system.slice/"+service+"/memory.events")
	// A child of the exporter may have asked for memory just then. Below it is seen that
	// the exporter itself was not killed.
	if !regexp.MustCompile(`(?m)^oom_kill [1-9]`).MatchString(events) {
		t.Errorf("no process was killed for lack of memory:\n%s", events)
	}
	done(t, active).ok(t, active)
	for name, want := range map[string]string{"ActiveState": "active", "MainPID": main, "NRestarts": "0"} {
		if got := property(t, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestSocket(t *testing.T) {
	configure(t, quick+" --web.systemd-socket")
	t.Cleanup(func() { running.Command(t, "systemctl", "stop", service) })
	start(t, socket)
	if state := property(t, "ActiveState"); state != "inactive" {
		t.Fatalf("the service is %s before anybody asked", state)
	}
	// The first request starts the service, and is answered.
	running.Must(get("http://" + address + "/-/healthy"))(t)
	if state := property(t, "ActiveState"); state != "active" {
		t.Errorf("the service is %s", state)
	}
	done(t, active).ok(t, active)
	// While it restarts, requests wait.
	running.Command(t, "systemctl", "kill", "--signal=KILL", service)
	if _, err := get("http://" + address + "/-/healthy"); err != nil {
		t.Error(err)
	}
}
