package web

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"rdma_exporter/internal/api"
)

// New returns a handler of all paths of the exporter. It is safe for concurrent use. New returns an
// error if the path of the metrics cannot be used, and panics if Registerer already has other metrics with
// the names of the handler's.
func New(c Config) (http.Handler, error) {
	c.MetricsPath = cmp.Or(c.MetricsPath, DefaultMetricsPath)
	if err := validateMetricsPath(c.MetricsPath); err != nil {
		return nil, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	// A failure is repeated for each request.
	c.Logger = bounded(c.Logger, c.Now)
	status := make(limit, MaxRequests)
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", status.handler(newPage(c)))
	mux.Handle("GET "+api.Path, status.handler(encoding(c, func(now time.Time) any { return c.Status(now) })))
	mux.Handle("GET "+api.VerdictPath, newVerdict(c))
	mux.HandleFunc("GET "+api.OldPath, func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusGone, "The status is now at "+api.Path+"; docs/migration.md lists the new names.")
	})
	mux.Handle("GET "+c.MetricsPath, metrics(c))
	mux.Handle("GET "+api.ProbePath, newProbe(c))
	if c.Paths != nil {
		mux.Handle("GET "+api.PeersPath, c.Paths)
		mux.Handle("POST "+api.PeersPath, c.Paths)
	}
	mux.Handle("GET "+healthyPath, http.HandlerFunc(healthy))
	mux.Handle("GET "+readyPath, ready(c.Snapshot))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		mux.ServeHTTP(w, r)
	}), nil
}

// metrics returns the handler of the metrics. If one metric is broken, the others are still
// exposed.
func metrics(c Config) http.Handler {
	options := promhttp.HandlerOpts{
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelError),
		ErrorHandling:     promhttp.ContinueOnError,
		Registry:          c.Registerer,
		EnableOpenMetrics: true,
	}
	all := promhttp.HandlerFor(c.Gatherer, options)
	chosen := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		collect, exclude := query["collect[]"], query["exclude[]"]
		if len(collect)+len(exclude) == 0 {
			all.ServeHTTP(w, r)
			return
		}
		gatherer, err := c.Only(collect, exclude)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		promhttp.HandlerFor(gatherer, options).ServeHTTP(w, r)
	})
	// The limit of promhttp would count the handler of each request apart.
	return promhttp.InstrumentMetricHandler(c.Registerer, make(limit, MaxRequests).handler(chosen))
}

// limit bounds concurrent requests by its capacity.
type limit chan struct{}

// handler returns a handler that answers requests beyond the limit with 503.
func (l limit) handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case l <- struct{}{}:
			defer func() { <-l }()
			h.ServeHTTP(w, r)
		default:
			http.Error(w, fmt.Sprintf("Limit of concurrent requests reached (%d), try again later.", cap(l)), http.StatusServiceUnavailable)
		}
	})
}

// rendering returns a handler of what render writes. It renders to memory first, so that a
// failure is answered as one.
func rendering(c Config, contentType string, render func(w io.Writer, now time.Time) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		if err := render(&b, c.Now()); err != nil {
			c.Logger.Error("Cannot answer", "path", r.URL.Path, "err", err)
			http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(b.Bytes()) // An error means that the client is gone.
	})
}
