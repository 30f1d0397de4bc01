//go:build prometheus

package prometheus_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// TestSimulated has Prometheus scrape exporters of simulated devices, healthy ones
// and such with every kind of trouble, one that gets well, one that falls ill, one
// that is moody, one that cannot look for devices, and one that is not there.
func TestSimulated(t *testing.T) {
	t.Parallel()
	rules := readRules(t, filepath.Join(repository, "alerts"))
	p := newProof(t, readDashboards(t, filepath.Join(repository, "dashboards")), rules)
	p.exceptions = readExceptions(t, "empty.yaml")

	// The probes of the first round may all run at the same time, so that no device
	// waits for those that hang.
	// The capacity is what it has, so that each exporter gets a list of its own.
	simulated := slices.Clip([]string{"--provider=simulated", "--config.file=testdata/config.yaml"})
	flags := slices.Concat(simulated, []string{
		"--probe.interval=12s", "--probe.concurrency=32",
		"--notification.samples=5", "--notification.vectors=64",
		"--inventory.interval=12s", "--hardware.interval=12s",
		"--collector.memory", "--collector.limits", "--collector.verb-histograms", "--collector.owner-pids", "--collector.cgroups",
		"--collector.raw-counters", "--collector.interrupts",
	})
	// What hangs is soon killed. Healthy devices need not be quick, on a busy machine.
	hasty := slices.Concat(flags, []string{"--probe.timeout=3s", "--inventory.timeout=1s"})
	flags = slices.Concat(flags, []string{"--probe.timeout=1m", "--inventory.timeout=1m"})
	start := func(name, profile string, flags ...string) *exporter {
		readable(t, profile)
		return startExporter(t, name, append(slices.Clone(flags), "--simulated.profile="+profile)...)
	}
	troubled := start("the troubled exporter", "testdata/trouble.yaml", append(hasty, "--device.exclude=sim_wide0")...)
	hold(t, troubled, "probe", "sim_hang0")
	hold(t, troubled, "inventory", "sim_hang0")
	// The devices that a healthy host has, too, and one more.
	ill := start("the ill exporter", "testdata/trouble.yaml", append(hasty, "--device.include=sim_(rxe[01]|siw0|ib0|crash0)")...)
	var healthy []*exporter
	for range 2 {
		healthy = append(healthy, start("a healthy exporter", "testdata/healthy.yaml", flags...))
	}
	// It has time for all vectors of a device, and never ends a run that hangs.
	patient := start("the patient exporter", "testdata/trouble.yaml", append(
		simulated, "--device.include=sim_(hang|wide)0", "--probe.interval=5s", "--probe.timeout=1h",
		"--notification.samples=1", "--notification.vectors=320",
		"--contract.interval=0", "--inventory.interval=0", "--hardware.interval=0",
	)...)
	// What should list the devices is a file.
	sys := t.TempDir()
	running.Check(t, os.MkdirAll(filepath.Join(sys, "class"), 0o755))
	running.Check(t, os.WriteFile(filepath.Join(sys, "class", "infiniband"), nil, 0o644))
	blind := startExporter(t, "the blind exporter", "--path.sysfs="+sys)

	mended := newChanging(t, 0, ill, healthy[0])
	worsened := newChanging(t, 0, healthy[0], ill)
	// It is as often well as ill. What it was one and a half times as long ago is
	// what annotations compare it with.
	moody := newChanging(t, 2, ill, healthy[0])
	dead := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(dead.Close)
	down := strings.TrimPrefix(dead.URL, "http://")

	up := []string{troubled.address, patient.address, blind.address, mended.address, worsened.address, moody.address}
	for _, h := range healthy {
		p.healthy = append(p.healthy, h.address)
	}
	p.troubled = append(slices.Clone(up), down)
	p.api = startPrometheus(t, rules, 2*time.Second, slices.Concat(p.troubled, p.healthy)...)
	p.api.settled(t, slices.Concat(up, p.healthy), []string{down})
	for _, c := range []*changing{mended, worsened} {
		p.api.returns(t, `rdma_contract_verdicts{device="sim_rxe0",instance="`+c.address+`"}`)
		c.turn.Add(1)
	}

	p.prove(t)
	p.api.checkAlerts(t)
	p.api.checkLog(t)
	troubled.checkExposition(t)
	healthy[0].checkExposition(t)
}

// readable makes the test's result depend on a file that only the exporter reads.
func readable(t testing.TB, path string) {
	t.Helper()
	if _, err := os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
}

// changing is a target behind which now one exporter is, now another, as when a host
// is set up anew.
type changing struct {
	address string
	// turn is which of the exporters it is.
	turn atomic.Int64
}

// newChanging returns a target that is the first of the exporters, until it is told
// otherwise, or until it was scraped so many times, unless that is 0.
func newChanging(t testing.TB, scrapes int64, exporters ...*exporter) *changing {
	t.Helper()
	c := new(changing)
	var scraped atomic.Int64
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			if n := scraped.Add(1); scrapes > 0 && n%scrapes == 0 {
				c.turn.Add(1)
			}
			e := exporters[c.turn.Load()%int64(len(exporters))]
			r.SetURL(&url.URL{Scheme: "http", Host: e.address})
		},
		// Prometheus says itself what it could not scrape.
		ErrorLog: log.New(io.Discard, "", 0),
	})
	t.Cleanup(server.Close)
	c.address = strings.TrimPrefix(server.URL, "http://")
	return c
}
