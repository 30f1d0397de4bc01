// Package check_test renders the Helm chart with helm's own packages, decodes every object of
// it, and of the plain examples beside it, strictly as the types of Kubernetes and of
// the prometheus-operator, and holds them to what the documentation promises. It is a
// module of its own, so that these dependencies are none of the exporter's.
//
// It needs the built exporter: RDMA_EXPORTER_BINARY is its absolute path.
package check_test

import (
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const (
	envBinary = "RDMA_EXPORTER_BINARY"

	// root is the repository, chart the chart in it.
	root  = "../.."
	chart = root + "/deploy/helm/rdma-exporter"

	// kubeVersion is the least version that the chart says it is for.
	kubeVersion = "1.25.0"

	// patience is how long a test waits for what must happen at some time. It is
	// no measure of how long that may take.
	patience = 3 * time.Minute
)

// exporter is the absolute path of the built exporter.
var exporter string

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // Helm warns of the links in the chart's folder, which are meant.
	if err := provide(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func provide() error {
	exporter = os.Getenv(envBinary)
	if !filepath.IsAbs(exporter) {
		return fmt.Errorf("%s is %q: set it to the absolute path of the program, as `make test-deploy` does", envBinary, exporter)
	}
	if _, err := os.Stat(exporter); err != nil {
		return fmt.Errorf("%s: %w", envBinary, err)
	}
	return nil
}

// render renders the chart as the release rdma-exporter of the namespace monitoring.
func render(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return helmTemplate("rdma-exporter", chart, append([]string{"--namespace=monitoring"}, args...)...)
}

func rendered(t *testing.T, args ...string) string {
	t.Helper()
	out := must(render(t, args...))(t)
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	content := must(os.ReadFile(filepath.Join(root, path)))(t)
	return string(content)
}

// check ends the test if there is an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must returns a function that returns the value, and ends the test if there is an error.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		check(t, err)
		return value
	}
}
