package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
)

const (
	// shutdownTimeout is how long requests in flight may go on after the end was
	// asked for.
	shutdownTimeout = 3 * time.Second
	// closeTimeout is how long closed listeners may take to be given up.
	closeTimeout = time.Second
)

// Serve listens as flags say and serves handler until ctx is cancelled. Then it
// takes no new connections, gives requests in flight 3 seconds to end, cuts those
// that have not, and returns nil: within 5 seconds in all. If it cannot listen,
// or listening ends by itself, it returns the error.
//
// The files that flags name are read again for each connection and request, so
// that certificates and passwords can be replaced.
//
// Connections, and what is kept for clients that do not read it, are bounded: those
// that are beyond a limit cost others, not the exporter and not who comes next.
func Serve(ctx context.Context, handler http.Handler, flags *toolkit.FlagConfig, logger *slog.Logger) error {
	return serve(ctx, handler, flags, logger, shutdownTimeout)
}

// serve is Serve that gives requests in flight some time to end.
func serve(ctx context.Context, handler http.Handler, flags *toolkit.FlagConfig, logger *slog.Logger, timeout time.Duration) error {
	connections := bounded(logger, time.Now)
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReadFrameSize:              maxFrame,
			MaxReceiveBufferPerConnection: connectionReceives,
			MaxReceiveBufferPerStream:     streamReceives,
			WriteByteTimeout:              stallTimeout,
		},
		ConnState: newClients(connections).connState,
		ErrorLog:  slog.NewLogLogger(connections.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	// The toolkit has a count of its own: what it says of the configuration is not to be
	// lost among messages about connections.
	go func() { ended <- toolkit.ListenAndServe(server, flags, bounded(logger, time.Now)) }()

	select {
	case err := <-ended:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}

	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		logger.Warn("Requests in flight did not end in time and are cut", "err", err)
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
