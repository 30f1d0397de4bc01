//go:build vm

package softroce

import (
	"strings"
	"testing"
)

// The main job: both devices are probed and what the kernel's driver gives is on
// /metrics.
func TestProbesBothDevices(t *testing.T) {
	e := start(t, options{flags: []string{histograms}})
	e.await("the exporter to be ready", func() bool {
		_, err := e.get("/-/ready")
		return err == nil
	})
	m := e.scrape()

	m.is(t, 2, "rdma_devices")
	for _, device := range []string{active, down} {
		m.allOK(t, device)
		for _, probe := range []string{"cq", "comp_channel", "srq", "qp", "notification"} {
			m.is(t, 1, "rdma_probe_success", "device", device, "probe", probe)
		}
		m.is(t, 1, "rdma_device_info", "device", device, "provider", "libibverbs")
		m.is(t, 0, "rdma_probe_stuck", "device", device)
		if n := m.sum("rdma_verbs_errors_total", "device", device); n != 0 {
			t.Errorf("%v calls failed on %s: %v", n, device, m["rdma_verbs_errors_total"])
		}
		for _, typ := range []string{"rc", "uc", "ud"} {
			for _, profile := range []string{"small", "medium", "large"} {
				for _, queue := range []string{"send", "recv"} {
					labels := []string{"device", device, "qp_type", typ, "profile", profile, "queue", queue}
					asked := m.one(t, "rdma_probe_qp_work_requests_requested", "profile", profile, "queue", queue)
					if given := m.one(t, "rdma_probe_qp_work_requests_actual", labels...); given < asked {
						t.Errorf("%q: %v work requests given, %v asked", labels, given, asked)
					}
				}
			}
			t.Logf("%s %s: at most %v bytes inline", device, typ, m.one(t, "rdma_probe_qp_max_inline_bytes", "device", device, "qp_type", typ))
		}
		m.is(t, 1, "rdma_probe_skipped", "device", device, "probe", "qp", "subject", "raw_packet", "reason", "not_supported")
		if found := m.find("rdma_probe_qp_work_requests_actual", "device", device, "qp_type", "raw_packet"); len(found) > 0 {
			t.Errorf("sizes of a raw packet QP, which was skipped: %v", found)
		}
	}
	m.is(t, portActive, "rdma_port_state_id", "device", active, "port", "1")
	m.is(t, portDown, "rdma_port_state_id", "device", down, "port", "1")

	exact := kernel(t, "6.1")
	for _, s := range []struct {
		profile               string
		cq, srq, srqQueried   float64
		cqAsked, srqRequested float64
	}{
		{"small", 31, 16, 31, 16, 16},
		{"medium", 511, 256, 511, 256, 256},
		{"large", 8191, 4096, 8191, 4096, 4096},
	} {
		for _, size := range []struct {
			name string
			want float64
		}{
			{"rdma_probe_cq_entries_requested", s.cqAsked},
			{"rdma_probe_cq_entries_actual", s.cq},
			{"rdma_probe_srq_work_requests_requested", s.srqRequested},
			{"rdma_probe_srq_work_requests_actual", s.srq},
			{"rdma_probe_srq_work_requests_queried", s.srqQueried},
		} {
			labels := []string{"profile", s.profile}
			if !strings.HasSuffix(size.name, "_requested") { // which are asked of each device
				labels = append(labels, "device", active)
			}
			got := m.one(t, size.name, labels...)
			switch {
			case got == size.want:
			case exact:
				t.Errorf("%s%q is %v, want %v", size.name, labels, got, size.want)
			default:
				t.Logf("%s%q is %v", size.name, labels, got)
			}
		}
	}
	for _, call := range m.find("rdma_verbs_call_latency_seconds", "device", active) {
		h := call.GetHistogram()
		t.Logf("%-26s %3d calls, mean %.3f ms", label(call, "verb"), h.GetSampleCount(), 1e3*h.GetSampleSum()/float64(h.GetSampleCount()))
	}
	t.Logf("run %.3f s, CPU %.3f s, at most %.1f MiB resident", m.one(t, "rdma_probe_duration_seconds", "device", active),
		m.one(t, "rdma_probe_child_cpu_seconds", "device", active), m.one(t, "rdma_probe_child_max_resident_bytes", "device", active)/(1<<20))
	t.Logf("ended %v after SIGTERM", e.terminate())
	if log := e.log.String(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "level=WARN") {
		t.Errorf("the log complains:\n%s", log)
	}
}
