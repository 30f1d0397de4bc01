package web

import (
	"time"

	"golang.org/x/sys/unix"
)

// Limits on what clients may hold, and for how long. docs/reference/configuration.md has them
// for users.
const (
	// headerTimeout limits a TLS handshake, and then the header of a request. A silent new
	// connection is closed after as long.
	headerTimeout = 5 * time.Second
	// readTimeout limits a whole request. Only the handler of peers reads bodies.
	readTimeout = 10 * time.Second
	// writeTimeout limits the answer, from the end of the request's header. An answer for
	// many devices has megabytes.
	writeTimeout = 30 * time.Second
	// idleTimeout is longer than the usual time between two scrapes.
	idleTimeout = 2 * time.Minute
	// shutdownTimeout limits requests in flight when the exporter ends.
	shutdownTimeout = 3 * time.Second
	// closeTimeout limits how long closed listeners may take to return.
	closeTimeout = time.Second

	// MaxRequests limits concurrent scrapes, and likewise concurrent requests of the page and
	// the JSON. Further ones are answered 503. With 64 devices, the worst format of five takes
	// less than 128 MiB.
	MaxRequests = 5
	// maxHeaderBytes limits the header of a request, including path and parameters.
	// net/http adds 4 KiB.
	maxHeaderBytes = 32 << 10
	// maxConnections limits open connections, for their memory.
	maxConnections = 512
	// reservedFiles is the number of file descriptors left for children, files of the
	// configuration and the runtime.
	reservedFiles = 128
	// maxStreams limits concurrent requests on an HTTP/2 connection.
	maxStreams = 2

	// maxWarnings limits the messages logged in each warningsPeriod that clients can cause.
	maxWarnings    = 10
	warningsPeriod = time.Minute
)

// connectionLimit returns how many connections may be open: as many as the process has file
// descriptors, without the reserve, and at most maxConnections.
func connectionLimit() int {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return reservedFiles
	}
	return connectionsFor(files.Cur)
}

// connectionsFor returns how many connections may be open with this many file descriptors.
// At least a quarter of the descriptors is for connections, so that the exporter can be
// scraped in any case.
func connectionsFor(files uint64) int {
	n := int64(min(files, 1<<20))
	return int(min(max(n-reservedFiles, n/4, 1), maxConnections))
}
