package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
)

// ServeHasty is Serve that gives requests in flight hardly any time to end.
func ServeHasty(ctx context.Context, handler http.Handler, flags *toolkit.FlagConfig, logger *slog.Logger) error {
	return serve(ctx, handler, flags, logger, time.Millisecond)
}
