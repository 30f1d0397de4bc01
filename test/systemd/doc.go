// Package systemd runs the installed service under a systemd that is the first
// process of the virtual machine that test/vm/run boots, on real kernel devices.
//
// The tests carry the build tag vm, install the package into the machine that they
// run on, and unload its drivers. make test-systemd runs them:
//
//	make packages .cache/bin/holder
//	export RDMA_PACKAGES=$PWD/.cache/packages RDMA_HOLDER=$PWD/.cache/bin/holder
//	go test -tags vm -exec "$PWD/test/vm/run --systemd" ./test/systemd
//
// Without these files, the devices or systemd they fail. What can be tried without
// a virtual machine is in the package install below.
package systemd
