package scale_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
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
	// address is where it listens.
	address string
	// ended is closed when the process has ended; err is set before.
	ended chan struct{}
	err   error
}

// launch starts a program and waits until it says where it listens. When the test
// ends, so does the program.
func launch(t testing.TB, name, program string, args ...string) *process {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	// A child that outlives the process may hold its standard error.
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
			t.Logf("log of %s, %s:\n%s", name, strings.Join(args, " "), p.log.Tail(4000))
		}
	})
	listens := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	eventually(t, name+" listens", func() bool {
		p.running(t)
		m := listens.FindStringSubmatch(p.log.String())
		if m != nil {
			p.address = m[1]
		}
		return m != nil
	})
	return p
}

// stop ends the process by SIGTERM, unless it has ended before, and what is left of its
// group.
func (p *process) stop(t testing.TB) {
	t.Helper()
	select {
	case <-p.ended:
		return
	default:
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

// running makes sure that the process has not ended.
func (p *process) running(t testing.TB) {
	t.Helper()
	select {
	case <-p.ended:
		t.Fatalf("%s has ended: %v", p.name, p.err)
	default:
	}
}

// get asks the process for a path. The header, of name and value, may be left out.
func (p *process) get(path string, header ...string) ([]byte, error) {
	return p.do(http.MethodGet, path, header...)
}

// post is get, to have something done.
func (p *process) post(path string) ([]byte, error) { return p.do(http.MethodPost, path) }

func (p *process) do(method, path string, header ...string) ([]byte, error) {
	request, err := http.NewRequest(method, "http://"+p.address+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", p.name, err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", p.name, err)
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", p.name, err)
	}
	if response.StatusCode != http.StatusOK {
		return body, fmt.Errorf("%s answers %s to %s", p.name, response.Status, path)
	}
	return body, nil
}
