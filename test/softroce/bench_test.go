//go:build vm

package softroce

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkRun measures one run of the probes on the active device: the whole
// life of the child process.
func BenchmarkRun(b *testing.B) {
	for _, device := range []string{active, down} {
		b.Run(device, func(b *testing.B) {
			var cpu time.Duration
			var resident int64
			probeByHand(b, device) // reads files for the first time
			for b.Loop() {
				cmd, _ := probeByHand(b, device)
				cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				resident = max(resident, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10)
			}
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(resident)/(1<<20), "max-resident-MiB")
		})
	}
}

// BenchmarkExporter measures a scrape of an exporter that has probed both devices
// ten times, and what it had resident before the first scrape of the benchmark.
func BenchmarkExporter(b *testing.B) {
	e := start(b, options{lean: true})
	m := e.scrape()
	for ; min(m.runs(active), m.runs(down)) < 10; m = e.scrape() {
		time.Sleep(time.Second) // which is often, for a scrape
	}
	resident, file := memory(b, e.pid(), "VmRSS"), memory(b, e.pid(), "RssFile")
	for b.Loop() {
		if _, err := e.get("/metrics"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(resident, "resident-MiB")
	b.ReportMetric(file, "resident-file-MiB")
	b.ReportMetric(m.one(b, "process_resident_memory_bytes")/(1<<20), "process_resident_memory-MiB")
	b.ReportMetric(m.one(b, "rdma_probe_child_max_resident_bytes", "device", active)/(1<<20), "child-max-resident-MiB")
	e.terminate()
}

// memory returns what /proc/PID/status says, in MiB.
func memory(t testing.TB, pid int, key string) float64 {
	t.Helper()
	for line := range strings.Lines(output(t, "cat", fmt.Sprintf("/proc/%d/status", pid))) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib / (1 << 10)
		}
	}
	t.Fatalf("process %d has no %s", pid, key)
	return 0
}
