// Package e2e_test runs the built exporter as its users do, on simulated devices
// or none, and looks at what it serves, prints and leaves behind. It needs no
// RDMA device.
//
// The exporter is built first; RDMA_EXPORTER_BINARY names one that was built
// before, by its absolute path.
package e2e_test

import (
	"flag"
	"os"
	"os/exec"
	"testing"

	"rdma_exporter/test/running"
)

// programName is what the exporter is called.
const programName = "rdma_exporter"

// binary is the exporter under test.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests mostly wait: for what is simulated to take its time, and for bounds to pass.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(running.Exporter(m, &binary))
}

// clone gives a program another name, without a copy if it can be had.
func clone(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	// A process of its own writes it, so that no child of another test has it open.
	return exec.Command("cp", from, to).Run()
}
