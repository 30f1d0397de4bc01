// Package bench has what the package peers needs to compare the built exporter with other
// programs. They are a module of their own, so that no other test waits for them: make
// bench-peers runs them. Environment variables name the programs, by absolute paths.
package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"

	"golang.org/x/sys/unix"
)

// Program returns the path of the program that an environment variable names.
func Program(t testing.TB, variable string) string {
	t.Helper()
	file := os.Getenv(variable)
	if !filepath.IsAbs(file) {
		t.Fatalf("%s is %q: set it to an absolute path, as make bench-peers does", variable, file)
	}
	return file
}

// Server is a program that serves metrics.
type Server struct {
	*running.Process
	// URL is the address of the metrics.
	URL    string
	client *http.Client
}

// Serve starts a program with flags and waits until it listens. The program stops when the
// test ends, at the latest.
func Serve(t testing.TB, program string, flags ...string) *Server {
	t.Helper()
	p := running.Launch(t, filepath.Base(program), program, append(flags, "--web.listen-address=127.0.0.1:0")...)
	return &Server{Process: p, URL: "http://" + p.Listening(t) + "/metrics", client: &http.Client{
		Timeout: 10 * time.Second, Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1}, // as Prometheus
	}}
}

func get(ctx context.Context, client *http.Client, url string, header http.Header) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	r.Header = header
	response, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// Scrape scrapes the server once, as Prometheus does, and returns the number of bytes sent.
func (s *Server) Scrape(t testing.TB) int {
	t.Helper()
	status, body, err := get(t.Context(), s.client, s.URL, http.Header{
		"Accept":          {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"},
		"Accept-Encoding": {"gzip"},
	})
	if err != nil || status != http.StatusOK {
		t.Fatalf("scrape %s: status %d, %v", s.Name, status, err)
	}
	return len(body)
}

// Values returns the sample values of a plain scrape, by name and labels. It waits until
// the server has finished the scrapes of other clients.
func (s *Server) Values(t testing.TB) map[string]float64 {
	t.Helper()
	var text []byte
	running.Eventually(t, s.Name+" answers", func() bool {
		status, body, err := get(t.Context(), s.client, s.URL, http.Header{"Accept": {"text/plain"}})
		text = body
		return err == nil && status == http.StatusOK
	})
	values := make(map[string]float64)
	for line := range strings.Lines(string(text)) {
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || line[0] == '#' {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		values[line[:i]] = v
	}
	return values
}

// Sum returns the sum of all samples of a name.
func Sum(values map[string]float64, name string) (sum float64) {
	for series, v := range values {
		if strings.HasPrefix(series, name+"{") {
			sum += v
		}
	}
	return sum
}

// CPU returns the CPU time of all threads of the process, without its children.
func (s *Server) CPU(t testing.TB) time.Duration {
	t.Helper()
	const perProcess = 2 // CPUCLOCK_SCHED in the kernel
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^s.PID()<<3|perProcess), &ts); err != nil {
		t.Fatalf("CPU clock of %s: %v", s.Name, err)
	}
	return time.Duration(ts.Nano())
}

// ChildrenCPU returns the CPU time of all children that the process has waited for.
func (s *Server) ChildrenCPU(t testing.TB) time.Duration {
	t.Helper()
	stat := s.file(t, "stat")
	var ticks int
	for _, field := range strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])[13:15] { // cutime and cstime
		n := running.Must(strconv.Atoi(field))(t)
		ticks += n
	}
	const perSecond = 100 // USER_HZ
	return time.Duration(ticks) * time.Second / perSecond
}

// Memory returns a size in /proc/PID/status, by its key, in MiB.
func (s *Server) Memory(t testing.TB, key string) float64 {
	t.Helper()
	for line := range strings.Lines(s.file(t, "status")) {
		var kib float64
		if _, err := fmt.Sscanf(line, key+": %f kB", &kib); err == nil {
			return kib / 1024
		}
	}
	t.Fatalf("%s has no %s", s.Name, key)
	return 0
}

func (s *Server) file(t testing.TB, name string) string {
	t.Helper()
	b := running.Must(os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.PID(), name)))(t)
	return string(b)
}
