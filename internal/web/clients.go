package web

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// clients keeps count of the connections of a server, and of what is kept for them.
// What goes beyond a limit costs those who hold most for least: a connection more is
// always taken, and a worse one cut. It is safe for concurrent use.
type clients struct {
	maxConnections, maxUnsent int
	// serveTimeout is how long one request on HTTP/2 may take; the connection is cut
	// then. net/http bounds only requests on HTTP/1 in any case.
	serveTimeout time.Duration
	logger       *slog.Logger

	mu sync.Mutex
	// events counts what happened on all connections; it is the clock by which the one
	// that was longest without an event is found.
	events uint64
	open   map[net.Conn]*client
	// unsent are the answers that are being sent, and unsentBytes how long they are in
	// all, save those that are given up.
	unsent      map[*answer]*delivery
	unsentBytes int
}

// client is a connection. Its fields are guarded by the mutex of its clients.
type client struct {
	of   *clients
	conn net.Conn
	// last is the latest event: that it was opened, that a request came that may be
	// served, or that one was done.
	last uint64
	// asked tells whether there was any such request, and serving how many are served
	// now.
	asked   bool
	serving int
}

// delivery is an answer that is being sent.
type delivery struct {
	since uint64
	to    map[*client]int
	// given tells that all its clients were cut, and its bytes no longer count.
	given bool
}

// clientKey is the key of the client in the context of its connection.
type clientKey struct{}

// clientOf returns the client of a request; nil if nobody keeps count.
func clientOf(ctx context.Context) *client {
	c, _ := ctx.Value(clientKey{}).(*client)
	return c
}

func newClients(logger *slog.Logger) *clients {
	return &clients{
		maxConnections: maxConnections, maxUnsent: maxUnsent, serveTimeout: writeTimeout + stallTimeout, logger: logger,
		open: make(map[net.Conn]*client), unsent: make(map[*answer]*delivery),
	}
}

// connContext takes a connection that was accepted: the ConnContext of a server. If
// there are too many then, it cuts another one.
func (s *clients) connContext(ctx context.Context, conn net.Conn) context.Context {
	if b, ok := socketOf(conn).(interface {
		SetReadBuffer(bytes int) error
		SetWriteBuffer(bytes int) error
	}); ok {
		// A socket that does not take a size keeps its own.
		_ = b.SetReadBuffer(receiveBuffer)
		_ = b.SetWriteBuffer(sendBuffer)
	}
	// The log may block, and nobody else is to wait for it: so it is deferred to the end.
	var worst *client
	defer func() {
		if worst != nil {
			s.logger.Warn("Too many connections: the one that does least was cut", "limit", s.maxConnections, "client", worst.conn.RemoteAddr())
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= s.maxConnections {
		if worst = s.worst(); worst != nil {
			s.cut(worst)
		}
	}
	s.events++
	c := &client{of: s, conn: conn, last: s.events}
	s.open[conn] = c
	return context.WithValue(ctx, clientKey{}, c)
}

// connState forgets connections that have ended: the ConnState of a server.
func (s *clients) connState(conn net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, conn)
	}
}

// watch returns a handler that does what h does, and keeps count of what is served.
func (s *clients) watch(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := clientOf(r.Context())
		if c == nil {
			h.ServeHTTP(w, r)
			return
		}
		if r.ProtoMajor >= 2 {
			defer time.AfterFunc(s.serveTimeout, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.cut(c)
			}).Stop()
		}
		c.count(1)
		defer c.count(-1)
		h.ServeHTTP(w, r)
	})
}

// count counts a request that begins (1) or ends (-1) being served.
func (c *client) count(n int) {
	s := c.of
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events++
	c.last, c.asked, c.serving = s.events, true, c.serving+n
}

// gone ends the connection of a client that did not take the answer to a request:
// there is nobody to tell. On HTTP/2 it may be one request only that was given up. For
// no client it does nothing.
func (c *client) gone(r *http.Request) {
	if c == nil || r.ProtoMajor >= 2 {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.cut(c)
}

// hold counts an answer as kept for a client, until the function that it returns is
// called. If that is too much in all, it cuts all clients that still have not read the
// oldest answer. For no client it does nothing.
func (c *client) hold(a *answer) (release func()) {
	if c == nil {
		return func() {}
	}
	s := c.of
	var slow int
	defer func() {
		if slow > 0 {
			s.logger.Warn("Too many bytes wait for slow clients: the slowest were cut", "limit", s.maxUnsent, "clients", slow)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.unsent[a]
	if d == nil {
		s.events++
		d = &delivery{since: s.events, to: make(map[*client]int)}
		s.unsent[a] = d
		s.unsentBytes += cap(a.body)
	}
	d.to[c]++
	for s.unsentBytes > s.maxUnsent {
		oldest := s.oldest(a)
		if oldest == nil {
			break
		}
		slow += s.giveUp(oldest)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if d.to[c]--; d.to[c] == 0 {
			delete(d.to, c)
		}
		if len(d.to) == 0 {
			delete(s.unsent, a)
			if !d.given {
				s.unsentBytes -= cap(a.body)
			}
		}
	}
}

// oldest returns the answer that is being sent for longest, other than one that may be
// long in itself; nil if there is none.
func (s *clients) oldest(but *answer) *answer {
	var oldest *answer
	for a, d := range s.unsent {
		if a != but && !d.given && (oldest == nil || d.since < s.unsent[oldest].since) {
			oldest = a
		}
	}
	return oldest
}

// giveUp cuts all to whom an answer is being sent. They let go of it when their writes
// fail, which is at once.
func (s *clients) giveUp(a *answer) (clients int) {
	d := s.unsent[a]
	d.given = true
	s.unsentBytes -= cap(a.body)
	for c := range d.to {
		s.cut(c)
	}
	return len(d.to)
}

// worst returns the connection that is missed least: one on which no request came that
// may be served, if there are many of these, else one that waits for its next request,
// else one whose client takes long over its answer; of several the one that was longest
// without an event. It returns nil if there is no connection.
func (s *clients) worst() *client {
	fresh := 0
	for _, c := range s.open {
		if !c.asked {
			fresh++
		}
	}
	// Who comes is given time to ask, unless there are too many who do not.
	spare := fresh <= s.maxConnections/4
	rank := func(c *client) int {
		switch {
		case !c.asked && spare:
			return 3
		case !c.asked:
			return 0
		case c.serving == 0:
			return 1
		default:
			return 2
		}
	}
	var worst *client
	for _, c := range s.open {
		if worst == nil || rank(c) < rank(worst) || rank(c) == rank(worst) && c.last < worst.last {
			worst = c
		}
	}
	return worst
}

// cut ends a connection at once, and forgets it.
func (s *clients) cut(c *client) {
	delete(s.open, c.conn)
	socket := socketOf(c.conn)
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
