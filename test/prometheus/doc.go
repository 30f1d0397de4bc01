// Package prometheus has a real Prometheus scrape the built exporter, and asks
// it every expression of the dashboards and of the rules: each returns data, or is
// on a short list with the reason why it cannot.
//
// TestSimulated does so with simulated devices that show every kind of trouble. It
// needs no RDMA device. TestVM does so with the real Soft-RoCE devices of the virtual
// machine that test/vm/run boots. Both wait for minutes to pass, so that all have the build
// tag prometheus; make test-prometheus runs them.
//
// The exporter is built first; RDMA_EXPORTER_BINARY names one that was built
// before, by its absolute path. prometheus and promtool are found in PATH.
package prometheus
