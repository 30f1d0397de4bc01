//go:build vm

package softroce

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

var soakRuns = flag.Int("soak.runs", 30, "how many runs TestSoak waits for")

// Run after run, nothing grows: neither what the kernel holds, nor the files and
// the memory of the exporter; and no event is missed that does not fail to come
// to a plain C program as well, which measures between the runs.
func TestSoak(t *testing.T) {
	runs := *soakRuns
	before := rawResources(t)
	e := start(t, options{flags: []string{
		"--probe.interval=100ms", "--probe.max-backoff=100ms", "--notification.samples=50",
		"--device.include=" + active,
	}})
	e.rounds(max(runs/20, 5), active) // by then it has allocated what it needs
	type state struct {
		files  int
		memory float64
	}
	look := func() state {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", e.pid()))
		if err != nil {
			t.Fatal(err)
		}
		return state{len(entries), memory(t, e.pid(), "VmRSS")}
	}
	first, most := look(), state{}
	missed, yardstick, samples := 0, os.Getenv("RDMA_YARDSTICK"), 0
	m := e.scrape()
	for next := m.runs(active); m.runs(active) < float64(runs); m = e.scrape() {
		now := look()
		most = state{max(most.files, now.files), max(most.memory, now.memory)}
		if m.runs(active) >= next && yardstick != "" {
			next += float64(max(runs/10, 1))
			out := output(t, yardstick, "-d", active, "-n", "200", "loopback_any")
			n, err := strconv.Atoi(strings.SplitN(strings.SplitN(out, `"missed":`, 2)[1], ",", 2)[0])
			if err != nil {
				t.Fatalf("yardstick: %v in %s", err, out)
			}
			missed += n
			samples += 200
		}
		time.Sleep(time.Second)
	}
	last := look()
	t.Logf("%v runs; the yardstick missed %d of %d events; we missed %v of %v", m.runs(active), missed, samples,
		m.sum("rdma_notifications_missed_total"), total(m, "rdma_notification_latency_seconds"))
	t.Logf("open files %d at first, %d at most, %d at last; resident %.1f MiB, %.1f, %.1f",
		first.files, most.files, last.files, first.memory, most.memory, last.memory)
	m.allOK(t, active)
	if n := m.sum("rdma_notifications_missed_total"); n > 0 && missed == 0 {
		t.Errorf("%v events were missed", n)
	}
	const someFiles, someMemory = 8, 8 // connections of scrapes; the collector's rhythm, in MiB
	if last.files > first.files+someFiles || last.memory > first.memory+someMemory {
		t.Errorf("the exporter has grown from %+v to %+v", first, last)
	}
	e.terminate()
	if now := rawResources(t); now != before {
		t.Errorf("the kernel holds\n%s\nand held before\n%s", now, before)
	}
}

// total is the number of samples in all histograms of a name.
func total(m metrics, name string) (n uint64) {
	for _, s := range m.find(name) {
		n += s.GetHistogram().GetSampleCount()
	}
	return n
}
