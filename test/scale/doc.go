// Package scale holds docs/reference/scaling.md to the exporter: the formula of the number
// of series, and what follows from it, to real scrapes of the built exporter on
// simulated devices; the examples of configuration to promtool; the groups of metrics
// that can be dropped to the rules and dashboards. What can be computed of that page is
// rewritten by go test -tags scale ./test/scale -update.
//
// BenchmarkFleet has a real Prometheus scrape some hundred exporters and measures what
// that costs; make bench-scale runs it. No ordinary run of the tests does.
//
// The tests have the build tag scale; make test-scale runs them. They scrape a dozen exporters,
// which takes as long as many other tests, and only metrics, their labels and the page concern
// them.
//
// The exporter is built first; RDMA_EXPORTER_BINARY names one that was built before, by
// its absolute path. prometheus and promtool are found in PATH.
package scale
