//go:build vm

// Package bandwidth tests the command bandwidth on Soft-RoCE, on a machine with two NUMA nodes:
// see make test-bandwidth.
package bandwidth

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
		pages := regexp.MustCompile(`(?m)^\S+ prefer:` + node + ` .* N` + node + `=1024 .*$`)
		running.Eventually(t, "the buffer of node "+node, func() bool {
			maps, _ := os.ReadFile("/proc/" + child() + "/numa_maps")
			return pages.Match(maps)
		})
	}
}

// trace returns a file that shows calls in the kernel, by CLOCK_MONOTONIC, until it is written to.
func trace(t *testing.T) (file string) {
	t.Helper()
	dir := t.TempDir()
	running.Check(t, unix.Mount("tracefs", dir, "tracefs", 0, ""))
	t.Cleanup(func() { running.Check(t, unix.Unmount(dir, 0)) })
	for _, f := range [][2]string{
		{"trace_clock", "mono"},
		{"kprobe_events", "p:posts rdma_rxe:rxe_post_send\nr:posted rdma_rxe:rxe_post_send\nr:created rdma_rxe:rxe_create_qp\n" +
			"r:counted ib_core:nldev_res_get_doit\np:lists ib_core:nldev_res_get_cq_dumpit\n"},
		{"events/kprobes/enable", "1"},
	} {
		running.Check(t, os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0))
	}
	return filepath.Join(dir, "trace")
}

// stop has times since another program's ibv_create_qp returned: when the kernel reported the queue
// pair, and when the last ibv_post_send began and ended. Zero means before.
type stop struct{ told, began, ended time.Duration }

// stopOf returns the stop of a trace, and how many calls of ibv_post_send began after it was said who holds
// the queue pair, which is listed for that.
func stopOf(t *testing.T, file string) (s stop, late int) {
	t.Helper()
	var created time.Duration
	var counted []time.Duration
	listed := false
	for _, m := range regexp.MustCompile(`(?m)^ *(\S+)-\d+ .* (\d+\.\d{6}): (\w+): `).FindAllStringSubmatch(string(running.Must(os.ReadFile(file))(t)), -1) {
		at := running.Must(time.ParseDuration(m[2]+"s"))(t) - created
		switch event := m[3]; {
		case event == "created" && m[1] == "holder":
			created = at
		case created == 0:
		case event == "posts":
			if s.began = at; listed {
				late++
			}
		case event == "posted":
			s.ended = at
		case event == "counted":
			counted = append(counted, at)
		case event == "lists" && !listed && len(counted) > 1: // It is counted once more before.
			listed, s.told = true, counted[len(counted)-2]
		}
	}
	return s, late
}

// TestStops verifies that nothing is posted once another program has a queue pair, and that the
// command does not begin then. It logs after how long nothing was posted.
func TestStops(t *testing.T) {
	const stops = 20
	file := trace(t)
	var all []stop
	for n := 0; len(all) < stops && n < 4*stops; n++ {
		running.Check(t, os.WriteFile(file, nil, 0))
		holder := make(chan *running.Held, 1)
		go func() {
			running.Eventually(t, "it measures", func() bool { return strings.Contains(objects(t), "qp 9") }) // eight, and one of the kernel
			time.Sleep(time.Duration(n%8) * 100 * time.Millisecond)
			holder <- running.Hold(t, exec.Command(os.Getenv("RDMA_HOLDER"), "--device", "rxe0", "--qps", "1"))
		}()
		b, status := run(t)
		held := <-holder
		if s, late := stopOf(t, file); strings.Contains(b.Interrupted, "posting ended within") {
			// One call may begin late: it was decided before, and its thread waited for a CPU.
			if all = append(all, s); status != 1 || !strings.Contains(b.Interrupted, "holder (process ") || late > 1 {
				t.Errorf("status %d, interrupted: %q, %d cells, %d messages late", status, b.Interrupted, len(b.Cells), late)
			}
			t.Logf("told after %s, last ibv_post_send from %s to %s; %s", s.told, s.began, s.ended, b.Interrupted)
		}
		if len(all) == stops {
			cmd := command()
			if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "holder (process ") {
				t.Errorf("%v: %s", cmd.ProcessState, out)
			}
		}
		held.Release()
	}
	if len(all) < stops {
		t.Fatalf("it stopped %d times: %v", len(all), all)
	}
	for name, of := range map[string]func(s stop) time.Duration{
		"the kernel told":              func(s stop) time.Duration { return s.told },
		"the last ibv_post_send began": func(s stop) time.Duration { return s.began }, "it ended": func(s stop) time.Duration { return s.ended },
	} {
		slices.SortFunc(all, func(a, b stop) int { return cmp.Compare(of(a), of(b)) })
		t.Logf("%s after: minimum %s, median %s, 90 %% %s, maximum %s", name, of(all[0]), of(all[stops/2]), of(all[stops*9/10]), of(all[stops-1]))
	}
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

// TestFullNode verifies that a node whose memory is full is left out, and that the kernel kills no process.
func TestFullNode(t *testing.T) {
	dir := t.TempDir()
	running.Check(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "mpol=prefer:1,size=100%"))
	t.Cleanup(func() { running.Check(t, unix.Unmount(dir, 0)) })
	info := running.Must(os.ReadFile("/sys/devices/system/node/node1/meminfo"))(t)
	free := regexp.MustCompile(`MemFree: +(\d+) kB`).FindSubmatch(info)
	running.Command(t, "sh", "-c", fmt.Sprintf("head -c %sK /dev/zero >%s/full", free[1], dir))
	if b, status := run(t); status != 0 || !strings.Contains(b.Skipped, "NUMA node 1: ") || b.Failure+b.Interrupted != "" || len(b.Cells) == 0 {
		t.Errorf("status %d: %q, %q, %q, %d cells", status, b.Skipped, b.Failure, b.Interrupted, len(b.Cells))
	}
}
