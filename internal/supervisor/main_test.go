package supervisor

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// The test binary is its own child: these variables say how it behaves then.
const (
	envBehaviour = "SUPERVISOR_TEST_BEHAVIOUR"
	// envPIDs is a folder in which a process leaves a file named as its id.
	envPIDs = "SUPERVISOR_TEST_PIDS"
)

// patience is how long a test waits for what must happen at some time.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if b := os.Getenv(envBehaviour); b != "" {
		os.Exit(behave(b))
	}
	// With the race detector a child would sleep for a second before it ends.
	if err := os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	// What fuzzes has goroutines of its own.
	if code == 0 && flag.Lookup("test.fuzz").Value.String() == "" {
		code = leaks(before)
	}
	os.Exit(code)
}

// leaks looks for goroutines and children that the tests left behind.
func leaks(before int) int {
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "goroutines leaked: %d before, %d after\n", before, runtime.NumGoroutine())
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			return 1
		}
		time.Sleep(10 * time.Millisecond)
	}
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if !errors.Is(err, unix.ECHILD) {
		fmt.Fprintf(os.Stderr, "a child was left behind: %v\n", err)
		return 1
	}
	return 0
}

// behave is the main function of a child.
func behave(behaviour string) int {
	leavePID()
	w := wire.NewWriter(os.Stdout)
	whole := func() {
		_ = w.Send(wire.Line{Begin: "ibv_open_device"})
		_ = w.Send(wire.Line{Call: &state.Call{Verb: "ibv_open_device", Duration: time.Millisecond}})
		_ = w.Send(wire.Line{Device: &state.Device{Transport: "InfiniBand", Firmware: "1.2.3"}})
		_ = w.Send(wire.Line{Probe: &state.Probe{Name: "cq", Status: state.StatusOK}})
		_ = w.Send(wire.Line{End: &wire.End{}})
	}
	hang := func() int { time.Sleep(24 * time.Hour); return 0 }
	switch behaviour {
	case "ok":
		whole()
	case "burn":
		for start := time.Now(); time.Since(start) < 50*time.Millisecond; {
			_ = slices.Max(make([]int, 1<<12))
		}
		whole()
	case "slow":
		time.Sleep(300 * time.Millisecond)
		whole()
	case "echo":
		in, _ := io.ReadAll(os.Stdin)
		_ = w.Send(wire.Line{Device: &state.Device{Transport: string(in), Firmware: strings.Join(os.Args[1:], ",")}})
		_ = w.Send(wire.Line{End: &wire.End{}})
	case "failed":
		_ = w.Send(wire.Line{Probe: &state.Probe{Name: "cq", Status: state.StatusFailed, Failures: []state.Failure{
			{Subject: state.Subject{Object: "cq", Profile: "medium"}, Verb: "ibv_create_cq", Errno: "ENOMEM", Message: "no room"},
		}}})
		_ = w.Send(wire.Line{End: &wire.End{}})
	case "garbage":
		_ = w.Send(wire.Line{Begin: "ibv_create_cq"})
		fmt.Println("Segmentation fault")
		return hang()
	case "truncated":
		_ = w.Send(wire.Line{Begin: "ibv_create_qp"})
		fmt.Print(`{"call":{"verb":"ibv_cre`)
	case "no-end":
		_ = w.Send(wire.Line{Device: &state.Device{Transport: "InfiniBand"}})
		_ = w.Send(wire.Line{Begin: "ibv_destroy_cq"})
	case "long-line":
		flood()
		return hang()
	case "hang":
		_ = w.Send(wire.Line{Call: &state.Call{Verb: "ibv_create_cq"}})
		_ = w.Send(wire.Line{Begin: "ibv_destroy_cq"})
		return hang()
	case "hang-after-end":
		whole()
		return hang()
	case "hang-closed":
		_ = w.Send(wire.Line{Begin: "ibv_destroy_qp"})
		_ = os.Stdout.Close()
		return hang()
	case "ignore-sigterm":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		_ = w.Send(wire.Line{Begin: "ibv_destroy_srq"})
		return hang()
	case "abort":
		_ = w.Send(wire.Line{Begin: "ibv_create_srq"})
		// The Go runtime turns SIGABRT into an exit status; a shell doesn't.
		_ = syscall.Exec("/bin/sh", []string{"sh", "-c", "ulimit -c 0; echo assertion failed >&2; kill -ABRT $$"}, nil)
	case "go-abort":
		_ = w.Send(wire.Line{Begin: "ibv_create_srq"})
		_ = unix.Kill(os.Getpid(), unix.SIGABRT)
		return hang()
	case "exit3":
		_ = w.Send(wire.Line{Begin: "ibv_modify_qp"})
		fmt.Fprintln(os.Stderr, "out of luck")
		return 3
	case "panic":
		_ = w.Send(wire.Line{Begin: "ibv_query_device"})
		deep(200)
	case "stderr":
		line := strings.Repeat("x", 1023) + "\n"
		for range 1024 {
			fmt.Fprint(os.Stderr, line)
		}
		fmt.Fprintln(os.Stderr, "the\x1b[31m last line\xff")
		return 1
	case "stderr-ok":
		fmt.Fprint(os.Stderr, strings.Repeat("yes\n", 1<<18))
		whole()
	case "end-exit3":
		whole()
		return 3
	case "grandchild":
		whole()
		spawn(&syscall.SysProcAttr{})
	case "grandchild-escaped":
		whole()
		spawn(&syscall.SysProcAttr{Setsid: true})
	case "grandchild-no-end":
		_ = w.Send(wire.Line{Begin: "ibv_create_cq"})
		spawn(&syscall.SysProcAttr{Setsid: true})
	case "grandchild-hang":
		_ = w.Send(wire.Line{Begin: "ibv_create_cq"})
		spawn(&syscall.SysProcAttr{})
		return hang()
	case "wait":
		return hang()
	case "supervisor":
		return supervise()
	default:
		fmt.Fprintln(os.Stderr, "unknown behaviour", behaviour)
		return 99
	}
	return 0
}

func deep(n int) {
	if n == 0 {
		panic("all is lost\nfor ever")
	}
	deep(n - 1)
}

// flood writes without end.
func flood() {
	b := bytes.Repeat([]byte("x"), 1<<20)
	for {
		if _, err := os.Stdout.Write(b); err != nil {
			return
		}
	}
}

// spawn starts a child that holds this process's output and error open, and
// returns when it is there.
func spawn(attr *syscall.SysProcAttr) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envBehaviour+"=wait")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = attr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	file := filepath.Join(os.Getenv(envPIDs), strconv.Itoa(cmd.Process.Pid))
	for {
		if _, err := os.Stat(file); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// supervise runs a supervisor whose children hang.
func supervise() int {
	cfg := testConfig()
	cfg.Discover = func() ([]string, error) { return []string{"a", "b", "c"}, nil }
	cfg.Command = childCommand("hang", os.Getenv(envPIDs))
	cfg.Concurrency = 3
	cfg.Timeout = time.Hour
	s, err := New(cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := s.Run(context.Background()); err != nil {
		return 1
	}
	return 0
}

func leavePID() {
	dir := os.Getenv(envPIDs)
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(os.Getpid())), nil, 0o600); err != nil {
		panic(err)
	}
}

// childCommand is a Config.Command for children of the test binary that all
// behave the same, and leave their ids in a folder if one is given.
func childCommand(behaviour, pids string) func(state.Kind, string, wire.Request) Command {
	return func(_ state.Kind, device string, _ wire.Request) Command {
		return Command{
			Path: os.Args[0],
			Args: []string{"--device=" + device},
			Env:  append(os.Environ(), envBehaviour+"="+behaviour, envPIDs+"="+pids),
		}
	}
}

// testConfig is a configuration without devices, sinks and surprises.
func testConfig() Config {
	c := DefaultConfig()
	c.Provider = "simulated"
	c.Discover = func() ([]string, error) { return nil, nil }
	c.Command = fakeCommand
	c.Schedule = Schedule{Interval: time.Minute, Timeout: patience}
	c.Contract.Interval, c.Inventory.Interval, c.Hardware.Interval = 0, 0, 0
	c.Backoff = 8 * time.Minute
	return c
}

// eventually waits until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// pidsIn returns the ids of the processes that left one in dir.
func pidsIn(t *testing.T, dir string) []int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// lives reports whether a process exists and is no zombie.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
}
