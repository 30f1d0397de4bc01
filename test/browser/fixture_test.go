//go:build browser

package browser

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/internal/web"
)

// serve serves an evaluated host until the test ends, and returns its address.
func serve(t *testing.T, h *health.Host) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	handler, err := web.New(web.Config{
		Snapshot: func() *state.Snapshot { return h.Snapshot }, Gatherer: registry, Registerer: registry,
		Status: func(now time.Time) *api.Status {
			return api.New(h, api.Options{Now: now, Version: "0.0.0", Host: "node17"})
		},
		Verdict: func(o verdict.Options, now time.Time) verdict.Verdict { return verdict.Of(h, o, now) },
		Logger:  slog.New(slog.DiscardHandler), Now: apitest.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return listen(t, handler)
}

func listen(t *testing.T, handler http.Handler) string {
	t.Helper()
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	return listener.URL
}

func serveText(t *testing.T, html string) string {
	t.Helper()
	return listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, html)
	}))
}

// assessed evaluates a snapshot as the exporter does.
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

// pinning returns a host with a program near its limit of locked memory.
func pinning() *state.Snapshot {
	s := host("healthy")
	s.Devices = s.Devices[:1]
	s.Devices[0].Resources.Inventory.Owners[1].Memlock = &state.Memlock{Pinned: 63 << 20, Limit: 64 << 20}
	return s
}

// hostileText has markup that sets what inspect.js looks for, quotes, line ends, terminal and
// direction controls, invalid bytes, and a long word.
const hostileText = `<script>window.hostile=1;alert(1)</script><img src=x onerror="window.hostile=1">"'` + "`</style></title></svg>\n\r\t\x1b[31m\u202e\u2066\x00\xff\xfe&amp;{{.}}" +
	"AWordWithoutAnyPlaceToBreakItThatGoesOnAndOnAndOnAndOnAndOnAndOnAndOnAndOnAndOn"
