// Package check_test renders the Helm chart with helm itself, decodes every object of
// it, and of the plain examples beside it, strictly as the types of Kubernetes and of
// the prometheus-operator, and holds them to what the documentation promises. It is a
// module of its own, so that these dependencies are none of the exporter's.
//
// It needs the built exporter and the helm that go.mod names: RDMA_EXPORTER_BINARY and
// RDMA_HELM are their absolute paths.
package check_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const (
	envBinary = "RDMA_EXPORTER_BINARY"
	envHelm   = "RDMA_HELM"

	// root is the repository, chart the chart in it.
	root  = "../.."
	chart = root + "/deploy/helm/rdma-exporter"

	// kubeVersion is the least version that the chart says it is for.
	kubeVersion = "--kube-version=1.25.0"

	// patience is how long a test waits for what must happen at some time. It is
	// no measure of how long that may take.
	patience = 3 * time.Minute
)

// helm and exporter are the programs that are run, by their absolute paths.
var helm, exporter string

func TestMain(m *testing.M) {
	if err := provide(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// provide finds the programs.
func provide() error {
	for name, path := range map[string]*string{envBinary: &exporter, envHelm: &helm} {
		*path = os.Getenv(name)
		if !filepath.IsAbs(*path) {
			return fmt.Errorf("%s is %q: set it to the absolute path of the program, as `make test-deploy` does", name, *path)
		}
		if _, err := os.Stat(*path); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// runHelm runs helm with no configuration and no cluster, and returns what it printed,
// or with an error what it complained of.
func runHelm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), helm, args...)
	// It lives for a tenth of a second, of which a fifth would go into collecting its garbage.
	cmd.Env = append(os.Environ(), "GOGC=off", "HOME="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "KUBECONFIG="+filepath.Join(home, "none"))
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("%w\n%s%s", err, out, failed.Stderr)
	}
	return string(out), err
}

// render renders the chart as the release rdma-exporter of the namespace monitoring.
func render(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return runHelm(t, append([]string{"template", "rdma-exporter", chart, "--namespace", "monitoring", kubeVersion}, args...)...)
}

// rendered is render where it has to succeed.
func rendered(t *testing.T, args ...string) string {
	t.Helper()
	out, err := render(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// read returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
