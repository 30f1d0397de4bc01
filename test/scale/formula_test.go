//go:build scale

package scale_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// documented returns the metrics of docs/reference/metrics.md, and which of them are composed of
// several series.
func documented(t testing.TB) (names []string, composed map[string]bool) {
	t.Helper()
	text, err := os.ReadFile(repository + "/docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	composed = make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `(rdma_[a-z0-9_]+)` \\| [^|]* \\| ([a-z]+)").FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
		composed[m[1]] = m[2] == "histogram" || m[2] == "summary"
	}
	if len(names) < 50 {
		t.Fatalf("docs/reference/metrics.md has %d metrics only: its form has changed", len(names))
	}
	return append(names, "rdma_exporter_build_info"), composed
}

// TestFormulaIsWhole makes sure that each metric is in one row of the formula, and that
// there is no other.
func TestFormulaIsWhole(t *testing.T) {
	t.Parallel()
	names, _ := documented(t)
	f := readFormula(t, readPage(t))
	for _, name := range names {
		rows := 0
		for _, r := range f.rows {
			if r.has(name) {
				rows++
			}
		}
		if rows != 1 {
			t.Errorf("%s is in %d rows of docs/reference/scaling.md, want 1", name, rows)
		}
	}
	for _, r := range f.rows {
		for _, name := range r.metrics {
			if !strings.HasSuffix(name, "*") && !slices.Contains(names, name) {
				t.Errorf("docs/reference/scaling.md counts %s, which is no metric", name)
			}
		}
	}
}

// host is a shape with what its exporter exposed when nothing more was to come.
type host struct {
	shape
	// counts are what the symbols of the formula stand for, want what it says.
	counts map[string]int
	want   int

	exporter *process
	samples  []sample
	// plain and compressed are the sizes of the exposition, in bytes.
	plain, compressed int
}

// scrapeHosts has each shape exposed and scraped, some of them at a time.
func scrapeHosts(t *testing.T, text string) []*host {
	t.Helper()
	const window = 3
	f, verbs := readFormula(t, text), readVerbs(t, text)
	var hosts []*host
	finish := func(h *host) {
		h.scrape(t)
		h.exporter.Stop(t)
	}
	for i, s := range shapes() {
		h := &host{shape: s, counts: s.counts(verbs)}
		h.want = f.series(s, h.counts)
		h.exporter = launch(t, s.name, binary, append(s.flags(), "--simulated.profile="+running.File(t, "profile.yaml", s.profile()))...)
		hosts = append(hosts, h)
		if i >= window {
			finish(hosts[i-window])
		}
	}
	for _, h := range hosts[len(hosts)-window:] {
		finish(h)
	}
	return hosts
}

// round are the metrics that count the runs of each kind, by outcome.
var round = regexp.MustCompile(`(?m)^rdma_(probe|contract|inventory|hardware)_runs_total\{device="([^"]+)",outcome="[^"]+"\} (\S+)$`)

// complete tells whether an exposition is of an exporter that has done with each device
// all that it does, well or not: no other series come then.
func (h *host) complete(t *testing.T, text []byte) bool {
	t.Helper()
	ended := make(map[string]float64)
	for _, m := range round.FindAllStringSubmatch(string(text), -1) {
		runs, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		ended[m[1]+" "+m[2]] += runs
	}
	for i := range h.devices {
		for kind, want := range map[string]int{
			"probe":     1,
			"contract":  map[bool]int{false: 1}[h.noContracts],
			"inventory": map[bool]int{false: 1}[h.noInventories],
			"hardware":  map[bool]int{false: 1}[h.noHardware],
		} {
			if ended[fmt.Sprintf("%s sim%d", kind, i)] < float64(want) {
				return false
			}
		}
	}
	return true
}

// scrape scrapes the exporter as Prometheus does, when it has as many series as are
// expected, or when it has done all it does and has had as many as it has for so long that
// no others come.
func (h *host) scrape(t *testing.T) {
	t.Helper()
	const openMetrics, long = "application/openmetrics-text;version=1.0.0", 20 * time.Second
	for last, since := 0, time.Now(); ; time.Sleep(500 * time.Millisecond) {
		h.exporter.MustRun(t)
		text, err := h.exporter.get("/metrics", "Accept", openMetrics)
		if err != nil {
			t.Fatal(err)
		}
		n := bytes.Count(text, []byte("\n")) - bytes.Count(text, []byte("\n# ")) - 1
		if n != last {
			last, since = n, time.Now()
		}
		patience := running.Patience
		if h.complete(t, text) {
			patience = long
		}
		if n == h.want || time.Since(since) > patience {
			h.samples, h.plain = parseExposition(t, string(text)), len(text)
			break
		}
	}
	compressed, err := h.exporter.get("/metrics", "Accept", openMetrics, "Accept-Encoding", "gzip")
	if err != nil {
		t.Fatal(err)
	}
	h.compressed = len(compressed)
}

// check compares what was scraped with the formula, metric by metric.
func (h *host) check(t *testing.T, f formula, composed map[string]bool) {
	t.Helper()
	found := make(map[string]int)
	for _, s := range h.samples {
		found[s.family(composed)]++
	}
	for _, r := range f.rows {
		each := r.series.value(h.counts)
		if !r.holds(h.shape) {
			each = 0
		}
		got := make(map[string]int)
		for metric, n := range found {
			if !r.has(metric) {
				continue
			}
			if r.together || strings.HasSuffix(r.metrics[0], "*") {
				metric = r.metrics[0]
			}
			got[metric] += n
		}
		for metric := range found {
			if r.has(metric) {
				delete(found, metric)
			}
		}
		metrics := r.metrics
		if r.together {
			metrics = metrics[:1]
		}
		for _, metric := range metrics {
			if got[metric] != each {
				t.Errorf("%s: %s has %d series, want %d", h.name, metric, got[metric], each)
			}
		}
	}
	for metric, n := range found {
		t.Errorf("%s: %s has %d series, and is in no row of docs/reference/scaling.md", h.name, metric, n)
	}
	if len(h.samples) != h.want {
		t.Errorf("%s: a scrape has %d series, want %d", h.name, len(h.samples), h.want)
	}
}

// TestFormula compares the formula with real scrapes, and then what follows from both
// with the page.
func TestFormula(t *testing.T) {
	t.Parallel()
	text := readPage(t)
	f := readFormula(t, text)
	_, composed := documented(t)
	hosts := scrapeHosts(t, text)
	for _, h := range hosts {
		h.check(t, f, composed)
		checkSizes(t, text, h)
		t.Logf("%s: %d series, %.1f bytes each, %.1f compressed", h.name, len(h.samples),
			float64(h.plain)/float64(len(h.samples)), float64(h.compressed)/float64(len(h.samples)))
	}
	if t.Failed() {
		return
	}
	follows(t, map[string]string{"totals": totals(f), "examples": examples(f, hosts)})
}
