//go:build vm

package restrack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A cost is what one run of a program took.
type cost struct {
	wall, cpu time.Duration
	peak      uint64 // of the resident memory, in bytes
}

// measure runs a program, including its start.
func measure(t testing.TB, command *exec.Cmd) cost {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	command.Stdout, command.Stderr = null, os.Stderr
	begin := time.Now()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	// The peak that wait4 tells includes that of this process, which it was
	// forked from, so the kernel's own mark of the new program is polled.
	status := filepath.Join("/proc", strconv.Itoa(command.Process.Pid), "status")
	ended, peak := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		for {
			text, _ := os.ReadFile(status)
			if strings.HasPrefix(string(text), "Name:\t"+filepath.Base(command.Path)[:4]) {
				for line := range strings.Lines(string(text)) {
					var kib uint64
					if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
						most = max(most, kib<<10)
					}
				}
			}
			select {
			case <-ended:
				peak <- most
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	err = command.Wait()
	wall := time.Since(begin)
	close(ended)
	if err != nil {
		t.Fatalf("%v: %v", command.Args, err)
	}
	usage := command.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	return cost{wall, cpu, <-peak}
}

func median[T int64 | uint64 | time.Duration](costs []cost, of func(cost) T) T {
	var values []T
	for _, c := range costs {
		values = append(values, of(c))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// BenchmarkDump compares a process that reads tables through this package with
// rdma(8), whose output goes to /dev/null: the QPs alone, and all types. It
// reports medians of rounds in which each is first in turn, and asserts
// nothing. From the repository's root, with RDMA_HOLDER set:
//
//	go test -tags vm -exec "$PWD/test/vm/run" -run '^$' -bench Dump -benchtime 9x ./internal/restrack
func BenchmarkDump(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for _, qps := range []int{4000, 20000} {
		holder := hold(b, "--qps", strconv.Itoa(qps), "--rts", strconv.Itoa(qps/2), "--cqs", "8", "--mrs", "100")
		for _, what := range []string{"qp", "all"} {
			b.Run(fmt.Sprintf("%d/%s", qps, what), func(b *testing.B) {
				var ours, theirs []cost
				us := func() {
					command := exec.Command(self)
					command.Env = append(os.Environ(), readerMode+"="+what)
					ours = append(ours, measure(b, command))
				}
				them := func() {
					var sum cost
					types := []string{"qp"}
					if what == "all" {
						types = nil
						for _, kind := range Types() {
							types = append(types, kind.String())
						}
					}
					for _, kind := range types {
						c := measure(b, exec.Command("rdma", "-j", "resource", "show", kind))
						sum = cost{sum.wall + c.wall, sum.cpu + c.cpu, max(sum.peak, c.peak)}
					}
					theirs = append(theirs, sum)
				}
				us()
				them()
				ours, theirs = nil, nil // The files are in memory now.
				for i := 0; b.Loop(); i++ {
					if i%2 == 0 {
						us()
						them()
					} else {
						them()
						us()
					}
				}
				heap := read(b, self, "heap "+what, nil)
				wall := func(c cost) time.Duration { return c.wall }
				cpu := func(c cost) time.Duration { return c.cpu }
				peak := func(c cost) uint64 { return c.peak }
				ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(ms(median(ours, wall)), "ours-wall-ms")
				b.ReportMetric(ms(median(theirs, wall)), "rdma-wall-ms")
				b.ReportMetric(float64(median(ours, wall))/float64(median(theirs, wall)), "wall-ratio")
				b.ReportMetric(ms(median(ours, cpu)), "ours-cpu-ms")
				b.ReportMetric(ms(median(theirs, cpu)), "rdma-cpu-ms")
				b.ReportMetric(float64(median(ours, cpu))/float64(median(theirs, cpu)), "cpu-ratio")
				b.ReportMetric(float64(median(ours, peak))/(1<<20), "ours-peak-MiB")
				b.ReportMetric(float64(median(theirs, peak))/(1<<20), "rdma-peak-MiB")
				b.ReportMetric(float64(heap.Heap)/1024, "ours-heap-KiB")
			})
		}
		holder.Release()
	}
}
