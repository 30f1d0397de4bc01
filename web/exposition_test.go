package web_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// goneClient is a client that has hung up.
type goneClient struct{ *httptest.ResponseRecorder }

func (goneClient) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// A scraper that hangs up in the midst is no news, least of all once for each metric.
func TestClientGone(t *testing.T) {
	registry := prometheus.NewRegistry()
	for n := range 200 {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: fmt.Sprintf("rdma_metric_%d", n), Help: "A metric."}, []string{"device"})
		registry.MustRegister(v)
		for device := range 100 {
			v.WithLabelValues(fmt.Sprintf("mlx5_%d", device)).Set(float64(device) / 3)
		}
	}
	for _, encoding := range []string{"identity", "gzip"} {
		var log bytes.Buffer
		c := config(nil)
		c.Gatherer = registry
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		h := handler(t, c)
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
		r.Header.Set("Accept-Encoding", encoding)
		h.ServeHTTP(goneClient{httptest.NewRecorder()}, r)
		if log.Len() > 0 {
			t.Errorf("%s: the log says\n%s", encoding, log.String())
		}
	}
}
