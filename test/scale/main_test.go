// Package scale_test holds docs/scaling.md to the exporter: the formula of the number
// of series, and what follows from it, to real scrapes of the built exporter on
// simulated devices; the examples of configuration to promtool; the groups of metrics
// that can be dropped to the rules and dashboards. What can be computed of that page is
// rewritten by go test ./test/scale -update.
//
// BenchmarkFleet has a real Prometheus scrape some hundred exporters and measures what
// that costs; make bench-scale runs it. No ordinary run of the tests does.
//
// The exporter is built first; RDMA_EXPORTER_BINARY names one that was built before, by
// its absolute path. prometheus and promtool are found in PATH.
package scale_test

import (
	"flag"
	"os"
	"testing"

	"rdma_exporter/test/running"
)

const (
	// repository is where the module's root is.
	repository = "../.."
	// page is the page that is held to the exporter.
	page = repository + "/docs/scaling.md"
)

var update = flag.Bool("update", false, "rewrite what follows from the rest in docs/scaling.md")

// binary is the exporter under test.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(running.Exporter(m, &binary))
}
