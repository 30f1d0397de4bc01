//go:build vm

package systemd

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	// service is the unit under test.
	service = "rdma_exporter.service"
	// socket is what may listen for it.
	socket = "rdma_exporter.socket"
	// units is where the tests put units and drop-ins of theirs.
	units = "/run/systemd/system"
	// address is where the exporter serves.
	address = "127.0.0.1:10879"

	// probing has each device probed once, so that what is seen is of one run. What is
	// killed, given up or left out after a time is not to be on a machine that is
	// emulated in software.
	probing = "--probe.interval=1h --probe.timeout=90s --inventory.timeout=90s --contract.timeout=3m"
	// once has it looked at once, too.
	once = probing + " --inventory.interval=1h"
	// quick leaves out what takes long.
	quick = once + " --notification.samples=0 --contract.interval=0s --device.include=" + active
)

// property is a property of the service, as systemctl show tells it.
func property(t testing.TB, name string) string {
	t.Helper()
	return running.Command(t, "systemctl", "show", "--value", "--property="+name, service)
}

// configure writes the environment file and a drop-in with settings of the service,
// and puts both back at the end of the test.
func configure(t testing.TB, args string, settings ...string) {
	t.Helper()
	write(t, "/etc/default/rdma_exporter", "ARGS=\""+args+"\"\n")
	dropIn(t, "test.conf", "[Service]\n"+strings.Join(settings, "\n")+"\n")
}

// dropIn adds a file of settings to the service until the end of the test.
func dropIn(t testing.TB, name, text string) {
	t.Helper()
	t.Cleanup(func() { running.Command(t, "systemctl", "daemon-reload") }) // once the file is gone
	write(t, filepath.Join(units, service+".d", name), text)
	running.Command(t, "systemctl", "daemon-reload")
}

// example is a drop-in as it was installed.
func example(t testing.TB, name string) string {
	t.Helper()
	b := running.Must(os.ReadFile("/usr/share/rdma_exporter/examples/" + name))(t)
	return string(b)
}

// write writes a file, and puts back what was there at the end of the test.
func write(t testing.TB, path, text string) {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	missing := err != nil
	running.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	running.Check(t, os.WriteFile(path, []byte(text), 0o644))
	t.Cleanup(func() {
		if missing {
			_ = os.Remove(path)
		} else {
			_ = os.WriteFile(path, before, 0o644)
		}
	})
}

// start starts a unit until the end of the test.
func start(t testing.TB, unit string) {
	t.Helper()
	began := running.Command(t, "date", "+%F %T")
	t.Cleanup(func() {
		running.Command(t, "systemctl", "stop", unit)
		if t.Failed() {
			t.Logf("the journal of %s:\n%s", unit, running.Command(t, "journalctl", "--no-pager", "--since="+began, "--unit="+unit))
		}
	})
	running.Command(t, "systemctl", "start", unit)
}

func await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(poll) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain for %s", patience, what)
		}
	}
}

// client has no connections that outlive a request, and takes any certificate.
var client = &http.Client{
	Timeout:   patience,
	Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
}

func get(url string) ([]byte, error) {
	request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.SetBasicAuth("scraper", "secret")
	resp, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, b)
	}
	return b, err
}

// samples are the samples of a scrape, each as name{label="value",...} with its
// labels in order. Of a histogram there is the count.
type samples map[string]float64

// scrape returns the metrics; none while the exporter does not serve.
func scrape(t testing.TB) samples {
	t.Helper()
	b, err := get("http://" + address + "/metrics")
	if err != nil {
		return nil
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("parse the metrics: %v", err)
	}
	s := make(samples)
	for name, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			slices.Sort(labels)
			s[name+"{"+strings.Join(labels, ",")+"}"] = m.GetGauge().GetValue() + m.GetCounter().GetValue() +
				m.GetUntyped().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return s
}

// of returns the samples of a metric that have all of these labels, each given as
// name="value".
func (s samples) of(metric string, labels ...string) samples {
	found := make(samples)
	for key, value := range s {
		name, rest, _ := strings.Cut(key, "{")
		ok := name == metric
		for _, label := range labels {
			ok = ok && (strings.Contains("{"+rest, "{"+label) || strings.Contains(rest, ","+label))
		}
		if ok {
			found[key] = value
		}
	}
	return found
}

// names are the names of all metrics.
func (s samples) names() []string {
	names := make(map[string]bool)
	for key := range s {
		name, _, _ := strings.Cut(key, "{")
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// keys are the samples without their values.
func (s samples) keys() []string { return slices.Sorted(maps.Keys(s)) }

// done waits until each of the devices was probed and looked at, and returns what the
// exporter tells then.
func done(t testing.TB, devices ...string) samples {
	t.Helper()
	var s samples
	await(t, "runs on "+strings.Join(devices, " and "), func() bool {
		s = scrape(t)
		for _, device := range devices {
			for _, metric := range []string{"rdma_probe_last_run_timestamp_seconds", "rdma_inventory_success"} {
				if len(s.of(metric, fmt.Sprintf("device=%q", device))) == 0 {
					return false
				}
			}
		}
		return true
	})
	return s
}

// ok makes sure that each probe succeeded on a device.
func (s samples) ok(t testing.TB, device string) {
	t.Helper()
	for _, probe := range []string{"cq", "comp_channel", "srq", "qp"} {
		key := fmt.Sprintf("rdma_probe_success{device=%q,probe=%q}", device, probe)
		if s[key] != 1 {
			t.Errorf("not 1: %s", key)
		}
	}
}

// hold starts a process of another user that holds three queue pairs of the active
// device until the end of the test.
func hold(t testing.TB) int {
	t.Helper()
	cmd := exec.Command(holderFile, "--qps=3")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4242, Gid: 4242}}
	return running.Hold(t, cmd).PID()
}

// processes are the ids of the service's processes.
func processes(t testing.TB) []string {
	t.Helper()
	b, err := os.ReadFile("/sys/fs/cgroup/system.slice/" + service + "/cgroup.procs")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}
