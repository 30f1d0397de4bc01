//go:build vm

// Package bandwidth tests the command bandwidth on Soft-RoCE, on a machine with two NUMA nodes:
// see make test-bandwidth.
package bandwidth

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/bandwidth"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
)

func command() *exec.Cmd {
	return exec.Command(os.Getenv("RDMA_EXPORTER_BINARY"), "bandwidth", "--device=rxe0", "--yes", "--json")
}

// run returns the report about the device, and the exit status.
func run(t *testing.T) (state.Bandwidth, int) {
	t.Helper()
	cmd := command()
	out, _ := cmd.Output() // The status tells.
	var r bandwidth.Report
	if err := json.Unmarshal(out, &r); err != nil || len(r.Devices) != 1 {
		t.Fatalf("%v, %v: %s", cmd.ProcessState, err, out)
	}
	return r.Devices[0], cmd.ProcessState.ExitCode()
}

// perftest returns what a program moves on the device, in bytes per second.
func perftest(t *testing.T, program string, size int) (rate float64) {
	t.Helper()
	args := []string{"-d", "rxe0", "-x", "1", "-F", "-s", fmt.Sprint(size), "-n", fmt.Sprint(max(20, 64000/size)), "--report_gbits"}
	server := exec.Command(program, args...)
	running.Check(t, server.Start())
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	running.Eventually(t, program+" reports", func() bool {
		out, _ := exec.Command("timeout", append([]string{"60", program}, append(args, "10.77.0.1")...)...).Output()
		if m := regexp.MustCompile(`(?m)^ *\d+ +\d+ +[\d.]+ +([\d.]+)`).FindSubmatch(out); m != nil { // Otherwise the server does not listen yet.
			gigabits, _ := strconv.ParseFloat(string(m[1]), 64)
			rate = gigabits * 1e9 / 8
		}
		return rate > 0
	})
	return rate
}

func TestMatrix(t *testing.T) {
	b, status := run(t)
	if status != 0 || b.Interrupted+b.Failure+b.Skipped != "" {
		t.Fatalf("status %d: %q, %q, %q", status, b.Interrupted, b.Failure, b.Skipped)
	}
	best, nodes := make(map[string]float64), make(map[int]int)
	for _, c := range b.Cells {
		if nodes[c.Node]++; c.BytesPerSecond <= 0 || c.MessagesPerSecond <= 0 {
			t.Errorf("nothing was moved: %+v", c)
		}
		key := fmt.Sprint(c.Operation, c.Size)
		best[key] = max(best[key], c.BytesPerSecond)
	}
	if nodes[0] == 0 || nodes[0] != nodes[1] || len(best) != 6 {
		t.Errorf("the cells are %+v", b.Cells)
	}
	for _, operation := range []string{"write", "read"} {
		for _, size := range []int{64, 4096, 1 << 20} {
			own, theirs := best[fmt.Sprint(operation, size)], perftest(t, "ib_"+operation+"_bw", size)
			t.Logf("%s of %d bytes: %.4f Gb/s, %.2f of ib_%[1]s_bw", operation, size, own*8/1e9, own/theirs)
		}
	}
}

// child returns the process that measures. It is empty without one.
func child() (pid string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if content, _ := os.ReadFile(f); strings.Contains(string(content), "\x00measure\x00") { // It may have ended.
			pid = filepath.Base(filepath.Dir(f))
		}
	}
	return pid
}

func objects(t *testing.T) string {
	t.Helper()
	return running.Command(t, "rdma", "resource", "show", "rxe0")
}

// TestMemoryIsOnNode verifies that the buffer of each node is on that node.
func TestMemoryIsOnNode(t *testing.T) {
	cmd := command()
	running.Check(t, cmd.Start())
	defer func() { _ = cmd.Wait() }() // The status is that of TestMatrix.
	for _, node := range []string{"0", "1"} {
		pages := regexp.MustCompile(`(?m)^\S+ bind:` + node + ` .* N` + node + `=1024 .*$`)
		running.Eventually(t, "the buffer of node "+node, func() bool {
			maps, _ := os.ReadFile("/proc/" + child() + "/numa_maps")
			return pages.Match(maps)
		})
	}
}

// TestStops verifies that nothing is posted once another program has a queue pair, and that the
// command does not begin then.
func TestStops(t *testing.T) {
	holder := make(chan *running.Held, 1)
	go func() {
		running.Eventually(t, "it measures", func() bool { return strings.Contains(objects(t), "qp 9") }) // eight, and one of the kernel
		time.Sleep(100 * time.Millisecond)
		holder <- running.Hold(t, exec.Command(os.Getenv("RDMA_HOLDER"), "--device", "rxe0", "--qps", "1"))
	}()
	b, status := run(t)
	held := <-holder
	if status != 1 || !strings.Contains(b.Interrupted, "holder (process ") || !strings.Contains(b.Interrupted, "posting ended within") {
		t.Errorf("status %d, interrupted: %q, %d cells", status, b.Interrupted, len(b.Cells))
	}
	t.Log(b.Interrupted)
	cmd := command()
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "holder (process ") {
		t.Errorf("%v: %s", cmd.ProcessState, out)
	}
	held.Release()
}

// TestKilled verifies that SIGKILL at any moment leaves nothing.
func TestKilled(t *testing.T) {
	before := objects(t)
	for n := range 8 {
		cmd := command()
		running.Check(t, cmd.Start())
		running.Eventually(t, "the child", func() bool { return child() != "" })
		time.Sleep(time.Duration(n) * 50 * time.Millisecond)
		running.Check(t, cmd.Process.Kill())
		_ = cmd.Wait()
		running.Eventually(t, "nothing is left", func() bool { return child() == "" && objects(t) == before })
	}
}
