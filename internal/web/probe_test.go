package web_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"rdma_exporter/internal/path"
)

// TestProbe verifies that a scrape of a pair has its metrics, and says whether it works.
func TestProbe(t *testing.T) {
	t.Parallel()
	const metrics = `# TYPE rdma_path_success gauge
rdma_path_success{device="a",peer="n1:1"} 1
rdma_path_success{device="b",peer="n1:1"} 1
rdma_path_success{device="a",peer="n2:1"} 0
rdma_path_success{device="a",peer="n3:1"} 1
# TYPE rdma_path_timestamp_seconds gauge
rdma_path_timestamp_seconds{device="a",peer="n1:1"} 11
rdma_path_timestamp_seconds{device="b",peer="n1:1"} 12
rdma_path_timestamp_seconds{device="a",peer="n2:1"} 21
rdma_path_timestamp_seconds{device="a",peer="n3:1"} 31
rdma_path_timestamp_seconds{device="b",peer="n3:1"} 32
# TYPE rdma_probe_success gauge
rdma_probe_success{device="a",probe="qp"} 1
`
	c := config(devices())
	c.Gatherer = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(metrics))
		return slices.Collect(maps.Values(families)), err
	})
	for query, want := range map[string]string{
		"target=n1:1&device=b&module=ud":   "200 probe_success 1\nprobe_timestamp_seconds{device=\"b\",peer=\"n1:1\"} 12\n",
		"target=n2:1":                      "200 probe_success 0\nprobe_timestamp_seconds{device=\"a\",peer=\"n2:1\"} 21\n",
		"target=n3:1":                      "200 probe_success 0\nprobe_timestamp_seconds{device=\"a\",peer=\"n3:1\"} 31\nprobe_timestamp_seconds{device=\"b\",peer=\"n3:1\"} 32\n",
		"device=a":                         "400 target is missing: use HOST:PORT of a peer.\n",
		"target=n1:1&device=a&module=icmp": "400 There is no such module: use ud.\n",
		"target=n4:1":                      "404 There is no result for this target and device: /api/v2/status lists the pairs.\n",
		"target=n2:1&device=b":             "404 There is no result for this target and device: /api/v2/status lists the pairs.\n",
	} {
		w := get(handler(t, c), "GET", "/probe?"+query)
		body := regexp.MustCompile("(?m)^#.*\n").ReplaceAllString(w.Body.String(), "")
		if got := fmt.Sprint(w.Code, " ", body); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
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
