// Package softroce tests the built exporter on real kernel devices: the
// Soft-RoCE ones of the virtual machine that test/vm/run boots.
//
// The tests carry the build tag vm, change the machine that they run on, and
// put it back as it was:
//
//	go build -o .cache/bin/rdma_exporter ./cmd/rdma_exporter
//	export RDMA_EXPORTER_BINARY=$PWD/.cache/bin/rdma_exporter
//	go test -tags vm -exec "$PWD/test/vm/run" ./test/softroce
//
// Without the binary or without the devices they fail. No test asserts how long
// something takes: the machine is emulated in software.
package softroce
