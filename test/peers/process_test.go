//go:build vm

package peers

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"

	"golang.org/x/sys/unix"
)

// patience is how long is waited for what must happen some time.
const patience = 20 * time.Minute

// server is a program that serves metrics.
type server struct {
	pid    int
	url    string
	client *http.Client
	stop   func()
}

// serve starts a program that serves metrics where its flag --web.listen-address
// says, and waits until it does. It is stopped at the end of the test at the latest.
func serve(t *testing.T, file string, flags ...string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(file, append(flags, "--web.listen-address="+address)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	s := &server{
		pid: cmd.Process.Pid, url: "http://" + address + "/metrics",
		// The answers are to come as they are sent.
		client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableCompression: true}},
	}
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	t.Cleanup(func() {
		s.stop()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("the log of %s:\n%s", file, text)
		}
	})
	running.Within(t, patience, file+" to serve", func() bool {
		_, err := s.get("text/plain")
		return err == nil
	})
	return s
}

// accept is what Prometheus asks for in each scrape.
const accept = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"

// get scrapes once, compressed as a Prometheus asks for it, and returns what was sent.
func (s *server) get(accept string) ([]byte, error) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("Accept-Encoding", "gzip")
	resp, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s: %s", resp.Status, body)
	}
	return body, err
}

// text scrapes once, and returns plain text.
func (s *server) text(t *testing.T) string {
	t.Helper()
	body, err := s.get("text/plain")
	if err != nil {
		t.Fatalf("scrape %s: %v", s.url, err)
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("scrape %s: %v", s.url, err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatalf("scrape %s: %v", s.url, err)
	}
	return string(text)
}

// cpu is the CPU time that the process has used, of all its threads, without its
// children.
func (s *server) cpu(t *testing.T) time.Duration {
	t.Helper()
	const perProcess = 2 // CPUCLOCK_SCHED of the kernel: of the whole process, in ns
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^s.pid<<3|perProcess), &ts); err != nil {
		t.Fatalf("the CPU clock of process %d: %v", s.pid, err)
	}
	return time.Duration(ts.Nano())
}

// childrenCPU is the CPU time of all children that the process has waited for.
func (s *server) childrenCPU(t *testing.T) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	var ticks int
	for _, field := range fields[13:15] { // cutime and cstime
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	const perSecond = 100 // USER_HZ, which is that on every Linux
	return time.Duration(ticks) * time.Second / perSecond
}

// memory returns what /proc/PID/status says under a key, in MiB.
func (s *server) memory(t *testing.T, key string) float64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var kib float64
		if _, err := fmt.Sscanf(line, key+": %f kB", &kib); err == nil {
			return kib / 1024
		}
	}
	t.Fatalf("process %d has no %s", s.pid, key)
	return 0
}

// cost is what a program took from its start to its end.
type cost struct{ wall, cpu time.Duration }

func (c cost) plus(d cost) cost { return cost{c.wall + d.wall, c.cpu + d.cpu} }

// run runs a program to its end, which must be a good one, with its output thrown
// away. Nothing is in its input but what is given.
func run(t *testing.T, input, file string, args ...string) cost {
	t.Helper()
	cmd := exec.Command(file, args...)
	cmd.Stdin = strings.NewReader(input)
	began := time.Now()
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, text)
	}
	return cost{time.Since(began), cpuOf(cmd)}
}

// cpuOf is the CPU time of a program that has ended.
func cpuOf(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// milliseconds returns the medians of some costs.
func milliseconds(costs []cost) (wall, cpu float64) {
	var walls, cpus []float64
	for _, c := range costs {
		walls, cpus = append(walls, c.wall.Seconds()*1e3), append(cpus, c.cpu.Seconds()*1e3)
	}
	return median(walls), median(cpus)
}
