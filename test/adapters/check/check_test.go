//go:build vm

package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// adapter is a paper adapter of the machine.
type adapter struct {
	// name is that of the RDMA device.
	name string
	// spec is what it was made as: the vendor, and options behind hyphens.
	spec string
}

// adapters lists the paper adapters of the machine. There must be one.
func adapters(t testing.TB) []adapter {
	t.Helper()
	dirs, err := filepath.Glob("/sys/kernel/debug/paper/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no paper adapter (%v): run this test with -exec 'test/vm/run --adapter …'", err)
	}
	var list []adapter
	for _, dir := range dirs {
		name := filepath.Base(dir)
		desc := running.Must(os.ReadFile("/sys/class/infiniband/" + name + "/node_desc"))(t)
		list = append(list, adapter{name: name, spec: strings.TrimSpace(string(desc))})
	}
	return list
}

func (a adapter) of() string {
	vendor, _, _ := strings.Cut(a.spec, "-")
	return vendor
}

func (a adapter) is(option string) bool {
	_, options, _ := strings.Cut(a.spec, "-")
	return strings.Contains("-"+options+"-", "-"+option+"-")
}

func rdmaCore(t testing.TB) string {
	t.Helper()
	library := running.Must(filepath.EvalSymlinks("/usr/lib/x86_64-linux-gnu/libibverbs.so.1"))(t)
	// libibverbs.so.1.14.44.0 is that of rdma-core 44.
	fields := strings.Split(filepath.Base(library), ".")
	return fields[len(fields)-2]
}

func (a adapter) counters(t testing.TB) map[string]int {
	t.Helper()
	text := running.Must(os.ReadFile("/sys/kernel/debug/paper/" + a.name + "/counters"))(t)
	counters := map[string]int{}
	for line := range strings.Lines(string(text)) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		counters[name] = running.Must(strconv.Atoi(number))(t)
	}
	return counters
}

// kernelLog returns the lines of the kernel's log that came since the machine had said
// so much, and what it has said by now.
func kernelLog(t testing.TB, since int) (lines []string, now int) {
	t.Helper()
	out, err := exec.Command("dmesg").Output()
	if err != nil {
		t.Fatalf("dmesg: %v", err)
	}
	all := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(all) < since {
		t.Fatalf("the kernel's log has %d lines, and had %d", len(all), since)
	}
	return all[since:], len(all)
}

// output runs a command that must end, and returns what it wrote. The test fails should it
// not end: what waits in the kernel cannot be killed, and is left.
func output(t testing.TB, name string, args ...string) (string, error) {
	t.Helper()
	type result struct {
		out []byte
		err error
	}
	ended := make(chan result, 1)
	go func() {
		out, err := exec.Command(name, args...).CombinedOutput()
		ended <- result{out, err}
	}()
	select {
	case r := <-ended:
		return string(r.out), r.err
	case <-time.After(patience):
		t.Fatalf("%s %s does not end", name, strings.Join(args, " "))
		return "", nil
	}
}

// held returns what the kernel says is held of RDMA devices.
func held(t testing.TB) string {
	t.Helper()
	out, err := output(t, "rdma", "resource")
	if err != nil {
		t.Fatalf("rdma resource: %v\n%s", err, out)
	}
	return out
}
