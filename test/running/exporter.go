package running

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// EnvBinary is the environment variable that names an exporter that was built before, by
// its absolute path.
const EnvBinary = "RDMA_EXPORTER_BINARY"

// Exporter runs the tests of a package and returns the status to exit with. Before, it puts
// the path of the built exporter into binary: the one that [EnvBinary] names, or else one that
// it builds, and removes afterwards. TestMain calls it.
func Exporter(m *testing.M, binary *string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*binary = os.Getenv(EnvBinary)
	if *binary == "" {
		dir, err := os.MkdirTemp("", "rdma_exporter-test-")
		if err != nil {
			return fail(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		*binary = filepath.Join(dir, "rdma_exporter")
		if err := Build(*binary); err != nil {
			return fail(err)
		}
	}
	if !filepath.IsAbs(*binary) {
		return fail(fmt.Errorf("%s is %q: set it to an absolute path, or unset it to have the exporter built", EnvBinary, *binary))
	}
	if _, err := os.Stat(*binary); err != nil {
		return fail(fmt.Errorf("the exporter under test: %w", err))
	}
	return m.Run()
}

// DependOn makes the cached result of a test depend on a program that it runs. The go command
// only sees which files inside the module the test itself reads.
func DependOn(t testing.TB, program string) {
	t.Helper()
	if _, err := os.Stat(program); err != nil {
		t.Fatal(err)
	}
	if os.Getenv(EnvBinary) != "" {
		return
	}
	if err := lookAtSources(); err != nil {
		t.Fatalf("look at the sources of the exporter: %v", err)
	}
}

// lookAtSources looks at each file of the module that may be part of the exporter.
func lookAtSources() error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			return errors.New("no directory above has a go.mod")
		}
		root = filepath.Dir(root)
	}
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := path != root && strings.HasPrefix(entry.Name(), ".")
		if entry.IsDir() && (hidden || path == filepath.Join(root, "test")) {
			return fs.SkipDir
		}
		if entry.IsDir() {
			return nil
		}
		_, err = os.Stat(path)
		return err
	})
}

// Build builds the exporter into a file, with additional environment variables as NAME=VALUE.
// The working directory must be in the module.
func Build(file string, env ...string) error {
	cmd := exec.Command("go", "build", "-ldflags=-X github.com/prometheus/common/version.Version=test", "-o", file, "rdma_exporter/cmd/rdma_exporter")
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the exporter (it needs gcc and libibverbs-dev): %w\n%s", err, out)
	}
	return nil
}
