package web

import "time"

// What a client may hold, and for how long: docs/reference/configuration.md tells users.
const (
	// headerTimeout is how long a TLS handshake, and then the header of a request, may
	// take. A connection on which nothing comes at first is cut after as long.
	headerTimeout = 5 * time.Second
	// readTimeout is how long a whole request may take. Bodies are not even read.
	readTimeout = 10 * time.Second
	// writeTimeout is how long reading the answer may take, from the end of the
	// request's header. An answer of many devices is megabytes.
	writeTimeout = 30 * time.Second
	// stallTimeout is how long an HTTP/2 client may take nothing of what is sent.
	stallTimeout = 10 * time.Second
	// idleTimeout is how long a connection is kept between two requests: longer than
	// what is common between two scrapes.
	idleTimeout = 2 * time.Minute

	// maxHeaderBytes is the most that the header of a request may have. net/http adds
	// 4 KiB. It bounds the path and its parameters as well.
	maxHeaderBytes = 32 << 10
	// maxConnections is the most connections that are open. Each has a goroutine and a
	// file descriptor; children that probe need some, too.
	maxConnections = 512
	// maxServed is the most of them to which an answer is sent. Each is kept until its
	// client has read it, which is hundreds of KiB if there are many devices.
	maxServed = 256
	// receiveBuffer and sendBuffer are how many bytes the kernel is asked to keep for a
	// connection at the exporter's end. It takes twice that, for what it needs itself. Left
	// alone, it goes up to megabytes, which count as memory of the container. Less than one
	// segment of the loopback device, which has 64 KiB, would have each wait until the one
	// before is acknowledged, which takes 40 ms.
	receiveBuffer = 16 << 10
	sendBuffer    = 64 << 10

	// Of HTTP/2: the most requests at once on a connection; the most of their bodies
	// that may be on its way, which is the least that there is; and the largest frame.
	maxStreams         = 2
	connectionReceives = 64 << 10
	streamReceives     = 16 << 10
	maxFrame           = 16 << 10

	// maxWarnings is how many messages that clients can cause are logged in each of
	// warningsPeriod: about connections, about the web configuration, about answers.
	maxWarnings    = 10
	warningsPeriod = time.Minute
)
