// Package scale_test holds docs/scaling.md to the exporter: the formula of the number
// of series, and what follows from it, to real scrapes of the built exporter on
// simulated devices; the examples of configuration to promtool; the groups of metrics
// that can be dropped to the rules and dashboards. What can be computed of that page is
// rewritten by go test ./test/scale -update.
//
// BenchmarkFleet has a real Prometheus scrape some hundred exporters and measures what
// that costs; make bench-scale runs it. No ordinary run of the tests does.
//
// The exporter is built first; RDMA_EXPORTER_BINARY names one that was built before, by
// its absolute path. prometheus and promtool are found in PATH.
package scale_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const (
	// patience is how long a test waits for what must happen at some time. It is no
	// measure of how long that may take.
	patience = 3 * time.Minute
	// pause is between two looks at it.
	pause = 100 * time.Millisecond

	// repository is where the module's root is.
	repository = "../.."
	// page is the page that is held to the exporter.
	page = repository + "/docs/scaling.md"
)

var update = flag.Bool("update", false, "rewrite what follows from the rest in docs/scaling.md")

// binary is the exporter under test.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	binary = os.Getenv("RDMA_EXPORTER_BINARY")
	if binary == "" {
		dir, err := os.MkdirTemp("", "rdma_exporter-scale-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		binary = filepath.Join(dir, "rdma_exporter")
		cmd := exec.Command("go", "build", "-o", binary, "./cmd/rdma_exporter")
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

// find returns the path of a program that comes with Prometheus, without which nothing
// can be proven.
func find(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is needed; make test-tools unpacks it, and puts it into the PATH of the tests that make runs: %v", program, err)
	}
	return path
}
