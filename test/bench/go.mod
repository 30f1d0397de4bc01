// Benchmarks, apart from the exporter, so that no other test waits for them.
module rdma_exporter/test/bench

go 1.26.0

require (
	golang.org/x/sys v0.49.0
	rdma_exporter v0.0.0
)

require go.yaml.in/yaml/v3 v3.0.6 // indirect

replace rdma_exporter => ../..
