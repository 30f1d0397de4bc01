package web

import (
	"log/slog"
	"net/http"

	"rdma_exporter/internal/text"
)

// reload answers 200 once the configuration was reloaded, 500 with the reason if it cannot
// be used, and 403 if nobody may ask. The logger is told of the first two.
func reload(load func() error, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if load == nil {
			respond(w, http.StatusForbidden, "Reloading over HTTP is off: --web.enable-lifecycle enables it.")
			return
		}
		if err := load(); err != nil {
			logger.Error("Cannot reload the configuration: the previous one stays in force", "err", err)
			respond(w, http.StatusInternalServerError, "Cannot reload the configuration: "+text.Clean(err.Error()))
			return
		}
		logger.Info("Configuration reloaded")
		respond(w, http.StatusOK, "Configuration reloaded.")
	})
}
