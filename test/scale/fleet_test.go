//go:build scale

package scale_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/test/running"
)

// What BenchmarkFleet is told.
var (
	fleetNodes   = flag.Int("scale.nodes", 200, "how many exporters Prometheus scrapes")
	fleetDevices = flag.Int("scale.devices", 8, "how many devices each has")
	fleetVectors = flag.Int("scale.vectors", 16, "how many completion vectors a device has")
	fleetFor     = flag.Duration("scale.for", 10*time.Minute, "for how long Prometheus scrapes")
	fleetScrape  = flag.Duration("scale.interval", 30*time.Second, "how often Prometheus scrapes")
	fleetProbe   = flag.Duration("scale.probe", 4*time.Minute, "how often the exporters probe")
	fleetHold    = flag.Duration("scale.hold", 0, "for how long Prometheus then stays, to be asked by hand")
	fleetRules   = flag.String("scale.rules", "", "another file of rules that Prometheus loads")
)

const (
	// job is the name of the job that the alerts expect.
	job = "rdma_exporter"
	// sickEvery is of how many nodes one has a device with trouble, so that alerts fire.
	sickEvery = 20
	// ahead is how many exporters are starting at a time: probing each device for the
	// first time takes processor time.
	ahead = 8
)

// fleet is exporters and the Prometheus that scrapes them.
type fleet struct {
	exporters  []*process
	prometheus *process
	data       string
	// series is how many a node without trouble has, by the formula.
	series int
	// since is when Prometheus was started.
	since time.Time
}

// BenchmarkFleet has a real Prometheus scrape exporters with the rules of alerts loaded,
// and prints what that costs it, and what the expressions of the dashboards cost.
func BenchmarkFleet(b *testing.B) {
	text := readPage(b)
	s := shape{name: "node", devices: times(*fleetDevices, adapter(*fleetVectors)), owners: 10}
	f := fleet{series: readFormula(b, text).series(s, s.counts(readVerbs(b, text)))}
	nodes := affordable(b, *fleetNodes, f.series)
	for b.Loop() {
		f.startExporters(b, s, nodes)
		f.startPrometheus(b)
		f.measure(b)
	}
}

// affordable returns how many nodes there is memory for, and says so if they are fewer
// than asked for.
func affordable(b *testing.B, nodes, series int) int {
	const exporter, perSeries, spare = 25 << 20, 6 << 10, 2 << 30
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		b.Fatal(err)
	}
	var available int
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &available); err == nil {
			break
		}
	}
	most := (available<<10 - spare) / (exporter + series*perSeries)
	if most < nodes {
		fmt.Printf("There is memory for %d nodes, not for %d.\n", most, nodes)
	}
	return max(1, min(most, nodes))
}

// startExporters starts the exporters, and waits until each has gone through its devices.
func (f *fleet) startExporters(b *testing.B, s shape, nodes int) {
	b.Helper()
	healthy := running.File(b, "healthy.yaml", s.profile())
	sick := running.File(b, "sick.yaml", strings.Replace(s.profile(), "completion_vectors:",
		"violate: [notify_one_shot]\n    completion_faults: [{fault: drop_event, after: 20, times: 2}]\n    completion_vectors:", 1))
	for i := range nodes {
		profile := healthy
		if i%sickEvery == sickEvery-1 {
			profile = sick
		}
		// Each node has its processes and its run on two processors, so they probe more
		// rarely than by default.
		f.exporters = append(f.exporters, launch(b, fmt.Sprintf("exporter %d", i), binary,
			"--provider=simulated", "--web.listen-address=127.0.0.1:0", "--log.level=info", "--simulated.profile="+profile,
			"--notification.samples=10", "--notification.vectors=64", "--probe.timeout=1m", "--notification.budget=30s", "--inventory.timeout=1m",
			"--probe.max-backoff=5m", "--probe.interval="+fleetProbe.String(), "--inventory.interval="+fleetProbe.String()))
		if i >= ahead {
			f.gone(b, f.exporters[i-ahead])
		}
	}
	for _, p := range f.exporters {
		f.gone(b, p)
	}
}

// gone waits until an exporter has gone through all its devices.
func (f *fleet) gone(b *testing.B, p *process) {
	b.Helper()
	running.Eventually(b, p.Name+" has gone through its devices", func() bool {
		p.MustRun(b)
		text, err := p.get("/metrics")
		if err != nil {
			b.Fatal(err)
		}
		return strings.Count(string(text), "\nrdma_contract_duration_seconds{") == *fleetDevices &&
			strings.Count(string(text), "\nrdma_inventory_timestamp_seconds{") == *fleetDevices
	})
}

// startPrometheus starts Prometheus, which scrapes the exporters and itself.
func (f *fleet) startPrometheus(b *testing.B) {
	b.Helper()
	var targets []string
	for _, p := range f.exporters {
		targets = append(targets, p.address)
	}
	rules := []string{repository + "/alerts/recording.yaml", repository + "/alerts/alerts.yaml"}
	if *fleetRules != "" {
		rules = append(rules, *fleetRules)
	}
	for i := range rules {
		path, err := filepath.Abs(rules[i])
		if err != nil {
			b.Fatal(err)
		}
		rules[i] = path
	}
	f.data = b.TempDir()
	address := freeAddress(b)
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": fleetScrape.String(), "evaluation_interval": fleetScrape.String()},
		"rule_files": rules,
		"scrape_configs": []any{
			map[string]any{"job_name": job, "static_configs": []any{map[string]any{"targets": targets}}},
			map[string]any{"job_name": "prometheus", "scrape_interval": "10s", "static_configs": []any{map[string]any{"targets": []string{address}}}},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	f.since = time.Now()
	f.prometheus = launch(b, "Prometheus", running.FindPrometheus(b, "prometheus"),
		"--config.file="+running.File(b, "prometheus.yml", string(config)), "--storage.tsdb.path="+f.data,
		"--web.listen-address="+address, "--web.enable-admin-api", "--log.level=info")
}

// freeAddress returns an address at which nobody listens.
func freeAddress(b *testing.B) string {
	b.Helper()
	l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// measure waits and prints what was found.
func (f *fleet) measure(b *testing.B) {
	b.Helper()
	// Before that, all series are made.
	warm := min(3*time.Minute, *fleetFor/3)
	time.Sleep(time.Until(f.since.Add(warm)))
	server, exporters, wal, began := f.prometheus.cpu(b), f.exportersCPU(b), size(b, f.data, "wal"), time.Now()
	time.Sleep(time.Until(f.since.Add(*fleetFor)))
	f.prometheus.MustRun(b)
	took := time.Since(began).Seconds()
	server, exporters, wal = f.prometheus.cpu(b)-server, f.exportersCPU(b)-exporters, size(b, f.data, "wal")-wal

	within := fmt.Sprintf("[%ds]", int(took))
	own := `{job="prometheus"}`
	series := f.one(b, "prometheus_tsdb_head_series"+own)
	rss := f.one(b, "max_over_time(process_resident_memory_bytes"+own+within+")")
	heap := f.one(b, "avg_over_time(go_memstats_heap_inuse_bytes"+own+within+")")
	scrapes := f.values(b, `scrape_duration_seconds{job="`+job+`"}`+within)
	samples := f.values(b, `scrape_samples_scraped{job="`+job+`"}`)
	exact := 0
	for _, n := range samples {
		if int(n) == f.series {
			exact++
		}
	}
	resident := 0.0
	for _, p := range f.exporters {
		resident += p.resident(b)
	}

	fmt.Printf("\nPrometheus %s and %d exporters of %d simulated devices with %d vectors each, on %d processors, for %v\n\n",
		version(b), len(f.exporters), *fleetDevices, *fleetVectors, runtime.NumCPU(), *fleetFor)
	heading("figure", "value")
	line("series of a node, by the formula", "%d", f.series)
	line("nodes with exactly so many", "%d of %d; every %dth has a device with trouble", exact, len(samples), sickEvery)
	line("interval of scrapes, and of rules that have none of their own", "%v", *fleetScrape)
	line("series in the head", "%.0f", series)
	line("of these recorded by rules", "%.0f", f.one(b, `count({__name__=~".+:.+"})`))
	line("alerts, pending or firing", "%.0f", f.one(b, `count(ALERTS) or vector(0)`))
	line("samples taken in a second", "%.0f", f.one(b, "sum(rate(prometheus_tsdb_head_samples_appended_total"+own+within+"))"))
	line("resident memory of Prometheus, most", "%.2f GiB", rss/(1<<30))
	line("resident memory for each series", "%.0f bytes", rss/series)
	line("heap in use for each series, on average", "%.0f bytes", heap/series)
	line("processor time of Prometheus", "%.2f of one processor", server/took)
	line("write-ahead log", "%.0f KiB/s", wal/took/1024)
	line("a scrape, p50", "%.1f ms", 1e3*quantile(scrapes, 0.5))
	line("a scrape, p99", "%.1f ms", 1e3*quantile(scrapes, 0.99))
	line("scrapes that failed", "%.0f", f.one(b, `sum(count_over_time(up{job="`+job+`"}`+within+`) - sum_over_time(up{job="`+job+`"}`+within+`))`))
	line("evaluations of rules missed", "%.0f", f.one(b, "sum(prometheus_rule_group_iterations_missed_total)"))
	line("processor time of all exporters, with their probes", "%.2f of one processor", exporters/took)
	line("resident memory of an exporter, on average", "%.1f MiB", resident/float64(len(f.exporters))/(1<<20))

	fmt.Println()
	heading("group of rules", "every, s", "on average, ms", "most, ms")
	for _, r := range f.query(b, "avg_over_time(prometheus_rule_group_last_duration_seconds"+within+")") {
		most := f.one(b, fmt.Sprintf("max_over_time(prometheus_rule_group_last_duration_seconds{rule_group=%q}%s)", r.Metric["rule_group"], within))
		_, name, _ := strings.Cut(r.Metric["rule_group"], ";")
		every := f.one(b, fmt.Sprintf("prometheus_rule_group_interval_seconds{rule_group=%q}", r.Metric["rule_group"]))
		fmt.Printf("| %s | %.0f | %.1f | %.1f |\n", name, every, 1e3*r.value(), 1e3*most)
	}
	f.timeDashboards(b)
	f.disk(b)
	if *fleetHold > 0 {
		fmt.Printf("\nPrometheus is at http://%s/ for %v.\n", f.prometheus.address, *fleetHold)
		time.Sleep(*fleetHold)
	}
}

func heading(cells ...string) {
	fmt.Printf("| %s |\n|%s\n", strings.Join(cells, " | "), strings.Repeat("---|", len(cells)))
}

func line(what, format string, values ...any) {
	fmt.Printf("| %s | %s |\n", what, fmt.Sprintf(format, values...))
}

// disk prints what the samples take on disk: those in memory are written to a block.
func (f *fleet) disk(b *testing.B) {
	b.Helper()
	if body, err := f.prometheus.post("/api/v1/admin/tsdb/snapshot"); err != nil {
		b.Fatalf("%v: %s", err, body)
	}
	blocks, err := filepath.Glob(filepath.Join(f.data, "snapshots", "*", "*"))
	if err != nil || len(blocks) != 1 {
		b.Fatalf("the snapshot has the blocks %q, %v, want one", blocks, err)
	}
	var meta struct {
		Stats struct {
			NumSamples, NumSeries float64
		}
	}
	text, err := os.ReadFile(filepath.Join(blocks[0], "meta.json"))
	if err == nil {
		err = json.Unmarshal(text, &meta)
	}
	if err != nil {
		b.Fatal(err)
	}
	fmt.Println()
	heading("on disk", "value")
	line("samples for each series", "%.1f", meta.Stats.NumSamples/meta.Stats.NumSeries)
	line("chunks, for each sample", "%.2f bytes", size(b, blocks[0], "chunks")/meta.Stats.NumSamples)
	line("index, for each series", "%.0f bytes", size(b, blocks[0], "index")/meta.Stats.NumSeries)
}

// size returns how many bytes the files of a folder, or a file, have.
func size(b *testing.B, path ...string) float64 {
	b.Helper()
	sum := 0.0
	err := filepath.WalkDir(filepath.Join(path...), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sum += float64(info.Size())
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return sum
}

func (f *fleet) exportersCPU(b *testing.B) float64 {
	b.Helper()
	sum := 0.0
	for _, p := range f.exporters {
		p.MustRun(b)
		sum += p.cpu(b)
	}
	return sum
}

// cpu returns the processor time that the process and its ended children have used, in
// seconds.
func (p *process) cpu(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		b.Fatal(err)
	}
	// The name of the command, in brackets, may have spaces in it.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	ticks := 0.0
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return ticks / 100 // USER_HZ, on every Linux that Go runs on
}

// resident returns the resident memory of the process, in bytes.
func (p *process) resident(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.PID()))
	if err != nil {
		b.Fatal(err)
	}
	pages, err := strconv.ParseFloat(strings.Fields(string(text))[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * float64(os.Getpagesize())
}

// quantile returns the q-quantile of values, by the nearest rank.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// result is a series of the answer to a query.
type result struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
	Values [][2]any          `json:"values"`
}

func number(pair [2]any) float64 {
	text, _ := pair[1].(string)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return n
}

func (r result) value() float64 { return number(r.Value) }

// ask asks Prometheus for a path of its API, and returns the series of the answer, and
// how long that took.
func (f *fleet) ask(path string, parameters url.Values) ([]result, time.Duration, error) {
	began := time.Now()
	body, err := f.prometheus.get("/api/v1/" + path + "?" + parameters.Encode())
	took := time.Since(began)
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result []result `json:"result"`
		} `json:"data"`
	}
	if failed := json.Unmarshal(body, &answer); failed != nil || answer.Error != "" {
		return nil, took, fmt.Errorf("%s: %w", cmp.Or(answer.Error, "no answer"), cmp.Or(err, failed))
	}
	return answer.Data.Result, took, err
}

// query evaluates an expression now.
func (f *fleet) query(b *testing.B, expr string) []result {
	b.Helper()
	found, _, err := f.ask("query", url.Values{"query": {expr}})
	if err != nil {
		b.Fatalf("%s: %v", expr, err)
	}
	return found
}

// one returns the value of an expression that has one.
func (f *fleet) one(b *testing.B, expr string) float64 {
	b.Helper()
	found := f.query(b, expr)
	if len(found) != 1 {
		b.Fatalf("%s has %d values, want one", expr, len(found))
	}
	return found[0].value()
}

// values returns all values of an expression.
func (f *fleet) values(b *testing.B, expr string) []float64 {
	b.Helper()
	var all []float64
	for _, r := range f.query(b, expr) {
		if r.Values == nil {
			all = append(all, r.value())
		}
		for _, pair := range r.Values {
			all = append(all, number(pair))
		}
	}
	return all
}

// version returns the version of Prometheus.
func version(b *testing.B) string {
	b.Helper()
	out, err := exec.Command(running.FindPrometheus(b, "prometheus"), "--version").CombinedOutput()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 3 {
		b.Fatalf("prometheus --version: %v: %s", err, out)
	}
	return strings.TrimSuffix(fields[2], ",")
}
