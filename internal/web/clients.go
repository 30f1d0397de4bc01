package web

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
)

// clients bounds the connections of a server. One more is always taken, and the one that
// is missed least is cut; golang.org/x/net/netutil would let it wait until another one
// ends, which those who mean harm do not do. It is safe for concurrent use.
type clients struct {
	maxConnections, maxServed int
	logger                    *slog.Logger

	mu sync.Mutex
	// events counts what happened on all connections; it is the clock by which the one
	// that was longest without an event is found.
	events uint64
	open   map[net.Conn]*client
}

// client is a connection: what it does, and since which event.
type client struct {
	state http.ConnState
	since uint64
}

func newClients(logger *slog.Logger) *clients {
	return &clients{maxConnections: maxConnections, maxServed: maxServed, logger: logger, open: make(map[net.Conn]*client)}
}

// connState keeps count of connections: the ConnState of a server. If there are too many,
// it cuts another one.
func (s *clients) connState(conn net.Conn, state http.ConnState) {
	// The log may block, and nobody else is to wait for it.
	tooMany, tooSlow := s.count(conn, state)
	if tooMany != nil {
		s.logger.Warn("Too many connections: the one that does least was cut", "limit", s.maxConnections, "client", tooMany.RemoteAddr())
	}
	if tooSlow != nil {
		s.logger.Warn("Too many answers wait for slow clients: the slowest was cut", "limit", s.maxServed, "client", tooSlow.RemoteAddr())
	}
}

// count is connState without the log. It returns what it cut.
func (s *clients) count(conn net.Conn, state http.ConnState) (tooMany, tooSlow net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events++
	switch c := s.open[conn]; {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(s.open, conn)
	case c != nil:
		c.state, c.since = state, s.events
		if slowest, n := s.longest(http.StateActive); n > s.maxServed {
			tooSlow = s.cut(slowest)
		}
	case state == http.StateNew:
		setBuffers(conn)
		if len(s.open) >= s.maxConnections {
			tooMany = s.cut(s.worst())
		}
		s.open[conn] = &client{state: state, since: s.events}
	}
	return tooMany, tooSlow
}

// worst returns the connection that is missed least: one on which no request came, if
// there are many of these, else one that waits for its next request, else one whose client
// takes long over its answer; of several the one that was longest without an event.
func (s *clients) worst() net.Conn {
	fresh, n := s.longest(http.StateNew)
	idle, _ := s.longest(http.StateIdle)
	served, _ := s.longest(http.StateActive)
	switch {
	case n > s.maxConnections/4:
		return fresh
	case idle != nil:
		return idle
	case served != nil:
		return served
	default: // Who comes is given time to ask, if possible.
		return fresh
	}
}

// longest returns which connection is in a state for longest, and how many are; nil if
// none is.
func (s *clients) longest(state http.ConnState) (longest net.Conn, n int) {
	for conn, c := range s.open {
		if c.state != state {
			continue
		}
		if n++; longest == nil || c.since < s.open[longest].since {
			longest = conn
		}
	}
	return longest, n
}

// cut ends a connection, and forgets it.
func (s *clients) cut(conn net.Conn) net.Conn {
	delete(s.open, conn)
	reset(conn)
	return conn
}

// setBuffers has the kernel keep little for a connection.
func setBuffers(conn net.Conn) {
	if b, ok := socketOf(conn).(interface {
		SetReadBuffer(bytes int) error
		SetWriteBuffer(bytes int) error
	}); ok {
		// A socket that does not take a size keeps its own.
		_ = b.SetReadBuffer(receiveBuffer)
		_ = b.SetWriteBuffer(sendBuffer)
	}
}

// drop ends the connection of a client that did not take its answer: there is nobody to
// tell. On HTTP/2 it may be one request only that was given up, and it does nothing.
func drop(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		reset(conn)
	}
}

// reset ends a connection at once.
func reset(conn net.Conn) {
	socket := socketOf(conn)
	if l, ok := socket.(interface{ SetLinger(seconds int) error }); ok {
		// The kernel drops what the client has not read; else it would keep it for
		// minutes.
		_ = l.SetLinger(0)
	}
	// An error means that it is closed already.
	_ = socket.Close()
}

// socketOf returns the connection below TLS. To close that of TLS would wait for the
// client.
func socketOf(conn net.Conn) net.Conn {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return conn
}
