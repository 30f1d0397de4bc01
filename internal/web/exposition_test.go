package web_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// goneClient is a client that has hung up.
type goneClient struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

// Write implements io.Writer.
func (goneClient) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// Hijack implements http.Hijacker.
func (c goneClient) Hijack() (net.Conn, *bufio.ReadWriter, error) { return c.conn, nil, nil }

// A scraper that hangs up in the midst is no news, least of all once for each metric. Its
// connection is ended, so that the kernel keeps nothing for it.
func TestClientGone(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	for n := range 20 {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: fmt.Sprintf("rdma_metric_%d", n), Help: "A metric."}, []string{"device"})
		registry.MustRegister(v)
		for device := range 100 {
			v.WithLabelValues(fmt.Sprintf("mlx5_%d", device)).Set(float64(device) / 3)
		}
	}
	for _, encoding := range []string{"identity", "gzip"} {
		var log bytes.Buffer
		c := config(nil)
		c.Gatherer = registry
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		h := handler(t, c)
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
		r.Header.Set("Accept-Encoding", encoding)
		conn, _ := net.Pipe()
		h.ServeHTTP(goneClient{httptest.NewRecorder(), conn}, r)
		if log.Len() > 0 {
			t.Errorf("%s: the log says\n%s", encoding, log.String())
		}
		if err := conn.SetDeadline(time.Time{}); err == nil {
			t.Errorf("%s: the connection goes on", encoding)
		}
	}
}

// gate is a gatherer whose gathers wait until they are let through, one by one.
type gate struct {
	leave chan struct{}
	// gathers is how many were begun.
	gathers atomic.Int32
}

func newGate() *gate {
	return &gate{leave: make(chan struct{})}
}

// Gather implements prometheus.Gatherer. The metric tells which gather it is of.
func (g *gate) Gather() ([]*dto.MetricFamily, error) {
	n := float64(g.gathers.Add(1))
	<-g.leave
	gauge := func(name string) *dto.MetricFamily {
		return &dto.MetricFamily{Name: &name, Type: dto.MetricType_GAUGE.Enum(), Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: &n}}}}
	}
	return []*dto.MetricFamily{gauge("rdma_a"), gauge("rdma_b")}, nil
}

// scraper is a request in the background.
type scraper struct {
	w    *httptest.ResponseRecorder
	done chan struct{}
}

func scrape(ctx context.Context, h http.Handler, target, encoding, accept string) *scraper {
	s := &scraper{w: httptest.NewRecorder(), done: make(chan struct{})}
	r := httptest.NewRequestWithContext(ctx, "GET", target, nil)
	r.Header.Set("Accept-Encoding", encoding)
	r.Header.Set("Accept", accept)
	go func() {
		defer close(s.done)
		defer func() {
			if recover() != nil {
				s.w.Code = 0
			}
		}()
		h.ServeHTTP(s.w, r)
	}()
	return s
}

// TestSharedAnswers makes sure that however many ask for the same meanwhile, it is made
// once, and made anew for who asks afterwards.
func TestSharedAnswers(t *testing.T) { synctest.Test(t, testSharedAnswers) }

func testSharedAnswers(t *testing.T) {
	g := newGate()
	c := config(nil)
	c.Gatherer = g
	c.MaxRequests = 3
	h := handler(t, c)
	var same []*scraper
	for i := range 50 {
		same = append(same, scrape(t.Context(), h, "/metrics", []string{"gzip", "gzip;q=0.5"}[i%2], ""))
	}
	synctest.Wait()
	formatted := scrape(t.Context(), h, "/metrics", "identity", "application/openmetrics-text;version=1.0.0")
	synctest.Wait()
	one := scrape(t.Context(), h, "/metrics?name[]=rdma_b&name[]=x", "identity", "")
	synctest.Wait()

	// That makes three answers; what would be a fourth is refused, what is one of them
	// is not.
	for _, other := range []struct{ target, accept string }{
		{"/metrics", "text/plain;version=0.0.4;escaping=dots"},
		{"/metrics?name[]=rdma_a", ""},
		{"/metrics?name[]=rdma_b", "text/html"},
	} {
		s := scrape(t.Context(), h, other.target, "gzip", other.accept)
		<-s.done
		if s.w.Code != 503 {
			t.Errorf("%+v: got %d, %v", other, s.w.Code, s.w.Header())
		}
	}
	alike := scrape(t.Context(), h, "/metrics?name[]=x&name[]=rdma_b&name[]=x", "identity", "")
	synctest.Wait()

	answered := func(n int, scrapers ...*scraper) {
		t.Helper()
		for _, s := range scrapers {
			<-s.done
			if s.w.Header().Get("Content-Encoding") == "gzip" {
				s.w.Body = bytes.NewBufferString(unzip(t, s.w))
			}
			if body := s.w.Body.String(); s.w.Code != 200 || !strings.Contains(body, fmt.Sprintf("rdma_b %d", n)) {
				t.Errorf("got %d, %v, want that of gather %d: %s", s.w.Code, s.w.Header(), n, body)
			}
		}
	}
	for range 3 {
		g.leave <- struct{}{}
	}
	answered(1, same...)
	answered(2, formatted)
	answered(3, one, alike)
	if strings.Contains(one.w.Body.String(), "rdma_a") {
		t.Errorf("got what was not asked for: %s", one.w.Body)
	}
	if n := g.gathers.Load(); n != 3 {
		t.Errorf("gathered %d times", n)
	}
	later := scrape(t.Context(), h, "/metrics", "identity", "")
	g.leave <- struct{}{}
	answered(4, later)
}

// stuckWriter is a client that reads nothing.
type stuckWriter struct {
	*httptest.ResponseRecorder
	writes, leave chan struct{}
}

// Write implements io.Writer.
func (w *stuckWriter) Write(b []byte) (int, error) {
	close(w.writes)
	<-w.leave
	return len(b), nil
}

// TestSlowReaders makes sure that clients that do not read their answers keep nobody
// from being served, even if they are more than may be served at once.
func TestSlowReaders(t *testing.T) {
	c := config(nil)
	c.MaxRequests = 1
	h := handler(t, c)
	for _, encoding := range []string{"identity", "gzip"} {
		leave := make(chan struct{})
		var wg sync.WaitGroup
		for range 5 {
			w := &stuckWriter{httptest.NewRecorder(), make(chan struct{}), leave}
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
			r.Header.Set("Accept-Encoding", encoding)
			wg.Go(func() { h.ServeHTTP(w, r) })
			<-w.writes
		}
		if w := get(h, "GET", "/metrics"); w.Code != 200 || !strings.Contains(w.Body.String(), "rdma_devices 0") {
			t.Errorf("%s: while others do not read, got %d: %s", encoding, w.Code, w.Body)
		}
		close(leave)
		wg.Wait()
	}
}

// TestFewPlain makes sure that of many clients that read slowly few have an answer that
// takes memory, that each gets the same, and that those who read make room.
func TestFewPlain(t *testing.T) {
	h := handler(t, config(nil))
	stuck := func(leave chan struct{}) (w *stuckWriter, done chan struct{}) {
		w, done = &stuckWriter{httptest.NewRecorder(), make(chan struct{}), leave}, make(chan struct{})
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
		go func() {
			defer close(done)
			h.ServeHTTP(w, r)
		}()
		<-w.writes
		return w, done
	}
	plain := func(w *stuckWriter) bool { return w.Header().Get("Content-Length") != "" }
	first, others := make(chan struct{}), make(chan struct{})
	w, done := stuck(first)
	if !plain(w) {
		t.Error("a single client got none")
	}
	n := 1
	for range 20 {
		if w, _ := stuck(others); plain(w) {
			n++
		}
	}
	if n > 4 {
		t.Errorf("%d clients", n)
	}
	if w, _ := stuck(others); plain(w) {
		t.Error("one more")
	}
	close(first)
	<-done
	if w, _ := stuck(others); !plain(w) {
		t.Error("who has read makes no room")
	}
	close(others)
}

// TestPanic makes sure that a gather that panics harms nobody but those who wait for
// it, whose connections net/http ends.
func TestPanic(t *testing.T) { synctest.Test(t, testPanic) }

func testPanic(t *testing.T) {
	g := newGate()
	broken := true
	c := config(nil)
	whole := c.Gatherer
	c.Gatherer = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		if broken {
			_, _ = g.Gather()
			panic("broken")
		}
		return whole.Gather()
	})
	h := handler(t, c)
	first := scrape(t.Context(), h, "/metrics", "identity", "")
	second := scrape(t.Context(), h, "/metrics", "identity", "")
	other := scrape(t.Context(), h, "/metrics?name[]=x", "identity", "")
	synctest.Wait()
	g.leave <- struct{}{}
	g.leave <- struct{}{}
	for _, s := range []*scraper{first, second, other} {
		if <-s.done; s.w.Code != 0 {
			t.Errorf("got %d: %s", s.w.Code, s.w.Body)
		}
	}
	broken = false
	if w := get(h, "GET", "/metrics"); w.Code != 200 {
		t.Errorf("then got %d", w.Code)
	}
}

// TestKeepsWriter makes sure that what compresses an answer, which takes most of a
// megabyte, outlives collections of garbage between scrapes.
func TestKeepsWriter(t *testing.T) {
	h := handler(t, config(nil))
	get(h, "GET", "/metrics")
	const scrapes, most = 10, 300 << 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range scrapes {
		runtime.GC()
		runtime.GC() // The second one takes what a sync.Pool kept over the first.
		get(h, "GET", "/metrics")
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / scrapes; each > most {
		t.Errorf("a scrape takes %d bytes", each)
	}
}

// TestWritten makes sure that what the collector writes itself is served under the header
// that promhttp gives it, and that promhttp alone answers what it does not write to the end.
func TestWritten(t *testing.T) {
	c := config(nil)
	whole := handler(t, c)
	c = config(nil)
	c.Only = func([]string, []string) (prometheus.Gatherer, error) { return c.Gatherer, nil }
	var format expfmt.Format
	var text string
	var failed error
	c.Write = func(w io.Writer, f expfmt.Format) error {
		format = f
		_, err := io.WriteString(w, text)
		return errors.Join(err, failed)
	}
	written := handler(t, c)
	for _, accept := range []string{
		"", "*/*", "text/html", "application/openmetrics-text", "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;q=0.5",
		"application/openmetrics-text;version=0.0.1", "text/plain;version=0.0.4;escaping=dots", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
	} {
		for _, encoding := range []string{"identity", "gzip"} {
			for _, tc := range []struct {
				text   string
				failed error
			}{
				{"written", nil},
				{"", errors.ErrUnsupported},
				{"a half", errors.New("broken")},
				{strings.Repeat("more than is left as it is", 50_000), errors.New("broken")},
			} {
				text, failed = tc.text, tc.failed
				get := func(h http.Handler) *httptest.ResponseRecorder {
					r := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
					r.Header.Set("Accept", accept)
					r.Header.Set("Accept-Encoding", encoding)
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					if encoding == "gzip" {
						w.Body = bytes.NewBufferString(unzip(t, w))
					}
					w.Header().Del("Content-Length") // They say different things.
					return w
				}
				want, got := get(whole), get(written)
				if got.Code != 200 || !maps.EqualFunc(got.Header(), want.Header(), slices.Equal) {
					t.Errorf("%q: got %d, %v, want %v", accept, got.Code, got.Header(), want.Header())
				}
				if string(format) != want.Header().Get("Content-Type") {
					t.Errorf("%q: asked for %s, want %s", accept, format, want.Header().Get("Content-Type"))
				}
				body := got.Body.String()
				if failed == nil && body != text {
					t.Errorf("%q: got\n%s", accept, body)
				}
				if failed != nil && (text != "" && strings.Contains(body, text[:6]) || !strings.Contains(body, "rdma_devices")) {
					t.Errorf("%q: after %.20q, got\n%.1000s", accept, text, body)
				}
			}
		}
	}
	failed = nil
	for _, query := range []string{"name[]=rdma_devices", "collect[]=latency", "exclude[]=latency"} {
		if got := get(written, "GET", "/metrics?"+query).Body.String(); !strings.Contains(got, "rdma_devices 0") {
			t.Errorf("%s: got\n%s", query, got)
		}
	}
}

// TestManyNames makes sure that thousands of names are as good as one.
func TestManyNames(t *testing.T) {
	h := handler(t, config(nil))
	many := "/metrics?name[]=rdma_devices" + strings.Repeat("&name[]=x", 3500)
	if w := get(h, "GET", many); w.Code != 200 || !strings.Contains(w.Body.String(), "rdma_devices 0") || strings.Contains(w.Body.String(), "promhttp") {
		t.Errorf("got %d: %s", w.Code, w.Body)
	}
	for _, odd := range []string{"name[]=", "name[]", "name%5B%5D=rdma_devices&%zz", "name[]=a;name[]=b", "name[]=%ff%00%0a"} {
		if w := get(h, "GET", "/metrics?"+odd); w.Code != 200 {
			t.Errorf("%s: got %d: %s", odd, w.Code, w.Body)
		}
	}
}

// unread is a body that nobody may read.
type unread struct{ t *testing.T }

// Read implements io.Reader.
func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

// TestBodies makes sure that the body of a request is neither read nor waited for.
func TestBodies(t *testing.T) {
	h := handler(t, config(nil))
	for _, method := range []string{"GET", "POST"} {
		for _, path := range []string{"/", "/metrics", "/-/healthy", "/nothing"} {
			for _, length := range []int64{-1, 1, 1 << 40} {
				r := httptest.NewRequestWithContext(t.Context(), method, path, unread{t})
				r.ContentLength = length
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if got := w.Header().Get("Connection"); got != "close" {
					t.Errorf("%s %s with a body of %d: Connection %q", method, path, length, got)
				}
			}
		}
	}
	if got := get(h, "GET", "/metrics").Header().Get("Connection"); got != "" {
		t.Errorf("without a body: Connection %q", got)
	}
}

// FuzzMetrics makes sure that whatever is asked for, the answer is what it says that it
// is, and has no metric that was not named.
func FuzzMetrics(f *testing.F) {
	for _, seed := range [][3]string{
		{"", "", ""},
		{"name[]=rdma_devices", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5", "gzip"},
		{"name[]=a&name[]=rdma_devices&%zz;", "text/plain;version=0.0.4;escaping=allow-utf-8", "gzip;q=0"},
		{"name%5b%5d=rdma_devices", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "br, gzip;q=x"},
		{"\xff", ";;=,q", ",;gzip"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, query, accept, encoding string) {
		h := handler(t, config(nil))
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
		r.URL.RawQuery = query
		r.Header["Accept"], r.Header["Accept-Encoding"] = []string{accept}, []string{encoding}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if n := w.Header().Get("Content-Length"); w.Code != 200 || n != "" && n != strconv.Itoa(w.Body.Len()) {
			t.Fatalf("got %d, %v", w.Code, w.Header())
		}
		if w.Header().Get("Content-Encoding") == "gzip" {
			w.Body = bytes.NewBufferString(unzip(t, w))
		}
		decoder := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Header()))
		if strings.HasPrefix(w.Header().Get("Content-Type"), "application/openmetrics-text") {
			if !strings.HasSuffix(w.Body.String(), "# EOF\n") {
				t.Fatalf("cut off: %s", w.Body)
			}
			return // Nothing here decodes it.
		}
		names := r.URL.Query()["name[]"]
		for {
			var family dto.MetricFamily
			err := decoder.Decode(&family)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(names) > 0 && !slices.Contains(names, family.GetName()) {
				t.Fatalf("%s was not named", family.GetName())
			}
		}
	})
}
