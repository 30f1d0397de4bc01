// Package load puts 100 scrapers and 200 slow clients on the built exporter of simulated
// devices. It prints the times of scrapes and the peak of memory, which depend on the
// machine. It fails if scrapes fail other than with 503, if the exporter keeps memory,
// files or goroutines, or if a device is no longer probed.
package load

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"rdma_exporter/test/bench"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs/simulated/simulatedtest"
)

var duration = flag.Duration("load.time", time.Minute, "duration of each kind of load")

// TestLoad puts each kind of load on an exporter of few devices and on one of many.
func TestLoad(t *testing.T) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, strings.Join([]string{
		"load", "scrapes", "503", "p50", "p99", "longest", "KiB each", "slow clients cut", "processors",
		"MiB before", "peak", "after", "goroutines before, after", "files before, after", "",
	}, "\t"))
	for _, devices := range []int{8, 64} {
		for _, pause := range []time.Duration{time.Second, 0} {
			name := fmt.Sprintf("%d devices, every %v", devices, pause)
			t.Run(name, func(t *testing.T) { measure(t, w, name, devices, pause) })
		}
	}
	_ = w.Flush()
}

// state is what an exporter holds.
type state struct {
	resident          float64 // MiB
	files, goroutines int
}

func look(t *testing.T, s *bench.Server) state {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	return state{s.Memory(t, "VmRSS"), len(files), int(s.Values(t)["go_goroutines"])}
}

// runs returns the number of probe runs of each device.
func runs(values map[string]float64) map[string]float64 {
	runs := make(map[string]float64)
	for series, v := range values {
		if labels, ok := strings.CutPrefix(series, `rdma_probe_runs_total{device="`); ok {
			device, _, _ := strings.Cut(labels, `"`)
			runs[device] += v
		}
	}
	return runs
}

// measure puts load on an exporter, and writes a row.
func measure(t *testing.T, w *tabwriter.Writer, name string, devices int, pause time.Duration) {
	interval := time.Duration(max(1, devices/4)) * time.Second
	// Rare runs would fall into one kind of load and not into another.
	s := bench.Serve(t, bench.Program(t, running.EnvBinary), "--provider=simulated",
		"--simulated.profile="+running.File(t, "profile.yaml", simulatedtest.Scaled(devices)),
		"--probe.interval="+interval.String(), "--probe.concurrency=4",
		"--notification.samples=10", "--contract.interval=0s", "--inventory.interval=10m")
	running.Eventually(t, "each device is probed", func() bool { return len(runs(s.Values(t))) == devices })
	before, probed, cpu := look(t, s), runs(s.Values(t)), s.CPU(t)
	// 5 resets the peak of resident memory, see proc_pid_clear_refs(5).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.PID()), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}

	results := scrapes{errors: make(map[string]int)}
	var cuts atomic.Int64
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), max(*duration, 3*interval))
	defer cancel()
	var wg sync.WaitGroup
	for i := range scrapers {
		// Prometheus spreads its scrapes over the interval.
		wg.Go(func() { results.scrape(ctx, s.URL, pause*time.Duration(i)/scrapers, pause) })
	}
	address := s.Log.Listening()
	for range slowRequests {
		wg.Go(func() { slow(ctx, address, &cuts, sendSlowly) })
	}
	for range slowReaders {
		wg.Go(func() { slow(ctx, address, &cuts, readSlowly) })
	}
	wg.Wait()
	processors := float64(s.CPU(t)-cpu) / float64(time.Since(began))
	peak := s.Memory(t, "VmHWM")

	for device, n := range runs(s.Values(t)) {
		if n <= probed[device] {
			t.Errorf("%s was not probed under load", device)
		}
	}
	for kind, n := range results.errors {
		// docs/reference/configuration.md: scrapes beyond the limit get 503.
		if kind != "503" {
			t.Errorf("%d scrapes failed: %s", n, kind)
		}
	}
	if len(results.took) == 0 {
		t.Fatalf("no scrape was served: %v", slices.Sorted(maps.Keys(results.errors)))
	}
	// Go's garbage collector runs at least every two minutes.
	var after state
	running.Eventually(t, "memory, files and goroutines are released", func() bool {
		after = look(t, s)
		return after.files <= before.files+10 && after.goroutines <= before.goroutines+10 && after.resident <= before.resident*1.5+8
	})
	slices.Sort(results.took)
	quantile := func(q float64) time.Duration {
		return results.took[int(q*float64(len(results.took)-1))].Round(100 * time.Microsecond)
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%v\t%v\t%v\t%.1f\t%d\t%.2f\t%.1f\t%.1f\t%.1f\t%d, %d\t%d, %d\t\n",
		name, len(results.took), results.errors["503"], quantile(0.5), quantile(0.99), quantile(1),
		float64(results.bytes)/float64(len(results.took))/1024, cuts.Load(), processors,
		before.resident, peak, after.resident, before.goroutines, after.goroutines, before.files, after.files)
}
