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
	// poll is the pause between two looks at it, which cost the emulated processor a good
	// part of a shorter one.
	poll = 500 * time.Millisecond
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

// testBed makes sure that the tests have what they need, and installs the package.
// What they lack is a failure, never a skip.
func testBed() error {
	for _, name := range []string{"RDMA_PACKAGES", "RDMA_HOLDER"} {
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
	// Of the host's units this machine's systemd knows only the few that it needs.
	for _, unit := range []string{service, socket} {
		if err := os.Symlink("/usr/lib/systemd/system/"+unit, filepath.Join(units, unit)); err != nil {
			return err
		}
	}
	if out, err := install(); err != nil {
		return fmt.Errorf("install the package: %w\n%s", err, out)
	}
	return nil
}

// install installs the package with a database of dpkg's own: to read that of the host
// takes long on a machine that is emulated in software, and so does what other packages
// have dpkg do. The libraries that the package depends on are there.
func install() ([]byte, error) {
	debs, err := filepath.Glob(filepath.Join(os.Getenv("RDMA_PACKAGES"), "*.deb"))
	if err != nil || len(debs) != 1 {
		return nil, fmt.Errorf("RDMA_PACKAGES is a folder with the packages %v, want one: %w", debs, err)
	}
	const database = "/run/dpkg"
	for _, dir := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(database, dir), 0o755); err != nil {
			return nil, err
		}
	}
	status, err := os.OpenFile(filepath.Join(database, "status"), os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := status.Close(); err != nil {
		return nil, err
	}
	cmd := exec.Command("dpkg", "--admindir="+database, "--force-depends", "--force-unsafe-io", "--install", debs[0])
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	return cmd.CombinedOutput()
}
