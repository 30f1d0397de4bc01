package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
)

// envPIDs makes the test binary a supervisor whose children hang. It is the folder in which
// they leave a file named as their id.
const envPIDs = "SUPERVISOR_TEST_PIDS"

// patience is how long a test waits for what must happen at some time.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if pids := os.Getenv(envPIDs); pids != "" {
		os.Exit(supervise(pids))
	}
	os.Exit(running.WithoutLeaks(m))
}

// supervise runs a supervisor whose children hang.
func supervise(pids string) int {
	cfg := testConfig()
	cfg.Discover = func() ([]string, error) { return []string{"a", "b", "c"}, nil }
	cfg.Command = func(state.Kind, string, wire.Request) child.Command { return shell("exec sleep 1000", pids) }
	cfg.Concurrency, cfg.Timeout = 3, time.Hour
	s, err := New(cfg)
	if err == nil {
		err = s.Run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// shell is a child that runs a script after it has left its id in a folder, which is $0. Its
// input is larger than a pipe, and it need not read it.
func shell(script, pids string) child.Command {
	return child.Command{Path: "/bin/sh", Args: []string{"-c", `: >"$0/$$"; ` + script, pids}, Stdin: make([]byte, 1<<20)}
}

// testConfig is a configuration without devices, observers and surprises.
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
	files := running.Must(filepath.Glob(filepath.Join(dir, "*")))(t)
	var pids []int
	for _, f := range files {
		pid := running.Must(strconv.Atoi(filepath.Base(f)))(t)
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

// awaitNone waits until no process that left its id in dir lives.
func awaitNone(t *testing.T, dir string) {
	t.Helper()
	for _, pid := range pidsIn(t, dir) {
		eventually(t, "no process is left", func() bool { return !lives(pid) })
	}
}

// killAll ends what escaped from its process group on purpose.
func killAll(pids []int) {
	for _, pid := range pids {
		if lives(pid) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
