// Package browser opens the status page in a browser, as people do: on a phone
// and on a desktop, light and dark, with devices that are well and devices that
// are not. It looks at what can be read at the first glance, and whether all of
// it can be read and reached at all.
//
// The tests carry the build tag browser and need Debian's chromium. make
// test-browser installs it and runs them; by hand:
//
//	make build
//	export RDMA_EXPORTER_BINARY=$PWD/.cache/bin/rdma_exporter RDMA_CHROMIUM=/usr/bin/chromium
//	go test -tags browser ./test/browser
//
// Without these files they fail. What the browser showed is in .cache/screenshots.
//
// What simulated devices can be told to do is shown by the built exporter. The
// rest, such as a process that cannot be killed, or bytes that are no text, is put
// into a snapshot that the same handler serves.
package browser
