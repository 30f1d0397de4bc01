//go:build vm

package softroce

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

func faultsLibrary(t *testing.T) string {
	t.Helper()
	file := os.Getenv("RDMA_FAULTS_LIBRARY")
	if !filepath.IsAbs(file) {
		t.Fatalf("RDMA_FAULTS_LIBRARY is %q: set it to the absolute path of the library of test/faults", file)
	}
	// The dynamic loader goes on without a library that is not there.
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("RDMA_FAULTS_LIBRARY: %v", err)
	}
	return file
}

// A gate is the FIFO from which each child of an exporter reads its faults before its first
// verb. So each child has its own faults, and while one waits the exporter shows the result
// of the run before it.
type gate struct {
	t *testing.T
	e *exporter
	// device is the one that the exporter probes, and baseline what was held of it before.
	device, baseline string
	// library is the one that each child loads, fifo what it reads, and log has what it
	// did.
	library, fifo, log string
	// open leads to the child that waits, and shown is what the exporter shows meanwhile.
	// Both are nil if no child waits.
	open  *os.File
	shown metrics
}

// gatePoll is the pause between two looks at a gate, which cost time on an emulated CPU.
const gatePoll = 20 * time.Millisecond

// startGated starts an exporter of one device whose children wait at a gate.
func startGated(t *testing.T, device string, flags ...string) *gate {
	t.Helper()
	dir := t.TempDir()
	g := &gate{t: t, device: device, library: filepath.Join(dir, "libfaults.so"), fifo: filepath.Join(dir, "faults"), log: filepath.Join(dir, "log")}
	b, err := os.ReadFile(faultsLibrary(t))
	if err == nil {
		err = os.WriteFile(g.library, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	running.Check(t, syscall.Mkfifo(g.fifo, 0o600))
	g.e = start(t, options{
		wrap: []string{
			"env", "LD_PRELOAD=" + g.library, "IBV_FAULTS=" + g.fifo, "IBV_FAULTS_LOG=" + g.log,
		},
		lean:  true,
		flags: append([]string{"--device.include=" + device, "--hardware.interval=0", histograms}, flags...),
	})
	g.baseline = g.held(t)
	t.Cleanup(func() {
		if g.open != nil {
			_ = g.open.Close()
		}
	})
	return g
}

// scrape returns the metrics without the distribution of each verb's time, which is more
// than half of them: the emulated processor takes longer to read them than to have a run.
func (g *gate) scrape() metrics {
	g.t.Helper()
	return g.e.scrapeOf("exclude[]=verb-histograms")
}

// held is what the kernel says is held of the device.
func (g *gate) held(t testing.TB) string {
	t.Helper()
	var lines strings.Builder
	for line := range strings.Lines(resources(t)) {
		if strings.Contains(line, fmt.Sprintf(`"ifname":%q`, g.device)) {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// await waits until a child waits at the gate.
func (g *gate) await() {
	g.t.Helper()
	if g.open != nil {
		return
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(gatePoll) {
		// Without O_NONBLOCK this would wait for ever if no child came.
		f, err := os.OpenFile(g.fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			g.open, g.shown = f, g.scrape()
			return
		}
		switch {
		case !errors.Is(err, syscall.ENXIO):
			g.t.Fatal(err)
		case g.e.ended():
			g.t.Fatalf("the exporter has ended: %v", g.e.err)
		case time.Now().After(deadline):
			g.t.Fatalf("no child was started within %v", patience)
		}
	}
}

// pass gives the child at the gate its faults and lets it go on. It returns false if the
// child was killed before, because this machine is slow.
func (g *gate) pass(faults []string) bool {
	g.t.Helper()
	// A run whose libraries have changed uses no earlier results, and is full.
	now := time.Now()
	running.Check(g.t, errors.Join(os.RemoveAll(g.log), os.Chtimes(g.library, now, now)))
	_, err := g.open.WriteString(strings.Join(faults, "\n") + "\n")
	err = errors.Join(err, g.open.Close())
	g.open, g.shown = nil, nil
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		g.t.Fatalf("tell a child its faults: %v", err)
	}
	return err == nil && g.loaded(len(faults))
}

// loaded waits until a child has read all its faults: until then the FIFO still has a
// reader. It returns false if no child reads them.
func (g *gate) loaded(lines int) bool {
	g.t.Helper()
	for deadline := time.Now().Add(patience / 20); time.Now().Before(deadline); time.Sleep(gatePoll) {
		if log := g.logged(); len(log) > 0 {
			if want := fmt.Sprintf("loaded %d", lines); log[0] != want {
				g.t.Fatalf("the library says %q, want %q", log[0], want)
			}
			return true
		}
	}
	return false
}

// logged are the lines of the library's log, without the process IDs.
func (g *gate) logged() []string {
	g.t.Helper()
	b, err := os.ReadFile(g.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		g.t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(b)) {
		_, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		lines = append(lines, text)
	}
	return lines
}

// run has one run with these faults, and returns the metrics before and after it,
// and what the library did in it.
func (g *gate) run(faults ...string) (before, after metrics, acted []string) {
	g.t.Helper()
	const attempts = 5
	for range attempts {
		g.await()
		before = g.shown
		if !g.pass(faults) {
			continue
		}
		g.await()
		n := g.shown.runs(g.device) - before.runs(g.device)
		if n == 1 {
			return before, g.shown, g.logged()[1:]
		}
		// The first child was killed at the gate, and the next one took its place.
		g.t.Logf("%v runs were counted instead of one", n)
	}
	g.t.Fatalf("none of %d children had its faults and the time for its run", attempts)
	return nil, nil, nil
}
