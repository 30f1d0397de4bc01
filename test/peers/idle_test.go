//go:build vm

package peers

import (
	"testing"
	"time"
)

// scrapeInterval is how often a Prometheus scrapes, if told nothing else but by its
// example configuration.
const scrapeInterval = 15 * time.Second

// measureIdle measures what two exporters use while they do what they always do, at
// their default intervals, and are scraped every 15 seconds: the CPU time of the
// exporter's process and that of its children apart. The contracts of all devices
// have been judged before, which is done once an hour. Ours is measured with and
// without its measurements of completions, in which a child sleeps and polls.
func measureIdle(t *testing.T, table *table, situation string, devices int, ours, theirs []string) {
	t.Helper()
	for _, mode := range []struct{ name, flag string }{
		{"completions measured", "--notification.samples=100"},
		{"completions not measured", "--notification.samples=0"},
	} {
		t.Run(mode.name, func(t *testing.T) {
			situation := situation + ", " + mode.name
			for n := range *runs {
				say(t, "%s: run %d of %d", situation, n+1, *runs)
				o := serve(t, exporterFile, append([]string{mode.flag, "--contract.interval=24h"}, ours...)...)
				p := serve(t, nodeExporterFile, theirs...)
				settle(t, o, devices, true)
				before := o.text(t)
				began := time.Now()
				own, children, other := o.cpu(t), o.childrenCPU(t), p.cpu(t)
				for next := began.Add(scrapeInterval); next.Sub(began) <= *idleTime; next = next.Add(scrapeInterval) {
					time.Sleep(time.Until(next))
					for _, s := range []*server{o, p} {
						if _, err := s.get(accept); err != nil {
							t.Fatal(err)
						}
					}
				}
				took := time.Since(began)
				own, children, other = o.cpu(t)-own, o.childrenCPU(t)-children, p.cpu(t)-other
				after := o.text(t)
				minutely := func(name string) float64 { return (sum(after, name) - sum(before, name)) / took.Minutes() }
				share := func(d time.Duration) float64 { return 100 * d.Seconds() / took.Seconds() }
				table.add(situation, "CPU of the exporter's process", "% of one core", share(own), share(other))
				table.add(situation, "CPU of its children", "% of one core", share(children))
				table.add(situation, "CPU in all", "% of one core", share(own+children), share(other))
				table.add(situation, "runs of the probes", "a minute", minutely("rdma_probe_runs_total"))
				table.add(situation, "inventories", "a minute", minutely("rdma_inventory_runs_total"))
				addMemory(t, table, situation, o, p)
				o.stop()
				p.stop()
			}
		})
	}
}
