//go:build load

package load

import (
	"flag"
	"os"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

var duration = flag.Duration("load.time", time.Minute, "how long each kind of load lasts")

// binary is the exporter under test.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(running.Exporter(m, &binary))
}
