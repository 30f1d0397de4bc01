package web

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
)

// ServeHasty is Serve that gives requests in flight hardly any time to end.
func ServeHasty(ctx context.Context, handler http.Handler, listeners []net.Listener, flags *toolkit.FlagConfig, config *ConfigFile, logger *slog.Logger) error {
	return serve(ctx, handler, listeners, flags, config, logger, time.Millisecond)
}
