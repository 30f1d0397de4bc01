package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/path"
	"rdma_exporter/internal/state"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	one, two := apitest.Device("mlx5_0", 1), apitest.Device("mlx5_1", 1)
	one.Paths = apitest.Paths()
	two.Paths = one.Paths[:1:1]
	const works = `probe_packets_lost{direction="forward"} 0
probe_packets_lost{direction="reverse"} 0
probe_rtt_seconds{stat="max"} 8.1e-05
probe_rtt_seconds{stat="median"} 3.4e-06
probe_rtt_seconds{stat="min"} 2.9e-06
probe_success 1
`
	s := &state.Snapshot{Devices: []state.DeviceState{one, two}}
	for _, tt := range []struct {
		name, query string
		snapshot    *state.Snapshot
		code        int
		want        string
	}{
		{"works", "target=node-18:10879&device=mlx5_1&module=ud", s, 200, works + "probe_timestamp_seconds 1.77236638e+09\n"},
		{"fails", "target=node-19:10879", s, 200, `probe_packets_lost{direction="forward"} 6
probe_packets_lost{direction="reverse"} 1
probe_success 0
probe_timestamp_seconds 1.77236638e+09
`},
		{"slow", "target=node-20:10879&device=mlx5_0", s, 200, works},
		{"nothing sent", "target=node-21:10879", s, 200, "probe_success 0\nprobe_timestamp_seconds 1.77236638e+09\n"},
		{"several devices", "target=node-18:10879", s, 400, "device is missing: several ask this target. /api/v2/status lists the pairs.\n"},
		{"no target", "device=mlx5_0", s, 400, "target is missing: use HOST:PORT of a peer.\n"},
		{"other module", "target=node-18:10879&device=mlx5_0&module=icmp", s, 400, "There is no such module: use ud.\n"},
		{"unknown target", "target=node-1:10879", s, 404, "There is no result for this target and device: /api/v2/status lists the pairs.\n"},
		{"unknown device", "target=node-18:10879&device=mlx5_7", s, 404, "There is no result for this target and device: /api/v2/status lists the pairs.\n"},
		{"before discovery", "target=node-18:10879", nil, 404, "There is no result"},
	} {
		w := get(handler(t, config(tt.snapshot)), "GET", "/probe?"+tt.query)
		var body strings.Builder
		for line := range strings.Lines(w.Body.String()) {
			if !strings.HasPrefix(line, "#") {
				body.WriteString(line)
			}
		}
		if w.Code != tt.code || !strings.HasPrefix(body.String(), tt.want) {
			t.Errorf("%s: got %d:\n%s\nwant %d:\n%s", tt.name, w.Code, body.String(), tt.code, tt.want)
		}
	}
}

// TestPeers verifies that requests of peers, and no others, reach the handler of peers, if there
// is one.
func TestPeers(t *testing.T) {
	t.Parallel()
	c := config(devices())
	off := handler(t, c)
	c = config(devices())
	c.Paths = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, r.Method, r.URL.Path)
	})
	on := handler(t, c)
	for _, tt := range []struct {
		method, path string
		on, off      int
	}{
		{"GET", path.DevicesPath, 201, 404},
		{"POST", path.SessionsPath, 201, 404},
		{"GET", path.SessionsPath + "/0123", 201, 404},
		{"DELETE", path.SessionsPath + "/0123", 405, 404},
		{"POST", "/api/v1/verdict", 405, 405},
		{"POST", "/probe?target=node-18:10879", 405, 405},
	} {
		w := get(on, tt.method, tt.path)
		if w.Code != tt.on || w.Code == 201 && w.Body.String() != tt.method+tt.path {
			t.Errorf("%s %s: got %d: %s, want %d", tt.method, tt.path, w.Code, w.Body, tt.on)
		}
		if w := get(off, tt.method, tt.path); w.Code != tt.off {
			t.Errorf("%s %s: got %d while peers may not ask, want %d", tt.method, tt.path, w.Code, tt.off)
		}
	}
}
