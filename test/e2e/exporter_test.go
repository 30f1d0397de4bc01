package e2e_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// exporter is a running exporter.
type exporter struct {
	*running.Process
	// program is a name of the binary that only this exporter and its children
	// run, so that they can be told from others.
	program string
	// url is where it listens, without a slash at the end.
	url    string
	client *http.Client
}

// headerTimeout is how long the exporter waits for a TLS handshake, and then for the
// header of a request, before it cuts the connection. So it cuts one of a machine that
// stands still for as long between the two.
const headerTimeout = 5 * time.Second

// start starts the exporter, without haste unless the arguments say so, and waits until
// it listens. When the test ends, so does the exporter, by SIGTERM and with status 0, and
// nothing of it may be left.
func start(t testing.TB, args ...string) *exporter {
	t.Helper()
	return startProgram(t, binary, args...)
}

func startProgram(t testing.TB, program string, args ...string) *exporter {
	t.Helper()
	running.DependOn(t, program)
	e := &exporter{
		program: filepath.Join(t.TempDir(), programName),
		client:  &http.Client{Timeout: running.Patience, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	running.Check(t, clone(program, e.program))
	t.Cleanup(func() { noneLeft(t, e.program) })
	e.Process = running.Launch(t, "the exporter", e.program, append([]string{"--web.listen-address=127.0.0.1:0"}, running.Unhurried(args...)...)...)
	t.Cleanup(func() { e.stop(t) })
	e.url = "http://" + e.Listening(t)
	return e
}

// noneLeft makes sure that nobody is left who runs a program, which nobody else has
// under this name. Who was killed may need a while to end.
func noneLeft(t testing.TB, program string) {
	t.Helper()
	var left []int
	for deadline := time.Now().Add(running.Patience); ; time.Sleep(50 * time.Millisecond) {
		if left = processes(t, program); len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			break
		}
	}
	for _, pid := range left {
		t.Errorf("process %d is left and is killed", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// stop ends the exporter by SIGTERM, unless it has ended before, and makes sure
// that its status is 0. It returns how long that took.
func (e *exporter) stop(t testing.TB) time.Duration {
	t.Helper()
	select {
	case <-e.Ended():
		return 0
	default:
	}
	began := time.Now()
	e.Stop(t)
	took := time.Since(began)
	if err := e.Err(); err != nil {
		t.Errorf("the exporter ended after SIGTERM with %v, want status 0", err)
	}
	return took
}

func (e *exporter) children(t testing.TB) []int {
	t.Helper()
	var children []int
	for _, pid := range processes(t, e.program) {
		if pid != e.PID() {
			children = append(children, pid)
		}
	}
	return children
}

// processes returns the ids of the processes that run a program.
func processes(t testing.TB, program string) []int {
	t.Helper()
	entries := running.Must(os.ReadDir("/proc"))(t)
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

func (e *exporter) get(t testing.TB, path string) (status int, body string) {
	t.Helper()
	status, body, _ = e.fetch(t, path, nil)
	return status, body
}

// fetch is get with request headers, and with those of the answer.
func (e *exporter) fetch(t testing.TB, path string, change func(*http.Request)) (status int, body string, header http.Header) {
	t.Helper()
	request := running.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+path, nil))(t)
	if change != nil {
		change(request)
	}
	response, err := e.do(t, e.client, request)
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

// do has a client send a request that has no body. It sends it again if the exporter may
// have cut the connection for the machine's sake, and only then: what comes of an end of
// the exporter, or of a handler that panics, is not passed over.
func (e *exporter) do(t testing.TB, client *http.Client, request *http.Request) (*http.Response, error) {
	began := time.Now()
	response, err := client.Do(request)
	if err == nil || !e.stalled(t, began) {
		return response, err
	}
	return client.Do(request)
}

// stalled tells whether what began at a time and was cut by the exporter, which lives,
// may have been cut because the machine stood still.
func (e *exporter) stalled(t testing.TB, began time.Time) bool {
	select {
	case <-e.Ended():
		return false
	default:
	}
	took := time.Since(began)
	if took < headerTimeout {
		return false
	}
	t.Logf("a connection was cut after %v, and is tried again", took)
	return true
}

// ready waits until each device has been probed.
func (e *exporter) ready(t testing.TB) {
	t.Helper()
	running.Eventually(t, "the exporter is ready", func() bool {
		status, _ := e.get(t, "/-/ready")
		return status == http.StatusOK
	})
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
	running.DependOn(t, program)
	var stdout, stderr running.Output
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "COLUMNS=80") // for the width of the help
	cmd.Stdin = strings.NewReader(input)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	running.Check(t, cmd.Start())
	overdue := time.AfterFunc(running.Patience, func() { _ = cmd.Process.Kill() })
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
