//go:build vm

package peers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// nodeExporterFlags leave of node_exporter its infiniband collector.
var nodeExporterFlags = []string{"--collector.disable-defaults", "--collector.infiniband"}

// withoutOwn leaves out the metrics of an exporter itself; both have this flag.
const withoutOwn = "--web.disable-exporter-metrics"

// onceFlags have the exporter do everything once, at its start, so that what is
// measured afterwards are scrapes.
var onceFlags = []string{
	"--probe.interval=1h", "--inventory.interval=1h",
	"--probe.timeout=5m", "--notification.samples=10", "--notification.vectors=64",
}

// comparison says what is compared.
type comparison struct {
	table     *table
	situation string
	devices   int
	// ours and theirs are the flags of the two exporters.
	ours, theirs []string
	// contracts tells that ours judges contracts, too.
	contracts bool
	// scrapes is how many of each are measured in one run.
	scrapes int
}

// compareScrapes measures scrapes of both exporters, which take turns.
func compareScrapes(t *testing.T, c comparison) {
	t.Helper()
	for n := range *runs {
		say(t, "%s: run %d of %d", c.situation, n+1, *runs)
		ours, theirs := serve(t, exporterFile, c.ours...), serve(t, nodeExporterFile, c.theirs...)
		settle(t, ours, c.devices, c.contracts)
		var o, p scrapes
		const turns = 4
		for _, s := range []*server{ours, theirs} {
			var first scrapes
			first.measure(t, s, 20) // by then each has allocated what it needs
		}
		for range turns {
			o.measure(t, ours, c.scrapes/turns)
			p.measure(t, theirs, c.scrapes/turns)
		}
		add := func(quantity, unit string, of func(*scrapes, *server) float64) {
			c.table.add(c.situation, quantity, unit, of(&o, ours), of(&p, theirs))
		}
		add("series", "", func(_ *scrapes, s *server) float64 { return series(s.text(t)) })
		add("sent for a scrape", "KiB", func(m *scrapes, _ *server) float64 { return float64(m.bytes) / 1024 })
		add("time of a scrape", "ms", func(m *scrapes, _ *server) float64 { return median(m.times) })
		add("CPU of a scrape", "ms", func(m *scrapes, _ *server) float64 { return m.cpuOfOne() * 1e3 })
		add("time for a series", "µs", func(m *scrapes, s *server) float64 { return median(m.times) * 1e3 / series(s.text(t)) })
		add("CPU for a series", "µs", func(m *scrapes, s *server) float64 { return m.cpuOfOne() * 1e6 / series(s.text(t)) })
		addMemory(t, c.table, c.situation, ours, theirs)
		ours.stop()
		theirs.stop()
	}
}

// addMemory adds what is resident of two servers.
func addMemory(t *testing.T, table *table, situation string, ours, theirs *server) {
	t.Helper()
	for _, m := range []struct{ name, key string }{
		{"resident", "VmRSS"}, {"of which its own", "RssAnon"}, {"of which files", "RssFile"},
	} {
		table.add(situation, m.name, "MiB", ours.memory(t, m.key), theirs.memory(t, m.key))
	}
}

// settle waits until an exporter has probed and looked at all devices.
func settle(t *testing.T, s *server, devices int, contracts bool) {
	t.Helper()
	want := []string{"rdma_probe_runs_total", "rdma_inventory_runs_total"}
	if contracts {
		want = append(want, "rdma_contract_runs_total")
	}
	running.Within(t, patience, fmt.Sprintf("%d devices to be probed and looked at", devices), func() bool {
		text := s.text(t)
		for _, name := range want {
			if sum(text, name) < float64(devices) {
				return false
			}
		}
		return true
	})
	time.Sleep(time.Second)
}

// scrapes are measurements of scrapes.
type scrapes struct {
	times []float64 // of each, in ms, as the client sees it
	cpu   time.Duration
	bytes int
}

func (m *scrapes) cpuOfOne() float64 { return m.cpu.Seconds() / float64(len(m.times)) }

// measure scrapes n times, one after the other on one connection.
func (m *scrapes) measure(t *testing.T, s *server, n int) {
	t.Helper()
	before := s.cpu(t)
	for range n {
		began := time.Now()
		body, err := s.get(accept)
		if err != nil {
			t.Fatalf("scrape %s: %v", s.url, err)
		}
		m.times = append(m.times, time.Since(began).Seconds()*1e3)
		m.bytes = len(body)
	}
	m.cpu += s.cpu(t) - before
}

// series is the number of samples of an exposition.
func series(text string) float64 {
	n := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return float64(n)
}

// sum adds up all samples of a name.
func sum(text, name string) (sum float64) {
	for line := range strings.Lines(text) {
		var value float64
		if strings.HasPrefix(line, name+"{") {
			if _, err := fmt.Sscan(line[strings.LastIndexByte(strings.TrimSpace(line), ' ')+1:], &value); err == nil {
				sum += value
			}
		}
	}
	return sum
}
