//go:build vm

package softroce

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

var (
	soakRuns = flag.Int("soak.runs", 15, "how many runs TestSoak waits for")
	soakTime = flag.Duration("soak.time", 0, "how long TestSoak waits for them at most; 0 for ever")
)

// Run after run and inventory after inventory, nothing grows: neither what the kernel holds,
// nor the files, the goroutines and the memory of the exporter; and events are missed no more
// often, roughly, than by a plain C program, which measures between the runs. Where the runs
// take a given time, contracts are judged and the hardware is read meanwhile, too.
func TestSoak(t *testing.T) {
	runs := *soakRuns
	before := rawResources(t)
	flags := []string{
		"--probe.interval=100ms", "--notification.samples=50",
		"--inventory.interval=500ms", "--device.include=" + active, "--inventory.timeout=5m",
	}
	if *soakTime > 0 { // all of it
		flags = append(flags, "--contract.interval=1m", "--hardware.interval=1s", "--state.dir="+t.TempDir())
	}
	e := start(t, options{lean: *soakTime == 0, flags: flags})
	for range min(max(runs/20, 5), 100) {
		e.rounds(1, active) // by then it has allocated what it needs
	}
	type state struct {
		files              int
		goroutines, memory float64
	}
	look := func() state {
		return state{len(openFiles(t, e.pid())), e.scrape().one(t, "go_goroutines"), status(t, e.pid(), "VmRSS") / 1024}
	}
	// Children that run at the moment hold some of it, so the least of several looks
	// counts.
	least := func() state {
		const looks = 20
		s := look()
		for range looks {
			time.Sleep(poll)
			now := look()
			s = state{min(s.files, now.files), min(s.goroutines, now.goroutines), min(s.memory, now.memory)}
		}
		return s
	}
	first, most := least(), state{}
	yardstick := os.Getenv("RDMA_YARDSTICK")
	// soak has so many runs more, or as many as the time suffices for, and returns what
	// was missed in them, and by the yardstick meanwhile: it has as many events if we
	// missed any.
	soak := func(runs int) (ours, theirs tally) {
		measure := func(events int) {
			now := missedBy(t, yardstick, events)
			theirs = tally{missed: theirs.missed + now.missed, all: theirs.all + now.all}
		}
		m := e.scrape()
		began, start, missed := time.Now(), m.runs(active), events(m)
		for next := start; m.runs(active)-start < float64(runs) && (*soakTime == 0 || time.Since(began) < *soakTime); m = e.scrape() {
			now := look()
			most = state{max(most.files, now.files), max(most.goroutines, now.goroutines), max(most.memory, now.memory)}
			if m.runs(active) >= next && yardstick != "" {
				next += float64(max(runs/10, 1))
				measure(200)
			}
			time.Sleep(time.Second)
		}
		now := events(m)
		ours = tally{missed: now.missed - missed.missed, all: now.all - missed.all}
		for ours.missed > 0 && yardstick != "" && theirs.all < ours.all {
			measure(min(int(ours.all-theirs.all), 1000))
		}
		t.Logf("%v runs in %v: we missed %v of %v events, and the yardstick %v of %v",
			m.runs(active)-start, time.Since(began).Round(time.Second), ours.missed, ours.all, theirs.missed, theirs.all)
		return ours, theirs
	}
	// On a slow machine the looks above have taken most of the runs.
	ours, theirs := soak(max(runs-int(e.scrape().runs(active)), 5))
	if ours.tooMany(theirs) {
		// The device loses one now and then, whether it is our turn or not.
		t.Log("these are too many, unless it was chance: once more")
		ours, theirs = soak(runs)
	}
	last := least()
	m := e.scrape()
	t.Logf("%v runs, %v inventories", m.runs(active), m.inventories(active))
	t.Logf("open files %d at first, %d at most, %d at last; goroutines %v, %v, %v; resident %.1f MiB, %.1f, %.1f",
		first.files, most.files, last.files, first.goroutines, most.goroutines, last.goroutines, first.memory, most.memory, last.memory)
	if all, ok := m.inventories(active), m.sum("rdma_inventory_runs_total", "device", active, "outcome", "ok"); all == 0 || ok != all {
		t.Errorf("%v of %v inventories ended well", ok, all)
	}
	if n := m.sum("rdma_probe_leaked_objects"); n != 0 {
		t.Errorf("%v objects are left of our children", n)
	}
	// A run that missed an event has failed.
	if all, ok, missed := m.runs(active), m.runs(active, "ok"), events(m).missed; all-ok > missed {
		t.Errorf("%v of %v runs ended well, with %v events missed", ok, all, missed)
	}
	if ours.tooMany(theirs) {
		t.Errorf("missed were %v of %v events, and %v of %v by the yardstick", ours.missed, ours.all, theirs.missed, theirs.all)
	}
	// Connections and scrapes; children that run; in MiB, what is resident between one return
	// of memory to the kernel and the next (11 to 26).
	const someFiles, someGoroutines, someMemory = 8, 12, 16
	if last.files > first.files+someFiles || last.goroutines > first.goroutines+someGoroutines || last.memory > first.memory+someMemory {
		t.Errorf("the exporter has grown from %+v to %+v", first, last)
	}
	e.terminate()
	awaitHeld(t, before, rawResources)
}

// missedBy has the yardstick measure so many events, and returns how many of them it
// missed. It waits for one as long as we do.
func missedBy(t *testing.T, yardstick string, events int) tally {
	t.Helper()
	// Its status is 1 if it missed any.
	out, err := exec.Command(yardstick, "-d", active, "-t", "5000", "-n", strconv.Itoa(events), "loopback_any").Output()
	var found struct{ Samples, Missed int }
	if bad := json.Unmarshal(out, &found); bad != nil || found.Samples+found.Missed == 0 {
		t.Fatalf("yardstick: %v, %v in %q", err, bad, out)
	}
	return tally{missed: float64(found.Missed), all: float64(found.Samples + found.Missed)}
}

// tally counts events.
type tally struct{ missed, all float64 }

// events are those that an exporter has measured.
func events(m metrics) tally {
	missed := m.sum("rdma_notifications_missed_total")
	all := total(m, "rdma_notification_latency_seconds") + total(m, "rdma_completion_latency_seconds", "mode", "solicited")
	return tally{missed: missed, all: missed + float64(all)}
}

// tooMany reports whether more events were missed than the device explains: any,
// if the yardstick missed none, and else at more than twice its rate, since both
// are few and left to chance.
func (t tally) tooMany(yardstick tally) bool {
	if yardstick.missed == 0 {
		return t.missed > 0
	}
	return t.missed/t.all > 2*yardstick.missed/yardstick.all
}

// total is the number of samples in all histograms of a name.
func total(m metrics, name string, labels ...string) (n uint64) {
	for _, s := range m.find(name, labels...) {
		n += s.GetHistogram().GetSampleCount() + s.GetSummary().GetSampleCount()
	}
	return n
}
