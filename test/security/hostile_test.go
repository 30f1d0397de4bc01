package security_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

var binary string

func TestMain(m *testing.M) { os.Exit(running.Exporter(m, &binary)) }

// hanging is a profile whose device hangs, so that it has a child for as long as the test looks at it.
const hanging = "devices:\n  - {name: bad, like: sim_ib0, faults: [{verb: ibv_create_cq, hang: true}]}\n  - {name: good, like: sim_ib0, faults: []}\n"

// hostile starts the exporter on simulated devices by way of a program that runs it, such as prlimit.
func hostile(t *testing.T, profile string, wrapper ...string) *running.Process {
	t.Helper()
	running.DependOn(t, binary)
	args := append(slices.Clone(wrapper), binary, "--provider=simulated", "--web.listen-address=127.0.0.1:0", "--probe.interval=1s", "--probe.timeout=5m")
	if profile != "" {
		args = append(args, "--simulated.profile="+running.File(t, "profile.yaml", profile))
	}
	program, err := exec.LookPath(args[0])
	running.Check(t, err)
	return running.Launch(t, "the exporter", program, args[1:]...)
}

// scrape returns the metrics, or nothing if there is no answer.
func scrape(address string) string {
	text, err := running.Get(nil, "http://"+address+"/metrics")
	if err != nil {
		return ""
	}
	return string(text)
}

// okRuns returns how many devices have had a run of the probes that was ok, and all such runs.
func okRuns(text string) (devices, runs int) {
	for _, sample := range regexp.MustCompile(`(?m)^rdma_probe_runs_total\{device="[^"]*",outcome="ok"\} ([1-9]\d*)$`).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(sample[1]) // It has the form of a number.
		devices, runs = devices+1, runs+n
	}
	return devices, runs
}

// children returns the ids of the children of a process.
func children(t *testing.T, pid int) []string {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	running.Check(t, err)
	var all []string
	for _, list := range lists {
		text, _ := os.ReadFile(list) // The thread may have ended.
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}

// TestFewDescriptors verifies that idle connections take no file descriptor that children need.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	p := hostile(t, "", "prlimit", "--nofile=64")
	address := p.Listening(t)
	var idle []net.Conn
	defer func() {
		for _, c := range idle {
			_ = c.Close()
		}
	}()
	for range 60 {
		c, err := net.Dial("tcp", address)
		running.Check(t, err)
		idle = append(idle, c)
	}
	var text string
	running.Eventually(t, "each device has had a run", func() bool {
		text = scrape(address)
		devices, _ := okRuns(text)
		return devices == 3
	})
	if wrong := regexp.MustCompile(`(?m)^rdma_probe_runs_total\{.*outcome="(crashed|failed|timeout)"\} [1-9].*$`).FindString(text); wrong != "" {
		t.Errorf("a run was not ok: %s", wrong)
	}
	if !strings.Contains(text, "rdma_exporter_child_start_success 1\n") {
		t.Errorf("children cannot be started:\n%s", text)
	}
}

// TestEnvironment verifies that children, in which vendors' libraries run, get no secret.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	asRoot(t)
	p := hostile(t, hanging, "env", "SECRET_TOKEN=x", "MLX5_SINGLE_THREADED=1")
	p.Listening(t)
	var environment string
	running.Eventually(t, "a child runs", func() bool {
		for _, child := range children(t, p.PID()) {
			// Before it runs its own program, it has the environment of its parent.
			if line, _ := os.ReadFile("/proc/" + child + "/cmdline"); strings.Contains(string(line), "--device=") {
				text, _ := os.ReadFile("/proc/" + child + "/environ")
				environment += string(text)
			}
		}
		return strings.Contains(environment, "MLX5_SINGLE_THREADED=1")
	})
	if strings.Contains(environment, "SECRET_TOKEN") {
		t.Errorf("children have the environment %q", environment)
	}
}

// asRoot skips a test that needs root.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("root is needed to become another user, to make a pid namespace, or to see into a process that is not dumpable")
	}
}

// TestSameUser verifies that another process of the same user, which /proc of the host shows it,
// reaches neither the files nor the memory of the exporter and its children.
func TestSameUser(t *testing.T) {
	t.Parallel()
	asRoot(t)
	user := []string{"setpriv", "--reuid=10879", "--regid=10879", "--clear-groups", "--no-new-privs"}
	folder := t.TempDir()
	for dir := folder; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		running.Check(t, os.Chmod(dir, 0o755))
	}
	copied := filepath.Join(folder, "rdma_exporter")
	// A file that this process wrote could still be open in a child of another test.
	running.Command(t, "cp", binary, copied)
	running.Check(t, os.Chmod(copied, 0o755))
	profile := filepath.Join(folder, "profile.yaml")
	running.Check(t, os.WriteFile(profile, []byte(hanging), 0o644))
	running.DependOn(t, binary)
	program, err := exec.LookPath(user[0])
	running.Check(t, err)
	args := append(slices.Clone(user[1:]), copied, "--provider=simulated", "--simulated.profile="+profile, "--web.listen-address=127.0.0.1:0", "--probe.timeout=5m")
	p := running.Launch(t, "the exporter", program, args...)
	address := p.Listening(t)
	var hanging string
	running.Eventually(t, "the good device is probed, and the child of the bad one hangs", func() bool {
		for _, pid := range children(t, p.PID()) {
			if line, _ := os.ReadFile("/proc/" + pid + "/cmdline"); strings.Contains(string(line), "probe\x00--device=bad") {
				hanging = pid
			}
		}
		return hanging != "" && strings.Contains(scrape(address), `rdma_probe_runs_total{device="good",outcome="ok"} `)
	})
	// A child is not dumpable once it runs its own code, which is before its first verb.
	for _, pid := range []string{hanging, fmt.Sprint(p.PID())} {
		for _, file := range []string{"root/etc/passwd", "environ", "mem", "fd/0"} {
			args := append(slices.Clone(user[1:]), "head", "-c1", "/proc/"+pid+"/"+file)
			if out, err := exec.Command(program, args...).CombinedOutput(); err == nil || !strings.Contains(string(out), "Permission denied") {
				t.Errorf("another process of the user reads /proc/%s/%s: %v, %s", pid, file, err, out)
			}
		}
	}
}

// TestOrphans verifies that as the first process of a pid namespace, as in a container, the exporter
// reaps the orphans that it is given, and none of its own children.
func TestOrphans(t *testing.T) {
	t.Parallel()
	asRoot(t)
	p := hostile(t, "", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
	address := p.Listening(t)
	running.Eventually(t, "each device is probed", func() bool {
		devices, _ := okRuns(scrape(address))
		return devices == 3
	})
	first := children(t, p.PID())
	if len(first) != 1 {
		t.Fatalf("unshare has the children %v", first)
	}
	// One that poses as a child of the exporter does not keep the others from being reaped.
	named := filepath.Join(t.TempDir(), "rdma_exporter")
	running.Check(t, os.Symlink(running.Must(exec.LookPath("sleep"))(t), named))
	orphans := running.Command(t, "nsenter", "--target="+first[0], "--pid", "--mount", "sh", "-c",
		"for p in "+named+strings.Repeat(" sleep", 5)+"; do (sh -c \"echo \\$\\$; exec $p 0.2\" &); done; sleep 0.1")
	if n := len(strings.Fields(orphans)); n != 6 {
		t.Fatalf("%d orphans: %s", n, orphans)
	}
	running.Eventually(t, "no orphan is left", func() bool {
		for _, pid := range strings.Fields(orphans) {
			if exec.Command("nsenter", "--target="+first[0], "--pid", "--mount", "test", "-e", "/proc/"+pid).Run() == nil {
				return false
			}
		}
		return true
	})
	if text := scrape(address); strings.Contains(text, `outcome="crashed"} `) {
		t.Errorf("a child of the exporter was reaped:\n%s", text)
	}
	// unshare passes no signal on.
	running.Command(t, "kill", first[0])
	if err := p.Err(); err != nil {
		t.Errorf("the exporter ended with %v", err)
	}
}
