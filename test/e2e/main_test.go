// Package e2e_test runs the built exporter as its users do, on simulated devices
// or none, and looks at what it serves, prints and leaves behind. It needs no
// RDMA device.
//
// The exporter is built first; RDMA_EXPORTER_BINARY names one that was built
// before, by its absolute path.
package e2e_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const (
	programName = "rdma_exporter"
	envBinary   = "RDMA_EXPORTER_BINARY"

	// patience is how long a test waits for what must happen at some time. It is
	// no measure of how long that may take.
	patience = 2 * time.Minute
)

var update = flag.Bool("update", false, "rewrite the golden files")

// binary is the exporter under test.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rdma_exporter-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, programName)
	if err := provide(binary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// provide puts the exporter under test at path.
func provide(path string) error {
	built := os.Getenv(envBinary)
	if built == "" {
		return build(path)
	}
	if !filepath.IsAbs(built) {
		return fmt.Errorf("%s is %q: set it to an absolute path, or unset it to have the exporter built", envBinary, built)
	}
	return clone(built, path)
}

// build builds the exporter as it is in this module.
func build(path string, env ...string) error {
	cmd := exec.Command("go", "build", "-o", path, "./cmd/"+programName)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the exporter (it needs gcc and libibverbs-dev): %w\n%s", err, out)
	}
	return nil
}

// dependOnProgram makes the test's result depend on the exporter under test. go
// test keeps a result until something changes that the test has looked at, and
// what the compiler looks at is none of that.
func dependOnProgram(t testing.TB) {
	t.Helper()
	if err := lookAtProgram(); err != nil {
		t.Fatal(err)
	}
}

var lookAtProgram = sync.OnceValue(func() error {
	if built := os.Getenv(envBinary); built != "" {
		_, err := os.Stat(built)
		return err
	}
	return filepath.WalkDir(filepath.Join("..", ".."), func(_ string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if err == nil && entry.IsDir() && (name == "test" || len(name) > 2 && name[0] == '.') {
			return fs.SkipDir
		}
		return err
	})
})

// clone gives a program another name, without a copy if it can be had.
func clone(from, to string) (err error) {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
