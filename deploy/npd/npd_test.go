// Package npd_test lets a real node-problem-detector read the verdict of the built exporter as
// rdma.json says. It is a module of its own, so that the detector and what it depends on are
// none of the exporter's.
//
// RDMA_EXPORTER_BINARY and RDMA_NPD are the absolute paths of both programs: `make test-npd`
// builds them.
package npd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long the test waits for what must happen, however busy the machine.
const patience = 5 * time.Minute

// TestDetector breaks and mends simulated devices, and reads the metrics of the detector, and its
// conditions from its log.
func TestDetector(t *testing.T) {
	binary, detector := program(t, "RDMA_EXPORTER_BINARY"), program(t, "RDMA_NPD")
	folder := t.TempDir()
	profile := filepath.Join(folder, "profile.yaml")
	devices(t, profile, 8, "")
	port, own := freePort(t), freePort(t)
	serve := func() *process {
		t.Helper()
		e := start(t, binary, "--web.listen-address=127.0.0.1:"+port, "--provider=simulated", "--simulated.profile="+profile,
			"--probe.interval=3s", "--hardware.interval=1s", "--contract.interval=0s", "--inventory.interval=0s", "--probe.timeout=2m")
		await(t, "the exporter is ready", func() bool { _, ok := get("http://127.0.0.1:" + port + "/-/ready"); return ok })
		return e
	}
	exporter := serve()

	npd := start(t, detector, "--enable-k8s-exporter=false", "--hostname-override=node", "--port=0", "--prometheus-address=127.0.0.1", "--prometheus-port="+own,
		"--config.custom-plugin-monitor="+configuration(t, folder, binary, "--url=http://127.0.0.1:"+port, "--expect-active-ports=8", "--timeout=1m", "--for=0s", "--clear-after=0s"))
	metrics := func() string {
		text, _ := get("http://127.0.0.1:" + own + "/metrics")
		return text
	}
	// turns waits until the condition has a status and a message. Its gauge is 1 for true, and
	// otherwise 0, even if the status is unknown.
	turns := func(what, status, message string) {
		t.Helper()
		began, reason, want := time.Now(), "RDMAIsHealthy", "0"
		if status == "True" {
			reason, want = "RDMAVerdictBad", "1"
		}
		last := regexp.MustCompile(`(?s).*Type:RDMAUnhealthy Status:` + status + ` [^}]*Reason:` + reason + ` Message:` + regexp.QuoteMeta(message) + `[^\n]*\n`)
		await(t, what, func() bool {
			said := npd.log()
			behind := said[len(last.FindString(said)):]
			return len(behind) < len(said) && !strings.Contains(behind, "Type:RDMAUnhealthy") &&
				value(metrics(), `problem_gauge{reason="RDMAVerdictBad",type="RDMAUnhealthy"}`) == want
		})
		t.Logf("%s: %s after %v", what, status, time.Since(began).Round(10*time.Millisecond))
	}
	// events returns how many temporary events there were.
	events := func() string { return value(metrics(), `problem_counter{reason="RDMAWarning"}`) }
	change := func(number int, keys string) {
		t.Helper()
		devices(t, profile, number, keys)
		exporter.signal(t, syscall.SIGHUP)
	}

	// Healthy, it says nothing: the first status would be the same.
	await(t, "the gauge of a healthy node is 0", func() bool {
		return value(metrics(), `problem_gauge{reason="RDMAVerdictBad",type="RDMAUnhealthy"}`) == "0"
	})
	change(8, "    hardware_faults: [slow_link]\n")
	await(t, "a warning is an event", func() bool { return events() != "0" && events() != "" })
	if strings.Contains(npd.log(), "Status:True") {
		t.Errorf("a warning changes the condition:\n%s", npd.log())
	}
	change(8, "    ports: [{number: 1, state: down, link_layer: Ethernet, active_mtu: 1024, gids: []}]\n")
	turns("a port is down", "True", "rdma port_down mlx5_0/1: 7 of 8 ports active; do=network")
	change(0, "")
	turns("all devices are gone", "True", "rdma device_vanished mlx5_0: 0 of 8 devices; do=driver")
	change(8, "")
	turns("mended", "False", "rdma_exporter verdict is good")
	exporter.stop(t)
	turns("the exporter is stopped", "Unknown", "rdma exporter_unreachable: 127.0.0.1:"+port+"; do=exporter")
	devices(t, profile, 0, "")
	exporter = serve()
	turns("there never was a device", "True", "rdma no_device: ")
}

// devices writes a profile of that many devices with an active port each. The first has the keys
// of change in addition.
func devices(t *testing.T, file string, number int, change string) {
	t.Helper()
	text := "devices:\n"
	if number == 0 {
		text = "devices: []\n"
	}
	for i := range number {
		text += fmt.Sprintf("  - name: mlx5_%d\n    like: sim_rxe0\n", i)
		if i == 0 {
			text += change
		}
	}
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// configuration writes rdma.json for a test: it asks each second, another program with
// additional flags, and has time.
func configuration(t *testing.T, folder, binary string, flags ...string) string {
	t.Helper()
	b, err := os.ReadFile("rdma.json")
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		`"/usr/bin/rdma_exporter"`: `"` + binary + `"`,
		`"30s"`:                    `"1s"`,
		`"5s"`:                     `"1m"`,
		`["verdict"`:               `["verdict", "` + strings.Join(flags, `", "`) + `"`,
	} {
		if !bytes.Contains(b, []byte(from)) {
			t.Fatalf("rdma.json has no %s", from)
		}
		b = bytes.ReplaceAll(b, []byte(from), []byte(to))
	}
	if !json.Valid(b) {
		t.Fatalf("no JSON: %s", b)
	}
	file := filepath.Join(folder, "rdma.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// value returns the value of a series as it is written, or an empty string.
func value(metrics, series string) string {
	for line := range strings.Lines(metrics) {
		if v, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// get asks for a page, and reports whether its status is 200.
func get(url string) (body string, ok bool) {
	client := http.Client{Timeout: time.Minute}
	response, err := client.Get(url)
	if err != nil {
		return "", false
	}
	defer func() { _ = response.Body.Close() }()
	b, err := io.ReadAll(response.Body)
	return string(b), err == nil && response.StatusCode == http.StatusOK
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v not yet: %s", patience, what)
		}
	}
}

// program returns the path of a program that an environment variable names.
func program(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if _, err := os.Stat(path); err != nil || !filepath.IsAbs(path) {
		t.Fatalf("%s is %q: set it to the absolute path of the program, as `make test-npd` does", variable, path)
	}
	return path
}

// freePort returns an unused port.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// process is a program that runs next to the test, and ends with it.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu     sync.Mutex
	output bytes.Buffer
}

// Write keeps what the process writes.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Write(b)
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// It is killed when the thread ends that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, p.log())
		}
	})
	return p
}

func (p *process) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// stop ends the process and its children.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Errorf("%s does not end", p.cmd.Path)
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
}
