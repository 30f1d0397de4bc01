package e2e_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	bigendian "encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/test/running"
	"rdma_exporter/verbs/simulated"
)

// manyDevices are the arguments of an exporter of so many devices that what it tells
// of them does not fit into the buffers of a connection by far.
func manyDevices(t *testing.T) []string {
	t.Helper()
	profile, err := simulated.Default().Scale(16).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"--provider=simulated", "--simulated.profile=" + running.File(t, "profile.yaml", string(profile)),
		"--probe.interval=1h", "--contract.interval=0s", "--inventory.interval=0s", "--notification.samples=2", "--notification.vectors=2", "--probe.concurrency=8",
		"--collector.verb-histograms", "--collector.memory", "--collector.limits",
	}
}

// connect opens a connection that is closed when the test ends, and reads as little in
// advance as can be.
func (e *exporter) connect(t *testing.T) net.Conn {
	t.Helper()
	_, address, _ := strings.Cut(e.url, "://")
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(running.Patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// send writes to a connection. That it is cut is no error.
func send(conn net.Conn, text string) { _, _ = io.WriteString(conn, text) }

// isCut waits until a connection is cut, and returns what came before.
func isCut(t *testing.T, conn net.Conn) string {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(running.Patience)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	_, err := io.Copy(&b, conn)
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		t.Errorf("the connection is not cut; it said %.200q", b.String())
	}
	return b.String()
}

// says sends a text on a connection of its own, and returns what comes before that is
// cut. It does so again if nothing came because the text may have come too late.
func (e *exporter) says(t *testing.T, text string) string {
	t.Helper()
	once := func() string {
		conn := e.connect(t)
		go send(conn, text)
		return isCut(t, conn)
	}
	began := time.Now()
	said := once()
	if said == "" && e.stalled(t, began) {
		return once()
	}
	return said
}

// answers sends a text on a connection of its own, and makes sure that there is an
// answer, which it leaves unread.
func (e *exporter) answers(t *testing.T, text string) {
	t.Helper()
	once := func() error {
		conn := e.connect(t)
		send(conn, text)
		if status, err := bufio.NewReaderSize(conn, 16).ReadString(' '); err != nil {
			return fmt.Errorf("no answer: %q, %w", status, err)
		}
		return nil
	}
	began := time.Now()
	err := once()
	if err != nil && e.stalled(t, began) {
		err = once()
	}
	if err != nil {
		t.Error(err)
	}
}

// scrapes makes sure that scrapers are served, all of several at once.
func (e *exporter) scrapes(t *testing.T) {
	t.Helper()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 3 {
				status, err := e.try(t, "/metrics", "", "")
				if err != nil || status != http.StatusOK {
					t.Errorf("a scrape meanwhile: status %d, %v", status, err)
				}
			}
		})
	}
	wg.Wait()
}

// settles makes sure that an exporter comes to hold no more than it did before.
func (e *exporter) settles(t *testing.T, before metrics) {
	t.Helper()
	for _, gauge := range []string{"process_open_fds", "go_goroutines"} {
		want := before.sum(gauge)
		running.Eventually(t, fmt.Sprintf("%s is what it was, %v", gauge, want), func() bool {
			_, text := e.get(t, "/metrics?name[]="+gauge)
			// A child that runs at the moment holds some, and so does a connection.
			return want > 0 && parse(t, text).sum(gauge) <= want+10
		})
	}
}

// Whatever clients do on one exporter at once, scrapers are served, and in the end it
// holds no more than before.
func TestAbuse(t *testing.T) {
	t.Parallel()
	e := start(t, append(manyDevices(t), "--web.max-requests=4")...)
	e.ready(t)
	before := e.scrape(t)
	// Clients that do not read what they asked for, many more than scrapes may be made at
	// once. They stay, and the exporter has to cut them.
	for i := range 60 {
		// Some take compressed answers, in such a number that they fill the buffers.
		request := "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept-Encoding: " + []string{"identity", "gzip"}[i%2] + "\r\n"
		e.answers(t, strings.Repeat(request+"\r\n", 40)+request+"Connection: close\r\n\r\n")
		if i%20 == 0 {
			e.scrapes(t)
		}
	}
	slowRequests(t, e)
	slowBodies(t, e)
	hugeHeaders(t, e)
	e.scrapes(t)
	e.settles(t, before)
}

// A client that sends its request slowly, or none, is cut, and nobody waits for it.
func slowRequests(t *testing.T, e *exporter) {
	slow := map[string]net.Conn{}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 20 {
		slow[fmt.Sprint("silent ", i)] = e.connect(t)
		conn := e.connect(t)
		slow[fmt.Sprint("header ", i)] = conn
		wg.Go(func() {
			// Always one byte more, so that it is never idle.
			for _, b := range []byte("GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: " + strings.Repeat("x", 10000)) {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
				}
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
			}
		})
	}
	e.scrapes(t)
	for name, conn := range slow {
		if said := isCut(t, conn); strings.Contains(said, "200 OK") {
			t.Errorf("%s: answered %q", name, said)
		}
	}
	close(stop)
	wg.Wait()
}

// The body of a request is not waited for: there is none that is of use.
func slowBodies(t *testing.T, e *exporter) {
	for request, want := range map[string]string{
		"GET /metrics?name[]=rdma_devices HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx":                                 "HTTP/1.1 200 OK\r\n",
		"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n":                                                     "HTTP/1.1 405 ",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n":                                                    "HTTP/1.1 405 ",
		"PUT /-/healthy HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\nExpect: 100-continue\r\n\r\n":                                 "HTTP/1.1 405 ",
		"GET /metrics?name[]=rdma_devices HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n": "HTTP/1.1 ",
		"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n":                                              "HTTP/1.1 400 ",
		"GET / HTTP/1.1\r\n\r\n": "HTTP/1.1 400 ",
		"CONNECT x:1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":                    "HTTP/1.1 40",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                                "HTTP/1.1 ",
		"GET http://elsewhere/-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n": "HTTP/1.1 200 ",
	} {
		if said := e.says(t, request); !strings.HasPrefix(said, want) {
			t.Errorf("%q: got %.100q, want %q", request, said, want)
		}
	}
}

// A header, and with it a path and its parameters, may have some KiB, and no more.
func hugeHeaders(t *testing.T, e *exporter) {
	const closing = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
	for _, c := range []struct{ name, request, want string }{
		{"a header of some KiB", "GET /-/healthy" + closing + "Cookie: " + strings.Repeat("x", 24<<10) + "\r\n\r\n", "HTTP/1.1 200 "},
		{"a huge header", "GET /-/healthy" + closing + "Cookie: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "HTTP/1.1 431 "},
		{"one that does not end", "GET /-/healthy" + closing + "Cookie: " + strings.Repeat("x", 1<<20), "HTTP/1.1 431 "},
		{"many headers", "GET /-/healthy" + closing + strings.Repeat("A: b\r\n", 20000) + "\r\n", "HTTP/1.1 431 "},
		{"a long path", "GET /" + strings.Repeat("x", 24<<10) + closing + "\r\n", "HTTP/1.1 404 "},
		{"a huge path", "GET /" + strings.Repeat("x", 64<<10) + closing + "\r\n", "HTTP/1.1 431 "},
		{"many names", "GET /metrics?name[]=rdma_devices" + strings.Repeat("&name[]=x", 2500) + closing + "\r\n", "HTTP/1.1 200 "},
		{"too many names", "GET /metrics?name[]=rdma_devices" + strings.Repeat("&name[]=x", 25000) + closing + "\r\n", "HTTP/1.1 431 "},
	} {
		// What is left unread makes the kernel reset the connection; the answer may be
		// lost then.
		if said := e.says(t, c.request); said != "" && !strings.HasPrefix(said, c.want) || said == "" && !strings.Contains(c.want, "431") {
			t.Errorf("%s: got %.100q, want %q", c.name, said, c.want)
		}
	}
	if status, _ := e.get(t, "/metrics"); status != http.StatusOK {
		t.Errorf("afterwards: status %d", status)
	}
}

// However many connections are opened, scrapers are served, those that have a
// connection keep it, and files are left for the children.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated", "--probe.interval=200ms", "--contract.interval=0s", "--notification.samples=0")
	e.ready(t)
	before := e.scrape(t)
	runs := func(m metrics) float64 { return m.sum("rdma_probe_runs_total", "outcome", "ok") }

	// A scraper that keeps its connection.
	kept, reused := 0, 0
	keeping := &http.Client{Timeout: running.Patience, Transport: &http.Transport{}}
	defer keeping.CloseIdleConnections()
	keep := func() {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			if i.Reused {
				reused++
			}
		}})
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := e.do(t, keeping, r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		kept++
	}
	keep()
	// Those that say nothing are cut after a while, so that the limit is reached without
	// pausing; and later, if the machine paused.
	const connections, most, atOnce, scrapeEach = 1200, 3600, 600, 200
	cut := func() bool { return strings.Contains(e.Log.String(), "Too many connections") }
	var open []net.Conn
	for len(open) < connections || !cut() && len(open) < most {
		open = append(open, e.connect(t))
		if n := len(open); n >= atOnce && n%scrapeEach == 0 {
			keep()
			e.scrapes(t)
		}
	}
	m := e.scrape(t)
	if fds := m.sum("process_open_fds"); fds == 0 || fds > 512+before.sum("process_open_fds")+100 { // some are for children
		t.Errorf("%v files are open with %d connections", fds, len(open))
	}
	if reused != kept-1 {
		t.Errorf("the scraper that keeps its connection could use it %d times of %d", reused, kept-1)
	}
	running.Eventually(t, "the log says that connections were cut", cut)
	if n := strings.Count(e.Log.String(), "\n"); n > 100 {
		t.Errorf("the log has %d lines", n)
	}
	running.Eventually(t, "the devices are probed on", func() bool { return runs(e.counts(t)) >= runs(m)+6 })
	for _, conn := range open {
		if said := isCut(t, conn); said != "" {
			t.Errorf("silence was answered %q", said)
		}
	}
	e.settles(t, before)
}

// frame is a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload string) string {
	head := bigendian.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	return string(bigendian.BigEndian.AppendUint32(append(head, flags), stream)) + payload
}

const (
	frameHeaders, frameReset, frameSettings, framePing, frameWindow, frameContinuation = 1, 3, 4, 6, 8, 9
	endStream, endHeaders                                                              = 1, 4

	// getMetrics is the header of GET https://x/metrics.
	getMetrics = "\x82\x87\x04\x08/metrics\x01\x01x"
)

// speakHTTP2 opens a connection that speaks HTTP/2, and lets the server send as much
// as it likes. It returns the connection and the server's settings.
func (e *exporter) speakHTTP2(t *testing.T, config *tls.Config) (net.Conn, map[uint16]uint32) {
	t.Helper()
	began := time.Now()
	conn, settings, err := e.tryHTTP2(t, config)
	if err != nil && e.stalled(t, began) {
		conn, settings, err = e.tryHTTP2(t, config)
	}
	if err != nil {
		t.Fatal(err)
	}
	return conn, settings
}

// tryHTTP2 is speakHTTP2 for a connection that may be cut.
func (e *exporter) tryHTTP2(t *testing.T, config *tls.Config) (net.Conn, map[uint16]uint32, error) {
	t.Helper()
	config = config.Clone()
	config.NextProtos, config.ServerName = []string{"h2"}, "127.0.0.1"
	conn := tls.Client(e.connect(t), config)
	send(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+frame(frameSettings, 0, 0, "\x00\x04\x7f\xff\xff\xff")+frame(frameWindow, 0, 0, "\x7f\xff\x00\x00"))
	var head [9]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, nil, fmt.Errorf("no settings: %w", err)
	}
	if head[3] != frameSettings {
		return nil, nil, fmt.Errorf("no settings, but %v", head)
	}
	payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(conn, payload); err != nil {
		return nil, nil, fmt.Errorf("the settings: %w", err)
	}
	settings := make(map[uint16]uint32)
	for ; len(payload) >= 6; payload = payload[6:] {
		settings[bigendian.BigEndian.Uint16(payload)] = bigendian.BigEndian.Uint32(payload[2:])
	}
	return conn, settings, nil
}

// What HTTP/2 adds is bounded as well: requests at once, those that are given up as
// soon as they are made, and what is answered without being asked for.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	config := &tls.Config{RootCAs: s.ca.pool()}
	e := s.start(t, "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n", config, append(manyDevices(t), "--web.max-requests=4")...)
	e.ready(t)
	before := e.scrape(t)
	_, settings := e.speakHTTP2(t, config)
	if streams := settings[3]; streams == 0 || streams > 16 {
		t.Errorf("%d requests at once are allowed on a connection", streams)
	}
	if header := settings[6]; header == 0 || header > 64<<10 {
		t.Errorf("headers of %d bytes are allowed", header)
	}

	// All at once, with clients that do not read what they asked for.
	cut := make(map[string]net.Conn)
	var answered []net.Conn
	var wg sync.WaitGroup
	flood := func(name string, frames func(i uint32) string) {
		conn, _ := e.speakHTTP2(t, config)
		cut[name] = conn
		wg.Go(func() {
			w := bufio.NewWriterSize(conn, 16<<10)
			for i := range uint32(20000) {
				if _, err := w.WriteString(frames(i)); err != nil {
					return
				}
			}
			_ = w.Flush() // The server may have cut the connection.
		})
	}
	flood("requests that are given up at once", func(i uint32) string {
		return frame(frameHeaders, endStream|endHeaders, 2*i+1, getMetrics) + frame(frameReset, 0, 2*i+1, "\x00\x00\x00\x08")
	})
	flood("a header without an end", func(i uint32) string {
		if i == 0 {
			return frame(frameHeaders, endStream, 1, getMetrics)
		}
		return frame(frameContinuation, 0, 1, "\x00\x01x\x01y")
	})
	flood("bodies", func(i uint32) string {
		if i == 0 {
			return frame(frameHeaders, endHeaders, 1, getMetrics)
		}
		return frame(0, 0, 1, strings.Repeat("x", 1000))
	})
	// What a server has to answer is not cut; it ends with the client.
	for name, text := range map[string]string{"pings whose answers nobody reads": frame(framePing, 0, 0, "12345678"), "settings": frame(frameSettings, 0, 0, "")} {
		flood(name, func(uint32) string { return text })
		answered = append(answered, cut[name])
		delete(cut, name)
	}
	// Answers that nobody reads are given up.
	for range 20 {
		conn, _ := e.speakHTTP2(t, config)
		for stream := range uint32(8) {
			send(conn, frame(frameHeaders, endStream|endHeaders, 2*stream+1, getMetrics))
		}
	}
	e.scrapes(t)
	wg.Wait()
	for _, conn := range answered {
		_ = conn.Close()
	}
	e.settles(t, before)
	for name, conn := range cut {
		isCut(t, conn)
		if t.Failed() {
			t.Fatalf("that was with %s", name)
		}
	}

	// One who is in haste, and reads, is served.
	e.client.Transport = &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: config}
	defer e.client.CloseIdleConnections()
	for range 40 {
		wg.Go(func() {
			if status, err := e.try(t, "/metrics", "", ""); err != nil || status != http.StatusOK {
				t.Errorf("of many requests at once: status %d, %v", status, err)
			}
		})
	}
	wg.Wait()
}
