package web

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"rdma_exporter/internal/api"
)

// apiPath is where the status is as JSON.
func apiPath() string { return fmt.Sprintf("/api/v%d/status", api.Version) }

// newAPI returns the handler of the status as JSON.
func newAPI(c Config) http.Handler {
	return &rendering{
		contentType: "application/json",
		render: func(w io.Writer, now time.Time) error {
			return json.NewEncoder(w).Encode(c.Status(now))
		},
		now: c.Now, logger: c.Logger,
	}
}
