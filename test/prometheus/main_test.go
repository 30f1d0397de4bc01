//go:build prometheus

package prometheus_test

import (
	"os"
	"testing"

	"rdma_exporter/test/running"
)

// repository is where the module's root is.
const repository = "../.."

// binary is the exporter under test.
var binary string

func TestMain(m *testing.M) {
	os.Exit(running.Exporter(m, &binary))
}
