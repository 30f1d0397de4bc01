//go:build browser

package browser

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/web"
)

// server serves a snapshot by the handler of the exporter, and takes down what it
// is asked for.
type server struct {
	url string

	mu    sync.Mutex
	asked []string
}

// serve serves a judged host until the test ends.
func serve(t *testing.T, h *health.Host) *server {
	t.Helper()
	registry := prometheus.NewRegistry()
	handler, err := web.New(web.Config{
		Snapshot: func() *state.Snapshot { return h.Snapshot }, Gatherer: registry, Registerer: registry,
		Status: func(now time.Time) *api.Status {
			return api.New(h, api.Options{Now: now, Version: "0.0.0", Host: "node17"})
		},
		Logger: slog.New(slog.DiscardHandler), Now: apitest.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return listen(t, handler)
}

// listen serves by a handler until the test ends.
func listen(t *testing.T, handler http.Handler) *server {
	t.Helper()
	f := new(server)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.asked = append(f.asked, r.URL.Path)
		f.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(listener.Close)
	f.url = listener.URL
	return f
}

// serveText serves a page of its own.
func serveText(t *testing.T, html string) *server {
	t.Helper()
	return listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, html)
	}))
}

// requests returns the paths that were asked for, in order.
func (f *server) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// assessed judges a snapshot as the exporter does it.
func assessed(s *state.Snapshot) *health.Host {
	c := health.Default()
	c.StaleAfter = apitest.StaleAfter()
	return health.New(c, health.History{}).Evaluate(s)
}

// host returns the host of apitest with a name.
func host(name string) *state.Snapshot {
	for _, h := range apitest.Hosts() {
		if h.Name == name {
			return h.Snapshot
		}
	}
	panic("apitest has no host " + name)
}

// vanished is a host whose device was taken out while a child on it did not end.
func vanished() *state.Snapshot {
	s := host("stuck")
	d := &s.Devices[0]
	d.Present, d.Contracts, d.Resources, d.Full = false, nil, nil, nil
	s.Devices = s.Devices[:1]
	return s
}

// pinning is a host on which a program may hardly pin any more memory.
func pinning() *state.Snapshot {
	s := host("healthy")
	s.Devices = s.Devices[:1]
	s.Devices[0].Resources.Inventory.Owners[1].Memlock = &state.Memlock{Pinned: 63 << 20, Limit: 64 << 20}
	return s
}

// hostileText is what no device should be called: markup that sets what inspect.js
// looks for, quotes, ends of lines, what steers a terminal, what turns the direction
// of text, bytes that are no text, and a long word.
const hostileText = `<script>window.hostile=1;alert(1)</script><img src=x onerror="window.hostile=1">"'` + "`</style></title></svg>\n\r\t\x1b[31m\u202e\u2066\x00\xff\xfe&amp;{{.}}" +
	"AWordWithoutAnyPlaceToBreakItThatGoesOnAndOnAndOnAndOnAndOnAndOnAndOnAndOnAndOn"
