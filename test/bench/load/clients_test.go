package load

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rdma_exporter/test/bench"
)

const (
	scrapers     = 100
	slowRequests = 100
	slowReaders  = 100

	// slowness is the pause between two bytes of a slow client.
	slowness = 100 * time.Millisecond
)

// scrapes holds the results of all scrapers.
type scrapes struct {
	mu    sync.Mutex
	took  []time.Duration
	bytes int
	// errors counts the failed scrapes by kind: a status, timeout or connection.
	errors map[string]int
}

// scrape scrapes on one connection until ctx is done. pause is the time between the starts
// of two scrapes.
func (s *scrapes) scrape(ctx context.Context, url string, first, pause time.Duration) {
	client := bench.Client()
	defer client.CloseIdleConnections()
	wait(ctx, first)
	for ctx.Err() == nil {
		began := time.Now()
		status, body, err := bench.Scrape(ctx, client, url)
		took := time.Since(began)
		if err != nil && ctx.Err() != nil {
			return // The end of the test broke it off.
		}
		s.mu.Lock()
		var network net.Error
		switch {
		case errors.As(err, &network) && network.Timeout():
			s.errors["timeout"]++
		case err != nil:
			s.errors["connection"]++
		case status != http.StatusOK:
			s.errors[strconv.Itoa(status)]++
		default:
			s.took = append(s.took, took)
			s.bytes += len(body)
		}
		s.mu.Unlock()
		wait(ctx, pause-took)
	}
}

// slow keeps one slow client at work until ctx is done. A client that is disconnected
// connects again.
func slow(ctx context.Context, address string, cuts *atomic.Int64, work func(context.Context, *net.TCPConn)) {
	for ctx.Err() == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			wait(ctx, slowness)
			continue
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		work(ctx, conn.(*net.TCPConn))
		stop()
		_ = conn.Close()
		if ctx.Err() == nil {
			cuts.Add(1)
		}
	}
}

// sendSlowly sends a request byte by byte, until the connection is closed.
func sendSlowly(ctx context.Context, conn *net.TCPConn) {
	for _, b := range []byte("GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: " + strings.Repeat("x", 10000)) {
		if _, err := conn.Write([]byte{b}); err != nil {
			return
		}
		wait(ctx, slowness)
	}
}

// readSlowly reads uncompressed answers byte by byte, until the connection is closed.
func readSlowly(ctx context.Context, conn *net.TCPConn) {
	if conn.SetReadBuffer(4<<10) != nil {
		return
	}
	// A single answer may fit into the buffers.
	if _, err := io.WriteString(conn, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 50)); err != nil {
		return
	}
	var b [1]byte
	for {
		if _, err := conn.Read(b[:]); err != nil {
			return
		}
		wait(ctx, slowness)
	}
}

// wait waits for d, or until ctx is done.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
