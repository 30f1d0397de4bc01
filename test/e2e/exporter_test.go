package e2e_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// exporter is a running exporter.
type exporter struct {
	// program is a name of the binary that only this exporter and its children
	// run, so that they can be told from others.
	program string
	// url is where it listens, without a slash at the end.
	url    string
	client *http.Client
	cmd    *exec.Cmd
	log    running.Output
	// ended is closed when the process has ended; err is set before.
	ended chan struct{}
	err   error
}

// start starts the exporter and waits until it listens. When the test ends, so
// does the exporter, by SIGTERM and with status 0, and nothing of it may be left.
func start(t testing.TB, args ...string) *exporter {
	t.Helper()
	return startProgram(t, binary, args...)
}

func startProgram(t testing.TB, program string, args ...string) *exporter {
	t.Helper()
	dependOnProgram(t)
	e := &exporter{
		program: filepath.Join(t.TempDir(), programName),
		client:  &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}},
		ended:   make(chan struct{}),
	}
	if err := clone(program, e.program); err != nil {
		t.Fatal(err)
	}
	e.cmd = exec.Command(e.program, append([]string{"--web.listen-address=127.0.0.1:0"}, args...)...)
	e.cmd.Stdout, e.cmd.Stderr = &e.log, &e.log
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		e.err = e.cmd.Wait()
		close(e.ended)
	}()
	t.Cleanup(func() {
		e.stop(t)
		// Nobody else runs a program of this name, so these are this test's.
		for _, pid := range processes(t, e.program) {
			t.Errorf("process %d is left and is killed", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", strings.Join(args, " "), e.log.Tail(6000))
		}
	})

	listening := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	eventually(t, "the exporter listens", func() bool {
		select {
		case <-e.ended:
			t.Fatalf("the exporter ended before it listened: %v\n%s", e.err, e.log.Tail(6000))
		default:
		}
		m := listening.FindStringSubmatch(e.log.String())
		if m != nil {
			e.url = "http://" + m[1]
		}
		return m != nil
	})
	return e
}

// stop ends the exporter by SIGTERM, unless it has ended before, and makes sure
// that its status is 0 and nothing of it is left. It returns how long that took.
func (e *exporter) stop(t testing.TB) time.Duration {
	t.Helper()
	select {
	case <-e.ended:
		return 0
	default:
	}
	began := time.Now()
	if err := e.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("signal the exporter: %v", err)
	}
	select {
	case <-e.ended:
	case <-time.After(patience):
		t.Errorf("the exporter did not end within %v after SIGTERM", patience)
		_ = e.cmd.Process.Kill()
		<-e.ended
	}
	took := time.Since(began)
	if e.err != nil {
		t.Errorf("the exporter ended after SIGTERM with %v, want status 0", e.err)
	}
	if left := processes(t, e.program); len(left) > 0 {
		t.Errorf("processes %v are left when the exporter has ended", left)
	}
	return took
}

// children returns the ids of the exporter's children.
func (e *exporter) children(t testing.TB) []int {
	t.Helper()
	var children []int
	for _, pid := range processes(t, e.program) {
		if pid != e.cmd.Process.Pid {
			children = append(children, pid)
		}
	}
	return children
}

// processes returns the ids of the processes that run a program.
func processes(t testing.TB, program string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// One that has ended meanwhile, or is another user's, cannot be read.
		exe, err := os.Readlink(filepath.Join("/proc", entry.Name(), "exe"))
		if err == nil && strings.TrimSuffix(exe, " (deleted)") == program {
			pids = append(pids, pid)
		}
	}
	return pids
}

// get asks for a path and returns status and body.
func (e *exporter) get(t testing.TB, path string) (status int, body string) {
	t.Helper()
	status, body, _ = e.fetch(t, path, nil)
	return status, body
}

// fetch is get with request headers, and with those of the answer.
func (e *exporter) fetch(t testing.TB, path string, change func(*http.Request)) (status int, body string, header http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(request)
	}
	response, err := e.client.Do(request)
	if err != nil {
		t.Fatalf("the exporter does not answer: %v", err)
	}
	defer func() { _ = response.Body.Close() }()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	return response.StatusCode, string(b), response.Header
}

// ready waits until each device has been probed.
func (e *exporter) ready(t testing.TB) {
	t.Helper()
	eventually(t, "the exporter is ready", func() bool {
		status, _ := e.get(t, "/-/ready")
		return status == http.StatusOK
	})
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v not yet: %s", patience, what)
		}
	}
}

// result is what a process that ended left.
type result struct {
	status         int
	stdout, stderr string
}

// invoke runs the exporter to its end, which must come by itself.
func invoke(t *testing.T, program, dir string, args ...string) result {
	t.Helper()
	return invokeWith(t, "", program, dir, args...)
}

// invokeWith is invoke for one that reads its standard input.
func invokeWith(t *testing.T, input, program, dir string, args ...string) result {
	t.Helper()
	dependOnProgram(t)
	var stdout, stderr running.Output
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "COLUMNS=80") // for the width of the help
	cmd.Stdin = strings.NewReader(input)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	overdue := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !overdue.Stop() {
		t.Fatalf("%s did not end by itself:\n%s", strings.Join(args, " "), stderr.Tail(2000))
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{status: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// file writes a file and returns its path.
func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
