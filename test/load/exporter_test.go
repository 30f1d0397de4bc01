//go:build load

package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
	"rdma_exporter/verbs/simulated/simulatedtest"
)

// exporter is a running exporter of simulated devices.
type exporter struct {
	*running.Process
	address string
	// interval is that of the probes.
	interval time.Duration
}

// start starts an exporter and waits until it is ready. When the test ends, so does
// it.
func start(t *testing.T, devices int, interval time.Duration) *exporter {
	t.Helper()
	// What runs seldom would come in the midst of one kind of load and not of another.
	p := running.Launch(t, "the exporter", binary, "--web.listen-address=127.0.0.1:0", "--provider=simulated",
		"--simulated.profile="+running.File(t, "profile.yaml", simulatedtest.Scaled(devices)),
		"--probe.interval="+interval.String(), "--probe.concurrency=4",
		"--notification.samples=10", "--contract.interval=0s", "--inventory.interval=10m")
	t.Cleanup(func() {
		p.Stop(t)
		if err := p.Err(); err != nil {
			t.Errorf("the exporter ended with %v", err)
		}
	})
	e := &exporter{Process: p, address: p.Listening(t), interval: interval}
	running.Eventually(t, "the exporter is ready", func() bool {
		_, err := e.get(t.Context(), "/-/ready")
		return err == nil
	})
	return e
}

// get asks for a path, on a connection of its own.
func (e *exporter) get(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.address+path, nil)
	if err != nil {
		return "", err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	b, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", response.Status, b)
	}
	return string(b), err
}

// values returns the values of metrics, by the whole of what stands before each: name
// and labels.
func (e *exporter) values(ctx context.Context, names ...string) (map[string]float64, error) {
	text, err := e.get(ctx, "/metrics?name[]="+strings.Join(names, "&name[]="))
	if err != nil {
		return nil, err
	}
	values := make(map[string]float64)
	for line := range strings.Lines(text) {
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || line[0] == '#' {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		values[line[:i]] = v
	}
	return values, nil
}

// state is what an exporter holds.
type state struct {
	// resident is in KiB, and peak the most since it was reset.
	resident, peak    int
	files, goroutines int
	// cpu is what it used since its start, without its children.
	cpu time.Duration
}

// look returns what the exporter holds.
func (e *exporter) look(t *testing.T) state {
	t.Helper()
	var s state
	values, err := e.values(t.Context(), "go_goroutines")
	if err != nil {
		t.Fatal(err)
	}
	s.goroutines = int(values["go_goroutines"])
	status := e.file(t, "status")
	s.resident, s.peak = kilobytes(t, status, "VmRSS:"), kilobytes(t, status, "VmHWM:")
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", e.PID()))
	if err != nil {
		t.Fatal(err)
	}
	s.files = len(files)
	// The fields after the name of the command, see proc_pid_stat(5): utime and stime
	// are the 12th and 13th, in ticks, of which Linux tells user programs 100 a second.
	stat := e.file(t, "stat")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	for _, f := range fields[11:13] {
		ticks, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		s.cpu += time.Duration(ticks) * 10 * time.Millisecond
	}
	return s
}

// resetPeak makes the peak count from now on.
func (e *exporter) resetPeak(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", e.PID()), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

func (e *exporter) file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", e.PID(), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func kilobytes(t *testing.T, status, key string) int {
	t.Helper()
	_, rest, _ := strings.Cut(status, "\n"+key)
	n, err := strconv.Atoi(strings.Fields(rest + " ?")[0])
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return n
}
