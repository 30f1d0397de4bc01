package collector_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"rdma_exporter/collector"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// BenchmarkScrape measures a whole scrape in text format: of unchanged devices (warm),
// after every device was probed once more (cold), and for comparison through messages and
// an HTTP handler of client_golang (messages), and through a registry as well.
func BenchmarkScrape(b *testing.B) {
	for _, n := range []int{8, 64} {
		for _, way := range []string{"warm", "cold", "messages", "registry"} {
			b.Run(fmt.Sprintf("devices=%d/%s", n, way), func(b *testing.B) { benchmarkScrape(b, n, way) })
		}
	}
}

func benchmarkScrape(b *testing.B, devices int, way string) {
	snapshot, runs := host(devices)
	judge := health.New(health.Default(), health.Past{})
	c := collector.New(collector.Options{Host: func() *health.Host { return judge.Of(snapshot) }})
	registry := prometheus.NewRegistry()
	for _, r := range runs {
		c.Observe(r)
	}
	w := httptest.NewRecorder()
	scrape := func() {
		if err := c.Write(w, registry, expfmt.NewFormat(expfmt.TypeTextPlain)); err != nil {
			b.Fatal(err)
		}
	}
	if way == "messages" || way == "registry" {
		gatherer := c.Gatherer(registry)
		if way == "registry" {
			registry.MustRegister(c)
			gatherer = registry
		}
		handler := promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true})
		request := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", nil)
		scrape = func() { handler.ServeHTTP(w, request) }
	}
	scrape()
	if w.Code != http.StatusOK {
		b.Fatal(w.Body)
	}
	b.ReportAllocs()
	for b.Loop() {
		if way == "cold" {
			b.StopTimer()
			snapshot, runs = host(devices)
			for _, r := range runs {
				c.Observe(r)
			}
			judge.Of(snapshot)
			b.StartTimer()
		}
		w.Body.Reset()
		scrape()
	}
	b.ReportMetric(float64(w.Body.Len()), "bytes/scrape")
	b.ReportMetric(float64(samples(w.Body.String())), "samples/scrape")
}

// samples counts the samples of an exposition in text format.
func samples(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}

// BenchmarkObserve measures the counting of one finished run.
func BenchmarkObserve(b *testing.B) {
	for _, r := range []*state.Run{run("sim0"), contractRun("sim0"), {Kind: state.KindInventory, Device: "sim0", Outcome: state.OutcomeOK}} {
		b.Run(string(r.Kind), func(b *testing.B) {
			c := collectorOf(nil, run("sim0"), contractRun("sim0"))
			b.ReportAllocs()
			for b.Loop() {
				c.Observe(r)
			}
		})
	}
}
