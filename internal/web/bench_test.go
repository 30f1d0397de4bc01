package web_test

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/web"
)

// BenchmarkMetrics measures a scrape of as many samples as 64 devices have, with
// and without compression.
func BenchmarkMetrics(b *testing.B) {
	registry := prometheus.NewRegistry()
	for f := range 40 {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: fmt.Sprintf("rdma_probe_some_metric_%d", f), Help: "Some metric."}, []string{"device", "profile"})
		registry.MustRegister(v)
		for i := range 64 * 11 {
			v.WithLabelValues(fmt.Sprintf("mlx5_%d", i/11), fmt.Sprintf("profile%d", i%11)).Set(float64(i * f))
		}
	}
	families, err := registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	c := config(nil)
	c.Gatherer = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families, nil })
	h, err := web.New(c)
	if err != nil {
		b.Fatal(err)
	}
	for _, encoding := range []string{"identity", "gzip"} {
		b.Run(encoding, func(b *testing.B) {
			r := httptest.NewRequestWithContext(b.Context(), "GET", "/metrics", nil)
			r.Header.Set("Accept-Encoding", encoding)
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				w.Body.Reset()
				h.ServeHTTP(w, r)
			}
			b.ReportMetric(float64(w.Body.Len()), "bytes/scrape")
		})
	}
}

// BenchmarkStatus measures the status page and the JSON of a host with 64 devices of
// 64 completion vectors each: made anew for each request, and served again while it
// is fresh, as it was compressed and not.
func BenchmarkStatus(b *testing.B) {
	for _, path := range []string{"/", "/api/v1/status"} {
		for _, encoding := range []string{"identity", "gzip"} {
			for _, fresh := range []bool{false, true} {
				c := hostConfig(apitest.Many(64, 64))
				clock := apitest.Now()
				c.Now = func() time.Time {
					if !fresh {
						clock = clock.Add(time.Second)
					}
					return clock
				}
				h, err := web.New(c)
				if err != nil {
					b.Fatal(err)
				}
				b.Run(fmt.Sprintf("path=%s/encoding=%s/fresh=%t", path, encoding, fresh), func(b *testing.B) {
					r := httptest.NewRequestWithContext(b.Context(), "GET", path, nil)
					r.Header.Set("Accept-Encoding", encoding)
					w := httptest.NewRecorder()
					b.ReportAllocs()
					for b.Loop() {
						w.Body.Reset()
						h.ServeHTTP(w, r)
					}
					b.ReportMetric(float64(w.Body.Len()), "bytes/answer")
				})
			}
		}
	}
}
