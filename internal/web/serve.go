package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/net/netutil"
)

// Serve serves handler on listeners until ctx is cancelled. It then accepts no connection,
// gives requests in flight 3 seconds, cuts the rest, and returns nil within 5 seconds in
// all. If listening ends by itself, it returns the error.
//
// A nil config means plain HTTP. Connections above a limit wait until another one ends.
func Serve(ctx context.Context, handler http.Handler, listeners []net.Listener, config *ConfigFile, logger *slog.Logger) error {
	return serve(ctx, handler, listeners, config, logger, shutdownTimeout)
}

// serve is Serve with another time for requests in flight.
func serve(ctx context.Context, handler http.Handler, listeners []net.Listener, config *ConfigFile, logger *slog.Logger, timeout time.Duration) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:          slog.NewLogLogger(bounded(logger, time.Now).Handler(), slog.LevelWarn),
	}
	path := config.toolkitPath()
	limited := make([]net.Listener, len(listeners))
	for i, l := range listeners {
		limited[i] = netutil.LimitListener(l, max(1, connectionLimit()/len(listeners)))
	}
	ended := make(chan error, 1)
	// The toolkit has a limit of its own, so that messages about connections cannot displace
	// those about the configuration.
	go func() {
		ended <- toolkit.ServeMultiple(limited, server, &toolkit.FlagConfig{WebConfigFile: &path}, bounded(logger, time.Now))
	}()

	select {
	case err := <-ended:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}

	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		logger.Warn("Requests in flight did not end in time and were cut", "err", err)
		if err := server.Close(); err != nil {
			logger.Warn("Cannot close all connections", "err", err)
		}
	}
	select {
	case err := <-ended:
		if !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP: %w", err)
		}
	case <-time.After(closeTimeout):
		logger.Warn("Listening did not end in time")
	}
	return nil
}
