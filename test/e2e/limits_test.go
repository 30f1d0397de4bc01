package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs/simulated/simulatedtest"
)

// TestFlood verifies that no format and no filter makes 60 clients at once cost more than
// 128 MiB, with 64 devices. Scrapes above the limit are turned away, and the others served.
func TestFlood(t *testing.T) {
	t.Parallel()
	const devices, clients, mebibytes = 64, 60, 128
	e := start(t, "--provider=simulated", "--simulated.profile="+running.File(t, "profile.yaml", simulatedtest.Scaled(devices)),
		"--probe.interval=1h", "--contract.interval=0s", "--notification.samples=2", "--probe.concurrency=8")
	e.ready(t)
	const protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding="
	for name, ask := range map[string]func(r *http.Request, client int){
		"text":            func(r *http.Request, _ int) { r.Header.Set("Accept-Encoding", "identity") },
		"compressed text": func(r *http.Request, _ int) { r.Header.Set("Accept-Encoding", "gzip") },
		"OpenMetrics":     func(r *http.Request, _ int) { r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0") },
		"protobuf":        func(r *http.Request, _ int) { r.Header.Set("Accept", protobuf+"delimited") },
		"protobuf text":   func(r *http.Request, n int) { r.Header.Set("Accept", fmt.Sprintf("%stext;q=0.1%02d", protobuf, n)) },
		"compact protobuf": func(r *http.Request, n int) {
			r.Header.Set("Accept", fmt.Sprintf("%scompact-text;q=0.1%02d", protobuf, n))
		},
		"some collectors": func(r *http.Request, n int) {
			r.URL.RawQuery = "collect[]=sizes&collect[]=verbs" + strings.Repeat("&collect[]=latency", n)
		},
		"but for one": func(r *http.Request, n int) {
			r.URL.RawQuery = fmt.Sprintf("exclude[]=gids&name[]=x%d&name[]=rdma_devices", n)
		},
	} {
		// On a busy host an answer may be cut at the end of its time, which is status 0.
		status := func(n int) int {
			request := running.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+"/metrics", nil))(t)
			ask(request, n)
			response, err := e.client.Do(request)
			if err != nil {
				return 0
			}
			defer func() { _ = response.Body.Close() }()
			if _, err := io.Copy(io.Discard, response.Body); err != nil {
				return 0
			}
			return response.StatusCode
		}
		var mu sync.Mutex
		statuses := make(map[int]int)
		var wg sync.WaitGroup
		for n := range clients {
			wg.Go(func() {
				got := status(n)
				mu.Lock()
				defer mu.Unlock()
				statuses[got]++
			})
		}
		wg.Wait()
		if statuses[0]+statuses[http.StatusOK]+statuses[http.StatusServiceUnavailable] != clients {
			t.Errorf("%s: answers by status: %v", name, statuses)
		}
		running.Eventually(t, name+": one client alone is served", func() bool { return status(0) == http.StatusOK })
		peak := memory(t, e.PID(), "VmHWM:")
		t.Logf("%s: peak %d MiB, answers by status: %v", name, peak, statuses)
		if peak > mebibytes {
			t.Errorf("%s: %d MiB were resident, more than %d", name, peak, mebibytes)
		}
	}
}

// TestProbesDuringScrapes verifies that devices are probed while 60 clients scrape without a pause.
func TestProbesDuringScrapes(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated", "--probe.interval=200ms", "--contract.interval=0s", "--notification.samples=0")
	e.ready(t)
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop()
	for range 60 {
		clients.Go(func() {
			for ctx.Err() == nil {
				_, _ = running.Get(e.client, e.url+"/metrics")
			}
		})
	}
	began := time.Now()
	running.Eventually(t, "each device is probed again", func() bool {
		_, text := e.get(t, "/api/v2/status")
		var status api.Status
		running.Check(t, json.Unmarshal([]byte(text), &status))
		return !slices.ContainsFunc(status.Devices, func(d api.Device) bool { return d.Last.Started.Before(began) })
	})
}

// connect opens a connection that is closed when the test ends.
func (e *exporter) connect(t *testing.T) net.Conn {
	t.Helper()
	_, address, _ := strings.Cut(e.url, "://")
	var dialer net.Dialer
	conn := running.Must(dialer.DialContext(t.Context(), "tcp", address))(t)
	t.Cleanup(func() { _ = conn.Close() })
	running.Check(t, conn.SetDeadline(time.Now().Add(running.Patience)))
	return conn
}

// TestManyConnections verifies that more connections than the limit leave file descriptors
// for children, that scrapes are served once silent connections have been cut, and that
// slow clients keep neither files nor goroutines.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	const connections, limit, children = 700, 512, 100
	e := start(t, "--provider=simulated", "--probe.interval=200ms", "--contract.interval=0s", "--notification.samples=0")
	e.ready(t)
	before := e.scrape(t)
	for i := range connections {
		conn := e.connect(t)
		if i%2 == 0 { // A header that does not end is cut like silence.
			_, _ = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nX-Slow: ")
		}
	}
	m := e.scrape(t)
	if files := m.sum("process_open_fds"); files == 0 || files > limit+children {
		t.Errorf("%v files are open with %d connections", files, connections)
	}
	runs := before.sum("rdma_probe_runs_total", "outcome", "ok")
	running.Eventually(t, "the devices are still probed", func() bool {
		return e.counts(t).sum("rdma_probe_runs_total", "outcome", "ok") >= runs+6
	})
	const ask = "GET /metrics HTTP/1.1\r\nHost: x\r\n"
	for range 20 { // Nobody reads their answers.
		conn := e.connect(t)
		running.Check(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
		_, _ = io.WriteString(conn, strings.Repeat(ask+"\r\n", 200)+ask+"Connection: close\r\n\r\n")
	}
	const path = "/metrics?name[]=go_goroutines&name[]=process_open_fds"
	running.Eventually(t, "an answer that nobody reads is given up", func() bool { return strings.Contains(e.Log.String(), "i/o timeout") })
	running.Eventually(t, "they are cut", func() bool {
		status, text := e.get(t, path)
		if status != http.StatusOK {
			return false
		}
		now := parse(t, text)
		return now.sum("process_open_fds") <= before.sum("process_open_fds")+10 && now.sum("go_goroutines") <= before.sum("go_goroutines")+10
	})
}
