package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"rdma_exporter/test/running"
	"rdma_exporter/verbs/simulated/simulatedtest"
)

// BenchmarkScrape scrapes the built exporter, with every device probed and
// looked at, over HTTP and without compression. It also tells how much memory the
// exporter has resident.
func BenchmarkScrape(b *testing.B) {
	for _, devices := range []int{3, 64} {
		b.Run(fmt.Sprintf("devices=%d", devices), func(b *testing.B) {
			e := start(b, "--provider=simulated", "--simulated.profile="+running.File(b, "profile.yaml", simulatedtest.Scaled(devices)),
				"--probe.interval=10m", "--probe.concurrency=16")
			e.ready(b)
			running.Eventually(b, "every device is looked at", func() bool {
				return e.scrape(b).sum("rdma_contract_runs_total") >= float64(devices)
			})
			var bytes int64
			var fastest time.Duration
			for b.Loop() {
				began := time.Now()
				bytes = scrapeOnce(b, e)
				if took := time.Since(began); fastest == 0 || took < fastest {
					fastest = took
				}
			}
			b.ReportMetric(float64(fastest)/1e6, "ms/fastest")
			b.ReportMetric(float64(bytes), "bytes/scrape")
			b.ReportMetric(e.scrape(b).sum("process_resident_memory_bytes")/(1<<20), "MiB-resident")
			e.stop(b)
		})
	}
}

func scrapeOnce(b *testing.B, e *exporter) int64 {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, e.url+"/metrics", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "identity")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("status %s: %v", resp.Status, err)
	}
	return n
}
