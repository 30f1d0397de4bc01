package web

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"rdma_exporter/internal/text"
	"rdma_exporter/internal/verdict"
)

// newVerdict answers requests with wrong parameters with 400 and a line.
func newVerdict(c Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, err := url.ParseQuery(r.URL.RawQuery)
		options, wrong := verdict.Parse(query)
		if err = cmp.Or(err, wrong); err != nil {
			respond(w, http.StatusBadRequest, text.Clean(err.Error()))
			return
		}
		encoding(c, func(now time.Time) any { return c.Verdict(options, now) }).ServeHTTP(w, r)
	})
}

// encoding returns a handler of a value in JSON.
func encoding(c Config, value func(now time.Time) any) http.Handler {
	return rendering(c, "application/json", func(w io.Writer, now time.Time) error { return json.NewEncoder(w).Encode(value(now)) })
}
