//go:build vm

package systemd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	// active is the device whose port is active, and down the one whose port is
	// down.
	active = "rxe0"
	down   = "rxe1"

	// patience is how long the tests wait for what must happen some time. It says
	// nothing of how long it should take.
	patience = 5 * time.Minute
	// poll is the pause between two looks at it.
	poll = 200 * time.Millisecond
)

// holderFile is the program that holds verbs objects, where any user can run it: the
// folder in which it was built may be closed to others, as root's home is.
const holderFile = "/run/holder"

func TestMain(m *testing.M) {
	if err := testBed(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// testBed makes sure that the tests have what they need, and installs the service
// as make install does. What they lack is a failure, never a skip.
func testBed() error {
	for _, name := range []string{"RDMA_EXPORTER_BINARY", "RDMA_HOLDER"} {
		file := os.Getenv(name)
		if !filepath.IsAbs(file) {
			return fmt.Errorf("%s is %q: set it to an absolute path; see make test-systemd", name, file)
		}
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%s (%w): build it first", name, err)
		}
	}
	for _, device := range []string{active, down} {
		if _, err := os.Stat("/sys/class/infiniband/" + device); err != nil {
			return fmt.Errorf("no device %s (%w): run these tests with -exec 'test/vm/run --systemd'", device, err)
		}
	}
	if first, _ := os.ReadFile("/proc/1/comm"); strings.TrimSpace(string(first)) != "systemd" {
		return fmt.Errorf("the first process is %q, not systemd: run these tests with -exec 'test/vm/run --systemd'", first)
	}
	if out, err := exec.Command("install", "-m", "0755", os.Getenv("RDMA_HOLDER"), holderFile).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the program that holds objects: %w\n%s", err, out)
	}
	install := exec.Command(filepath.Join("..", "..", "tools", "install"), os.Getenv("RDMA_EXPORTER_BINARY"))
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("install the exporter: %w\n%s", err, out)
	}
	return nil
}
