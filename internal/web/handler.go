package web

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// New returns a handler of all paths that the exporter serves, to GET and HEAD alone, save
// that of a reload, to POST and PUT. It may be used by any number of goroutines. It returns an error if the
// configuration is not valid, and panics if Registerer has other metrics of the
// names that the handler uses.
func New(c Config) (http.Handler, error) {
	c, err := c.Validate()
	if err != nil {
		return nil, err
	}
	// What fails, fails for each who asks.
	c.Logger = bounded(c.Logger, c.Now)
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", newPage(c))
	mux.Handle("GET "+apiPath(), newAPI(c))
	mux.Handle("GET "+c.MetricsPath, metrics(c))
	mux.Handle("GET "+healthyPath, http.HandlerFunc(healthy))
	mux.Handle("GET "+readyPath, ready(c.Snapshot))
	mux.Handle("POST "+reloadPath, reload(c.Reload, c.Logger))
	mux.Handle("PUT "+reloadPath, reload(c.Reload, c.Logger))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.ContentLength != 0 {
			// No path takes a body. net/http would wait for it before the answer, to use the
			// connection again, and after it, to have the client read the answer. What does
			// not take a deadline is no connection.
			w.Header().Set("Connection", "close")
			_ = http.NewResponseController(w).SetReadDeadline(time.Unix(0, 0))
		}
		mux.ServeHTTP(w, r)
	}), nil
}

// metrics returns the handler of the metrics. What could be gathered is exposed
// even if something could not: one broken metric must not hide the others.
func metrics(c Config) http.Handler {
	options := promhttp.HandlerOpts{
		ErrorLog:           slog.NewLogLogger(c.Logger.Handler(), slog.LevelError),
		ErrorHandling:      promhttp.ContinueOnError,
		Registry:           c.Registerer,
		DisableCompression: true, // exposition does it.
		EnableOpenMetrics:  true,
	}
	whole := promhttp.HandlerFor(c.Gatherer, options)
	chosen := func(a *answer, r *http.Request) {
		query := r.URL.Query()
		collect, exclude := query[collectParameter], query[excludeParameter]
		if len(collect)+len(exclude) == 0 {
			if len(query[nameParameter]) > 0 || !written(a, r, c.Write) {
				whole.ServeHTTP(a, r)
			}
			return
		}
		gatherer, err := c.Only(collect, exclude)
		if err != nil {
			http.Error(a, err.Error(), http.StatusBadRequest)
			return
		}
		promhttp.HandlerFor(gatherer, options).ServeHTTP(a, r)
	}
	return promhttp.InstrumentMetricHandler(c.Registerer, newExposition(atMost(c.MaxRequests, chosen)))
}

// written answers with what write writes, in the format that is asked for, and tells
// whether it could. The header is as promhttp has it. Of what could not be written to the
// end nothing is left: the client has not seen any of it.
func written(a *answer, r *http.Request, write func(io.Writer, expfmt.Format) error) bool {
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	if write(a, format) != nil {
		a.reset()
		return false
	}
	a.header.Add("Vary", "Accept")
	a.header.Set("Content-Type", string(format))
	return true
}

// atMost turns away requests beyond so many at the same time; 0 is no limit.
func atMost(requests int, handle func(*answer, *http.Request)) func(*answer, *http.Request) {
	if requests == 0 {
		return handle
	}
	places := make(chan struct{}, requests)
	return func(a *answer, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			handle(a, r)
		default:
			http.Error(a, fmt.Sprintf("Limit of concurrent requests reached (%d), try again later.", requests), http.StatusServiceUnavailable)
		}
	}
}
