//go:build imagevm

package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// devices is how many the virtual machine has.
const devices = 2

// flags are those of every exporter here. Each device is probed and checked once, so
// that later inventories find nothing of the exporter's own children; and what is given up,
// left out or killed after a time is not to be in a virtual machine without help of the
// processor.
var flags = []string{
	"--probe.interval=1h", "--probe.timeout=2m",
	"--contract.timeout=4m", "--inventory.interval=1s", "--inventory.timeout=1m",
	// What the kernel counts differs from one moment to the next.
	"--hardware.interval=0",
}

// difference is in what a container may, or must, differ from the plain program.
type difference struct {
	// series is a regular expression of the whole series.
	series, why string
}

// withoutCapabilities is how the container differs even with all namespaces of the host. rxe has no
// raw packet queue pairs. Without CAP_NET_RAW they are refused before that is known.
var withoutCapabilities = []difference{
	{`rdma_probe_skipped\{.*reason="not_permitted",subject="raw_packet"\}`, "CAP_NET_RAW is dropped"},
	{`rdma_probe_skipped\{.*reason="not_supported",subject="raw_packet"\}`, "CAP_NET_RAW is dropped"},
}

// ownProcesses is how it also differs in its own pid namespace, where the kernel names no owners
// that it hides.
var ownProcesses = []difference{
	{`rdma_inventory_pid_visibility\{\}`, "the processes of the host are not seen"},
	{`rdma_finding_(first_seen_timestamp_seconds|info)\{.*finding="pids_invisible".*\}`, "which is a finding"},
	{`rdma_owner_locked_(limit_)?bytes\{comm="holder",.*\}`, "the holder is not seen"},
	{`rdma_resource_owner_objects\{comm="holder",.*\}`, "the holder is not seen"},
	{`rdma_resource_owner_objects\{comm="unknown",.*\}`, "its objects have no owner"},
}

// The container has the same metrics as the program run by root, for real devices and the objects of
// another program: as user 10879, without any capability, with a read-only root, and with
// podman's filter of system calls.
func TestContainer(t *testing.T) {
	bed(t)
	hold(t)
	plain := undisturbed(t, func(int) map[string]*dto.MetricFamily { return plainMetrics(t) })
	for _, c := range []struct {
		name    string
		options []string
		may     []difference
	}{
		{"namespaces of the host", []string{"--network=host", "--pid=host", "--cgroupns=host"}, withoutCapabilities},
		{"own namespaces", []string{"--network=host"}, slices.Concat(withoutCapabilities, ownProcesses)},
	} {
		t.Run(c.name, func(t *testing.T) {
			container := run(t, c.options...)
			container.hardened(t)
			compare(t, plain, undisturbed(t, func(attempt int) map[string]*dto.MetricFamily {
				if attempt > 0 {
					podman(t, "restart", "--time", "60", container.id)
				}
				return settled(t, container.address)
			}), c.may)
			// What docker and podman do again and again for its health.
			podman(t, "healthcheck", "run", container.id)
			t.Logf("%s", podman(t, "exec", container.id, "/usr/bin/rdma_exporter", "healthcheck", "--ready", checkTimeout))
			container.stop(t)
		})
	}
}

// bed makes sure that the tests have what they need.
func bed(t *testing.T) {
	t.Helper()
	for _, device := range []string{"rxe0", "rxe1"} {
		if _, err := os.Stat("/sys/class/infiniband/" + device); err != nil {
			t.Fatalf("no device %s (%v): run these tests with -exec test/vm/run", device, err)
		}
	}
	const cgroups = "/sys/fs/cgroup"
	if _, err := os.Stat(cgroups + "/cgroup.controllers"); err != nil {
		// The kernel of the virtual machine has it, but it is not mounted.
		if err := syscall.Mount("cgroup2", cgroups, "cgroup2", 0, ""); err != nil {
			t.Fatalf("mount cgroup2: %v", err)
		}
	}
}

// program returns the path of a program that an environment variable names.
func program(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if !filepath.IsAbs(path) {
		t.Fatalf("%s is %q: set it to the absolute path of the built program", variable, path)
	}
	return path
}

// hold has another program hold objects on a device until the end of the test.
func hold(t *testing.T) {
	t.Helper()
	running.Hold(t, exec.Command(program(t, "RDMA_HOLDER"), "--device", "rxe0", "--qps", "8", "--rts", "2", "--error", "1", "--mrs", "3"))
}

// plainMetrics returns the metrics of the built exporter, run as root.
func plainMetrics(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	address := "127.0.0.1:10880"
	cmd := exec.Command(program(t, "RDMA_EXPORTER_BINARY"), append([]string{"--web.listen-address=" + address}, flags...)...)
	var log bytes.Buffer
	cmd.Stderr = &log
	running.Check(t, cmd.Start())
	m := settled(t, address)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the exporter ended with %v:\n%s", err, &log)
	}
	return m
}

// disturbances are metrics that grow if the machine stands still for longer than a run waits for an
// event.
var disturbances = regexp.MustCompile(`^rdma_((probe|contract)_aborts|notifications_(missed|spurious|misdirected)|completions_missing)_total$`)

// undisturbed returns the metrics of an exporter, which measure has run once more with
// each attempt: those of the first of three in whose runs nothing was missed, or else of
// the last.
func undisturbed(t *testing.T, measure func(attempt int) map[string]*dto.MetricFamily) map[string]*dto.MetricFamily {
	t.Helper()
	for attempt := 0; ; attempt++ {
		m, calm := measure(attempt), true
		for name, family := range m {
			for _, s := range family.GetMetric() {
				if disturbances.MatchString(name) && s.GetCounter().GetValue() > 0 {
					t.Logf("attempt %d: %s %v", attempt+1, name, s)
					calm = false
				}
			}
		}
		if calm || attempt == 2 {
			return m
		}
	}
}

// container is a running one of the image.
type container struct{ id, pid, address string }

// podman runs a command of podman and returns what it says.
func podman(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	store := filepath.Join(os.TempDir(), "rdma_exporter-podman")
	cmd := exec.CommandContext(ctx, "podman", append([]string{
		"--root", store, "--runroot", store + "-run", "--storage-driver", "vfs",
		"--cgroup-manager", "cgroupfs", "--events-backend", "none",
	}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("podman %s: %v\n%s%s", strings.Join(args, " "), err, out, &errs)
	}
	if args[0] == "logs" { // which the container wrote to its standard error
		return errs.String()
	}
	return strings.TrimSpace(string(out))
}

// run loads the image and runs it as docs/container.md tells, with some options. The
// container is removed at the end of the test.
func run(t *testing.T, options ...string) *container {
	t.Helper()
	archive := read(t)
	name := archive.manifest.RepoTags[0]
	if podman(t, "images", "--quiet", name) == "" {
		podman(t, "load", "--quiet", "--input", built(t, "rdma_exporter.tar"))
	}
	args := append([]string{"run", "--detach"}, options...)
	args = append(args, healthcheck(t, archive.Config.Healthcheck.Test)...)
	args = append(args, "--device=/dev/infiniband", "--read-only", "--read-only-tmpfs=false", "--cap-drop=ALL", "--security-opt=no-new-privileges", name)
	c := &container{id: podman(t, append(args, flags...)...), address: "127.0.0.1:10879"}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the container:\n%s", podman(t, "logs", c.id))
		}
		podman(t, "rm", "--force", c.id)
	})
	c.pid = podman(t, "inspect", "--format", "{{.State.Pid}}", c.id)
	return c
}

// checkTimeout gives a check of health more time than it takes by itself.
const checkTimeout = "--timeout=2m"

// healthcheck returns the options for the image's own check of health, with more time
// than the image gives it. Without the command podman ignores the time.
func healthcheck(t *testing.T, test []string) []string {
	t.Helper()
	if len(test) < 2 || test[0] != "CMD" {
		t.Fatalf("the image is checked by %q, want a command", test)
	}
	check := running.Must(json.Marshal(append(slices.Clone(test[1:]), checkTimeout)))(t)
	return []string{"--health-cmd=" + string(check), "--health-timeout=2m"}
}

// hardened makes sure that the container runs as it should.
func (c *container) hardened(t *testing.T) {
	t.Helper()
	status := running.Must(os.ReadFile("/proc/" + c.pid + "/status"))(t)
	for _, line := range []string{
		`Uid:\t10879\t10879\t10879\t10879`, `Gid:\t10879\t10879\t10879\t10879`, `CapInh:\t0+`, `CapPrm:\t0+`,
		`CapEff:\t0+`, `CapBnd:\t0+`, `CapAmb:\t0+`, `NoNewPrivs:\t1`, `Seccomp:\t2`,
	} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).Match(status) {
			t.Errorf("its status is not %s:\n%s", line, status)
		}
	}
	mounts := running.Must(os.ReadFile("/proc/" + c.pid + "/mounts"))(t)
	if !regexp.MustCompile(`(?m)^\S+ / \S+ ro[, ]`).Match(mounts) {
		t.Errorf("its root is not read-only:\n%s", mounts)
	}
	if regexp.MustCompile(`(?m)^\S+ /(tmp|run|var/tmp) \S+ rw[, ]`).Match(mounts) {
		t.Errorf("it can write somewhere:\n%s", mounts)
	}
}

// stop stops the container, which must end by itself and well.
func (c *container) stop(t *testing.T) {
	t.Helper()
	podman(t, "stop", "--time", "60", c.id)
	if code := podman(t, "inspect", "--format", "{{.State.ExitCode}}", c.id); code != "0" {
		t.Errorf("it ended with status %s", code)
	}
}

// settled returns the metrics of an exporter once it has probed and checked each device, and taken
// an inventory after that.
func settled(t *testing.T, address string) map[string]*dto.MetricFamily {
	t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	var judged time.Time
	problem := errors.New("it has not been asked")
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		var m map[string]*dto.MetricFamily
		if m, problem = scraped(&client, address); problem != nil {
			continue
		}
		problem = fmt.Errorf("probes %v, contracts %v, inventories %v", m["rdma_probe_runs_total"], m["rdma_contract_duration_seconds"], m["rdma_inventory_timestamp_seconds"])
		if len(m["rdma_contract_duration_seconds"].GetMetric()) < devices {
			continue
		}
		if judged.IsZero() {
			judged = time.Now()
		}
		later := 0
		for _, s := range m["rdma_inventory_timestamp_seconds"].GetMetric() {
			if s.GetGauge().GetValue() > float64(judged.UnixNano())/1e9 {
				later++
			}
		}
		if later == devices {
			return m
		}
	}
	t.Fatalf("%s has not done everything after %v: %v", address, patience, problem)
	return nil
}

func scraped(client *http.Client, address string) (map[string]*dto.MetricFamily, error) {
	body, err := running.Get(client, "http://"+address+"/metrics")
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(body))
}

// same are the metrics whose values are compared too. Those of the others are times,
// counts, latencies and what follows from them, and the process's own.
var same = regexp.MustCompile(`^rdma_(devices|device_.*|port_.*|probe_success|probe_skipped|probe_.*_(requested|actual|queried)|probe_qp_max_inline_bytes|contract_violated|contract_skipped|inventory_success|inventory_incomplete|inventory_pid_visibility|resource_.*)$`)

// chance is a finding that comes of latencies, so that it is there or not.
const chance = `finding="slow_vector"`

// ignored are the labels whose values are not compared. The branch of git is not told
// to the build of an image.
var ignored = []string{"rdma_exporter_build_info/branch"}

// series returns what is compared: each series with the value, or an empty one.
func series(m map[string]*dto.MetricFamily) map[string]string {
	all := make(map[string]string)
	for name, family := range m {
		for _, s := range family.GetMetric() {
			var labels []string
			for _, l := range s.GetLabel() {
				if !slices.Contains(ignored, name+"/"+l.GetName()) {
					labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
			}
			slices.Sort(labels)
			v, id := "", name+"{"+strings.Join(labels, ",")+"}"
			if strings.Contains(id, chance) {
				continue
			}
			if same.MatchString(name) {
				v = fmt.Sprint(s.GetGauge().GetValue() + s.GetCounter().GetValue() + s.GetUntyped().GetValue())
			}
			all[id] = v
		}
	}
	return all
}

// compare fails the test if the metrics of the plain program and of the container differ in more
// than may differ, or if one of these does not differ.
func compare(t *testing.T, plain, contained map[string]*dto.MetricFamily, may []difference) {
	t.Helper()
	a, b := series(plain), series(contained)
	all := maps.Clone(a)
	maps.Copy(all, b)
	seen := make([]int, len(may))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		x, inA := a[name]
		y, inB := b[name]
		if inA == inB && x == y {
			continue
		}
		// A process that ends while its objects are counted leaves orphans for a moment. Their
		// series stays, with 0.
		if strings.HasPrefix(name, "rdma_resource_orphaned_objects{") && x+y == "0" {
			continue
		}
		i := slices.IndexFunc(may, func(d difference) bool { return regexp.MustCompile("^" + d.series + "$").MatchString(name) })
		if i < 0 {
			t.Errorf("%s: plain %v %s, container %v %s", name, inA, x, inB, y)
			continue
		}
		seen[i]++
	}
	t.Logf("%d series of the plain program, %d of the container", len(a), len(b))
	for i, d := range may {
		t.Logf("%d differ in %s: %s", seen[i], d.series, d.why)
		if seen[i] == 0 {
			t.Error("none does")
		}
	}
}
