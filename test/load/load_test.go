//go:build load

package load

import (
	"context"
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

	"rdma_exporter/test/running"
)

// TestLoad puts each kind of load on an exporter of few devices and one of many, and
// prints what it saw.
func TestLoad(t *testing.T) {
	var rows []*row
	for _, devices := range []struct {
		n        int
		interval time.Duration
	}{
		// As often as one machine can, which the children share with the clients.
		{8, time.Second},
		{64, 15 * time.Second},
	} {
		for _, kind := range []struct {
			name  string
			pause time.Duration
		}{
			{"once a second each", time.Second},
			{"as fast as they can", 0},
		} {
			name := fmt.Sprintf("%d devices, %s", devices.n, kind.name)
			t.Run(name, func(t *testing.T) {
				r := measure(t, start(t, devices.n, devices.interval), kind.pause)
				r.name = name
				rows = append(rows, r)
			})
		}
	}
	show(rows)
}

// row is what was seen under one kind of load.
type row struct {
	name                string
	scrapes             scrapes
	cuts                int64
	before, peak, after state
	// settled is how long it took until what was held was let go of.
	settled        time.Duration
	interval       time.Duration
	quiet, probing probing
	// cpu is what the exporter used under the load, in processors.
	cpu float64
}

// measure puts load on an exporter.
func measure(t *testing.T, e *exporter, pause time.Duration) *row {
	t.Helper()
	r := &row{interval: e.interval}
	quiet := max(*duration/3, 2*e.interval+time.Second)
	r.quiet = e.watch(t, quiet, func(ctx context.Context) {
		// It is what it is under a scrape now and then.
		var s scrapes
		s.errors = make(map[string]int)
		s.scrape(ctx, e.address, 0, time.Second)
	})
	r.before = e.look(t)
	e.resetPeak(t)

	r.scrapes.errors = make(map[string]int)
	var cuts atomic.Int64
	began := time.Now()
	r.probing = e.watch(t, max(*duration, 2*e.interval+time.Second), func(ctx context.Context) {
		var wg sync.WaitGroup
		for i := range scrapers {
			// They begin one after the other, as Prometheus spreads them.
			wg.Go(func() { r.scrapes.scrape(ctx, e.address, pause*time.Duration(i)/scrapers, pause) })
		}
		for range slowRequests {
			wg.Go(func() { slow(ctx, e.address, &cuts, sendSlowly) })
		}
		for range slowReaders {
			wg.Go(func() { slow(ctx, e.address, &cuts, readSlowly) })
		}
		wg.Wait()
	})
	r.peak = e.look(t)
	r.cpu = float64(r.peak.cpu-r.before.cpu) / float64(time.Since(began))
	r.cuts = cuts.Load()

	// What is kept for the sake of speed goes with the garbage collector, which Go runs
	// every two minutes at the latest, and sooner where there are scrapes.
	began = time.Now()
	settled := func() bool {
		r.after = e.look(t)
		return r.after.files <= r.before.files+10 && r.after.goroutines <= r.before.goroutines+10 &&
			r.after.resident <= r.before.resident+r.before.resident/10+2<<10
	}
	for !settled() && time.Since(began) < running.Patience {
		time.Sleep(time.Second)
	}
	r.settled = time.Since(began)
	r.judge(t)
	return r
}

// judge fails the test for what must not be.
func (r *row) judge(t *testing.T) {
	t.Helper()
	if len(r.scrapes.took) == 0 {
		t.Error("no scrape was served")
	}
	for kind, n := range r.scrapes.errors {
		// docs/reference/configuration.md has 503 for scrapes beyond the limit.
		if kind != "503" {
			t.Errorf("%d scrapes failed: %s", n, kind)
		}
	}
	if r.after.files > r.before.files+10 || r.after.goroutines > r.before.goroutines+10 || r.after.resident > r.before.resident+r.before.resident/2+8<<10 {
		t.Errorf("after %v it holds %+v, and before %+v", r.settled.Round(time.Second), r.after, r.before)
	}
	for device, before := range r.quiet.runs {
		now := r.probing.runs[device]
		// Half of what it was before is no measure of speed: it tells that a device was
		// not left out.
		want := before / r.quiet.lasted.Seconds() * r.probing.lasted.Seconds() / 2
		if now < 1 || now < want-1 {
			t.Errorf("%s was probed %v times in %v, and before %v times in %v", device, now, r.probing.lasted, before, r.quiet.lasted)
		}
	}
	if len(r.quiet.runs) == 0 {
		t.Error("nothing was probed")
	}
}

// probing is how devices were probed for some time.
type probing struct {
	lasted time.Duration
	// runs are how many runs of each device ended.
	runs map[string]float64
	// took is the mean of the times that runs took, as they were seen, and gap the
	// longest between the beginnings of two of a device, in seconds.
	took, gap float64
}

// watch looks at how devices are probed while work is done, which ends with its
// context.
func (e *exporter) watch(t *testing.T, d time.Duration, work func(context.Context)) probing {
	t.Helper()
	const runs, last, took = "rdma_probe_runs_total", "rdma_probe_last_run_timestamp_seconds", "rdma_probe_duration_seconds"
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	began := time.Now()
	var wg sync.WaitGroup
	wg.Go(func() { work(ctx) })

	p := probing{runs: make(map[string]float64)}
	first, previous := make(map[string]float64), make(map[string]float64)
	var sum, n float64
	look := func(ctx context.Context) {
		values, err := e.values(ctx, runs, last, took)
		if err != nil {
			return // What fails is counted by the scrapers.
		}
		count := make(map[string]float64)
		for series, v := range values {
			name, labels, _ := strings.Cut(series, "{")
			_, device, _ := strings.Cut(labels, `device="`)
			device, _, _ = strings.Cut(device, `"`)
			switch name {
			case runs:
				count[device] += v
			case last:
				if before, ok := previous[device]; ok && v != before {
					p.gap = max(p.gap, v-before)
				}
				previous[device] = v
			case took:
				sum, n = sum+v, n+1
			}
		}
		for device, v := range count {
			if _, ok := first[device]; !ok {
				first[device] = v
			}
			p.runs[device] = v - first[device]
		}
	}
	for ctx.Err() == nil {
		look(ctx)
		wait(ctx, e.interval/4)
	}
	wg.Wait()
	p.lasted = time.Since(began)
	look(t.Context())
	p.took = sum / max(n, 1)
	return p
}

// slowest returns the fewest runs of a device, by interval.
func (p *probing) slowest(interval time.Duration) float64 {
	least := slices.Min(slices.Collect(maps.Values(p.runs)))
	return least * interval.Seconds() / p.lasted.Seconds()
}

// show prints a table.
func show(rows []*row) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(what string, cell func(r *row) string) {
		fmt.Fprintf(w, "%s\t", what)
		for i := range rows {
			fmt.Fprintf(w, "%s\t", cell(rows[i]))
		}
		fmt.Fprintln(w)
	}
	milli := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }
	change := func(format string, of func(s *state) any) func(r *row) string {
		return func(r *row) string {
			return fmt.Sprintf(format, of(&r.before), of(&r.peak), of(&r.after))
		}
	}
	fmt.Printf("\n%d scrapers, %d clients that send slowly and %d that read slowly, on the same machine as the exporter\n", scrapers, slowRequests, slowReaders)
	line("", func(r *row) string { return r.name })
	line("scrapes", func(r *row) string { return fmt.Sprint(len(r.scrapes.took)) })
	line("answered 503", func(r *row) string { return fmt.Sprint(r.scrapes.errors["503"]) })
	line("other errors", func(r *row) string {
		var errs []string
		for _, kind := range slices.Sorted(maps.Keys(r.scrapes.errors)) {
			if kind != "503" {
				errs = append(errs, fmt.Sprintf("%d %s", r.scrapes.errors[kind], kind))
			}
		}
		if errs == nil {
			return "0"
		}
		return strings.Join(errs, ", ")
	})
	line("KiB per scrape, gzip", func(r *row) string {
		return fmt.Sprintf("%.1f", float64(r.scrapes.bytes)/float64(max(len(r.scrapes.took), 1))/1024)
	})
	line("p50 of a scrape", func(r *row) string { return milli(r.scrapes.quantile(0.5)) })
	line("p99 of a scrape", func(r *row) string { return milli(r.scrapes.quantile(0.99)) })
	line("longest", func(r *row) string { return milli(r.scrapes.quantile(1)) })
	line("slow clients cut", func(r *row) string { return fmt.Sprint(r.cuts) })
	line("exporter, processors", func(r *row) string { return fmt.Sprintf("%.2f", r.cpu) })
	line("resident before, peak, after, MiB", func(r *row) string {
		return fmt.Sprintf("%.1f, %.1f, %.1f", float64(r.before.resident)/1024, float64(r.peak.peak)/1024, float64(r.after.resident)/1024)
	})
	line("goroutines before, at the end, after", change("%d, %d, %d", func(s *state) any { return s.goroutines }))
	line("open files before, at the end, after", change("%d, %d, %d", func(s *state) any { return s.files }))
	line("until it was let go of", func(r *row) string { return r.settled.Round(time.Second).String() })
	line("runs of probes, of those due: least device, before", func(r *row) string { return fmt.Sprintf("%.2f", r.quiet.slowest(r.interval)) })
	line("under load", func(r *row) string { return fmt.Sprintf("%.2f", r.probing.slowest(r.interval)) })
	line("longest between two runs, before", func(r *row) string { return fmt.Sprintf("%.1f s of %v", r.quiet.gap, r.interval) })
	line("under load", func(r *row) string { return fmt.Sprintf("%.1f s of %v", r.probing.gap, r.interval) })
	line("mean run, before", func(r *row) string { return fmt.Sprintf("%.3f s", r.quiet.took) })
	line("under load", func(r *row) string { return fmt.Sprintf("%.3f s", r.probing.took) })
	_ = w.Flush()
}
