package running

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// File writes a file that only its owner may read, in a folder of its own that goes with
// the test, and returns its path.
func File(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	Check(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Program writes a shell script that can be executed, and returns its path. A process of its
// own writes it: while this one had it open, a child that another test starts would inherit
// that, and the kernel would refuse to execute it ("text file busy").
func Program(t testing.TB, path, text string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "install", "-m", "0755", "/dev/stdin", path)
	cmd.Stdin = strings.NewReader("#!/bin/sh\n" + text + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("write %s: %v\n%s", path, err, out)
	}
	return path
}

// FindPrometheus returns the path of a program that comes with Prometheus, without which
// nothing can be proven.
func FindPrometheus(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is needed; make test-tools unpacks it, and puts it into the PATH of the tests that make runs: %v", program, err)
	}
	return path
}

// FindNativePrometheus is [FindPrometheus] for a Prometheus that has native histograms.
func FindNativePrometheus(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(filepath.Join(os.Getenv("RDMA_NATIVE_PROMETHEUS"), program))
	if err != nil || !filepath.IsAbs(path) {
		t.Fatalf("%s with native histograms is needed; make test-tools unpacks it, and RDMA_NATIVE_PROMETHEUS of the tests that make runs names its folder: %v", program, err)
	}
	return path
}
