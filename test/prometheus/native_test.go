//go:build prometheus

package prometheus_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// TestNativeHistograms has a Prometheus that keeps native histograms alone scrape an
// exporter, with the shipped rules and dashboards: what is asked of histograms returns
// data, and nothing is an error.
func TestNativeHistograms(t *testing.T) {
	t.Parallel()
	rules := readRules(t, filepath.Join(repository, "alerts"))
	exporter := startExporter(t, "the exporter", "--provider=simulated", "--simulated.profile=testdata/healthy.yaml",
		"--probe.interval=1s", "--notification.samples=5", "--collector.verb-histograms")
	a := start(t, running.FindNativePrometheus(t, "prometheus"), []string{"--enable-feature=native-histograms"}, rules, 2*time.Second, exporter.address)
	a.settled(t, []string{exporter.address}, nil)

	for _, recorded := range []string{
		"instance_device_path:rdma_notification_latency_seconds:p99_rate5m",
		"job_model_path:rdma_notification_latency_seconds:median_p99_rate5m",
		"instance_device_path:rdma_notification_latency_seconds:fleet_ratio_p99_rate5m",
	} {
		a.returns(t, recorded+" > 0")
	}
	classic, err := a.query(`{__name__=~"rdma_.*_bucket"}`, time.Now())
	if err != nil || len(classic) > 0 {
		t.Errorf("%d classic histograms are kept, %v", len(classic), err)
	}
	boards := readDashboards(t, filepath.Join(repository, "dashboards"))
	s := scope{}
	for name, v := range map[string]string{
		"datasource": "the test's", "cluster": "", "job": job, "instance": exporter.address, "device": "sim_rxe0",
		"__interval": "2s", "__rate_interval": "8s", "__range": "900s",
	} {
		s = s.with(name, value{values: []string{v}})
	}
	asked := 0
	for _, d := range boards {
		if d.UID != "rdma-device" {
			continue // The others read no histogram.
		}
		for _, e := range d.expressions(t) {
			if e.kind == kindVariable {
				continue
			}
			text := running.Must(s.interpolate(e.text))(t)
			if _, err := a.query(text, time.Now()); err != nil {
				t.Errorf("%s: %v", e.id(), err)
			}
			if strings.Contains(text, "rdma_notification_latency_seconds") || strings.Contains(text, "rdma_verbs_call_latency_seconds") {
				asked++
				a.returns(t, text)
			}
		}
	}
	if asked < 6 {
		t.Errorf("%d expressions read histograms only", asked)
	}
}
