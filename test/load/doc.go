// Package load scrapes the built exporter a hundredfold, with 200 slow clients
// besides, and looks at what that costs: how long a scrape takes, what fails, what is
// left of memory, files and goroutines, and whether the devices are probed on. It
// needs no RDMA device.
//
// The test carries the build tag load. make load runs it; by hand:
//
//	make build
//	export RDMA_EXPORTER_BINARY=$PWD/.cache/bin/rdma_exporter
//	go test -tags load -timeout 0 -v ./test/load -load.time=60s
//
// What it prints depends on the machine, which the clients share with the exporter.
// That nothing fails, that nothing is left, and that probing goes on does not.
package load
