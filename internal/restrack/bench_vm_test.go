//go:build vm

package restrack

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// A cost is what programs took, including their start.
type cost struct{ wall, cpu time.Duration }

// measure runs programs one after the other.
func measure(t testing.TB, commands ...*exec.Cmd) (sum cost) {
	t.Helper()
	for _, command := range commands {
		command.Stderr = os.Stderr
		begin := time.Now()
		if err := command.Run(); err != nil {
			t.Fatalf("%v: %v", command.Args, err)
		}
		sum.wall += time.Since(begin)
		sum.cpu += command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}
	return sum
}

// BenchmarkDump compares a process that reads tables through this package with rdma(8), without
// output: the QPs alone, and all types. It reports medians of rounds in which each is first in turn,
// and asserts nothing. From the repository's root, with RDMA_HOLDER set:
//
//	go test -tags vm -exec "$PWD/test/vm/run" -run '^$' -bench Dump -benchtime 9x ./internal/restrack
func BenchmarkDump(b *testing.B) {
	self := running.Must(os.Executable())(b)
	var all []string
	for _, kind := range Types() {
		all = append(all, kind.String())
	}
	for _, qps := range []int{4000, 20000} {
		holder := hold(b, "--qps", strconv.Itoa(qps), "--rts", strconv.Itoa(qps/2), "--cqs", "8", "--mrs", "100")
		for what, types := range map[string][]string{"qp": {"qp"}, "all": all} {
			b.Run(fmt.Sprintf("%d/%s", qps, what), func(b *testing.B) {
				costs := make(map[string][]cost)
				programs := map[string]func() []*exec.Cmd{
					"ours": func() []*exec.Cmd {
						command := exec.Command(self)
						command.Env = append(os.Environ(), readerMode+"="+what)
						return []*exec.Cmd{command}
					},
					"rdma": func() (commands []*exec.Cmd) {
						for _, kind := range types {
							commands = append(commands, exec.Command("rdma", "-j", "resource", "show", kind))
						}
						return commands
					},
				}
				order := []string{"ours", "rdma"}
				for _, name := range order {
					measure(b, programs[name]()...) // The files are in memory now.
				}
				for b.Loop() {
					for _, name := range order {
						costs[name] = append(costs[name], measure(b, programs[name]()...))
					}
					slices.Reverse(order)
				}
				b.ReportMetric(0, "ns/op")
				for kind, of := range map[string]func(cost) time.Duration{
					"wall": func(c cost) time.Duration { return c.wall }, "cpu": func(c cost) time.Duration { return c.cpu },
				} {
					median := make(map[string]float64) // in milliseconds
					for name, list := range costs {
						slices.SortFunc(list, func(x, y cost) int { return int(of(x) - of(y)) })
						median[name] = float64(of(list[len(list)/2])) / 1e6
						b.ReportMetric(median[name], name+"-"+kind+"-ms")
					}
					b.ReportMetric(median["ours"]/median["rdma"], kind+"-ratio")
				}
				b.ReportMetric(float64(read(b, self, "heap "+what, nil).Heap)/1024, "ours-heap-KiB")
			})
		}
		holder.Release()
	}
}
