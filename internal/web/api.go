package web

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/text"
	"rdma_exporter/internal/verdict"
)

func newAPI(c Config) http.Handler {
	return rendering(c, "application/json", func(w io.Writer, now time.Time) error {
		return json.NewEncoder(w).Encode(c.Status(now))
	})
}

// newVerdict answers requests with wrong parameters with 400 and a line.
func newVerdict(c Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, err := url.ParseQuery(r.URL.RawQuery)
		options, wrong := verdict.Parse(query)
		if err = cmp.Or(err, wrong); err != nil {
			respond(w, http.StatusBadRequest, text.Clean(err.Error()))
			return
		}
		rendering(c, "application/json", func(w io.Writer, now time.Time) error {
			return json.NewEncoder(w).Encode(c.Verdict(options, now))
		}).ServeHTTP(w, r)
	})
}

func movedAPI(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusGone, "The status is now at "+api.Path+"; docs/migration.md lists the new names.")
}
