// Package peers measures the built exporter next to programs that show similar things:
// node_exporter, rdma(8), and ibv_devinfo with ib_send_lat. It asserts nothing, and prints
// tables in Markdown for docs/performance.md.
//
// TestReal runs on the Soft-RoCE device rxe0 of the virtual machine of test/vm/run.
package peers

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

var (
	runs     = flag.Int("peers.runs", 3, "number of times that everything is measured")
	idleTime = flag.Duration("peers.idle", 2*time.Minute, "time for which an idle exporter is measured")
)

// all holds all measurements, in the order in which they are printed.
var all report

func TestMain(m *testing.M) {
	status := m.Run()
	all.print(os.Stdout)
	os.Exit(status)
}

// cost is what a program took from start to end.
type cost struct{ wall, cpu time.Duration }

func (c cost) plus(d cost) cost { return cost{c.wall + d.wall, c.cpu + d.cpu} }

// run runs a program with an input. It must succeed.
func run(t *testing.T, input, file string, args ...string) cost {
	t.Helper()
	cmd := exec.Command(file, args...)
	cmd.Stdin = strings.NewReader(input)
	began := time.Now()
	if text, err := cmd.Output(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, text)
	}
	return cost{time.Since(began), cpuOf(cmd)}
}

// cpuOf returns the CPU time of a program that has ended.
func cpuOf(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
