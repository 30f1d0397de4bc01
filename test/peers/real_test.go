//go:build vm

package peers

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// TestRealDevices measures on the Soft-RoCE devices of the virtual machine, all in
// one boot. The machine is emulated: its figures are several times those of a real
// one, and only their ratios mean something.
func TestRealDevices(t *testing.T) {
	addDevices(t, 8)
	t.Run("inventory", compareInventories)
	t.Run("probe", compareProbes)
	t.Run("scrape", func(t *testing.T) {
		for _, n := range []int{8, 64} {
			addDevices(t, n)
			if n == 8 {
				t.Run("idle", func(t *testing.T) {
					measureIdle(t, all.table("CPU over time, real devices in the virtual machine", "node_exporter"),
						"8 Soft-RoCE devices", n, nil, nodeExporterFlags)
				})
			}
			compareScrapes(t, comparison{
				table: all.table("Scrapes, real devices in the virtual machine", "node_exporter"), situation: fmt.Sprintf("%d Soft-RoCE devices", n), devices: n,
				ours: append([]string{withoutOwn, "--contract.interval=0"}, onceFlags...), theirs: append([]string{withoutOwn}, nodeExporterFlags...),
				scrapes: 100,
			})
		}
	})
}

// tables are the types that rdma(8) knows, in the words of its command line.
var tables = []string{"qp", "cq", "mr", "pd", "cm_id", "ctx", "srq"}

// compareInventories measures the child process of one inventory of rxe0, from its
// start to its end, beside rdma(8): a command for each type, and one for all.
func compareInventories(t *testing.T) {
	table := all.table("Inventory, in the virtual machine", "rdma(8)")
	for _, objects := range []int{0, 1000, 10000} {
		stop := hold(t, objects)
		for n := range *runs {
			say(t, "%d objects: run %d of %d", objects, n+1, *runs)
			const rounds = 5
			var ours, apart, together []cost
			for round := range rounds + 1 {
				o := run(t, "", exporterFile, "inventory", "--device=rxe0")
				var a cost
				for _, name := range tables {
					a = a.plus(run(t, "", "rdma", "-j", "resource", "show", name))
				}
				b := run(t, "resource show "+strings.Join(tables, "\nresource show ")+"\n", "rdma", "-j", "-b", "-")
				if round > 0 { // the files are in memory now
					ours, apart, together = append(ours, o), append(apart, a), append(together, b)
				}
			}
			wall, cpu := milliseconds(ours)
			for _, peer := range []struct {
				name  string
				costs []cost
			}{{"7 commands", apart}, {"one batch", together}} {
				theirWall, theirCPU := milliseconds(peer.costs)
				situation := fmt.Sprintf("%d objects held, %s", objects, peer.name)
				table.add(situation, "time", "ms", wall, theirWall)
				table.add(situation, "CPU", "ms", cpu, theirCPU)
			}
		}
		stop()
	}
}

// hold has a process hold so many objects of rxe0, and returns how to end it.
func hold(t *testing.T, objects int) (stop func()) {
	t.Helper()
	if objects == 0 {
		return func() {}
	}
	// Half are queue pairs, and the others of each type in turn; the context is one.
	qps, cqs, mrs, srqs := objects/2, objects/10, objects/4, objects/20
	pds := objects - 1 - qps - cqs - mrs - srqs
	return running.Hold(t, exec.Command(holderFile, "--device", "rxe0", "--qps", strconv.Itoa(qps), "--rts", strconv.Itoa(qps/2),
		"--cqs", strconv.Itoa(cqs), "--mrs", strconv.Itoa(mrs), "--srqs", strconv.Itoa(srqs), "--pds", strconv.Itoa(pds))).Release
}

// compareProbes measures the child process of one run of the probes on rxe0, with
// and without measuring completions, beside the commands with which a person would
// look at the same.
func compareProbes(t *testing.T) {
	table := all.table("Probe run, in the virtual machine", "commands")
	for n := range *runs {
		say(t, "run %d of %d", n+1, *runs)
		const rounds = 5
		var whole, quiet, look, all []cost
		for round := range rounds + 1 {
			w := run(t, "", exporterFile, "probe", "--device=rxe0")
			q := run(t, quietSettings, exporterFile, "probe", "--device=rxe0")
			l := run(t, "", "ibv_devinfo", "-v", "-d", "rxe0").plus(run(t, "", "rdma", "resource"))
			a := l.plus(sendLatency(t))
			if round > 0 {
				whole, quiet, look, all = append(whole, w), append(quiet, q), append(look, l), append(all, a)
			}
		}
		for _, c := range []struct {
			situation    string
			ours, theirs []cost
		}{
			{"latency measured: beside ibv_devinfo -v, rdma resource, ib_send_lat -e", whole, all},
			{"latency left out: beside ibv_devinfo -v, rdma resource", quiet, look},
		} {
			wall, cpu := milliseconds(c.ours)
			theirWall, theirCPU := milliseconds(c.theirs)
			table.add(c.situation, "time", "ms", wall, theirWall)
			table.add(c.situation, "CPU", "ms", cpu, theirCPU)
		}
	}
}

// sendLatency measures the two ends of ib_send_lat with events, on rxe0, of 100
// messages. The time is that of the client, whose server is there already.
func sendLatency(t *testing.T) cost {
	t.Helper()
	const port = 18515
	args := []string{"-e", "-d", "rxe0", "-x", "1", "-n", "100", "-p", strconv.Itoa(port)}
	server := exec.Command("ib_send_lat", args...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill() }) // it is gone if the client came
	// To connect to it would be its only connection.
	running.Within(t, patience, "ib_send_lat to listen", func() bool { return listens(port) })
	client := run(t, "", "ib_send_lat", append(args, "10.77.0.1")...)
	if err := server.Wait(); err != nil {
		t.Fatalf("the server of ib_send_lat: %v", err)
	}
	return cost{client.wall, client.cpu + cpuOf(server)}
}

// listens tells whether somebody listens on a TCP port.
func listens(port int) bool {
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, _ := os.ReadFile(file)
		for line := range strings.Lines(string(b)) {
			fields := strings.Fields(line)
			const listen = "0A"
			if len(fields) > 3 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) && fields[3] == listen {
				return true
			}
		}
	}
	return false
}

// quietSettings are the settings of a child that measures no completions.
const quietSettings = `{"settings":{"provider":"libibverbs","probe":{"notification":{"samples":0}}}}`
