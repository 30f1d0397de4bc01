//go:build prometheus

package prometheus_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/test/running"
)

// hold has a child process of the exporter that works on a device not end when it is
// killed, until the test ends: a process is not done with as long as who traces it
// has not been told of its end. To the exporter it looks like one that waits in the
// kernel.
func hold(t testing.TB, e *exporter, command, device string) {
	t.Helper()
	held, release := make(chan error), make(chan struct{})
	go func() {
		defer close(held)
		// The thread is the tracer. It ends with the goroutine that it is locked to,
		// and what it traces is free then.
		runtime.LockOSThread()
		pid, err := e.seize(command, device)
		held <- err
		if err != nil {
			return
		}
		for passSignals(pid) == nil {
			select {
			case <-release:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
		<-release
	}()
	if err := <-held; err != nil {
		t.Fatalf("hold the child of %s, command %s, for %s: %v", e.Name, command, device, err)
	}
	t.Cleanup(func() {
		close(release)
		<-held
	})
}

// seize begins to trace the child of the exporter that runs a command for a device,
// as soon as there is one, and returns its process id.
func (e *exporter) seize(command, device string) (int, error) {
	for deadline := time.Now().Add(running.Patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if pid := e.child(command, device); pid != 0 {
			// One that has just ended is followed by another.
			if err := unix.PtraceSeize(pid); !errors.Is(err, unix.ESRCH) {
				return pid, err
			}
		}
	}
	return 0, os.ErrDeadlineExceeded
}

// passSignals lets the traced process go on if it has stopped for a signal. It does
// not take note of its end, which is an error.
func passSignals(pid int) error {
	const stopped = 4 // CLD_TRAPPED
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	switch {
	case err != nil:
		return err
	case info.Signo == 0:
		return nil // nothing has happened
	case info.Code != stopped:
		return os.ErrProcessDone
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
		return err
	}
	return unix.PtraceCont(pid, int(status.StopSignal()))
}

// child returns the process id of the exporter's child that runs a command for a
// device, 0 if there is none.
func (e *exporter) child(command, device string) int {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		args := bytes.Split(bytes.TrimSuffix(text, []byte{0}), []byte{0})
		if len(args) < 3 || string(args[1]) != command || !bytes.Contains(text, []byte("--device="+device)) {
			continue
		}
		dir := filepath.Dir(path)
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if err == nil && strings.Contains(string(status), "\nPPid:\t"+strconv.Itoa(e.PID())+"\n") {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			return pid
		}
	}
	return 0
}
