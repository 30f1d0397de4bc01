//go:build load

package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	scrapers     = 100
	slowRequests = 100
	slowReaders  = 100

	// accept is what Prometheus sends.
	accept = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
	// scrapeTimeout is that of Prometheus unless it is told otherwise.
	scrapeTimeout = 10 * time.Second
	// slowness is the pause between two bytes of a slow client.
	slowness = 100 * time.Millisecond
)

// scrapes are what scrapers saw.
type scrapes struct {
	mu     sync.Mutex
	took   []time.Duration
	errors map[string]int
	bytes  int64
}

// scrape scrapes until ctx is done, as Prometheus would: on one connection that is
// kept, compressed. pause is between the beginnings of two scrapes; zero is none.
func (s *scrapes) scrape(ctx context.Context, address string, first, pause time.Duration) {
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: scrapeTimeout}
	wait(ctx, first)
	for ctx.Err() == nil {
		began := time.Now()
		n, kind := scrapeOnce(ctx, client, address)
		took := time.Since(began)
		if kind != "" && ctx.Err() != nil {
			return // It was the end that cut it.
		}
		s.mu.Lock()
		if kind != "" {
			s.errors[kind]++
		} else {
			s.took = append(s.took, took)
			s.bytes += n
		}
		s.mu.Unlock()
		wait(ctx, pause-took)
	}
}

// scrapeOnce scrapes and returns how many bytes came, or what kind of error there was.
func scrapeOnce(ctx context.Context, client *http.Client, address string) (int64, string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("Accept-Encoding", "gzip")
	response, err := client.Do(r)
	if err == nil {
		defer func() { _ = response.Body.Close() }()
		var n int64
		n, err = io.Copy(io.Discard, response.Body)
		switch {
		case err == nil && response.StatusCode != http.StatusOK:
			return n, fmt.Sprint(response.StatusCode)
		case err == nil:
			return n, ""
		}
	}
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return 0, "timeout"
	}
	return 0, "connection"
}

// quantile returns how long some part of the scrapes took at most.
func (s *scrapes) quantile(q float64) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	slices.Sort(s.took)
	return s.took[int(q*float64(len(s.took)-1))]
}

// slow keeps one slow client at work until ctx is done: whenever it is cut, it comes
// again.
func slow(ctx context.Context, address string, cuts *atomic.Int64, work func(ctx context.Context, conn *net.TCPConn)) {
	for ctx.Err() == nil {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			wait(ctx, slowness)
			continue
		}
		ended := context.AfterFunc(ctx, func() { _ = conn.Close() })
		work(ctx, conn.(*net.TCPConn))
		ended()
		_ = conn.Close()
		if ctx.Err() == nil {
			cuts.Add(1)
		}
	}
}

// sendSlowly sends a request a byte at a time, until it is cut.
func sendSlowly(ctx context.Context, conn *net.TCPConn) {
	for _, b := range []byte("GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: " + strings.Repeat("x", 10000)) {
		if _, err := conn.Write([]byte{b}); err != nil {
			return
		}
		wait(ctx, slowness)
	}
}

// readSlowly asks for everything, without compression, and reads a byte at a time,
// until it is cut.
func readSlowly(ctx context.Context, conn *net.TCPConn) {
	if conn.SetReadBuffer(4<<10) != nil {
		return
	}
	// One answer may be small enough for the buffers between.
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

// wait waits for some time, or until ctx is done.
func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
