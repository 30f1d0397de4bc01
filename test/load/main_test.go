//go:build load

package load

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const envBinary = "RDMA_EXPORTER_BINARY"

var duration = flag.Duration("load.time", time.Minute, "how long each kind of load lasts")

// binary is the exporter under test.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	binary = os.Getenv(envBinary)
	if !filepath.IsAbs(binary) {
		fmt.Fprintf(os.Stderr, "%s is %q: set it to the absolute path of the built exporter (make load does)\n", envBinary, binary)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
