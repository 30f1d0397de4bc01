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

// Exporter runs the tests of a package on the built exporter, whose path it puts into
// binary before: on the one that [EnvBinary] names, or else on one that it builds, and
// removes afterwards. It returns the status to exit with, which is 1, with a message on
// standard error, if there is no exporter. TestMain calls it.
func Exporter(m *testing.M, binary *string) int {
	*binary = os.Getenv(EnvBinary)
	if *binary == "" {
		dir, err := os.MkdirTemp("", "rdma_exporter-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		*binary = filepath.Join(dir, "rdma_exporter")
		if err := Build(*binary); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if !filepath.IsAbs(*binary) {
		fmt.Fprintf(os.Stderr, "%s is %q: set it to an absolute path, or unset it to have the exporter built\n", EnvBinary, *binary)
		return 1
	}
	if _, err := os.Stat(*binary); err != nil {
		fmt.Fprintf(os.Stderr, "the exporter under test: %v\n", err)
		return 1
	}
	return m.Run()
}

// DependOn makes the test's result depend on a program that it runs. The go command keeps
// the result of a test until something changes that the test looks at inside the
// module, and what TestMain or the compiler looks at is none of that.
func DependOn(t testing.TB, program string) {
	t.Helper()
	if _, err := os.Stat(program); err != nil {
		t.Fatal(err)
	}
	if os.Getenv(EnvBinary) != "" {
		return
	}
	// Outside the module, where it was built, nobody would notice.
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
	for !exists(filepath.Join(root, "go.mod")) {
		if root == filepath.Dir(root) {
			return errors.New("no folder above has a go.mod")
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

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// Build builds the exporter of this module into a file, with more environment variables
// if they are given, as NAME=VALUE. It is to be called in a folder of the module.
func Build(file string, env ...string) error {
	// One that does not know its version does not tell it either.
	cmd := exec.Command("go", "build", "-ldflags=-X github.com/prometheus/common/version.Version=test", "-o", file, "rdma_exporter/cmd/rdma_exporter")
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the exporter (it needs gcc and libibverbs-dev): %w\n%s", err, out)
	}
	return nil
}
