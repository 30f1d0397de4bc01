// Package softroce tests the built exporter on real kernel devices: the
// Soft-RoCE ones of the virtual machine that test/vm/run boots.
//
// The tests carry the build tag vm, change the machine that they run on, and
// put it back as it was:
//
//	make build .cache/bin/holder .cache/bin/libfaults.so
//	export RDMA_EXPORTER_BINARY=$PWD/.cache/bin/rdma_exporter RDMA_HOLDER=$PWD/.cache/bin/holder
//	export RDMA_FAULTS_LIBRARY=$PWD/.cache/bin/libfaults.so
//	go test -tags vm -exec "$PWD/test/vm/run" ./test/softroce
//
// Without these files or without the devices they fail. No test asserts how long
// something takes: the machine is emulated in software.
package softroce
