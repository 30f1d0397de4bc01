// Package image tests the image that tools/image builds: what is in it and, with the
// build tag image, how its program runs from its file system on this machine with
// simulated devices; with the build tag imagevm, as a container of podman on the
// Soft-RoCE devices of the virtual machine that test/vm/run boots.
//
//	tools/image
//	make build .cache/bin/holder
//	export RDMA_IMAGE=$PWD/.cache/image RDMA_EXPORTER_BINARY=$PWD/.cache/bin/rdma_exporter RDMA_HOLDER=$PWD/.cache/bin/holder
//	go test -tags image ./test/image
//	go test -tags imagevm -exec "$PWD/test/vm/run" ./test/image
//
// Both need root. What they lack is a failure, never a skip.
package image
