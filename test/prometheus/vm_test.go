//go:build prometheus

package prometheus_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// TestVM has Prometheus, on this machine, scrape an exporter of real Soft-RoCE devices
// in the virtual machine that test/vm/run boots: one whose port is active and that
// programs use, one whose port is down, and one that comes and goes.
func TestVM(t *testing.T) {
	rules := readRules(t, filepath.Join(repository, "alerts"))
	p := newProof(t, readDashboards(t, filepath.Join(repository, "dashboards")), rules)
	p.exceptions = readExceptions(t, "empty-vm.yaml")

	holder := os.Getenv("RDMA_HOLDER")
	if !filepath.IsAbs(holder) {
		t.Fatalf("RDMA_HOLDER is %q: set it to the absolute path of the built test/holder", holder)
	}
	readable(t, "testdata/guest")
	// The machine is emulated in software, and all takes its time there.
	port, trigger := running.FreePort(t), running.FreePort(t)
	for trigger == port {
		trigger = running.FreePort(t)
	}
	vm := running.Launch(
		t, "the virtual machine", filepath.Join(repository, "test", "vm", "run"),
		"--timeout", "2400", "--drivers", "rxe", "--forward", port+":10879", "--forward", trigger+":10880",
		filepath.Join("testdata", "guest"), holder,
		binary, "--config.file=testdata/config-vm.yaml",
		"--probe.interval=5s", "--probe.timeout=2m", "--probe.concurrency=3",
		"--notification.samples=20",
		"--contract.timeout=2m", "--inventory.interval=5s", "--inventory.timeout=30s", "--hardware.interval=15s",
		"--collector.memory", "--collector.limits", "--collector.verb-histograms", "--collector.owner-pids", "--collector.cgroups",
		"--collector.raw-counters", "--collector.interrupts",
	)
	e := &exporter{Process: vm, address: "127.0.0.1:" + port}
	e.ready(t)

	p.api = startPrometheus(t, rules, 10*time.Second, e.address)
	p.api.settled(t, []string{e.address}, nil)
	// Before rxe2 goes, it and its hardware were seen for longer than is between two
	// points of an annotation. A busy host may read the hardware minutes later.
	p.api.returns(t, `rdma_device_info{device="rxe2"} offset `+seconds(6*p.api.scrapes))
	p.api.returns(t, `rdma_hardware_success{device="rxe2"} offset `+seconds(6*p.api.scrapes))
	p.stir = func() {
		connection := running.Must(net.Dial("tcp4", "127.0.0.1:"+trigger))(t)
		_ = connection.Close()
	}
	p.stir()

	p.prove(t)
	p.api.checkAlerts(t)
	p.api.checkLog(t)
	e.checkExposition(t)
}

// bootPatience limits how long the machine may take to boot and to probe its devices. On a
// busy host that takes minutes.
const bootPatience = 20 * time.Minute

// ready waits until the exporter answers and has probed each device.
func (e *exporter) ready(t testing.TB) {
	t.Helper()
	client := &http.Client{Timeout: 5 * time.Second}
	running.Within(t, bootPatience, e.Name+" is ready", func() bool {
		e.MustRun(t)
		_, err := running.Get(client, "http://"+e.address+"/-/ready")
		return err == nil
	})
}
