package web

import (
	"net/http"

	"rdma_exporter/internal/text"
)

// reload answers 200 once the configuration was reloaded, 500 with the reason if it cannot
// be used, and 403 if nobody may ask.
func reload(load func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if load == nil {
			respond(w, http.StatusForbidden, "Reloading over HTTP is switched off: --web.enable-lifecycle switches it on.")
			return
		}
		if err := load(); err != nil {
			respond(w, http.StatusInternalServerError, "The configuration cannot be reloaded: "+text.Clean(err.Error()))
			return
		}
		respond(w, http.StatusOK, "The configuration was reloaded.")
	})
}
