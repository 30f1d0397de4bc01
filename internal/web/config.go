package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/verdict"
)

const (
	// DefaultMetricsPath is the default path of the metrics.
	DefaultMetricsPath = "/metrics"

	healthyPath = "/-/healthy"
	readyPath   = "/-/ready"
)

// Config is what the handler needs. Paths, MetricsPath and Now may be left out.
type Config struct {
	// Snapshot returns the latest snapshot, or nil before the first one. It must be safe for
	// concurrent use and must not block.
	Snapshot func() *state.Snapshot
	// Status returns the status at a moment. The same applies to it.
	Status func(now time.Time) *api.Status
	// Verdict returns the verdict at a moment. The same applies to it.
	Verdict func(o verdict.Options, now time.Time) verdict.Verdict
	// Gatherer is asked for the metrics at each scrape.
	Gatherer prometheus.Gatherer
	// Only returns the Gatherer for a scrape that requests or excludes collectors by name,
	// or an error that explains what is wrong with the names.
	Only func(collect, exclude []string) (prometheus.Gatherer, error)
	// Paths answers peers, below /api/v1/path/. It must limit the bodies that it reads, and how
	// long it takes. Nil means that peers may not ask.
	Paths http.Handler
	// Registerer takes the metrics of the handler itself.
	Registerer prometheus.Registerer
	// Logger logs scrapes that failed in part or whole.
	Logger *slog.Logger
	// MetricsPath is where the metrics are; DefaultMetricsPath if empty.
	MetricsPath string
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

func validateMetricsPath(p string) error {
	switch {
	case !strings.HasPrefix(p, "/"):
		return fmt.Errorf("metrics path %q does not begin with /", p)
	case p == "/" || p == "/-" || strings.HasPrefix(p, "/-/") || p == api.Path || p == api.OldPath || p == api.VerdictPath || p == api.ProbePath || strings.HasPrefix(p+"/", api.PeersPath):
		return fmt.Errorf("metrics path %q is taken", p)
	case path.Clean(p) != p:
		return fmt.Errorf("metrics path %q is not in its shortest form %q", p, path.Clean(p))
	case strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("{}?#%\\", r) }):
		// Most of these mean something to the multiplexer or to a URL.
		return fmt.Errorf("metrics path %q has characters that it must not have", p)
	}
	return nil
}
