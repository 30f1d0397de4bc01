package web

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ConnectionsFor is connectionsFor.
var ConnectionsFor = connectionsFor

// ServeHasty is Serve that gives requests in flight hardly any time to end.
func ServeHasty(ctx context.Context, handler http.Handler, listeners []net.Listener, config *ConfigFile, logger *slog.Logger) error {
	return serve(ctx, handler, listeners, config, logger, time.Millisecond)
}

// Reading makes f read its file with another function.
func Reading(f *ConfigFile, read func(path string) ([]byte, error)) { f.read = read }
