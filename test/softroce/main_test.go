//go:build vm

package softroce

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

const (
	// active is the device whose port is active, and down the one whose port is
	// down.
	active = "rxe0"
	down   = "rxe1"
	// activeNetdev is the network device beneath active.
	activeNetdev = "veth0"
)

// exporterFile is the exporter that is tested.
var exporterFile = os.Getenv("RDMA_EXPORTER_BINARY")

func TestMain(m *testing.M) {
	if err := testBed(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Of what it scrapes little is kept, and the processor is slow.
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// testBed makes sure that the tests have what they need. What they lack is a
// failure, never a skip.
func testBed() error {
	if !filepath.IsAbs(exporterFile) {
		return fmt.Errorf("RDMA_EXPORTER_BINARY is %q: set it to the absolute path of the built exporter", exporterFile)
	}
	if _, err := os.Stat(exporterFile); err != nil {
		return fmt.Errorf("RDMA_EXPORTER_BINARY (%w): build the exporter first", err)
	}
	for _, device := range []string{active, down} {
		if _, err := os.Stat(devicePath(device)); err != nil {
			return fmt.Errorf("no device %s (%w): run these tests with -exec test/vm/run", device, err)
		}
	}
	return nil
}

func devicePath(device string) string { return "/sys/class/infiniband/" + device }
