//go:build vm

package softroce

import (
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
	resident, file := status(b, e.pid(), "VmRSS")/1024, status(b, e.pid(), "RssFile")/1024
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
