package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
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
	conns    map[string]*fakeConn
	contexts map[string]context.Context
	leave    map[string]chan struct{}
	left     map[string]chan struct{}
	log      bytes.Buffer
}

func newCrowd(maxConnections, maxUnsent int) *crowd {
	c := &crowd{
		conns: make(map[string]*fakeConn), contexts: make(map[string]context.Context),
		leave: make(map[string]chan struct{}), left: make(map[string]chan struct{}),
	}
	c.clients = newClients(slog.New(slog.NewTextHandler(&c.log, nil)))
	c.maxConnections, c.maxUnsent = maxConnections, maxUnsent
	return c
}

// opens adds a connection.
func (c *crowd) opens(name string) {
	c.conns[name] = &fakeConn{name: name}
	c.contexts[name] = c.connContext(context.Background(), c.conns[name])
}

// asks begins a request on a connection.
func (c *crowd) asks(name string) {
	entered, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	c.leave[name], c.left[name] = leave, left
	h := c.watch(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	}))
	r := httptest.NewRequestWithContext(c.contexts[name], "GET", "/", nil)
	go func() {
		h.ServeHTTP(httptest.NewRecorder(), r)
		close(left)
	}()
	<-entered
}

// reads ends the request of a connection.
func (c *crowd) reads(name string) {
	close(c.leave[name])
	<-c.left[name]
}

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
			c := newCrowd(3, 0)
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

// TestUnsentLimit makes sure that of too much that is not read, what was sent first is
// given up, with all who wait for it.
func TestUnsentLimit(t *testing.T) {
	c := newCrowd(100, 1000)
	for i := range 9 {
		c.opens(fmt.Sprint(i))
	}
	hold := func(i int, a *answer) func() { return clientOf(c.contexts[fmt.Sprint(i)]).hold(a) }
	of := func(n int) *answer { return &answer{body: make([]byte, n)} }

	// One that many wait for counts once.
	shared := of(400)
	releases := []func(){hold(0, shared), hold(1, shared), hold(2, shared), hold(2, shared)}
	second := hold(3, of(600))
	if got := c.closed(); got != nil || c.unsentBytes != 1000 {
		t.Fatalf("cut %v at %d bytes", got, c.unsentBytes)
	}
	third := hold(4, of(300))
	if got := c.closed(); !slices.Equal(got, []string{"0", "1", "2"}) || c.unsentBytes != 900 {
		t.Fatalf("cut %v at %d bytes", got, c.unsentBytes)
	}
	// One that is too long in itself is sent, if alone.
	fourth := hold(5, of(5000))
	if got := c.closed(); !slices.Equal(got, []string{"0", "1", "2", "3", "4"}) || c.unsentBytes != 5000 {
		t.Fatalf("cut %v at %d bytes", got, c.unsentBytes)
	}
	fifth := hold(6, of(1))
	if got := c.closed(); !slices.Contains(got, "5") || c.unsentBytes != 1 {
		t.Fatalf("cut %v at %d bytes", got, c.unsentBytes)
	}
	for _, release := range append(releases, second, third, fourth, fifth) {
		release()
	}
	if c.unsentBytes != 0 || len(c.unsent) != 0 {
		t.Errorf("%d bytes of %d answers are left", c.unsentBytes, len(c.unsent))
	}
	// Outside of a server nothing is counted.
	clientOf(t.Context()).hold(of(9999))()
}

// TestServeTimeout makes sure that a request on HTTP/2 that does not end is cut, and
// one that does is not.
func TestServeTimeout(t *testing.T) {
	c := newCrowd(10, 0)
	c.serveTimeout = time.Nanosecond
	cut := func(name string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, open := c.open[c.conns[name]]
		return !open
	}
	ask := func(name string, wait bool) {
		c.opens(name)
		r := httptest.NewRequestWithContext(c.contexts[name], "GET", "/", nil)
		r.ProtoMajor = 2
		c.watch(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			for wait && !cut(name) {
				time.Sleep(time.Millisecond)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	}
	ask("slow", true) // It ends only because it is cut.
	c.serveTimeout = time.Hour
	ask("fast", false)
	if cut("fast") || !c.conns["slow"].closed {
		t.Errorf("cut %v", c.closed())
	}
}

// Who has just come is not cut for who comes next, while others idle.
func TestNewcomerStays(t *testing.T) {
	c := newCrowd(4, 0)
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

// TestSmallAnswerIsSmall makes sure that an answer keeps no more memory than it counts
// for: that of a few metrics not the memory of all.
func TestSmallAnswerIsSmall(t *testing.T) {
	e := newExposition(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "" {
			_, _ = w.Write(make([]byte, 1<<20))
		}
	}), 0)
	ask := func(target string) *answer {
		return e.answer(httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
	}
	if full := ask("/metrics"); len(full.body) != 1<<20 {
		t.Fatalf("the whole answer has %d bytes", len(full.body))
	}
	if one := ask("/metrics?name[]=x"); cap(one.body) > 1<<16 {
		t.Errorf("an answer of %d bytes keeps %d", len(one.body), cap(one.body))
	}
}

// TestSocketBuffers makes sure that what the kernel keeps for as many connections as
// there may be is no more than docs/configuration.md says, by the kernel's own account,
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
		newClients(slog.New(slog.DiscardHandler)).connContext(t.Context(), wrap(conn))
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
