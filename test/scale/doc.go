// Package scale compares docs/reference/scaling.md with the exporter: the formula of the number
// of series with real scrapes of the built exporter on simulated devices, and the examples of
// configuration with promtool. go test -tags scale ./test/scale -update rewrites the tables
// that follow from the formula.
//
// The tests have the build tag scale, and make test-scale runs them. They scrape a dozen
// exporters, which takes as long as many other tests, and only metrics, their labels and the
// page concern them.
//
// The exporter is built first. RDMA_EXPORTER_BINARY is its absolute path. promtool is found in
// PATH.
package scale
