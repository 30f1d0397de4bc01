package web

import (
	"bytes"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// fakeConn is a connection with a name that tells whether it was closed.
type fakeConn struct {
	net.Conn
	name   string
	closed bool
}

// Close implements net.Conn.
func (c *fakeConn) Close() error {
	c.closed = true
	return nil
}

// RemoteAddr implements net.Conn.
func (c *fakeConn) RemoteAddr() net.Addr { return &net.UnixAddr{Name: c.name} }

// crowd is clients with connections that have names.
type crowd struct {
	*clients
	conns map[string]*fakeConn
	log   bytes.Buffer
}

func newCrowd(maxConnections, maxServed int) *crowd {
	c := &crowd{conns: make(map[string]*fakeConn)}
	c.clients = newClients(slog.New(slog.NewTextHandler(&c.log, nil)))
	c.maxConnections, c.maxServed = maxConnections, maxServed
	return c
}

// opens adds a connection.
func (c *crowd) opens(name string) {
	c.conns[name] = &fakeConn{name: name}
	c.connState(c.conns[name], http.StateNew)
}

// asks begins a request on a connection.
func (c *crowd) asks(name string) { c.connState(c.conns[name], http.StateActive) }

// reads ends the request of a connection.
func (c *crowd) reads(name string) { c.connState(c.conns[name], http.StateIdle) }

// ends takes a connection away.
func (c *crowd) ends(name string) { c.connState(c.conns[name], http.StateClosed) }

// closed returns the names of the connections that were cut.
func (c *crowd) closed() []string {
	var names []string
	for name, conn := range c.conns {
		if conn.closed {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestConnectionLimit makes sure that of too many connections the right one is cut,
// and never the one that comes.
func TestConnectionLimit(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(*crowd)
		want []string
	}{
		{"as many as may be", func(*crowd) {}, nil},
		{"the oldest that never asked", func(c *crowd) { c.opens("d") }, []string{"a"}},
		{"two more", func(c *crowd) { c.opens("d"); c.opens("e") }, []string{"a", "b"}},
		{"not one that asked", func(c *crowd) { c.asks("a"); c.reads("a"); c.opens("d") }, []string{"b"}},
		{"not one that is served", func(c *crowd) { c.asks("a"); c.opens("d"); c.reads("a") }, []string{"b"}},
		{"the one that asked longest ago", func(c *crowd) {
			for _, name := range []string{"b", "c", "a"} {
				c.asks(name)
				c.reads(name)
			}
			c.opens("d")
		}, []string{"b"}},
		{"an idle one before one that is served", func(c *crowd) {
			c.asks("a")
			c.asks("b")
			c.asks("c")
			c.reads("c")
			c.opens("d")
			c.reads("a")
			c.reads("b")
		}, []string{"c"}},
		{"the one that takes longest over its answer", func(c *crowd) {
			for _, name := range []string{"b", "c", "a"} {
				c.asks(name)
			}
			c.opens("d")
			for _, name := range []string{"b", "c", "a"} {
				c.reads(name)
			}
		}, []string{"b"}},
		{"room again", func(c *crowd) { c.ends("b"); c.opens("d") }, nil},
		{"one that ends after it was cut", func(c *crowd) { c.opens("d"); c.ends("a"); c.opens("e") }, []string{"a", "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCrowd(3, 3)
			c.opens("a")
			c.opens("b")
			c.opens("c")
			tt.do(c)
			warned := strings.Count(c.log.String(), "level=WARN")
			if got := c.closed(); !slices.Equal(got, tt.want) || warned != len(tt.want) || len(c.open) > 3 {
				t.Errorf("cut %v with %d warnings, %d are open; want %v", got, warned, len(c.open), tt.want)
			}
		})
	}
}

// TestServedLimit makes sure that of too many clients that do not read their answers the
// slowest is cut, and never the one that asks.
func TestServedLimit(t *testing.T) {
	c := newCrowd(9, 3)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		c.opens(name)
	}
	for _, name := range []string{"b", "a", "c"} {
		c.asks(name)
	}
	c.reads("b")
	c.asks("b")
	if got := c.closed(); got != nil {
		t.Errorf("%v were cut of as many as may be", got)
	}
	c.asks("d")
	c.reads("c")
	c.asks("e")
	if got, want := c.closed(), []string{"a"}; !slices.Equal(got, want) || strings.Count(c.log.String(), "slowest was cut") != 1 {
		t.Errorf("%v were cut, want %v: %s", got, want, c.log.String())
	}
	c.asks("c")
	if got, want := c.closed(), []string{"a", "b"}; !slices.Equal(got, want) || len(c.open) != 3 {
		t.Errorf("%v were cut, want %v; %d are open", got, want, len(c.open))
	}
}

// Who has just come is not cut for who comes next, while others idle.
func TestNewcomerStays(t *testing.T) {
	c := newCrowd(4, 4)
	for _, name := range []string{"a", "b", "c", "d"} {
		c.opens(name)
		c.asks(name)
		c.reads(name)
	}
	c.opens("scraper")
	c.opens("next")
	if got, want := c.closed(), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("%v were cut, want %v", got, want)
	}
}

// TestAnswersAreKeptSmall makes sure that what is kept for a client that reads slowly is
// compressed if it is long, even if that client asked for text.
func TestAnswersAreKeptSmall(t *testing.T) {
	e := newExposition(func(a *answer, r *http.Request) {
		if r.URL.RawQuery == "" {
			_, _ = a.Write(make([]byte, 1<<20))
		}
	})
	for _, target := range []string{"/metrics", "/metrics?name[]=x"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		for _, plain := range []bool{false, true} {
			if kept := e.make(r, plain).body.Cap(); kept > 1<<14 {
				t.Errorf("%s: %d bytes are kept", target, kept)
			}
		}
	}
}

// TestSocketBuffers makes sure that what the kernel keeps for as many connections as
// there may be is no more than docs/reference/configuration.md says, by the kernel's own account,
// and no less than sending without pauses needs.
func TestSocketBuffers(t *testing.T) {
	const most = 80 << 20
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"plain": func(conn net.Conn) net.Conn { return conn },
		"TLS":   func(conn net.Conn) net.Conn { return tls.Server(conn, nil) },
	} {
		var dialer net.Dialer
		client, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		newClients(slog.New(slog.DiscardHandler)).connState(wrap(conn), http.StateNew)
		sent, received := bufferOf(t, conn, syscall.SO_SNDBUF), bufferOf(t, conn, syscall.SO_RCVBUF)
		if kept := sent + received; kept*maxConnections > most {
			t.Errorf("%s: %d bytes for each of %d connections are %d MiB", name, kept, maxConnections, kept*maxConnections>>20)
		}
		// Half of it is for what the kernel needs itself. If no two segments fit, each waits
		// for the acknowledgement of the one before.
		if lo, err := net.InterfaceByName("lo"); err == nil && sent/2 < lo.MTU {
			t.Errorf("%s: %d bytes are too few to send on a loopback device of MTU %d", name, sent, lo.MTU)
		}
	}
}

// bufferOf returns the size of a buffer of a connection, in bytes.
func bufferOf(t *testing.T, conn net.Conn, option int) (size int) {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) { size, failed = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, option) })
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	return size
}
