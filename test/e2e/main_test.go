// Package e2e_test runs the built exporter as its users do, on simulated devices
// or none, and looks at what it serves, prints and leaves behind. It needs no
// RDMA device.
//
// The exporter is built first; RDMA_EXPORTER_BINARY names one that was built
// before, by its absolute path.
package e2e_test

import (
	"errors"
	"flag"
	"io"
	"os"
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
func clone(from, to string) (err error) {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
