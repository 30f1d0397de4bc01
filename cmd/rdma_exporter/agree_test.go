package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"rdma_exporter/collector"
	"rdma_exporter/internal/api"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/health/expect"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/terminal"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/internal/web"
	"rdma_exporter/test/running"
)

// rails returns devices with a port each, of the given states.
func rails(states ...string) *state.Snapshot {
	s := &state.Snapshot{Provider: "libibverbs", Ready: true}
	for i, is := range states {
		name := fmt.Sprint("rail", i)
		if is == "gone" {
			s.Devices = append(s.Devices, state.DeviceState{Name: name, Vanished: time.Unix(1e9, 0)})
			continue
		}
		info := &state.Device{Transport: "InfiniBand", Ports: []state.Port{{Number: 1, State: is, LinkLayer: "InfiniBand", ActiveMTU: 4096}}}
		run := &state.Run{Kind: state.KindProbe, Device: name, Outcome: state.OutcomeOK, Started: time.Now(), Info: info}
		s.Devices = append(s.Devices, state.DeviceState{Name: name, Present: true, Info: info, Last: run})
	}
	return s
}

// TestAgree verifies that the page, the JSON, the metrics, the report of an audit and its status call a port that is
// down, a device that vanished, and what is not as expected by the same severity.
func TestAgree(t *testing.T) {
	t.Parallel()
	expected := expect.Rules{{Devices: new(2), ActivePorts: new(2)}}
	for _, tc := range []struct {
		name   string
		now    *state.Snapshot
		expect expect.Rules
		want   health.Health
		// device is the one that the finding is of. Empty means the host.
		device, kind string
	}{
		{"all well", rails("active", "active"), expected, health.OK, "", ""},
		{"one port of several", rails("active", "down"), nil, health.Warning, "rail1", "port_down"},
		{"one port of those expected", rails("active", "down"), expected, health.Critical, "rail1", "unexpected"},
		{"no port is left", rails("down", "init"), nil, health.Critical, "rail1", "port_down"},
		{"one vanished", rails("active", "gone"), nil, health.Critical, "rail1", "device_vanished"},
		{"one vanished of those expected", rails("active", "gone"), expected, health.Critical, "rail1", "device_vanished"},
		{"one was never there", rails("active"), expected, health.Critical, "", "unexpected"},
		{"none is there", rails(), expected, health.Critical, "", "unexpected"},
	} {
		for _, once := range []bool{false, true} {
			t.Run(fmt.Sprint(tc.name, ", once ", once), func(t *testing.T) {
				t.Parallel()
				c := health.Default()
				c.Expect, c.Once, c.Now = tc.expect, once, time.Now
				e := health.New(c, health.History{Ports: map[string][]int{"rail0": {1}, "rail1": {1}}})
				host := e.Evaluate(tc.now)
				status := api.New(host, api.Options{Now: time.Now(), Host: "node17"})
				is := status.Health
				if tc.device != "" {
					for _, d := range status.Devices {
						if d.Name == tc.device {
							is = d.Health
						}
					}
				}
				if status.Health != tc.want || is != tc.want {
					t.Errorf("JSON: %s, %s", status.Health, is)
				}
				for least, severities := range map[health.Severity]string{health.SeverityWarning: "warning critical", health.SeverityCritical: "critical"} {
					if got, want := host.Fails(least, time.Now()), strings.Contains(severities, string(tc.want)); got != want {
						t.Errorf("an audit with --fail-on=%s fails: %v", least, got)
					}
				}
				var report strings.Builder
				if err := terminal.WriteBrief(&report, status, terminal.End{}, terminal.Screen{}); err != nil {
					t.Error(err)
				}
				shouted := strings.ToUpper(string(tc.want))
				if line := tc.device + "  " + string(tc.want); !strings.Contains(report.String(), "Verdict: "+shouted) || tc.device != "" && !strings.Contains(report.String(), line) {
					t.Errorf("report: %s", report.String())
				}
				registry := prometheus.NewRegistry()
				registry.MustRegister(collector.New(collector.Options{Host: func() *health.Host { return host }}))
				families := running.Must(registry.Gather())(t)
				var metrics strings.Builder
				for _, f := range families {
					if _, err := expfmt.MetricFamilyToText(&metrics, f); err != nil {
						t.Fatal(err)
					}
				}
				count := fmt.Sprintf("rdma_findings{accepted=\"false\",device=%q,severity=%q} 1\n", tc.device, tc.want)
				info := fmt.Sprintf("rdma_finding_info{device=%q,errno=\"\",finding=%q,", tc.device, tc.kind)
				if _, line, ok := strings.Cut(metrics.String(), info); tc.kind != "" && (!ok || !strings.Contains(strings.SplitN(line, "\n", 2)[0], fmt.Sprintf("severity=%q", tc.want))) {
					t.Errorf("the metrics have no %s:\n%s", info, metrics.String())
				}
				if tc.device != "" && !strings.Contains(metrics.String(), count) {
					t.Errorf("the metrics have no %s:\n%s", count, metrics.String())
				}
				page, err := web.New(web.Config{
					Status: func(time.Time) *api.Status { return status }, Snapshot: func() *state.Snapshot { return tc.now },
					Verdict:  func(o verdict.Options, now time.Time) verdict.Verdict { return verdict.Of(host, o, now) },
					Gatherer: registry, Registerer: registry, Logger: slog.New(slog.DiscardHandler),
				})
				if err != nil {
					t.Fatal(err)
				}
				w := httptest.NewRecorder()
				page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
				body := w.Body.String()
				if !strings.Contains(body, "<title>node17: "+string(tc.want)) || strings.Contains(body, "All is well") != (tc.want == health.OK) {
					t.Errorf("page: %.2000s", body)
				}
			})
		}
	}
}
