//go:build vmhost

// Package vm_test tests the runner from the host's side: what goes into the
// machine, what comes out of it, and that nothing of it stays behind.
package vm_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// A runner is a copy of the runner in a directory of its own, whose path is
// unpleasant, with the temporary files in another.
type runner struct {
	path string // the run script
	temp string // TMPDIR
	env  []string
}

func newRunner(t *testing.T) runner {
	t.Helper()
	here := running.Must(os.Getwd())(t)
	checkout := filepath.Join(t.TempDir(), "a 'checkout', with spaces")
	r := runner{path: filepath.Join(checkout, "test", "vm", "run"), temp: filepath.Join(t.TempDir(), "tmp, too")}
	for _, dir := range []string{filepath.Dir(r.path), filepath.Join(checkout, "tools"), r.temp} {
		running.Check(t, os.MkdirAll(dir, 0o755))
	}
	for _, name := range []string{"test/vm/run", "test/vm/setup", "test/vm/init", "test/vm/guest", "tools/packages", "tools/lib.sh"} {
		data := running.Must(os.ReadFile(filepath.Join(here, "..", "..", name)))(t)
		running.Check(t, os.WriteFile(filepath.Join(checkout, name), data, 0o755))
	}
	running.Check(t, os.Symlink(filepath.Join(here, "..", "..", ".cache"), filepath.Join(checkout, ".cache")))
	// Messages of a build would be on stderr, where no test expects them.
	if out, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(r.path), "setup")).CombinedOutput(); err != nil {
		t.Fatalf("setup: %v\n%s", err, out)
	}
	r.env = append(os.Environ(), "TMPDIR="+r.temp, "RDMA_VM_VERBOSE=")
	return r
}

// command prepares a run that ends with the test at the latest.
func (r runner) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), running.Patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, r.path, args...)
	cmd.Env = r.env
	cmd.WaitDelay = time.Minute
	return cmd
}

type result struct {
	status         int
	stdout, stderr string
}

// run runs to the end, and checks that nothing stays behind.
func (r runner) run(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := r.command(t, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	status := statusOf(t, cmd.Run())
	r.checkClean(t)
	return result{status, stdout.String(), stderr.String()}
}

func statusOf(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}

// checkClean reports temporary files and QEMU processes that are left.
func (r runner) checkClean(t *testing.T) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(r.temp, "*")); len(left) > 0 {
		t.Errorf("temporary files are left: %q", left)
	}
	if pids := r.machines(t); len(pids) > 0 {
		t.Errorf("QEMU processes are left: %v", pids)
	}
}

// machines lists the QEMU processes that this runner started.
func (r runner) machines(t *testing.T) []string {
	t.Helper()
	var pids []string
	paths := running.Must(filepath.Glob("/proc/[0-9]*/cmdline"))(t)
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err == nil && bytes.Contains(line, []byte("qemu-system")) &&
			bytes.Contains(line, []byte(strings.ReplaceAll(r.temp, ",", ",,"))) {
			pids = append(pids, path)
		}
	}
	return pids
}

func TestExitStatus(t *testing.T) {
	r := newRunner(t)
	for _, test := range []struct {
		name    string
		command []string
		want    int
	}{
		{"success", []string{"true"}, 0},
		{"failure", []string{"bash", "-c", "exit 3"}, 3},
		{"signal", []string{"bash", "-c", "kill -KILL $$"}, 137},
		{"no such command", []string{"--", "no-such-command"}, 127},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := r.run(t, append([]string{"--no-devices"}, test.command...)...)
			if got.status != test.want {
				t.Errorf("status %d, want %d; stderr:\n%s", got.status, test.want, got.stderr)
			}
			if got.stdout != "" {
				t.Errorf("stdout %q, want none", got.stdout)
			}
			if lines := strings.Count(got.stderr, "vm: "); lines != 2 {
				t.Errorf("%d lines of the runner on stderr, want 2:\n%s", lines, got.stderr)
			}
		})
	}
}

func TestMisuse(t *testing.T) {
	r := newRunner(t)
	for _, args := range [][]string{
		{},
		{"--smp"},
		{"--smp", "0", "true"},
		{"--vectors=65", "true"},
		{"--memory=all", "true"},
		{"--timeout", "-1", "true"},
		{"--memlock", "some", "true"},
		{"--forward", "80:", "true"},
		{"--forward=1:2:3", "true"},
		{"--kernel", "../trixie", "true"},
		{"--providers", "Sid", "true"},
		{"--drivers=rxe,", "true"},
		{"--siw", "--no-devices", "true"},
		{"--nodes", "3", "true"},
		{"--nodes=2", "--no-devices", "true"},
		{"--nodes=2", "--forward", "80", "true"},
		{"--adapter", "mlx5,", "true"},
		{"--adapter=Mlx5", "true"},
		{"--no-such-option", "true"},
	} {
		if got := r.run(t, args...); got.status != 2 || got.stdout != "" || !strings.Contains(got.stderr, "--help") {
			t.Errorf("%q: %+v, want status 2 and a hint on stderr", args, got)
		}
	}
	if got := r.run(t, "--help"); got.status != 0 || !strings.HasPrefix(got.stdout, "Usage:") || got.stderr != "" {
		t.Errorf("--help: %+v, want the usage on stdout", got)
	}
}

func TestOutputIsExact(t *testing.T) {
	r := newRunner(t)
	dir := t.TempDir()
	source := rand.NewChaCha8([32]byte{1})
	var want [2][]byte
	for i, name := range []string{"stdout", "stderr"} {
		want[i] = make([]byte, 1<<20+i*4711+13)
		running.Must(source.Read(want[i]))(t)
		running.Check(t, os.WriteFile(filepath.Join(dir, name), want[i], 0o644))
	}
	// What still runs when the command ends must not hold up the end.
	got := r.run(t, "--quiet", "--no-devices", "bash", "-c", `cd "$1" && cat stdout && cat stderr >/dev/stderr; sleep 1000 &`, "-", dir)
	if got.status != 0 {
		t.Errorf("status %d, want 0", got.status)
	}
	for i, out := range []string{got.stdout, got.stderr} {
		if sha256.Sum256([]byte(out)) != sha256.Sum256(want[i]) {
			t.Errorf("stream %d: %d bytes that differ from the %d written", i+1, len(out), len(want[i]))
		}
	}
}

func TestArgumentsEnvironmentAndDirectoryArePassed(t *testing.T) {
	r := newRunner(t)
	values := []string{"", " ", "a  b", `'"$HOME"' \n "`, "two\nlines\n", "*", "--smp", "=", "\xff\x01", "ü"}
	r.env = append(r.env, "VALUE= '\"two\nlines\"' $(exit) \\", "ODD.NAME%=odd", "PWD=/nowhere")
	dir := filepath.Join(t.TempDir(), "a b 'c' \"d\" ü")
	// A path with a = must not be taken for an assignment.
	program := filepath.Join(dir, "print=everything")
	script := "#!/bin/bash\nprintf '%s\\0' \"$@\"\ncat /proc/$$/environ\npwd -P\necho \"$UID\"; cat\n"
	running.Check(t, os.Mkdir(dir, 0o755))
	running.Check(t, os.WriteFile(program, []byte(script), 0o755))

	var stdout, stderr bytes.Buffer
	cmd := r.command(t, append([]string{"--no-devices", "./print=everything"}, values...)...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader("not for the command")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v; stderr:\n%s", err, &stderr)
	}
	want := strings.Join(values, "\x00") + "\x00"
	if !strings.HasPrefix(stdout.String(), want) {
		t.Errorf("arguments %q,\nwant %q", stdout.String()[:min(len(want), stdout.Len())], want)
	}
	rest := stdout.String()[min(len(want), stdout.Len()):]
	for _, entry := range r.env[len(r.env)-3 : len(r.env)-1] {
		if !strings.Contains("\x00"+rest, "\x00"+entry+"\x00") {
			t.Errorf("the environment lacks %q", entry)
		}
	}
	if want := dir + "\n0\n"; !strings.HasSuffix(rest, "\x00"+want) {
		t.Errorf("directory and user %q, want %q", rest[strings.LastIndexByte(rest, 0)+1:], want)
	}
}

func TestDevices(t *testing.T) {
	r := newRunner(t)
	got := r.run(t, "--smp=3", "--vectors=5", "--memlock", "64", "bash", "-ec",
		`ulimit -l; nproc; ibv_devinfo -v; cat /sys/class/infiniband/rxe0/ports/1/gids/1; ls /dev/infiniband; ip -br address; modprobe dummy`)
	if got.status != 0 {
		t.Fatalf("status %d; stdout:\n%s\nstderr:\n%s", got.status, got.stdout, got.stderr)
	}
	if !strings.HasPrefix(got.stdout, "64\n3\n") {
		t.Errorf("ulimit -l and nproc: %.8q, want 64 and 3", got.stdout)
	}
	_, devices, _ := strings.Cut(got.stdout, "rxe0")
	active, down, found := strings.Cut(devices, "rxe1")
	if !found {
		t.Fatalf("ibv_devinfo does not show rxe0 and rxe1:\n%s", got.stdout)
	}
	for _, want := range []string{"PORT_ACTIVE", "num_comp_vectors:\t\t5", "GID[  1]:\t\t::ffff:10.77.0.1, RoCE v2"} {
		if !strings.Contains(active, want) {
			t.Errorf("rxe0 lacks %q:\n%s", want, active)
		}
	}
	for _, want := range []string{
		"PORT_DOWN", "\n0000:0000:0000:0000:0000:ffff:0a4d:0001\n",
		"uverbs0", "uverbs1", "rdma_cm", "umad0", "10.0.2.15/24", "127.0.0.1/8",
	} {
		if !strings.Contains(down, want) {
			t.Errorf("rxe1 or the machine lacks %q:\n%s", want, down)
		}
	}
}

func TestDrivers(t *testing.T) {
	r := newRunner(t)
	if got := r.run(t, "--drivers=rxe,siw", "ls", "/etc/libibverbs.d"); got.status != 0 || got.stdout != "rxe.driver\nsiw.driver\n" {
		t.Errorf("libibverbs has\n%s\nstderr:\n%s", got.stdout, got.stderr)
	}
	if got := r.run(t, "--drivers=none", "true"); got.status != 125 || !strings.Contains(got.stderr, "the machine has no such providers: ") {
		t.Errorf("without such a provider: %+v", got)
	}
}

func TestNoDevices(t *testing.T) {
	r := newRunner(t)
	if got := r.run(t, "--no-devices", "test", "!", "-e", "/sys/class/infiniband"); got.status != 0 {
		t.Errorf("the machine has RDMA devices; stderr:\n%s", got.stderr)
	}
}

// paper is a module in the place of the paper adapters.
const paper = `#include <linux/debugfs.h>
#include <linux/module.h>

static char *adapters, *netdev;
module_param(adapters, charp, 0444);
module_param(netdev, charp, 0444);

static int __init paper_init(void)
{
	if (!strcmp(adapters, "unknown")) {
		pr_err("paper: there is no such adapter\n");
		return -EINVAL;
	}
	pr_info("paper: this is dmesg\n");
	debugfs_create_dir("paper", NULL);
	return 0;
}
module_init(paper_init);

MODULE_DESCRIPTION("A test of the test bed");
MODULE_LICENSE("GPL");
`

// writeAdapters puts a module's source where the runner looks for that of the
// paper adapters.
func (r runner) writeAdapters(t *testing.T, source string) {
	t.Helper()
	dir := filepath.Join(filepath.Dir(r.path), "..", "adapters")
	running.Check(t, os.MkdirAll(dir, 0o755))
	for name, content := range map[string]string{"Kbuild": "obj-m := paper.o\n", "paper.c": source} {
		running.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
}

func TestAdapters(t *testing.T) {
	r := newRunner(t)
	r.writeAdapters(t, paper)
	const look = `cd /sys; ls class/infiniband; cat module/paper/parameters/{adapters,netdev} class/net/paper0/{address,operstate}
		ip -4 address show paper0 | grep -o "inet [^ ]*"; ls -d kernel/debug/paper; cat /proc/sys/kernel/panic_on_oops; dmesg | grep -o "this is dmesg"; ls -d module/ib_uverbs`
	const machine = "one,two_2,three-3\npaper0\n02:00:00:00:00:05\nup\ninet 10.77.2.1/24\nkernel/debug/paper\n1\nthis is dmesg\nmodule/ib_uverbs\n"
	for _, test := range []struct {
		name, devices string
		options       []string
	}{
		{"beside the others", "rxe0\nrxe1\n", nil},
		{"alone", "", []string{"--no-devices"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			command := []string{"--adapter", "one", "--adapter=two_2,three-3", "bash", "-ec", look}
			got := r.run(t, append(test.options, command...)...)
			if want := test.devices + machine; got.status != 0 || got.stdout != want {
				t.Errorf("status %d, the machine has\n%s\nwant\n%s\nstderr:\n%s", got.status, got.stdout, want, got.stderr)
			}
		})
	}
}

func TestAdaptersThatFail(t *testing.T) {
	r := newRunner(t)
	for _, test := range []struct{ name, adapter, source, want string }{
		{"no such adapter", "unknown", paper, "paper: there is no such adapter"},
		{"warning", "one", strings.Replace(paper, "static int __init", "static char unused;\nstatic int __init", 1), "‘unused’ defined but not used"},
		{"no source", "one", "", "missing MODULE_LICENSE"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r.writeAdapters(t, test.source)
			got := r.run(t, "--no-devices", "--adapter", test.adapter, "true")
			if got.status != 125 || !strings.Contains(got.stderr, test.want) {
				t.Errorf("%+v, want status 125 and %q", got, test.want)
			}
		})
	}
}

// TestHostModules makes sure that the machine finds its modules where the host has a
// folder for those of the same kernel.
func TestHostModules(t *testing.T) {
	r := newRunner(t)
	release := running.Must(os.ReadFile(filepath.Join(filepath.Dir(r.path), "../../.cache/vm/kernel/release")))(t)
	folder := filepath.Join("/lib/modules", strings.TrimSpace(string(release)))
	switch err := os.MkdirAll(filepath.Dir(folder), 0o755); {
	case errors.Is(err, os.ErrPermission):
		t.Skip("only root can make ", folder)
	case err != nil:
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o755); err == nil {
		defer os.Remove(folder)
	} else if !errors.Is(err, os.ErrExist) {
		t.Skip(err)
	}
	if got := r.run(t, "modprobe", "dummy"); got.status != 0 {
		t.Errorf("status %d, stderr:\n%s", got.status, got.stderr)
	}
}

func TestNothingPersists(t *testing.T) {
	r := newRunner(t)
	dir := t.TempDir()
	if got := r.run(t, "--no-devices", "bash", "-ec", `echo 1 >"$1/file"; cat "$1/file"`, "-", dir); got.status != 0 || got.stdout != "1\n" {
		t.Errorf("%+v, want a file that can be written and read", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "file")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is on the host: %v", err)
	}
}

func TestTimeout(t *testing.T) {
	r := newRunner(t)
	got := r.run(t, "--no-devices", "--timeout", "8", "sleep", "1000")
	if got.status != 124 || !strings.Contains(got.stderr, "8 s") {
		t.Errorf("%+v, want status 124 and the reason on stderr", got)
	}
}

// No command runs where the clock goes wrong, here fifty times too fast.
func TestClockGoesWrong(t *testing.T) {
	r := newRunner(t)
	r.env = append(r.env, "RDMA_VM_APPEND=tsc_early_khz=50000")
	got := r.run(t, "--quiet", "--no-devices", "true")
	again := "vm: the machine has a wrong clock: once more\n"
	if want := (result{125, "", again + again + "vm: the machine has a wrong clock\n"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestMachineDies(t *testing.T) {
	r := newRunner(t)
	got := r.run(t, "--no-devices", "bash", "-c", "echo c >/proc/sysrq-trigger; sleep 1000")
	if got.status != 125 || !strings.Contains(got.stderr, "Kernel panic") {
		t.Errorf("%+v, want status 125 and the console's last words", got)
	}
}

func TestQEMUFails(t *testing.T) {
	listener := running.Must(net.Listen("tcp4", "127.0.0.1:0"))(t)
	defer listener.Close()
	r := newRunner(t)
	port := listener.Addr().(*net.TCPAddr).Port
	got := r.run(t, "--forward", fmt.Sprintf("%d:80", port), "true")
	if got.status != 125 || !strings.Contains(got.stderr, "forward") {
		t.Errorf("%+v, want status 125 and QEMU's reason", got)
	}
}

// start starts a command whose first line on stdout is "ready", and returns
// after that line: so stdout is live.
func (r runner) start(t *testing.T, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := r.command(t, args...)
	cmd.Stderr = os.Stderr
	pipe := running.Must(cmd.StdoutPipe())(t)
	running.Check(t, cmd.Start())
	stdout := bufio.NewReader(pipe)
	if line, err := stdout.ReadString('\n'); line != "ready\n" {
		t.Fatalf("first line %q, %v; want ready", line, err)
	}
	return cmd, stdout
}

func TestSignalsArePassedOn(t *testing.T) {
	r := newRunner(t)
	for _, signal := range []struct {
		name  string
		value syscall.Signal
	}{{"TERM", syscall.SIGTERM}, {"INT", syscall.SIGINT}, {"QUIT", syscall.SIGQUIT}} {
		t.Run(signal.name, func(t *testing.T) {
			cmd, stdout := r.start(t, "--no-devices", "bash", "-c",
				`trap 'echo got $1; exit 7' $1; echo ready; while :; do sleep 0.1; done`, "-", signal.name)
			running.Check(t, cmd.Process.Signal(signal.value))
			rest, err := io.ReadAll(stdout)
			if want := "got " + signal.name + "\n"; string(rest) != want || err != nil {
				t.Errorf("then %q, %v; want %q", rest, err, want)
			}
			if status := statusOf(t, cmd.Wait()); status != 7 {
				t.Errorf("status %d, want the command's own", status)
			}
			r.checkClean(t)
		})
	}
}

// TestNodes verifies that two machines have a device on their wire, whose lines say which wrote
// them, that the higher status counts, and that a signal ends both.
func TestNodes(t *testing.T) {
	r := newRunner(t)
	const look = `cat /sys/class/infiniband/rxe2/ports/1/gids/1; exit $((NODE + 3))`
	got := r.run(t, "--quiet", "--nodes", "2", "bash", "-c", look)
	for _, want := range []string{"1: 0000:0000:0000:0000:0000:ffff:0a63:0001\n", "2: 0000:0000:0000:0000:0000:ffff:0a63:0002\n"} {
		if got.status != 5 || got.stderr != "" || !strings.Contains(got.stdout, want) {
			t.Errorf("%+v, want status 5 and %q", got, want)
		}
	}
	cmd := r.command(t, "--quiet", "--nodes", "2", "bash", "-c", `trap 'exit $NODE' TERM; echo ready; while :; do sleep 0.1; done`)
	stdout := bufio.NewReader(running.Must(cmd.StdoutPipe())(t))
	running.Check(t, cmd.Start())
	for range 2 {
		running.Must(stdout.ReadString('\n'))(t) // from either
	}
	running.Check(t, cmd.Process.Signal(syscall.SIGTERM))
	_, _ = io.Copy(io.Discard, stdout)
	if status := statusOf(t, cmd.Wait()); status != 2 {
		t.Errorf("status %d, want 2", status)
	}
	r.checkClean(t)
}

func TestSignalThatIsIgnoredEndsTheMachine(t *testing.T) {
	r := newRunner(t)
	cmd, stdout := r.start(t, "--no-devices", "bash", "-c", `trap '' TERM; echo ready; sleep 1000`)
	running.Check(t, cmd.Process.Signal(syscall.SIGTERM))
	_, _ = io.Copy(io.Discard, stdout)
	if status := statusOf(t, cmd.Wait()); status != 128+int(syscall.SIGTERM) {
		t.Errorf("status %d, want 143", status)
	}
	r.checkClean(t)
}

func TestKilledRunnerLeavesNoMachine(t *testing.T) {
	r := newRunner(t)
	cmd, stdout := r.start(t, "--no-devices", "bash", "-c", "echo ready; sleep 1000")
	if len(r.machines(t)) == 0 {
		t.Fatal("no QEMU process runs")
	}
	running.Check(t, cmd.Process.Kill())
	_, _ = io.Copy(io.Discard, stdout)
	_ = cmd.Wait()
	running.Eventually(t, "QEMU has ended, as the runner has", func() bool { return len(r.machines(t)) == 0 })
	r.checkClean(t)
}

func TestUnreadOutputEndsTheCommand(t *testing.T) {
	r := newRunner(t)
	cmd := r.command(t, "--quiet", "--no-devices", "yes")
	pipe := running.Must(cmd.StdoutPipe())(t)
	running.Check(t, cmd.Start())
	running.Must(io.ReadFull(pipe, make([]byte, 2)))(t)
	pipe.Close()
	if status := statusOf(t, cmd.Wait()); status != 128+int(syscall.SIGPIPE) {
		t.Errorf("status %d, want 141", status)
	}
	r.checkClean(t)
}

func TestForward(t *testing.T) {
	listener := running.Must(net.Listen("tcp4", "127.0.0.1:0"))(t)
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	listener.Close()

	dir := t.TempDir()
	running.Check(t, os.WriteFile(filepath.Join(dir, "page"), []byte("served from inside\n"), 0o644))
	r := newRunner(t)
	cmd, _ := r.start(t, "--no-devices", "--forward", port+":8080", "bash", "-c",
		`busybox httpd -p 8080 -h "$1"; echo ready; sleep 1000`, "-", dir)
	if body, err := running.Get(nil, "http://127.0.0.1:"+port+"/page"); err != nil || string(body) != "served from inside\n" {
		t.Errorf("%q, %v", body, err)
	}
	running.Check(t, cmd.Process.Signal(syscall.SIGTERM))
	if status := statusOf(t, cmd.Wait()); status != 128+int(syscall.SIGTERM) {
		t.Errorf("status %d, want 143", status)
	}
	r.checkClean(t)
}

func TestGoTestRunsInside(t *testing.T) {
	r := newRunner(t)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module inside\n\ngo 1.26\n",
		"inside_test.go": `package inside

import (
	"os"
	"testing"
)

func TestInside(t *testing.T) {
	for _, file := range []string{"/sys/class/infiniband/rxe0", "inside_test.go"} {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
}

func TestFails(t *testing.T) { t.Error("as it should") }
`,
	} {
		running.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	ctx, cancel := context.WithTimeout(t.Context(), running.Patience)
	defer cancel()
	// The go command splits -exec at spaces; a double-quoted part stays whole.
	cmd := exec.CommandContext(ctx, "go", "test", "-v", "-exec", `"`+r.path+`" --quiet`, ".")
	cmd.Dir = dir
	cmd.Env = append(slices.Clone(r.env), "GOFLAGS=")
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	if statusOf(t, err) != 1 || !bytes.Contains(out, []byte("--- PASS: TestInside")) || !bytes.Contains(out, []byte("--- FAIL: TestFails")) {
		t.Errorf("%v, want TestInside to pass and TestFails to fail:\n%s", err, out)
	}
	r.checkClean(t)
}

func TestWarmSetupIsSilent(t *testing.T) {
	r := newRunner(t)
	setup := filepath.Join(filepath.Dir(r.path), "setup")
	out, err := exec.CommandContext(t.Context(), setup).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v, %q; want no word", err, out)
	}
}
