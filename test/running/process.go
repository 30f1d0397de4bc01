package running

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Process is a program that runs beside the test, in a process group of its own. Its
// methods that take a test are for the goroutine of the test; the others are safe for
// concurrent use.
type Process struct {
	// Name is what messages call it.
	Name string
	// Log is what it writes to standard output and standard error.
	Log Output

	cmd *exec.Cmd
	// ended is closed when the process has ended; err is set before.
	ended chan struct{}
	err   error
}

// Launch starts a program, whose name is what messages call it. When the test ends, so
// does the program; its log is shown if the test failed.
func Launch(t testing.TB, name, program string, args ...string) *Process {
	t.Helper()
	DependOn(t, program)
	p := &Process{Name: name, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.Log, &p.Log
	// Somebody who outlives the process may hold its standard error.
	p.cmd.WaitDelay = time.Second
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
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	t.Cleanup(func() {
		p.Stop(t)
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

// Stop ends the process by SIGTERM, unless it has ended before, and makes sure that
// nothing of its group is left. What does not end within [Patience] is killed, and the
// test fails.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	select {
	case <-p.ended:
		return
	default:
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("signal %s: %v", p.Name, err)
	}
	select {
	case <-p.ended:
	case <-time.After(Patience):
		t.Errorf("%s did not end within %v after SIGTERM", p.Name, Patience)
	}
	// When the process has ended, the group is what it left.
	if err := syscall.Kill(-p.PID(), syscall.SIGKILL); err == nil {
		t.Errorf("%s left processes, which are killed", p.Name)
	}
	<-p.ended
}

// Listening waits until the process says, in the words that exporters and Prometheus
// have in common, where it listens, and returns the address: host and port.
func (p *Process) Listening(t testing.TB) string {
	t.Helper()
	says := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	var address string
	Eventually(t, p.Name+" listens", func() bool {
		p.MustRun(t)
		if m := says.FindStringSubmatch(p.Log.String()); m != nil {
			address = m[1]
		}
		return address != ""
	})
	return address
}
