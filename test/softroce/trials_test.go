//go:build vm

package softroce

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/api"
	"rdma_exporter/test/running"
)

// findings returns the findings of a scrape, with their severities.
func (m metrics) findings() []string {
	var all []string
	for _, s := range m.find("rdma_finding_first_seen_timestamp_seconds") {
		all = append(all, label(s, "device")+" "+label(s, "finding")+" "+label(s, "severity"))
	}
	slices.Sort(all)
	return all
}

// undisturbed checks that an event on the host causes no finding, and neither fails nor stops a run.
func undisturbed(t *testing.T, happen func()) {
	t.Helper()
	e := start(t, options{flags: []string{"--inventory.interval=1s", "--contract.interval=1h", "--hardware.interval=1s"}})
	e.rounds(2)
	before := e.until("an inventory of both devices", func(m metrics) bool { return m.sum("rdma_inventory_success") == 2 })
	happen()
	e.rounds(3)
	after := e.until("the inventories after it", func(m metrics) bool {
		return m.sum("rdma_inventory_runs_total") >= before.sum("rdma_inventory_runs_total")+4
	})
	if got, want := after.findings(), before.findings(); !slices.Equal(got, want) {
		t.Errorf("the findings are %q, before it %q", got, want)
	}
	for _, outcome := range []string{"failed", "timeout", "crashed"} {
		for _, runs := range []string{"rdma_probe_runs_total", "rdma_inventory_runs_total", "rdma_hardware_runs_total"} {
			if n := after.sum(runs, "outcome", outcome); n != before.sum(runs, "outcome", outcome) {
				t.Errorf("%s of outcome %s: %v, before it %v", runs, outcome, n, before.sum(runs, "outcome", outcome))
			}
		}
	}
	now := float64(time.Now().Unix())
	for _, metric := range []string{"rdma_probe_last_run_timestamp_seconds", "rdma_inventory_timestamp_seconds"} {
		for _, device := range []string{active, down} {
			if at := after.one(t, metric, "device", device); at > now+1 || at < now-patience.Seconds() {
				t.Errorf("%s of %s is %v; it is %v", metric, device, at, now)
			}
		}
	}
}

// TestTrialClock sets the clock of the host hours forwards and minutes backwards.
func TestTrialClock(t *testing.T) {
	for _, by := range []time.Duration{3 * time.Hour, -10 * time.Minute} {
		t.Run(by.String(), func(t *testing.T) {
			undisturbed(t, func() {
				jump(t, by)
				t.Cleanup(func() { jump(t, -by) })
			})
		})
	}
}

func jump(t *testing.T, by time.Duration) {
	t.Helper()
	at := unix.NsecToTimespec(time.Now().Add(by).UnixNano())
	running.Check(t, unix.ClockSettime(unix.CLOCK_REALTIME, &at))
}

// TestTrialSuspend freezes all processes for five seconds and resumes them, as a suspend does.
// The machine has no device that could wake it from a real one.
func TestTrialSuspend(t *testing.T) {
	undisturbed(t, func() {
		running.Check(t, os.WriteFile("/sys/power/pm_test", []byte("freezer"), 0))
		running.Check(t, os.WriteFile("/sys/power/state", []byte("freeze"), 0))
		running.Check(t, os.WriteFile("/sys/power/pm_test", []byte("none"), 0))
	})
}

// A trial is the result of an audit of the active device under a restriction.
type trial struct {
	status     int
	findings   []string
	complained string
}

func try(t *testing.T, wrap ...string) trial {
	t.Helper()
	e, stdout := startAudit(t, options{wrap: wrap, flags: []string{"--probe.timeout=1m", "--contract.timeout=2m", "--inventory.timeout=1m", "--format=json", "--device=" + active}})
	got := trial{status: e.exit()}
	line, _, _ := strings.Cut(e.log.String(), "\n")
	got.complained = strings.ToValidUTF8(line[:min(len(line), 160)], "")
	if stdout.Len() == 0 {
		return got
	}
	var s api.Status
	if err := json.Unmarshal(stdout.Bytes(), &s); err != nil {
		t.Errorf("%q: the report is no JSON: %v", wrap, err)
		return got
	}
	if s.Problem != nil {
		got.findings = append(got.findings, fmt.Sprintf("host: %s %s", s.Problem.Kind, s.Problem.Health))
	}
	for _, f := range s.Findings {
		got.findings = append(got.findings, fmt.Sprintf("host: %s %s", f.Kind, f.Severity))
	}
	for _, d := range s.Devices {
		for _, f := range d.Findings {
			got.findings = append(got.findings, fmt.Sprintf("%s: %s %s", d.Name, f.Kind, f.Severity))
		}
	}
	return got
}

// TestTrialAddressSpace limits the address space: the exporter says so, or works.
func TestTrialAddressSpace(t *testing.T) {
	for _, mebibytes := range []int{32, 128, 512, 2048} {
		got := try(t, "prlimit", fmt.Sprintf("--as=%d", mebibytes<<20))
		t.Logf("| %d MiB | %d | %s | %s |", mebibytes, got.status, strings.Join(got.findings, ", "), got.complained)
		if len(got.findings) > 0 {
			t.Errorf("%d MiB of address space: %q", mebibytes, got.findings)
		}
		if works := got.status == 0; works != (mebibytes == 2048) {
			t.Errorf("%d MiB of address space: status %d", mebibytes, got.status)
		}
	}
}

// TestTrialSystemCalls denies the system calls that the exporter uses, one at a time. It works, or ends
// and says why; what it then does not know is a finding about itself or its inventory, not of the device.
func TestTrialSystemCalls(t *testing.T) {
	usual := try(t)
	t.Logf("| none | %d | %s | %s |", usual.status, strings.Join(usual.findings, ", "), usual.complained)
	for _, name := range slices.Sorted(maps.Keys(used)) {
		got := try(t, refuseSystemCalls(strconv.Itoa(int(used[name])))...)
		t.Logf("| %s | %d | %s | %s |", name, got.status, strings.Join(got.findings, ", "), got.complained)
		for _, f := range got.findings {
			known := []string{"host: cannot_start_children critical", active + ": inventory_incomplete warning", blamed[name]}
			if !slices.Contains(known, f) && !slices.Contains(usual.findings, f) {
				t.Errorf("without %s: %s", name, f)
			}
		}
		// Without sigaltstack the program is killed before it can say anything.
		if got.status != usual.status && len(got.findings) == 0 && got.complained == "" && name != "sigaltstack" {
			t.Errorf("without %s: status %d, and not a word", name, got.status)
		}
	}
}

// TestTrialBandwidth denies memory of NUMA nodes, as containers do by default. Nothing is measured then, and
// the reason is one line. Nor is anything measured if it is unknown where the memory is.
func TestTrialBandwidth(t *testing.T) {
	for which, want := range map[string]string{
		byContainers:                         "mbind: EPERM: a seccomp profile refuses it; give the container CAP_SYS_NICE, or a profile that allows mbind and get_mempolicy",
		strconv.Itoa(unix.SYS_GET_MEMPOLICY): "some pages are elsewhere, so it may be full: the NUMA node is not available",
	} {
		args := append(refuseSystemCalls(which), exporterFile, "bandwidth", "--device="+active, "--yes")
		cmd := exec.Command(args[0], args[1:]...)
		out, _ := cmd.CombinedOutput() // The status tells.
		if line := active + ": failed: bind memory to NUMA node 0: " + want + "\n"; cmd.ProcessState.ExitCode() != 1 || !strings.HasSuffix(string(out), "Gb/s. 0: the device cannot.\n"+line) {
			t.Errorf("%v: %s, want %s", cmd.ProcessState, out, line)
		}
	}
}

// blamed are the findings of the device when a system call is denied. Without ioctl it is rightly
// unusable. Without the others the exporter cannot know how its children ended.
var blamed = map[string]string{
	"ioctl": active + ": device_unusable critical", "getppid": active + ": run_aborted critical", "waitid": active + ": run_aborted critical",
}

// used are system calls of an audit that a program can be denied and still be started.
var used = map[string]uint32{
	"access": unix.SYS_ACCESS, "clone3": unix.SYS_CLONE3, "connect": unix.SYS_CONNECT, "dup3": unix.SYS_DUP3, "epoll_create1": unix.SYS_EPOLL_CREATE1,
	"epoll_ctl": unix.SYS_EPOLL_CTL, "eventfd2": unix.SYS_EVENTFD2, "fcntl": unix.SYS_FCNTL, "fstat": unix.SYS_FSTAT, "getdents64": unix.SYS_GETDENTS64,
	"getppid": unix.SYS_GETPPID, "getrandom": unix.SYS_GETRANDOM, "getsockname": unix.SYS_GETSOCKNAME, "ioctl": unix.SYS_IOCTL, "kill": unix.SYS_KILL,
	"madvise": unix.SYS_MADVISE, "newfstatat": unix.SYS_NEWFSTATAT, "pidfd_open": unix.SYS_PIDFD_OPEN, "pidfd_send_signal": unix.SYS_PIDFD_SEND_SIGNAL,
	"pipe2": unix.SYS_PIPE2, "poll": unix.SYS_POLL, "prctl": unix.SYS_PRCTL, "pread64": unix.SYS_PREAD64, "prlimit64": unix.SYS_PRLIMIT64,
	"readlink": unix.SYS_READLINK, "readlinkat": unix.SYS_READLINKAT, "recvmsg": unix.SYS_RECVMSG, "sched_getaffinity": unix.SYS_SCHED_GETAFFINITY,
	"sched_yield": unix.SYS_SCHED_YIELD, "sendmsg": unix.SYS_SENDMSG, "sendto": unix.SYS_SENDTO, "setpgid": unix.SYS_SETPGID, "setpriority": unix.SYS_SETPRIORITY,
	"setsockopt": unix.SYS_SETSOCKOPT, "sigaltstack": unix.SYS_SIGALTSTACK, "socket": unix.SYS_SOCKET, "statfs": unix.SYS_STATFS, "tgkill": unix.SYS_TGKILL,
	"uname": unix.SYS_UNAME, "waitid": unix.SYS_WAITID,
}
