//go:build scale

package scale_test

import (
	"os"
	"testing"

	"rdma_exporter/test/running"
)

const (
	// repository is where the module's root is.
	repository = "../.."
	// page is the page that is held to the exporter.
	page = repository + "/docs/reference/scaling.md"
)

// binary is the exporter under test.
var binary string

func TestMain(m *testing.M) {
	os.Exit(running.Exporter(m, &binary))
}
