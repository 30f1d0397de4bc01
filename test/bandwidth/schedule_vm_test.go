//go:build vm

package bandwidth

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/path"
	"rdma_exporter/test/running"
)

// scheduled starts an exporter whose only slot comes soon, and returns its metrics of bandwidth once it
// has measured. What another program has just left behind can interrupt it, so there are several attempts.
func scheduled(t *testing.T, result string) (metrics string) {
	t.Helper()
	want := fmt.Sprintf(`rdma_bandwidth_runs_total{device="rxe0",result=%q} 1`, result)
	for n := 0; n < 5 && !strings.Contains(metrics, want); n++ {
		metrics = measuredOnce(t)
	}
	if !strings.Contains(metrics, want) {
		t.Fatalf("no measurement is %s: %s", result, metrics)
	}
	return metrics
}

func measuredOnce(t *testing.T) (metrics string) {
	t.Helper()
	const interval = 4 * time.Hour
	for i := 0; ; i++ { // The slot follows from the name of the host.
		if d := time.Until(path.NextSlot(fmt.Sprint("host", i, " rxe0"), interval, time.Now())); d > 10*time.Second && d < 12*time.Second {
			running.Check(t, unix.Sethostname(fmt.Append(nil, "host", i)))
			break
		}
	}
	e := running.Launch(t, "the exporter", os.Getenv("RDMA_EXPORTER_BINARY"), "--web.listen-address=127.0.0.1:0", "--device.include=rxe0", "--contract.interval=0", "--inventory.interval=0", "--notification.samples=0",
		"--bandwidth.schedule="+interval.String())
	defer e.Stop(t)
	url := "http://" + e.Listening(t) + "/metrics"
	running.Eventually(t, "a measurement", func() bool {
		response, err := http.Get(url)
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		text, _ := io.ReadAll(response.Body) // It has no result then.
		metrics = strings.Join(regexp.MustCompile(`(?m)^rdma_bandwidth.*$`).FindAllString(string(text), -1), "\n")
		return strings.Contains(metrics, "} 1\n") || strings.HasSuffix(metrics, "} 1")
	})
	return metrics
}

// TestSchedule verifies that a scheduled measurement makes metrics, and none on a device in use, which
// gets no object of it.
func TestSchedule(t *testing.T) {
	held := running.Hold(t, exec.Command(os.Getenv("RDMA_HOLDER"), "--device", "rxe0", "--qps", "1"))
	if m := scheduled(t, "in_use"); strings.Contains(m, "per_second") || strings.Contains(m, "timestamp") {
		t.Errorf("a device in use has %s", m)
	}
	held.Release()
	m := scheduled(t, "ok")
	for _, node := range []string{"0", "1"} {
		for _, operation := range []string{"write", "read"} {
			if !regexp.MustCompile(`(?m)^rdma_bandwidth_bytes_per_second\{device="rxe0",numa_node="` + node + `",operation="` + operation + `",port="1"\} [1-9]`).MatchString(m) {
				t.Errorf("%s with node %s is missing: %s", operation, node, m)
			}
		}
	}
	t.Log(m)
}
