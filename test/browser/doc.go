// Package browser opens the status page in a browser: on a phone and on a desktop, light and
// dark, with healthy and unhealthy devices. It checks what can be read at the first glance,
// and whether everything can be read and reached.
//
// The tests carry the build tag browser and need Debian's chromium. make test-browser
// installs it and runs them; by hand:
//
//	make build
//	export RDMA_EXPORTER_BINARY=$PWD/.cache/bin/rdma_exporter RDMA_CHROMIUM=/usr/bin/chromium
//	go test -tags browser ./test/browser
//
// Without these files they fail. Screenshots are in .cache/screenshots.
//
// The built exporter shows simulated devices. States that the simulator cannot produce, such
// as a process that cannot be killed, are snapshots that the same handler serves.
package browser
