package peers

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/bench"
	"rdma_exporter/test/running"
)

// rounds is the number of measurements whose median is the result of one run. One more
// round comes first, after which all files are in memory.
const rounds = 5

// TestReal measures on a Soft-RoCE device of the virtual machine, whose processors are
// emulated: only the ratios mean something.
func TestReal(t *testing.T) {
	if _, err := os.Stat("/sys/class/infiniband/rxe0"); err != nil {
		t.Fatalf("no Soft-RoCE device (%v): run this with -exec test/vm/run", err)
	}
	t.Run("inventory", compareInventories)
	t.Run("probe", compareProbes)
}

// compareInventories measures the child of one inventory next to rdma(8): a command for
// each type, and one for all.
func compareInventories(t *testing.T) {
	table := all.table("Inventory, in the virtual machine", "rdma(8)")
	types := []string{"qp", "cq", "mr", "pd", "cm_id", "ctx", "srq"}
	for _, objects := range []int{0, 1000, 10000} {
		stop := hold(t, objects)
		for range *runs {
			var ours, apart, together []cost
			for round := range rounds + 1 {
				o := run(t, "", bench.Program(t, running.EnvBinary), "inventory", "--device=rxe0")
				var a cost
				for _, name := range types {
					a = a.plus(run(t, "", "rdma", "-j", "resource", "show", name))
				}
				b := run(t, "resource show "+strings.Join(types, "\nresource show ")+"\n", "rdma", "-j", "-b", "-")
				if round > 0 {
					ours, apart, together = append(ours, o), append(apart, a), append(together, b)
				}
			}
			table.addCosts(fmt.Sprintf("%d objects held, 7 commands", objects), ours, apart)
			table.addCosts(fmt.Sprintf("%d objects held, one batch", objects), ours, together)
		}
		stop()
	}
}

// hold starts a process that holds objects of rxe0, and returns how to stop it.
func hold(t *testing.T, objects int) (stop func()) {
	t.Helper()
	if objects == 0 {
		return func() {}
	}
	qps, cqs, mrs, srqs := objects/2, objects/10, objects/4, objects/20
	pds := objects - 1 - qps - cqs - mrs - srqs // One object is the device context.
	return running.Hold(t, exec.Command(bench.Program(t, "RDMA_HOLDER"), "--device", "rxe0", "--qps", strconv.Itoa(qps), "--rts", strconv.Itoa(qps/2),
		"--cqs", strconv.Itoa(cqs), "--mrs", strconv.Itoa(mrs), "--srqs", strconv.Itoa(srqs), "--pds", strconv.Itoa(pds))).Release
}

// compareProbes measures the child of one probe run, with and without latency, next to the
// commands that show the same.
func compareProbes(t *testing.T) {
	const withoutLatency = `{"settings":{"provider":"libibverbs","probe":{"notification":{"samples":0}}}}`
	table := all.table("Probe run, in the virtual machine", "commands")
	exporter := bench.Program(t, running.EnvBinary)
	for range *runs {
		var full, quiet, look, latency []cost
		for round := range rounds + 1 {
			f := run(t, "", exporter, "probe", "--device=rxe0")
			q := run(t, withoutLatency, exporter, "probe", "--device=rxe0")
			l := run(t, "", "ibv_devinfo", "-v", "-d", "rxe0").plus(run(t, "", "rdma", "resource"))
			a := l.plus(sendLatency(t))
			if round > 0 {
				full, quiet, look, latency = append(full, f), append(quiet, q), append(look, l), append(latency, a)
			}
		}
		table.addCosts("with latency: ibv_devinfo -v, rdma resource, ib_send_lat -e", full, latency)
		table.addCosts("without latency: ibv_devinfo -v, rdma resource", quiet, look)
	}
}

// sendLatency measures both ends of ib_send_lat with events, with 100 messages. The time is
// that of the client.
func sendLatency(t *testing.T) cost {
	t.Helper()
	const port = 18515
	args := []string{"-e", "-d", "rxe0", "-x", "1", "-n", "100", "-p", strconv.Itoa(port)}
	server := exec.Command("ib_send_lat", args...)
	running.Check(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill() })
	// A connection to see whether it listens would be its only one.
	running.Within(t, 5*time.Minute, "ib_send_lat to listen", func() bool { return listens(port) })
	client := run(t, "", "ib_send_lat", append(args, "10.77.0.1")...)
	if err := server.Wait(); err != nil {
		t.Fatalf("server of ib_send_lat: %v", err)
	}
	return cost{client.wall, client.cpu + cpuOf(server)}
}

// listens reports whether a process listens on a TCP port.
func listens(port int) bool {
	const listen = "0A"
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, _ := os.ReadFile(file)
		for line := range strings.Lines(string(b)) {
			fields := strings.Fields(line)
			if len(fields) > 3 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) && fields[3] == listen {
				return true
			}
		}
	}
	return false
}
