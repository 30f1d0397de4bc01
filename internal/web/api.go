package web

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"rdma_exporter/internal/api"
)

func newAPI(c Config) http.Handler {
	return rendering(c, "application/json", func(w io.Writer, now time.Time) error {
		return json.NewEncoder(w).Encode(c.Status(now))
	})
}

func movedAPI(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusGone, "The status is now at "+api.Path+"; docs/migration.md lists the new names.")
}
