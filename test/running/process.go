package running

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Process is a program that runs next to the test, in its own process group. Only the
// goroutine of the test may call the methods that take a test.
type Process struct {
	// Name is what messages call it.
	Name string
	// Log is what it writes to standard output and standard error.
	Log Output

	cmd *exec.Cmd
	// ended is closed when the process has ended. err and left are set before. left is true if
	// others of its group were left, and killed.
	ended chan struct{}
	err   error
	left  bool
	// known is true if the test expects the end.
	known atomic.Bool
}

// Launch starts a program, which messages call name. It ends with the test, which then shows
// its log if it failed. The test fails if the program ends before, without [Process.Stop] or
// [Process.Err], or leaves processes of its group.
func Launch(t testing.TB, name, program string, args ...string) *Process {
	t.Helper()
	DependOn(t, program)
	p := &Process{Name: name, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.Log, &p.Log
	// A process that outlives it may hold its standard error.
	p.cmd.WaitDelay = 10 * time.Second
	// Should the test be killed, the process is too.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The parent that must not die is the thread that starts the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			// Later the group may be another's.
			p.left = syscall.Kill(-p.PID(), syscall.SIGKILL) == nil
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	t.Cleanup(func() {
		select {
		case <-p.ended:
			if !p.known.Load() {
				t.Errorf("%s has ended by itself: %v", name, p.err)
			}
		default:
		}
		p.Stop(t)
		if p.left {
			t.Errorf("%s left processes, which were killed", name)
		}
		if t.Failed() {
			t.Logf("log of %s, %s:\n%s", name, strings.Join(args, " "), p.Log.Tail(6000))
		}
	})
	return p
}

// PID is the id of the process, also when it has ended.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends the process a signal, unless it has ended.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err waits for the end, and returns how it was: nil is status 0. See [exec.Cmd.Wait].
func (p *Process) Err() error {
	p.known.Store(true)
	<-p.ended
	return p.err
}

// MustRun makes sure that the process has not ended.
func (p *Process) MustRun(t testing.TB) {
	t.Helper()
	select {
	case <-p.ended:
		t.Fatalf("%s has ended: %v", p.Name, p.err)
	default:
	}
}

// Stop ends the process by SIGTERM. If it does not end within [Patience], Stop kills it and the
// test fails.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	p.known.Store(true)
	// One that has ended may not have been waited for yet.
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal %s: %v", p.Name, err)
	}
	select {
	case <-p.ended:
	case <-time.After(Patience):
		t.Errorf("%s did not end within %v after SIGTERM, and is killed", p.Name, Patience)
		_ = p.Signal(syscall.SIGKILL)
		<-p.ended
	}
}

// Listening waits for [Output.Listening], and returns it.
func (p *Process) Listening(t testing.TB) string {
	t.Helper()
	var address string
	Eventually(t, p.Name+" listens", func() bool {
		p.MustRun(t)
		address = p.Log.Listening()
		return address != ""
	})
	return address
}
