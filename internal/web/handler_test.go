package web_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/internal/web"
	"rdma_exporter/test/running"
)

func now() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

// config returns a valid configuration of a handler that shows s.
func config(s *state.Snapshot) web.Config {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "rdma_devices", Help: "Devices."}))
	return web.Config{
		Snapshot:   func() *state.Snapshot { return s },
		Gatherer:   registry,
		Registerer: registry,
		Logger:     slog.New(slog.DiscardHandler),
		Status: func(now time.Time) *api.Status {
			return api.New(apitest.Evaluated(s), api.Options{Now: now, Version: "1.2.3"})
		},
		Verdict: func(o verdict.Options, now time.Time) verdict.Verdict {
			return verdict.Of(apitest.Evaluated(s), o, now)
		},
		Now: now,
	}
}

func handler(t testing.TB, c web.Config) http.Handler {
	t.Helper()
	h := running.Must(web.New(c))(t)
	return h
}

func get(h http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), method, path, nil))
	return w
}

func devices() *state.Snapshot {
	info := &state.Device{Ports: []state.Port{{Number: 1, State: "active"}, {Number: 2, State: "down"}}}
	return &state.Snapshot{
		Provider: "libibverbs", Ready: true,
		Devices: []state.DeviceState{
			{Name: "mlx5_0", Present: true, Info: info, Last: &state.Run{Outcome: state.OutcomeOK, Started: now().Add(-12 * time.Second)}},
			{Name: "mlx5_1", Present: true, Info: info, Last: &state.Run{
				Outcome: state.OutcomeFailed, Error: "qp: ibv_create_qp: ENOMEM", Started: now().Add(-5 * time.Minute),
			}},
			{
				Name: "rxe0", Last: &state.Run{Outcome: state.OutcomeTimeout, Error: "killed", Started: now().Add(-3 * time.Hour)},
				Stuck: &state.Stuck{PID: 4711, Verb: "ibv_destroy_cq", Since: now().Add(-72 * time.Hour)},
			},
			{Name: "rxe1", Present: true},
		},
	}
}

func TestPaths(t *testing.T) {
	waiting := &state.Snapshot{Devices: []state.DeviceState{
		{Name: "mlx5_0", Present: true, Last: &state.Run{}},
		{Name: "mlx5_1", Present: true},
		{Name: "rxe0", Present: true},
	}}
	tests := []struct {
		name     string
		snapshot *state.Snapshot
		method   string
		path     string
		code     int
		body     string
	}{
		{"page", devices(), "GET", "/", 200, "</html>"},
		{"page before discovery", nil, "GET", "/", 200, "have not been listed yet"},
		{"page with a query", devices(), "GET", "/?refresh=x&y", 200, "</html>"},
		{"head of page", devices(), "HEAD", "/", 200, ""},
		{"post to page", devices(), "POST", "/", 405, ""},
		{"status", devices(), "GET", "/api/v2/status", 200, `"version":2`},
		{"status before discovery", nil, "GET", "/api/v2/status", 200, `"not_listed_yet"`},
		{"head of status", devices(), "HEAD", "/api/v2/status", 200, ""},
		{"put status", devices(), "PUT", "/api/v2/status", 405, ""},
		{"version 1", devices(), "GET", "/api/v1/status", 410, "/api/v2/status"},
		{"verdict", devices(), "GET", "/api/v1/verdict", 200, `{"status":`},
		{"verdict before discovery", nil, "GET", "/api/v1/verdict?expect_devices=8", 200, `{"status":2,"line":"rdma not_probed: the first probe runs have not ended; do=none"`},
		{"verdict with a wrong value", devices(), "GET", "/api/v1/verdict?clear_after=11m", 400, `clear_after is "11m": use a duration from 0s to 10m`},
		{"verdict with another parameter", devices(), "GET", "/api/v1/verdict?expected=%0a8", 400, "there is no such parameter"},
		{"verdict with a broken query", devices(), "GET", "/api/v1/verdict?for=%zz", 400, `invalid URL escape`},
		{"post to verdict", devices(), "POST", "/api/v1/verdict", 405, ""},
		{"metrics", devices(), "GET", "/metrics", 200, "rdma_devices 0"},
		{"own metrics", devices(), "GET", "/metrics", 200, "promhttp_metric_handler_errors_total"},
		{"head of metrics", devices(), "HEAD", "/metrics", 200, ""},
		{"delete metrics", devices(), "DELETE", "/metrics", 405, ""},
		{"healthy", nil, "GET", "/-/healthy", 200, "rdma_exporter is healthy."},
		{"put healthy", nil, "PUT", "/-/healthy", 405, ""},
		{"ready", devices(), "GET", "/-/ready", 200, "rdma_exporter is ready."},
		{"ready before discovery", nil, "GET", "/-/ready", 503, "have not been listed yet"},
		{"ready before first runs", waiting, "GET", "/-/ready", 503, "waiting for the first run on 2 devices."},
		{"ready after failed discovery", &state.Snapshot{DiscoveryError: "EPERM"}, "GET", "/-/ready", 503, "could not be listed; see the status page and the log."},
		{"ready in between", &state.Snapshot{}, "GET", "/-/ready", 503, "the first probe run has not finished on every device."},
		{"reload", devices(), "POST", "/-/reload", 404, ""},
		{"unknown", devices(), "GET", "/nothing", 404, ""},
		{"below metrics", devices(), "GET", "/metrics/", 404, ""},
		{"below health", devices(), "GET", "/-/", 404, ""},
		{"post to metrics", devices(), "POST", "/metrics", 405, ""},
		{"no profiler", devices(), "GET", "/debug/pprof/", 404, ""},
		{"no goroutines", devices(), "GET", "/debug/pprof/goroutine?debug=2", 404, ""},
		{"no variables", devices(), "GET", "/debug/vars", 404, ""},
		{"no traces", devices(), "GET", "/debug/requests", 404, ""},
		{"options", devices(), "OPTIONS", "/metrics", 405, ""},
		{"trace", devices(), "TRACE", "/metrics", 405, ""},
		{"method of one's own", devices(), "SCRAPE", "/metrics", 405, ""},
		{"climbing", devices(), "GET", "/-/../metrics", 307, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := get(handler(t, config(tt.snapshot)), tt.method, tt.path)
			if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.body) {
				t.Errorf("got %d, want %d with %q:\n%s", w.Code, tt.code, tt.body, w.Body)
			}
			if got := w.Header().Get("X-Content-Type-Options"); got != "nosniff" {
				t.Errorf("X-Content-Type-Options: %q", got)
			}
			if w.Code == http.StatusMethodNotAllowed && w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("Allow: %q", w.Header().Get("Allow"))
			}
		})
	}
}

func TestMetricsPath(t *testing.T) {
	c := config(devices())
	c.MetricsPath = "/rdma/metrics"
	h := handler(t, c)
	if w := get(h, "GET", "/rdma/metrics"); w.Code != 200 {
		t.Errorf("got %d", w.Code)
	}
	if w := get(h, "GET", "/metrics"); w.Code != 404 {
		t.Errorf("the default path answers %d", w.Code)
	}
	if w := get(h, "GET", "/"); !strings.Contains(w.Body.String(), `href="./rdma/metrics"`) {
		t.Errorf("the page does not lead there:\n%s", w.Body)
	}
}

// TestHealthTellsNothing verifies that the paths for orchestrators name no device and no file.
func TestHealthTellsNothing(t *testing.T) {
	const name = "mlx5_bond_7"
	d := state.DeviceState{Name: name, Present: true}
	probed := d
	probed.Last = &state.Run{Outcome: state.OutcomeFailed, Error: name}
	for _, s := range []*state.Snapshot{
		{Provider: name, Devices: []state.DeviceState{d}},
		{DiscoveryError: "open /sys/class/infiniband/" + name, Devices: []state.DeviceState{d}},
		{Ready: true, Devices: []state.DeviceState{probed}},
	} {
		c := config(s)
		c.Status = func(now time.Time) *api.Status {
			return api.New(apitest.Evaluated(s), api.Options{Now: now, Version: name, Host: name})
		}
		for _, path := range []string{"/-/healthy", "/-/ready"} {
			w := get(handler(t, c), "GET", path)
			if strings.Contains(w.Body.String(), name) || w.Body.Len() > 120 {
				t.Errorf("%s: %q", path, w.Body)
			}
			for header, values := range w.Header() {
				if strings.Contains(strings.Join(values, ""), name) {
					t.Errorf("%s: %s: %q", path, header, values)
				}
			}
			if got := w.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" {
				t.Errorf("Content-Type: %s", got)
			}
		}
	}
}

func TestMetricsPathRefused(t *testing.T) {
	for _, path := range []string{"metrics", "/", "/-", "/-/ready", "/-/x", "/api/v1/status", "/api/v1/verdict", "/api/v2/status", "/api/v1/path", "/api/v1/path/x", "/probe", "/a/", "//a", "/a/../b", "/{a}", "/a b", "/a?b", "/a#b", "/%41", "/ä", `/a\b`} {
		c := config(nil)
		c.MetricsPath = path
		if _, err := web.New(c); err == nil {
			t.Errorf("metrics path %q is taken", path)
		}
	}
}

// TestMaxRequests verifies that scrapes beyond the limit are refused.
func TestMaxRequests(t *testing.T) {
	entered, leave := make(chan struct{}, web.MaxRequests), make(chan struct{})
	c := config(nil)
	c.Gatherer = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		entered <- struct{}{}
		<-leave
		return nil, nil
	})
	h := handler(t, c)
	first := make(chan int, web.MaxRequests)
	for range web.MaxRequests {
		go func() { first <- get(h, "GET", "/metrics").Code }()
		<-entered
	}
	if w := get(h, "GET", "/metrics?name[]=x"); w.Code != 503 || !strings.Contains(w.Body.String(), "Limit of concurrent requests") {
		t.Errorf("got %d: %s", w.Code, w.Body)
	}
	if w := get(h, "GET", "/-/healthy"); w.Code != 200 {
		t.Errorf("health answers %d meanwhile", w.Code)
	}
	close(leave)
	for range web.MaxRequests {
		if code := <-first; code != 200 {
			t.Errorf("one of the first scrapes was answered %d", code)
		}
	}
}

// TestBrokenMetric verifies that a metric that cannot be gathered is logged and hides no other.
func TestBrokenMetric(t *testing.T) {
	var log bytes.Buffer
	c := config(nil)
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	whole := c.Gatherer
	c.Gatherer = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := whole.Gather()
		return families, errors.Join(err, errors.New("one metric is broken"))
	})
	w := get(handler(t, c), "GET", "/metrics")
	if w.Code != 200 || !strings.Contains(w.Body.String(), "rdma_devices 0") {
		t.Errorf("got %d: %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "one metric is broken") || !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("log: %s", log.String())
	}
}

// TestCollectors verifies that a scrape can request collectors and metrics by name, and that a
// wrong name is answered with one line.
func TestCollectors(t *testing.T) {
	t.Parallel()
	c := config(nil)
	c.Only = func(collect, exclude []string) (prometheus.Gatherer, error) {
		if slices.Contains(collect, "x") {
			return nil, fmt.Errorf("there is no collector %q, but a, b", "x")
		}
		registry := prometheus.NewRegistry()
		for name, list := range map[string][]string{"collect": collect, "exclude": exclude} {
			for _, part := range list {
				registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: name + "_" + part, Help: "A part."}))
			}
		}
		return registry, nil
	}
	h := handler(t, c)
	for query, want := range map[string][]string{
		"":                             {"rdma_devices 0"},
		"?name[]=rdma_devices":         {"rdma_devices 0"},
		"?collect[]=a":                 {"collect_a 0"},
		"?collect%5B%5D=a&collect[]=b": {"collect_a 0", "collect_b 0"},
		"?exclude[]=a":                 {"exclude_a 0"},
		"?collect[]=a&collect[]=b&name[]=collect_a": {"collect_a 0"},
	} {
		w := get(h, "GET", "/metrics"+query)
		var got []string
		for line := range strings.Lines(w.Body.String()) {
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "promhttp") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if w.Code != 200 || !slices.Equal(got, want) {
			t.Errorf("%s: got %d: %q, want %q", query, w.Code, got, want)
		}
	}
	w := get(h, "GET", "/metrics?collect[]=x&collect[]=a")
	if w.Code != 400 || strings.Count(w.Body.String(), "\n") != 1 || !strings.Contains(w.Body.String(), "no collector") {
		t.Errorf("of a collector that there is not: got %d: %q", w.Code, w.Body)
	}
}
