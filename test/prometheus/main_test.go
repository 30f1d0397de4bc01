// Package prometheus_test has a real Prometheus scrape the built exporter, and asks
// it every expression of the dashboards and of the rules: each returns data, or is
// on a short list with the reason why it cannot.
//
// TestSimulated does so with simulated devices that show every kind of trouble. It
// needs no RDMA device. TestVM, with the build tag vmhost, does so with the real
// Soft-RoCE devices of the virtual machine that test/vm/run boots.
//
// The exporter is built first; RDMA_EXPORTER_BINARY names one that was built
// before, by its absolute path. prometheus and promtool are found in PATH.
package prometheus_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const (
	// patience is how long a test waits for what must happen at some time. It is
	// no measure of how long that may take.
	patience = 3 * time.Minute
	// pause is between two looks at it.
	pause = 100 * time.Millisecond

	// repository is where the module's root is.
	repository = "../.."
)

// binary is the exporter under test.
var binary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	binary = os.Getenv("RDMA_EXPORTER_BINARY")
	if binary == "" {
		dir, err := os.MkdirTemp("", "rdma_exporter-prometheus-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		binary = filepath.Join(dir, "rdma_exporter")
		// One that does not know its version does not tell it either.
		cmd := exec.Command("go", "build", "-ldflags=-X github.com/prometheus/common/version.Version=test", "-o", binary, "./cmd/rdma_exporter")
		cmd.Dir = repository
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the exporter (it needs gcc and libibverbs-dev): %v\n%s", err, out)
			return 1
		}
	}
	if !filepath.IsAbs(binary) {
		fmt.Fprintf(os.Stderr, "RDMA_EXPORTER_BINARY is %q: set it to an absolute path, or unset it to have the exporter built\n", binary)
		return 1
	}
	// The go command keeps the result of tests until something changes that they
	// looked at.
	if _, err := os.Stat(binary); err != nil {
		fmt.Fprintf(os.Stderr, "the exporter under test: %v\n", err)
		return 1
	}
	return m.Run()
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v not yet: %s", patience, what)
		}
	}
}

// file writes a file and returns its path.
func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
