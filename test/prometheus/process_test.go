package prometheus_test

import (
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// process is a program that runs beside the test, in a process group of its own.
type process struct {
	name string
	cmd  *exec.Cmd
	log  running.Output
	// ended is closed when the process has ended; err is set before.
	ended chan struct{}
	err   error
}

// launch starts a program. When the test ends, so does the program.
func launch(t testing.TB, name, program string, args ...string) *process {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
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
		p.stop(t)
		if t.Failed() {
			t.Logf("log of %s, %s:\n%s", name, strings.Join(args, " "), p.log.Tail(6000))
		}
	})
	return p
}

// stop ends the process by SIGTERM, unless it has ended before, and makes sure that
// nothing of its group is left.
func (p *process) stop(t testing.TB) {
	t.Helper()
	if p.hasEnded() {
		return
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("signal %s: %v", p.name, err)
	}
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Errorf("%s did not end within %v after SIGTERM", p.name, patience)
	}
	// When the process has ended, the group is what it left.
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err == nil {
		t.Errorf("%s left processes, which are killed", p.name)
		<-p.ended
	}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// listening waits until the process says, in the words that exporters and
// Prometheus have in common, where it listens, and returns the address.
func (p *process) listening(t testing.TB) string {
	t.Helper()
	says := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	var address string
	eventually(t, p.name+" listens", func() bool {
		p.running(t)
		if m := says.FindStringSubmatch(p.log.String()); m != nil {
			address = m[1]
		}
		return address != ""
	})
	return address
}

// running makes sure that the process has not ended.
func (p *process) running(t testing.TB) {
	t.Helper()
	if p.hasEnded() {
		t.Fatalf("%s has ended: %v", p.name, p.err)
	}
}
