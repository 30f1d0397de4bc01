package check

import (
	"os"
	"testing"

	"rdma_exporter/test/running"
)

// exporterFile is the exporter that is tested.
var exporterFile string

func TestMain(m *testing.M) {
	os.Exit(running.Exporter(m, &exporterFile))
}
