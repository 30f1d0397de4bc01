//go:build vm

package softroce

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
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

// undisturbed checks that what happens to the host is no finding, fails no run and stops none.
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
	for _, s := range after.find("rdma_probe_timestamp_seconds") {
		if at := number(s); at > now+1 || at < now-patience.Seconds() {
			t.Errorf("%s was probed at %v; it is %v", label(s, "device"), at, now)
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

// A trial is an audit of the active device under a restriction, and what came of it.
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
		for _, f := range got.findings {
			if strings.HasPrefix(f, active) {
				t.Errorf("%d MiB of address space: the device is called broken: %s", mebibytes, f)
			}
		}
	}
}

// TestTrialSystemCalls denies the system calls that the exporter uses, one at a time.
func TestTrialSystemCalls(t *testing.T) {
	usual := try(t)
	t.Logf("| none | %d | %s | %s |", usual.status, strings.Join(usual.findings, ", "), usual.complained)
	for _, name := range slices.Sorted(maps.Keys(used)) {
		got := try(t, "env", refuseVariable+"="+strconv.Itoa(int(used[name])), os.Args[0], "-test.run=^TestRefuseSystemCalls$", "--")
		t.Logf("| %s | %d | %s | %s |", name, got.status, strings.Join(got.findings, ", "), got.complained)
	}
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
